"""Rows that would cost a file its comments are held; those that write another file, or none, are not."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.action import Action, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT
from reconciler_specs.address import Address
from reconciler_specs.shape import Class, Shape

PLAIN = "{gateway: {mode: 'local'}, logging: {$include: './logging.json5'}, tools: {$include: './tools.json5'}}"
AGENTS = "{agents: {$include: './agents.json5'}}"


def row(path: str, field: str = "value", kind: Row = Row.UPDATE) -> Action:
    change = FieldChange(field, FieldRow.SET, 1, ABSENT, None, Shape(Class.SCALAR), 1)
    return Action(kind, Address.parse(f"main/{path}"), path, (change,))


def guards(site: Any, *rows: Action) -> list[str]:
    """Of each row the guard that holds it, "" if it may go on."""
    reviewed = site.provider.review(rows, site.observe(), {})
    assert [bool(r.guard) for r in reviewed] == [not r.writes for r in reviewed]
    return [r.guard for r in reviewed]


@pytest.mark.parametrize(
    ("config", "path", "field", "held"),
    [
        ("// c\n" + PLAIN, "default/settings/gateway.port", "value", True),
        ("// c\n" + PLAIN, "default/settings/logging.level", "value", False),  # OpenClaw writes the include alone
        (PLAIN, "default/settings/tools.profile", "value", True),
        (PLAIN, "default/settings/tools", "value", True),
        (PLAIN, "default/settings/logging.level", "value", False),
        (PLAIN, "default/settings/gateway.port", "value", False),
        (PLAIN, "default/inference", "default", False),
        ("// c\n" + PLAIN, "default/inference", "default", True),
        ("// c\n" + PLAIN, "ops", "description", True),
        ("// c\n" + PLAIN, "default/jobs/brief", "prompt", False),
        ("// c\n" + PLAIN, "default/files/SOUL.md", "text", False),
        ("// c\n" + AGENTS, "default/inference", "default", False),
        ("// c\n" + AGENTS, "default/inference", "providers", True),
    ],
)
def test_the_file_that_a_row_writes_decides(site: Any, config: str, path: str, field: str, held: bool) -> None:
    site.config(config)
    site.write("logging.json5", "{level: 'info'}")
    site.write("tools.json5", "{ // why\n profile: 'coding'}")
    site.write("agents.json5", "{entries: {main: {}}}")
    assert guards(site, row(path, field)) == ["comment-loss" if held else ""]


def test_each_row_that_would_is_held_and_says_what_lifts_it(site: Any) -> None:
    site.config("// c\n" + PLAIN.replace(", tools: {$include: './tools.json5'}", ""))
    site.write("logging.json5", "{level: 'info'}")
    rows = [row("ops", "description", Row.CREATE), row("default/settings/gateway.port")]
    assert guards(site, *rows) == ["comment-loss"] * 2
    first = site.provider.review(rows, site.observe(), {})[0]
    assert first.hold is not None
    assert first.hold.command == "reconciler apply --allow comment-loss"
    assert any("a copy is kept" in note for note in first.notes)


def test_a_new_home_has_no_comments(site: Any) -> None:
    rows = [row("ops", "description", Row.CREATE)]
    assert site.provider.review(rows, site.provider.blank(site.ref, ["ops"]), {})[0].hold is None
