"""Reading YAML: positions, the core schema, limits; any bytes make a Document or a SpecError."""

from __future__ import annotations

import io
import math
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from reconciler_specs.document import MAX_BYTES, Document, Node
from reconciler_specs.errors import SpecError, Where
from reconciler_specs.load import load_text
from reconciler_specs.scalars import OddFloat, OddInt, resolve


@settings(deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff")
@example(b"a: \xef\xbb\xbf")
@example(b"\xef\xbb\xbfa: 1")
@example(b"a: !<x> 1")
@example(b"? ? ? a")
@example(b"&a *a")
@example(b"- " * 2000)
@example(b"[" * 5000)
def test_any_bytes(data: bytes) -> None:
    try:
        document = Document.parse(data)
    except SpecError as error:
        assert error.reasons
    else:
        assert isinstance(document.root, Node)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:#-?&*!|>'\"%@`{}[], \n\t~$().019x\\", max_size=60))
def test_any_yaml_like_text(text: str) -> None:
    for name in ("setup.yaml", "setup.json"):
        try:
            Document.parse(text, name).root.plain()
        except SpecError as error:
            assert all(str(r) for r in error.reasons)


_LINES = st.lists(
    st.sampled_from(
        [
            "version: 1", "name: solo", "homes:", "  main:", "    harness: hermes", "    path: /x", "    profiles:",
            "      default:", "        jobs:", "          b:", "            schedule: {every: 30m}",
            "            deliver: local", "            prompt: x", "        settings: {a.b: [1, {c: null}]}",
            "        files: {A: {text: x}}", "        inference: {models: {m: {}}, default: m}", "templates: {t: {}}",
            "  extends: [t]", "    extends: [t, t]", "include: ['*']", "parameters: {p: {type: string}}", "moved: [{}]",
            "    with: {p: 1}", "released: [x]", "policy: {raise: {a: b}}", "places: {p: {exec: [1]}}", "x-y: [*a]",
            "    policy: []", "homes: []", "        files: []", "            fields: [x]", "            unset: {}",
        ]
    ),
    max_size=20,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_LINES)
def test_any_setup_like_lines(lines: list[str]) -> None:
    try:
        load_text("\n".join(lines), base_dir="/nonexistent")
    except SpecError as error:
        assert error.reasons


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3),
    max_leaves=6,
)
_KEYS = [
    "version", "name", "formerly", "include", "parameters", "places", "policy", "templates", "homes", "moved",
    "released", "main", "harness", "path", "at", "door", "extends", "with", "profiles", "default", "jobs", "brief",
    "schedule", "deliver", "prompt", "run", "model", "context_from", "toolsets", "monitor", "fields", "unset",
    "protect", "settings", "files", "inference", "models", "fallbacks", "auxiliary", "rebase", "text", "source",
    "mode", "seed", "on_drift", "limits",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        _JUNK,
        lambda inner: st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6) | st.lists(inner, max_size=2),
        max_leaves=30,
    )
)
def test_any_values_under_known_keys(value: Any) -> None:
    import json

    home = {"harness": "hermes", "path": "/x", "profiles": value}
    for tree in (value, {"version": 1, "name": "a", "homes": {"main": value}}, {"homes": {"main": home}}):
        try:
            load_text(json.dumps(tree, allow_nan=False), base_dir="/nonexistent")
        except SpecError as error:
            assert error.reasons
        except ValueError:
            assert not _finite(tree)


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


# --- the same tree as ruamel's -------------------------------------------------------------------------------------

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text(
        alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n"), max_size=20
    )
)
_TREES = st.dictionaries(
    st.text(alphabet="abcdefgh.-_ #:", min_size=1, max_size=8),
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-", min_size=1, max_size=4), inner),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(_TREES, st.booleans())
def test_same_tree_as_ruamel(tree: dict[str, Any], flow: bool) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = flow
    stream = io.StringIO()
    yaml.dump(tree, stream)
    text = stream.getvalue()
    try:
        ours = Document.parse(text).root.plain(nulls=True)
    except SpecError as error:
        # What libyaml or our rules refuse is refused, never read as something else.
        assert error.reasons
        return
    assert ours == _text_keys(YAML(typ="safe", pure=True).load(text))


def _text_keys(value: Any) -> Any:
    """A key is a text to us: ruamel writes `?0` in a flow as it is, and reads it back as the key 0."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


# --- scalars -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
        ("true", True), ("FALSE", False), ("yes", "yes"), ("on", "on"), ("y", "y"),
        ("0", 0), ("-1", -1), ("12", 12), ("1.5", 1.5), ("-0.5", -0.5),
        ("1_000", "1_000"), ("0b1", "0b1"), ("1:30", "1:30"), ("2031-02-03", "2031-02-03"), ("1e", "1e"), ("+", "+"),
        (".", "."), ("0o8", "0o8"), ("0xg", "0xg"),
    ],
)  # fmt: skip
def test_core_schema(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0123", 123), ("0x1f", 31), ("0o17", 15), ("+5", 5), ("-0", 0), ("1e3", 1000.0), ("0.20", 0.2), (".5", 0.5),
     ("1.", 1.0), ("1700000000.10", 1700000000.1)],
)  # fmt: skip
def test_odd_numbers_keep_their_text(text: str, value: float) -> None:
    found = resolve(text)
    assert isinstance(found, OddInt | OddFloat)
    assert found == value
    assert found.text == text


def test_a_number_too_long() -> None:
    with pytest.raises(SpecError, match="too long"):
        Document.parse("a: " + "9" * 5000)


def test_positions_and_keys() -> None:
    root = Document.parse("a:\n  - b: 'x'\n    \"c\": 2\n", "f").root
    inner = root.value["a"].value[0]
    assert inner.value["b"].where == Where("f", 2, 8)
    assert inner.where_key("c") == Where("f", 3, 5)
    assert root.descend(("a", 0, "c")).value == 2
    assert root.descend(("a", 7, "c")) is root.value["a"]


def test_aliases_are_copies() -> None:
    root = Document.parse("a: &x {b: 1}\nc: *x\n").root
    assert root.value["c"].plain() == {"b": 1}
    assert root.value["c"] is not root.value["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [*x]", "inside its own anchor"),
        ("&a b: 1", "anchor on a key"),
        ('a: "\\0"', "NUL"),
        ("a: \x1b", "control character"),
        ("a: \x00", "control character"),
        ("? [a]\n: 1", "plain text"),
        ("?\n: 1", "missing before the colon"),
        ("a: !!str 1", "tag"),
        ("a: !x {}", "tag"),
        ("!x a: 1", "tag"),
        ("a: 1\nb: {c: 1, c: 2}", "second time"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Document.parse(text)


def test_laughs_are_not_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(SpecError, match="100 aliases"):
        Document.parse("\n".join(lines))


def test_aliases_do_not_nest_deeper_than_text() -> None:
    chain = "x-0: &a0 " + "[" * 40 + "]" * 40
    chain += "".join(f"\nx-{n}: &a{n} " + "[" * 40 + f"*a{n - 1}" + "]" * 40 for n in range(1, 90))
    with pytest.raises(SpecError, match="deeper than 50"):
        Document.parse(chain)


@pytest.mark.parametrize("text", ["a: " + "1," * 500_000 + ": : x", "a: " + "-eyJ" * 500_000, "a: *" + "1," * 500_000])
def test_long_lines_are_no_trap(text: str) -> None:
    start = time.process_time()
    with suppress(SpecError):
        load_text(text)
    assert time.process_time() - start < 10


def test_too_large() -> None:
    with pytest.raises(SpecError, match="too large"):
        Document.parse(b"a: " + b"x" * MAX_BYTES)


def test_where_bytes_are_no_utf8() -> None:
    with pytest.raises(SpecError) as caught:
        Document.parse(b"a: 1\nb: \xe4\n", "f")
    assert caught.value.reasons[0].where == Where("f", 2, 4)


def test_json_surrogates_and_bom() -> None:
    assert Document.parse('\ufeff{"a": "\\ud83d\\ude00 \\u00e4"}', "setup.json").root.plain() == {"a": "😀 ä"}
