"""What is read without the library is what the library reads."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler_native import plainyaml
from reconciler_native.yamltext import parse
from reconciler_shape import configfile

words = st.sampled_from(
    [
        "a", "b", "key", "on", "y", "no", "true", "True", "null", "0", "7", "007", "0x1f", "1_000", "1.5", "12:30",
        "-1", "a b", "a: b", "a:b", "a#b", "a #b", "#", "x/y.z", "http://x:80/y", "http://x:", "${TOKEN}", "${A}b",
        "${", "'q'", '"q"', "'it''s'", '"a\\n"', '"', "- a", "[]", "{}", "&x", "*x", "!t", "|", ">", "---", "...",
        "~", "=", "<<", "", "2026-12-01", "a,b", "é", "\t", "%", "@a", "`a", "a ", "?", "? a", "1e3", ".5", "+1",
        "9" * 20,
    ]
)  # fmt: skip
lines = st.builds(
    lambda indent, key, colon, value, tail: " " * indent + key + colon + value + tail,
    st.sampled_from([0, 0, 0, 1, 2, 2, 4]),
    words,
    st.sampled_from([": ", ":", ":  ", "", " : "]),
    words,
    st.sampled_from(["", "", " ", " # c", "#c", "\r"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=5).map("\n".join))
@example("a:\n  b: 1\n c: 2")
@example("a:\n  b: 1\n    c: 2")
@example("a:\n# c\n  b:\n\n  c: x\nd: y\n")
@example(" a: 1\n")
@example("  a: 1\nb: 2\n")
def test_what_is_read_is_what_the_library_reads(text: str) -> None:
    found = plainyaml.read(text.encode())
    if found is None:
        return
    theirs = configfile.parse(text.encode(), "x")
    assert found == theirs and repr(found) == repr(theirs)


plain = st.recursive(
    st.integers(0, 10**6)
    | st.booleans()
    | st.sampled_from(["a", "b/c", "Two words", "http://x:80/v1", "${KEY}", "3x"]),
    lambda below: st.dictionaries(st.sampled_from(["a", "b_c", "model", "_v"]), below, min_size=1, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b_c", "model", "_v"]), plain, max_size=4))
def test_what_is_written_plainly_is_read(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, sort_keys=False) if value else ""
    found = plainyaml.read(text.encode())
    assert found == value or "3x" in text


@pytest.mark.parametrize(
    "text", ["_config_version: 33\n", "# mine\nmodel:\n  default: a/b  # now\n  provider: openrouter\nx: ''\nz:\n", ""]
)
def test_a_usual_config_needs_no_library(text: str) -> None:
    assert plainyaml.read(text.encode()) == parse(text.encode(), "config.yaml") == (yaml.safe_load(text) or {})
