"""Order of rows, who waits for whom, and the round in a cycle's message."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.action import Action, Row
from reconciler.graph import CycleError, order
from reconciler_specs.address import Address


def a(text: str, *needs: str, row: Row = Row.CREATE) -> Action:
    return Action(row, Address.parse(text), needs=tuple(Address.parse(n) for n in needs))


def names(actions: list[Action]) -> list[str]:
    return [str(x.address) for x in actions]


def test_without_needs_kinds_and_addresses_decide() -> None:
    rows = [
        a("m/p/jobs/a"),
        a("m/p/inference"),
        a("m/p/settings/x"),
        a("m/p/files/x"),
        a("m/p"),
        a("m", row=Row.ADOPT),
        a("m/b/jobs/z", row=Row.DELETE),
        a("m/a/jobs/b"),
    ]
    expected = "m m/p m/p/files/x m/p/settings/x m/p/inference m/a/jobs/b m/p/jobs/a m/b/jobs/z".split()  # noqa: SIM905
    assert names(order(rows)) == expected == names(order(rows[::-1]))


def test_needs_come_first() -> None:
    rows = [a("m/p/files/f", "m/p/jobs/z"), a("m/p/jobs/z", "m/q"), a("m/q"), a("m/p")]
    assert names(order(rows)) == ["m/p", "m/q", "m/p/jobs/z", "m/p/files/f"]


def test_a_need_without_a_row_is_met() -> None:
    assert names(order([a("m/p/jobs/b", "m/gone"), a("m/p/jobs/a")])) == ["m/p/jobs/a", "m/p/jobs/b"]


def test_deletes_go_last_and_backwards() -> None:
    rows = [
        a("m/p", row=Row.DELETE),
        a("m/p/jobs/a", "m/p", row=Row.DELETE),
        a("m/p/jobs/b", "m/p", "m/p/jobs/a", row=Row.DELETE),
        a("m/q/jobs/new", "m/q"),
        a("m/q"),
    ]
    assert names(order(rows)) == ["m/q", "m/q/jobs/new", "m/p/jobs/b", "m/p/jobs/a", "m/p"]


def test_two_rows_of_one_address_keep_their_order() -> None:
    rows = [a("m/p/jobs/a", row=Row.MOVED), a("m/p/jobs/a", row=Row.UPDATE), a("m/p/jobs/b", "m/p/jobs/a")]
    assert [(r.row, str(r.address)) for r in order(rows)] == [(r.row, str(r.address)) for r in rows]


def test_a_cycle_is_told_as_it_is_written() -> None:
    rows = [
        a("m/p/jobs/a", "m/p/jobs/b"),
        a("m/p/jobs/b", "m/p/jobs/c"),
        a("m/p/jobs/c", "m/p/jobs/a"),
        a("m/p/jobs/d", "m/p/jobs/a"),
    ]
    with pytest.raises(CycleError) as caught:
        order(rows)
    path = [str(p) for p in caught.value.path]
    assert path[0] == path[-1] and len(path) == 4
    needs = {str(r.address): [str(n) for n in r.needs] for r in rows}
    assert all(then in needs[first] for first, then in pairwise(path))
    assert " → ".join(path) in str(caught.value)


def test_a_thing_that_needs_itself() -> None:
    with pytest.raises(CycleError, match="m/p/jobs/a → m/p/jobs/a"):
        order([a("m/p/jobs/a", "m/p/jobs/a")])


def test_a_delete_comes_after_what_uses_the_thing() -> None:
    user, other = a("m/p/jobs/b", row=Row.DELETE), a("m/p/jobs/c")
    rows = [replace(a("m/p/jobs/a", row=Row.DELETE), after=(user.address, other.address)), user, other]
    assert [r.address.key for r in order(rows)] == ["c", "b", "a"]


def test_deletes_of_things_that_use_each_other() -> None:
    one, two = a("m/p/jobs/a", row=Row.DELETE), a("m/p/jobs/b", row=Row.DELETE)
    rows = [replace(two, after=(one.address,)), replace(one, after=(two.address,))]
    assert [r.address.key for r in order(rows)] == ["a", "b"]
    needing = [replace(two, needs=(one.address,)), replace(one, needs=(two.address,))]
    assert [r.address.key for r in order(needing)] == ["a", "b"]


@given(st.data())
def test_any_graph_without_a_round(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    rows = []
    for i in range(size):
        needs = data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        row = data.draw(st.sampled_from([Row.CREATE, Row.UPDATE, Row.DELETE]))
        rows.append(a(f"m/p/jobs/j{i:02}", *(f"m/p/jobs/j{n:02}" for n in needs), row=row))
    shuffled = data.draw(st.permutations(rows))
    ordered = order(shuffled)
    assert ordered == order(rows)
    place = {r.address: i for i, r in enumerate(ordered)}
    by_address = {r.address: r for r in rows}
    for r in rows:
        for need in r.needs:
            if (by_address[need].row is Row.DELETE) is (r.row is Row.DELETE):
                assert (place[need] < place[r.address]) is (r.row is not Row.DELETE)
            else:
                assert (place[need] < place[r.address]) is (r.row is Row.DELETE)


def test_networkx_is_loaded_late() -> None:
    code = (
        "import sys; from reconciler.graph import order; from reconciler.action import Action, Row;"
        "from reconciler_specs.address import Address; order([Action(Row.CREATE, Address.parse('m/p'))]);"
        "sys.exit('networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
