"""The field table as data: one case per file in tests/cases/merge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import CLEAR
from reconciler.fields import decide
from reconciler.observe import ABSENT, Unknown
from reconciler.values import same
from reconciler_specs.resource import Mode
from reconciler_specs.shape import Class, Shape
from reconciler_state.record import Base

CASES = sorted((Path(__file__).parents[2] / "cases" / "merge").glob("*.json"))


def shape(data: dict[str, Any]) -> Shape:
    return Shape(
        Class(data["class"]),
        of=shape(data["of"]) if "of" in data else None,
        fields={k: shape(v) for k, v in data.get("fields", {}).items()},
        keys=tuple(data.get("keys", ())),
        defaults=data.get("defaults", {}),
    )


def seen(value: Any) -> Any:
    if isinstance(value, dict) and "$absent" in value:
        return ABSENT
    if isinstance(value, dict) and "$unknown" in value:
        return Unknown(value["$unknown"])
    return CLEAR if isinstance(value, dict) and "$clear" in value else value


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_field_table(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    flags: dict[str, Any] = {k: Mode(v) if k == "mode" else v for k, v in case["flags"].items()}
    base = Base(**case["base"]) if case["base"] else None
    change = decide("f", shape(case["shape"]), seen(case["declared"]), base, seen(case["observed"]), **flags)
    assert change.row == case["row"], case["about"]
    assert change.mode is flags.get("mode", Mode.HOLD)
    if "write" in case:
        wanted = seen(case["write"])
        assert change.write is CLEAR if wanted is CLEAR else same(change.write, wanted), change.write
    if not change.writes:
        assert change.write is None
    if "note" in case:
        assert change.note == case["note"]


def test_the_table_is_whole() -> None:
    """Each row stands for each value class."""
    rows = {(c["shape"]["class"], c["row"]) for c in (json.loads(p.read_text("utf-8")) for p in CASES)}
    names = ["blocked", "unset", "release", "in-sync", "stamp", "claim", "drift", "restore", "set", "conflict"]
    assert rows == {(cls.value, row) for cls in Class for row in names}
