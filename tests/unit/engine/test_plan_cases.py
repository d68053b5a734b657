"""The presence and field tables of the laws, as scenarios: one case per file in tests/cases/plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.action import Action, Row
from reconciler.plan import Options
from world import World, outcomes

CASES = sorted((Path(__file__).parents[2] / "cases" / "plan").glob("*.yaml"))
HEAD = "version: 1\nname: solo\n"
CASE_KEYS = {"about", "setup", "before", "edit", "then", "options", "rows", "apply", "home", "after", "other", "at"}


def options(data: dict[str, Any]) -> Options:
    return Options(
        targets=tuple(data.get("targets", ())),
        restore=tuple(data.get("restore", ())),
        allow=frozenset(data.get("allow", ())),
        unmanaged=data.get("unmanaged", False),
    )


def told(action: Action, expected: dict[str, Any]) -> dict[str, Any]:
    """What a case may say of a row, said of this one: only the keys that the case names."""
    facts: dict[str, Any] = {
        "row": str(action.row),
        "fields": {c.field: str(c.row) for c in action.changes},
        "writes": {c.field: c.write for c in action.changes if c.writes},
        "held": action.hold is not None or bool(action.held_fields),
        "next": action.hold.command if action.hold else "",
        "tier": str(action.tier),
        "reason": action.hold.why if action.hold else action.reason,
        "notes": list(action.notes),
        "guard": action.guard,
        "rule": action.rule,
    }
    shown = {}
    for key, value in expected.items():
        fact = facts[key]
        if key in ("reason",) and isinstance(value, str) and value in fact:
            fact = value
        if key == "notes":
            fact = value if all(any(v in n for n in fact) for v in value) else fact
        shown[key] = fact
    return shown


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    assert set(case) <= CASE_KEYS, f"unknown keys {set(case) - CASE_KEYS}"
    world = World(tmp_path)
    world.home()
    world.edit(case.get("before", ()))
    if "setup" in case:
        world.setup(HEAD + case["setup"])
        first = outcomes(world.apply())
        assert set(first.values()) <= {"applied"}, first
    if "other" in case:
        world.setup(case["other"])
        world.apply()
    world.edit(case.get("edit", ()))
    world.now = case.get("at", world.now)
    world.setup(
        case["then"] if "version: 1" in case.get("then", "") else HEAD + case.get("then", case.get("setup", ""))
    )
    asked = options(case.get("options", {}))
    plan = world.plan(asked)
    home = plan.homes[0]
    if "home" in case:
        text = home.failed or (home.hold.why if home.hold else "")
        assert case["home"] in text, text
    actual = {a.address.path or a.address.home: a for a in home.actions if a.row is not Row.IN_SYNC}
    expected = case.get("rows", {})
    assert {k: told(a, expected.get(k, {"row": ""})) for k, a in actual.items()} == expected
    if "apply" in case:
        done = {k.removeprefix("main/"): v for k, v in outcomes(world.apply(options=asked)).items()}
        assert done == case["apply"]
        again = world.rows(asked)
        assert {k.removeprefix("main/"): str(r.row) for k, r in again.items()} == case.get("after", {})
