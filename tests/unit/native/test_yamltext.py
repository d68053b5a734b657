"""`config.yaml` as a text: an edit changes its own path, and every other line stays."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler_native.errors import LoadFailed, Refused
from reconciler_native.yamltext import YamlFile
from reconciler_shape.plain import same

CONFIG = """\
# the top
_config_version: 33   # ours
model:
  # which one
  default: a/b  # quick
  provider: openrouter
  api_key: ${KEY}

platforms: {telegram: {enabled: true, extra: {port: 1}}, slack: {enabled: off}}
list:
- one   # first
- two
nested:
    deep:
        text: |
          several
            lines

        last: 1

# the end
agent: {}
"""


def edited(text: str, *sets: tuple[str, Any]) -> str:
    file = YamlFile(text.encode(), "config.yaml")
    for path, value in sets:
        if value is ...:
            file.unset(path.split("."))
        else:
            file.set(path.split("."), value)
    return file.encode("").decode()


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("model.default", "c/d", "default: a/b  # quick", "default: c/d  # quick"),
        ("model.api_mode", "chat", "${KEY}\n", "${KEY}\n  api_mode: chat\n"),
        ("platforms.telegram.extra.port", 2, "port: 1", "port: 2"),
        ("platforms.matrix", {"enabled": True}, "off}}", "off}, matrix: {enabled: true}}"),
        ("list", ["three"], "- one   # first\n- two\n", "- three\n"),
        ("nested.deep.last", "off", "last: 1", "last: 'off'"),
        ("nested.deep.text", "one", "text: |\n          several\n            lines\n", "text: one\n"),
        ("nested.deep.text", ..., "        text: |\n          several\n            lines\n", ""),
        ("nested.deep.new", "a\nb", "last: 1\n", "last: 1\n        new: |-\n          a\n          b\n"),
        ("agent.max_turns", 3, "agent: {}", "agent: {max_turns: 3}"),
        ("platforms.slack", ..., ", slack: {enabled: off}", ""),
        ("_config_version", ..., "_config_version: 33   # ours\n", ""),
        ("model", ..., CONFIG[CONFIG.index("model:") : CONFIG.index("\nplatforms")], ""),
        ("brand.new", [1, {"a": None}], "agent: {}\n", "agent: {}\nbrand:\n  new:\n  - 1\n  - a: null\n"),
    ],
)
def test_an_edit_changes_its_own_lines_only(path: str, value: Any, old: str, new: str) -> None:
    assert CONFIG.count(old) == 1
    assert edited(CONFIG, (path, value)) == CONFIG.replace(old, new)


def test_nothing_changed_is_the_same_bytes() -> None:
    for text in (CONFIG, "", "# only words\n", "\ufeffa: 1", "a: 1\r\nb: 2\r\n", "a: &x [1]\nb: *x\n"):
        file = YamlFile(text.encode(), "c")
        for key, value in file.raw.items():
            file.set((key,), value)
        assert file.encode("").decode() == text
        assert not file.changed


def test_windows_lines_and_a_missing_last_break_stay() -> None:
    assert edited("a: 1\r\nb: 2\r\n", ("a", 5), ("c", {"d": 1})) == "a: 5\r\nb: 2\r\nc:\r\n  d: 1\r\n"
    assert edited("a: 1", ("b", 2)) == "a: 1\nb: 2\n"


def test_what_would_reach_further_is_refused_and_changes_nothing() -> None:
    file = YamlFile(b"a: &x {p: 1}\nb: *x\n", "config.yaml")
    with pytest.raises(Refused):
        file.set(("a", "p"), 2)
    with pytest.raises(Refused):
        file.set(("a", "p", "q"), 2)
    assert file.encode("") == b"a: &x {p: 1}\nb: *x\n"


keys = st.sampled_from(["a", "b", "c d", "e.f", "on", "1"])
scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "off", "1", "x: y", "#", "a\nb", " s", "'"])
)
trees = st.recursive(
    scalars, lambda inner: st.dictionaries(keys, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=8
)


@given(st.dictionaries(keys, trees, max_size=4), st.booleans(), st.lists(keys, min_size=1, max_size=3), trees)
def test_any_edit_gives_what_was_asked_or_is_refused(raw: Any, flow: bool, path: list[str], value: Any) -> None:
    text = yaml.safe_dump(raw, default_flow_style=flow, sort_keys=False)
    file = YamlFile(text.encode(), "config.yaml")
    try:
        file.set(path, value)
    except Refused:
        assert file.encode("").decode() == text
        return
    again = YamlFile(file.encode(""), "config.yaml")
    assert same(again.get(path), value)
    assert again.raw == file.raw
    assert {k: v for k, v in again.raw.items() if k != path[0]} == {k: v for k, v in raw.items() if k != path[0]}
    file.unset(path)
    assert file.get(path) is None


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"a: [1", "config.yaml:"),
        (b"- 1\n", "config.yaml:1:1"),
        (b"\xff", "config.yaml"),
        (b"a: 1\n\tb: 2", "config.yaml:2"),
    ],
)
def test_a_bad_text_fails_the_load_naming_the_place(data: bytes, where: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        YamlFile(data, "config.yaml")
    assert str(failed.value).startswith(where)
