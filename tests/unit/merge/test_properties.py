"""What holds for every merge and every row of the field table, whatever the values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.action import CLEAR, FieldRow
from reconciler.fields import decide
from reconciler.merge import changed, clashes, covers, equal, meet, merge, owned_paths
from reconciler.observe import ABSENT
from reconciler.textmerge import TextClash, merge3
from reconciler.values import canonical, is_only, members, same, to_base
from reconciler.verify import disagreements
from reconciler_specs.resource import Mode
from reconciler_specs.shape import ATOMIC, SCALAR, SET, TEXT, Class, Shape
from reconciler_state.record import Base

leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 0.5, "", "a", "b"]))
json_values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abc"), v, max_size=3), max_leaves=6
)
NESTED = Shape(Class.MAP, fields={"tags": SET, "deep": Shape(Class.MAP)})
KEYED = Shape(Class.KEYED, keys=("name", "proto"), defaults={"proto": "tcp"}, of=NESTED)

sets = st.lists(leaves, max_size=4)
maps = st.fixed_dictionaries(
    {}, optional={"tags": sets, "deep": st.dictionaries(st.sampled_from("xyz"), leaves, max_size=3), "v": leaves}
)
items = st.builds(
    lambda n, p, m: {"name": n, **p, **m}, st.sampled_from("abc"), st.sampled_from([{}, {"proto": "udp"}]), maps
)
keyed = st.lists(items, max_size=4, unique_by=lambda i: (i["name"], i.get("proto")))
lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=6).map("".join)

# shape, what may be declared, what may be observed
CLASSES: dict[str, tuple[Shape, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "scalar": (SCALAR, json_values, json_values),
    "atomic": (ATOMIC, st.lists(json_values, max_size=3), json_values),
    "set": (SET, sets | st.builds(lambda m: {"only": m}, sets), sets | leaves),
    "map": (NESTED, maps, maps | leaves),
    "keyed": (KEYED, keyed, keyed | st.lists(items, max_size=4) | leaves),
    "text": (TEXT, lines, lines | st.just({"$hidden": "d"})),
}
every_class = pytest.mark.parametrize("cls", CLASSES)


def draw(cls: str, data: st.DataObject) -> tuple[Shape, Any, Any, Any, Any]:
    shape, declared, observed = CLASSES[cls]
    absent = st.just(ABSENT)
    return (
        shape,
        data.draw(declared, "declared"),
        data.draw(declared | absent, "base declared"),
        data.draw(observed | absent, "observed"),
        data.draw(observed | absent, "base observed"),
    )


@every_class
@given(st.data())
def test_a_write_converges(cls: str, data: st.DataObject) -> None:
    shape, d, bd, o, bo = draw(cls, data)
    base = data.draw(st.sampled_from([None, Base(to_base(bd), to_base(bo))]))
    unset = data.draw(st.booleans())
    flags: dict[str, Any] = {"created": True, "restore": True, "unset": unset}
    change = decide("f", shape, ABSENT if unset else d, base, o, **flags)
    assert change.row not in (FieldRow.DRIFT, FieldRow.CONFLICT)  # --restore decides both
    now = (ABSENT if change.write is CLEAR else change.write) if change.writes else o
    if change.row is not FieldRow.IN_SYNC:
        base = Base(to_base(change.declared), to_base(now))
    again = decide("f", shape, change.declared, base, now, **flags)
    assert again.row is FieldRow.IN_SYNC


@every_class
@given(st.data())
def test_nothing_is_written_while_nothing_moved(cls: str, data: st.DataObject) -> None:
    shape, d, _, o, _ = draw(cls, data)
    mode, created = data.draw(st.sampled_from(Mode)), data.draw(st.booleans())
    base = Base(to_base(d), to_base(o))
    for restore in (False, True):
        row = decide("f", shape, d, base, o, mode=mode, created=created, restore=restore).row
        assert row is FieldRow.IN_SYNC


@every_class
@given(st.data())
def test_merging_again_changes_nothing(cls: str, data: st.DataObject) -> None:
    shape, d, bd, o, _ = draw(cls, data)
    merged = merge(shape, bd, d, o)
    assert same(merge(shape, d, d, merged), merged)


@pytest.mark.parametrize("cls", ["set", "map", "keyed"])
@given(st.data())
def test_what_nobody_declared_survives(cls: str, data: st.DataObject) -> None:
    """Every change that the merge makes lies at, above or below something that was or is declared."""
    shape, d, bd, o, _ = draw(cls, data)
    if is_only(d):
        return
    # A value that has not the class's form holds no members: it is replaced whole.
    if not isinstance(o, dict if cls == "map" else list):
        return
    spoken = owned_paths(shape, d) | owned_paths(shape, bd)
    if is_only(bd):
        spoken = owned_paths(shape, d) | owned_paths(shape, members(bd))
    diff = changed(shape, o, merge(shape, bd, d, o))
    assert meet(diff, spoken) == diff


@every_class
@given(st.data())
def test_satisfied_is_what_the_merge_leaves_alone(cls: str, data: st.DataObject) -> None:
    shape, d, _, o, _ = draw(cls, data)
    if o is not ABSENT:
        assert covers(shape, o, d) is equal(shape, merge(shape, ABSENT, d, o), o)
    assert covers(shape, merge(shape, ABSENT, d, o), d)


@every_class
@given(st.data())
def test_what_is_written_agrees_with_itself(cls: str, data: st.DataObject) -> None:
    shape, d, bd, o, _ = draw(cls, data)
    merged = merge(shape, bd, d, o)
    assert disagreements(merged, merged, shape) == []
    assert not changed(shape, merged, merged)
    assert not clashes(shape, d, d)


@every_class
@given(st.data())
def test_another_setup_keeps_what_it_declares(cls: str, data: st.DataObject) -> None:
    shape, d, bd, o, _ = draw(cls, data)
    other = data.draw(CLASSES[cls][1], "other setup")
    if is_only(d) or is_only(other) or clashes(shape, d, other) or o is ABSENT or not covers(shape, o, other):
        return
    assert covers(shape, merge(shape, bd, d, o, [other]), other) or cls in ("text", "scalar", "atomic")
    assert covers(shape, merge(shape, bd, ABSENT, o, [other]), other)


@given(json_values, json_values)
def test_canonical_is_same(a: Any, b: Any) -> None:
    assert same(a, b) is same(b, a) is (canonical(a) == canonical(b))


@pytest.mark.parametrize(
    ("shape", "one", "two", "paths"),
    [
        (SCALAR, 1, 1.0, set()),
        (SCALAR, 1, True, {()}),
        (SET, ["a"], ["b"], set()),
        (SET, {"only": ["a", "b"]}, ["b"], set()),
        (SET, {"only": ["a"]}, ["b"], {('[="a"]',), ('[="b"]',)}),
        (SET, {"only": ["a"]}, {"only": ["a", "b"]}, {('[="b"]',)}),
        (SET, ["a"], None, {('[="a"]',)}),
        (NESTED, {"v": 1, "tags": ["a"]}, {"v": 2, "tags": ["b"], "deep": {}}, {("v",)}),
        (NESTED, {"deep": {"x": 1, "y": 2}}, {"deep": {"x": 3, "z": 4}}, {("deep", "x")}),
        (KEYED, [{"name": "a", "v": 1}], [{"name": "a", "v": 2}, {"name": "b"}], {('[name="a",proto="tcp"]', "v")}),
    ],
)
def test_where_two_setups_differ(shape: Shape, one: Any, two: Any, paths: set[tuple[str, ...]]) -> None:
    assert clashes(shape, one, two) == paths == clashes(shape, two, one)
    assert not clashes(shape, one, ABSENT) and not clashes(shape, ABSENT, two)


def test_null_may_as_well_be_absent_in_a_read_back() -> None:
    assert disagreements({"a": 1, "b": None}, {"a": 1}) == [] == disagreements({"a": 1}, {"a": 1, "b": None})
    assert disagreements({"a": None}, {"a": 1}) == [("a",)]
    assert disagreements({"a": {"$ref": "p/jobs/x"}}, {"a": "j1"}) == []
    assert disagreements({"a": {"$ref": "p/jobs/x"}}, {}) == [("a",)]


def test_bool_is_no_number() -> None:
    assert not same(1, True) and not same(0, False) and not same([1], [True]) and not same(0.0, False)
    assert same(1, 1.0) and same({"a": 1, "b": 2}, {"b": 2.0, "a": 1}) and same(2**60, float(2**60))
    assert same(float("nan"), float("nan")) and not same(float("nan"), 1.0)
    assert not same(2**53 + 1, float(2**53)) and not same(None, ABSENT) and not same("1", 1)


@given(lines, lines, lines)
def test_text_merge(base: str, ours: str, theirs: str) -> None:
    assert merge3(base, base, theirs) == theirs
    assert merge3(base, ours, base) == ours
    assert merge3(base, ours, ours) == ours
    there, back = merge3(base, ours, theirs), merge3(base, theirs, ours)
    assert isinstance(there, TextClash) is isinstance(back, TextClash)
    if isinstance(there, str):
        assert there == back
        assert merge3(ours, ours, there) == there
