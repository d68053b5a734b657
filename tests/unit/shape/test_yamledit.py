"""Edits to YAML text: the wanted change and no other, for any file and any value."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler_shape.plain import same
from reconciler_shape.yamledit import CannotEdit, edit

FILE = """\
# top
a: 1   # one
b:
  # inside
  c: "x"
  d:
  - 1   # first
  - {e: 2}

  f: |   # text
    one

    two
g: {h: 1, i: [1, 2], "on": off}   # flow
j:
k: *anchor_free
""".replace("k: *anchor_free\n", "")


def changed(new: str, old: str = FILE) -> list[str]:
    return [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]


@pytest.mark.parametrize(
    ("sets", "unsets", "lines"),
    [
        ([(["a"], 2)], [], ["- a: 1   # one", "+ a: 2   # one"]),
        ([(["b", "c"], "yes")], [], ['-   c: "x"', "+   c: 'yes'"]),
        ([(["b", "new"], True)], [], ["+   new: true"]),
        ([(["b", "d"], [])], [], ["-   d:", "+   d: []", "-   - 1   # first", "-   - {e: 2}"]),
        ([(["b", "f"], "new\n")], [], ["-     one", "- ", "-     two", "+     new"]),
        ([(["g", "h"], 2)], [], None),
        ([(["g", "z"], {"x": None})], [], None),
        ([(["j"], 1)], [], ["- j:", "+ j: 1"]),
        ([(["j", "k", "l"], 1)], [], ["+   k:", "+     l: 1"]),
        ([(["n.o", "p"], 1)], [], ["+ n.o:", "+   p: 1"]),
        ([], [["b", "f"]], ["-   f: |   # text", "-     one", "- ", "-     two"]),
        ([], [["g", "i"]], None),
        ([], [["g", "on"]], None),
        ([], [["nothing", "there"]], []),
        ([], [["a"], ["a"]], ["- a: 1   # one"]),
    ],
)
def test_only_these_lines(sets: list[Any], unsets: list[Any], lines: list[str] | None) -> None:
    new = edit(FILE, sets, unsets)
    if lines is not None:
        assert sorted(changed(new)) == sorted(lines)
    assert "# top" in new and "# flow" in new


@pytest.mark.parametrize(
    ("text", "sets", "unsets", "result"),
    [
        ("", [(["a", "b"], 1)], [], "a:\n  b: 1\n"),
        ("# only a comment", [(["a"], 1)], [], "# only a comment\na: 1\n"),
        ("---\na: 1\n...\n", [(["b"], 2)], [], "---\na: 1\nb: 2\n...\n"),
        ("a: 1", [(["b"], 2)], [], "a: 1\nb: 2\n"),
        ("{a: 1}\n", [(["b"], 2)], [], "{a: 1, b: 2}\n"),
        ("{}\n", [(["b"], 2)], [], "{b: 2}\n"),
        ("a: {}\n", [(["a", "b"], "${X}")], [], "a: {b: '${X}'}\n"),
        ("{a: 1, b: 2}\n", [], [["b"]], "{a: 1}\n"),
        ("{a: 1}\n", [], [["a"]], "{}\n"),
        ("a:\n  b:\n    c: 1\nd: 2\n", [], [["a", "b", "c"]], "d: 2\n"),
        ("a: 1\r\nb: 2\r\n", [(["b"], 3), (["c"], 4)], [], "a: 1\r\nb: 3\r\nc: 4\r\n"),
        ("\ufeffa: 1\n", [(["a"], 2)], [], "\ufeffa: 2\n"),
        ("a: 'two\n  lines'\nb: 1\n", [(["a"], 1)], [], "a: 1\nb: 1\n"),
        ("x: &x {a: 1}\ny: *x\nz: 1\n", [(["y"], 2)], [], "x: &x {a: 1}\ny: 2\nz: 1\n"),
        (
            "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 1\n",
            [(["y", "a"], 2)],
            [],
            "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 1\n  a: 2\n",
        ),
    ],
)
def test_small_files(text: str, sets: list[Any], unsets: list[Any], result: str) -> None:
    assert edit(text, sets, unsets) == result


@pytest.mark.parametrize(
    ("text", "sets", "unsets"),
    [
        ("a: 1\na: 2\n", [], [["a"]]),  # the first would come to light
        ("x: &x {a: 1}\ny: *x\n", [(["x", "a"], 2)], []),
        ("x: &x {a: 1}\ny: *x\n", [(["y", "a"], 2)], []),
        ("x: &x\n  a: 1\ny:\n  <<: *x\n", [], [["y", "a"]]),
        ("a: 1\n", [(["a", "b"], 1)], []),
        ("a: [1]\n", [(["a", "0"], 1)], []),
        ("- a\n", [(["a"], 1)], []),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, sets: list[Any], unsets: list[Any]) -> None:
    with pytest.raises(CannotEdit):
        edit(text, sets, unsets)


def test_a_list_reads_as_a_list() -> None:
    assert same([1], [1]) and not same([1], [True]) and not same(1, 1.0) and same(float("nan"), float("nan"))


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXT,
    st.sampled_from(
        ["yes", "off", "~", "0755", "12:30", "1e5", "1_000", "=", "<<", "- x", "a: b", "a #b", "${X}", "x\n", "\ty"]
    ),
)
_VALUES = st.recursive(
    _SCALARS, lambda s: st.one_of(st.lists(s, max_size=3), st.dictionaries(_TEXT, s, max_size=3)), max_leaves=6
)
_KEYS = st.one_of(st.sampled_from(["a", "b", "c", "d.e", "on", ""]), _TEXT)
_MAPS = st.dictionaries(_KEYS, st.one_of(_VALUES, st.dictionaries(_KEYS, _VALUES, max_size=3)), max_size=5)


@settings(max_examples=300, deadline=None)
@given(
    data=_MAPS, path=st.lists(_KEYS, min_size=1, max_size=3), value=_VALUES, flow=st.sampled_from([None, False, True])
)
def test_any_file_any_value(data: dict[str, Any], path: list[str], value: Any, flow: bool | None) -> None:
    """Set, read, unset, read: exactly what a plain mapping would give, or a refusal that touches nothing."""
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True)
    if not same(yaml.safe_load(text), data) or "? " in text:
        return  # PyYAML's own trouble, and keys of more than a line, which nobody writes
    try:
        new = edit(text, [(path, value)], [])
    except CannotEdit:
        here: Any = data
        for segment in path[:-1]:
            here = here.get(segment) if isinstance(here, dict) else here
        in_the_way = here is not None and not isinstance(here, dict)
        assert in_the_way or not _prints(value, path)
        return
    found: Any = yaml.safe_load(new)
    for segment in path:
        found = found[segment]
    assert same(found, value)
    if "? " not in new:  # a key in that form is not taken out again
        assert path[0] in data or not isinstance(yaml.safe_load(edit(new, [], [path])), list)


def _prints(value: Any, path: list[str]) -> bool:
    """Whether PyYAML itself gets the value back."""
    text = yaml.safe_dump({"x": value, "y": path}, allow_unicode=True, width=1 << 30)
    return same(yaml.safe_load(text), {"x": value, "y": path})
