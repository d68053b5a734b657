"""Which rows a door gets together."""

from __future__ import annotations

import pytest

from reconciler.action import Action, Row
from reconciler.steps import steps
from reconciler_specs.address import Address


def row(path: str, *after: str, kind: Row = Row.DELETE) -> Action:
    return Action(kind, Address.parse(f"main/{path}"), "x", after=tuple(Address.parse(f"main/{a}") for a in after))


USER, SOURCE = "default/jobs/user", "default/jobs/source"
ROUTE, ACCOUNT = "default/routes/a", "default/channels/a"


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([row(USER), row(SOURCE, USER)], [1, 1]),  # a job's delete is seen to have worked before the next begins
        ([row(USER), row("default/jobs/other"), row(SOURCE, USER)], [2, 1]),
        ([row(ROUTE), row(ACCOUNT, ROUTE)], [2]),  # a config is written once
        ([row(USER), row(ACCOUNT, ROUTE)], [2]),
    ],
)
def test_a_delete_waits_for_what_of_its_kind_uses_the_thing(rows: list[Action], sizes: list[int]) -> None:
    assert [len(step) for step in steps(rows, lambda _: "one")] == sizes


def test_what_only_records_goes_with_its_neighbours() -> None:
    moved = row("default/jobs/m", kind=Row.MOVED)
    made = [row("a", kind=Row.CREATE), moved, row("default/jobs/j", kind=Row.CREATE)]
    assert [len(step) for step in steps(made, lambda a: str(a.address.kind))] == [2, 1]
