"""openclaw.json as somebody wrote it, in every state of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.observe import Store, Unknown
from reconciler.place import LocalPlace
from reconciler_openclaw import authored, home


def read(site: Any) -> authored.Authored:
    return authored.read(home.locate(LocalPlace(), os.path.realpath(site.root)))


def wrong(site: Any, text: str) -> str:
    """What is said of a file that cannot be read, behind its path."""
    path = site.config(text)
    found = read(site)
    assert found.store is Store.IMPROPER
    assert isinstance(found.unknown, Unknown)
    assert found.tree == {}
    return found.unknown.reason.removeprefix(str(path))


def test_json5(site: Any) -> None:
    path = site.config(
        "\ufeff// c\n{a: 'x', 'b': [1, 0x10, .5, +2,], /* d */ \"c\": {d: null, 'e-f': '${X}', g: '$${Y}'},}\n"
    )
    found = read(site)
    assert found.tree == {"a": "x", "b": [1, 16, 0.5, 2], "c": {"d": None, "e-f": "${X}", "g": "$${Y}"}}
    assert found.store is Store.PROPER
    assert found.comments == (str(path),)
    assert found.notes == ()


def test_no_comments_where_they_only_look_so(site: Any) -> None:
    site.config("{url: 'http://x', b: \"/* no */\"}")
    assert not read(site).comments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n  a: 1,\n  b: }\n", ":3:6: Expected JSON5Value, found '}'"),
        ("{\n  a: 1\n  b: 2}\n", ":3:3: Expected comma or '}', found 'b'"),
        ("{a:\n 'abc", ":2:2: Unclosed string"),
        ("", ":1:1: No JSON data found"),
        ("[1]", ":1:1: a list where OpenClaw keeps an object"),
        ("{a: 1} b", ":1:8: Extra data 'b'"),
    ],
)
def test_an_error_has_its_line_and_column(site: Any, text: str, said: str) -> None:
    assert wrong(site, text) == said


def test_an_error_never_repeats_what_was_read(site: Any) -> None:
    assert "Tr0ub4dor" not in wrong(site, "{token: 'Tr0ub4dor-and-3',\n x: }")


def test_not_utf8(site: Any) -> None:
    site.write("openclaw.json", b"{a: '\xff'}")
    assert "not UTF-8 at byte 5" in str(read(site).unknown)


@pytest.mark.parametrize("where", ["openclaw.json", "openclaw.json.last-good"])
def test_an_invalid_file_names_the_version_that_wrote_it(site: Any, where: str) -> None:
    site.write("openclaw.json", "{x: }")
    site.write(where, '{"meta": {"lastTouchedVersion": "2026.9.6"}, x: }')
    found = read(site)
    assert found.written_by == "2026.9.6"
    assert found.unknown is not None and "(last written by OpenClaw 2026.9.6)" in found.unknown.reason


def test_missing_and_empty(site: Any) -> None:
    assert read(site).store is Store.MISSING
    site.config("{}")
    assert read(site).store is Store.EMPTY


def test_a_key_that_stands_twice(site: Any) -> None:
    path = site.config("{a: 1, b: {a: 2, // a: 3\n 'a': 4}, c: [{a: 1}, {a: 2}]}")
    found = read(site)
    assert found.tree["b"] == {"a": 4}
    assert found.notes == (f"{path}:2:2: the key a stands there twice; the last one counts",)


def test_too_deep(site: Any) -> None:
    assert "nesting" in wrong(site, "{a:" + "[" * 500 + "]" * 500 + "}").lower()


def test_includes(site: Any) -> None:
    site.config("{$include: ['./a.json5', 'sub/b.json'], agents: {$include: 'agents.json', list: [3]}, x: 1}")
    site.write("a.json5", "{x: 0, y: {p: 1}, l: [1]}")
    site.write("sub/b.json", "{$include: './c.json', y: {q: 2}, l: [2]}")
    site.write("sub/c.json", "{deep: true}")
    site.write("agents.json", "{defaults: {}, list: [1, 2]} // comment")
    found = read(site)
    assert found.tree == {
        "x": 1,
        "y": {"p": 1, "q": 2},
        "l": [1, 2],
        "deep": True,
        "agents": {"defaults": {}, "list": [1, 2, 3]},
    }
    assert len(found.files) == 5
    assert found.includes["agents"] == str(site.root / "agents.json")
    assert found.comments == (str(site.root / "agents.json"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{$include: '../x.json'}", "leads out of"),
        ("{$include: '/etc/passwd'}", "leads out of"),
        ("{$include: 'link.json'}", "leads out of"),
        ("{$include: 'none.json'}", "there is no such file"),
        ("{$include: 'openclaw.json'}", "includes itself"),
        ("{$include: 'loop.json'}", "includes itself"),
        ("{$include: 3}", "a file name, or a list of them"),
        ("{$include: 'list.json', a: 1}", "is no object, and there are keys beside it"),
        ("{a: {$include: 'bad.json'}}", "bad.json:1:5:"),
        ("{$include: 'deep0.json'}", "more than 10 includes"),
    ],
)
def test_includes_that_are_not_followed(site: Any, text: str, said: str) -> None:
    (site.user / "outside.json").write_text("{}")
    (site.root / "link.json").symlink_to(site.user / "outside.json")
    site.write("loop.json", "{$include: 'loop2.json'}")
    site.write("loop2.json", "{$include: 'loop.json'}")
    site.write("list.json", "[1]")
    site.write("bad.json", "{b: }")
    for i in range(12):
        site.write(f"deep{i}.json", f"{{$include: 'deep{i + 1}.json'}}")
    assert said in wrong(site, text)


def test_a_fifo_does_not_hang(site: Any) -> None:
    os.mkfifo(site.root / "openclaw.json")
    assert "not a regular file" in str(read(site).unknown)


def test_a_link_is_read_and_never_written_through(site: Any, tmp_path: Path) -> None:
    real = tmp_path / "nix.json"
    real.write_text("{gateway: {mode: 'local'}}")
    (site.root / "openclaw.json").symlink_to(real)
    assert read(site).tree == {"gateway": {"mode": "local"}}
    blocked = site.observe().blocked
    assert str(real) in blocked and "link" in blocked


def test_a_secret_is_not_in_its_repr(site: Any) -> None:
    site.config()
    assert "Tr0ub4dor" not in repr(read(site))
