"""What adopt and init write: it reads back to the same things, and looks as a person would keep it."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler_specs.document import Document
from reconciler_specs.edit import SetupEditor
from reconciler_specs.load import load_text
from reconciler_specs.render import HIDDEN, ambiguous, render_home, render_setup, starter

HOME: dict[str, Any] = {
    "harness": "hermes",
    "path": "~/.hermes",
    "first_contact": "ask",
    "profiles": {
        "default": {
            "jobs": {
                "brief": {
                    "deliver": {"to": "telegram", "chat": "-100123"},
                    "name": "brief",
                    "prompt": "Read #ops: then\nwrite.\n",
                    "paused": False,
                    "schedule": {"cron": "*/5 * * * *"},
                    "skills": [],
                }
            },
            "files": {"SOUL.md": {"text": "Be kind.\n\nAlways.\n", "seed": False}},
            "settings": {"agent.max_turns": 120, "x.y": "no", "z": {"a": [1, "2"]}},
            "inference": {"models": {"m": {"provider": "p", "model": "a/b"}}, "default": "m", "rebase": "ours"},
            "description": "Writes.",
        },
        "coder": {},
    },
}

TEXT = """\
  main:
    harness: hermes
    path: ~/.hermes
    profiles:
      default:
        description: Writes.
        # The models that this profile uses, by your own names for them.
        inference:
          models: {m: {provider: p, model: a/b}}
          default: m
        # Settings of the harness. What is not listed here stays as it is.
        settings:
          agent.max_turns: 120
          x.y: "no"
          z: {a: [1, "2"]}
        # Files of the profile. What is not listed here is never touched.
        files:
          SOUL.md:
            text: |
              Be kind.

              Always.
        # What runs when, and where the answer goes.
        jobs:
          brief:
            schedule: {cron: "*/5 * * * *"}
            prompt: |
              Read #ops: then
              write.
            deliver: {to: telegram, chat: "-100123"}
      coder: {}
"""


def test_as_a_person_would_keep_it() -> None:
    assert render_home("main", HOME) == TEXT


def test_starter() -> None:
    assert load_text(starter()).homes["main"].path == "~/.hermes"
    bare = "\n".join(line.replace("# ", "", 1) if _is_option(line) else line for line in starter().splitlines())
    assert load_text(starter("no", "native", "0123", "on")).name == "no"
    assert "schedule" in bare


def _is_option(line: str) -> bool:
    return line.strip().startswith("# ") and ":" in line


_TEXTS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t #:-{}[]$(\"'"),
    min_size=1,
    max_size=40,
).filter(lambda t: t.strip() != "")
_NAMES = st.text("abc.", min_size=1, max_size=3)
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, min_size=1, max_size=3),
    max_leaves=5,
)
_KEYS = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,8}", fullmatch=True).filter(lambda k: k != "self")
_JOBS = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from([{"every": "30m"}, {"cron": "*/5 * * * *"}, {"at": "2031-02-03T09:00:00Z"}]),
        "deliver": st.sampled_from(["local", "owner_chat", {"to": "slack", "chat": "0123", "thread": "1700000000.10"}]),
        "prompt": _TEXTS,
    },
    optional={"name": _TEXTS, "skills": st.lists(_TEXTS, min_size=1, max_size=3, unique=True), "workdir": _TEXTS},
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(_KEYS, _JOBS, max_size=3),
    st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), _VALUES, max_size=3),
    st.dictionaries(st.from_regex(r"[A-Za-z0-9]{1,6}\.md", fullmatch=True), _TEXTS, max_size=2),
)
def test_reads_back(jobs: dict[str, Any], values: dict[str, Any], files: dict[str, str]) -> None:
    values = {f"x-{k}": v for k, v in values.items() if not k.endswith(("key", "token", "secret"))}
    profile = {"jobs": jobs, "settings": values, "files": {k: {"text": v} for k, v in files.items()}}
    home = {"harness": "hermes", "path": "/x", "profiles": {"default": profile}}
    text = render_setup("solo", {"main": home})
    found = {(a.kind.value, a.key): r.fields for a, r in load_text(text).desired("main").items()}
    for key, job in jobs.items():
        assert found["jobs", key] == {"name": key, **job}
    for key, value in values.items():
        assert found["settings", key]["value"] == value
    for key, content in files.items():
        assert found["files", key] == {"text": content}


@settings(deadline=None)
@given(st.text(max_size=12) | st.text("0123456789.:_-+eExXoObByYnN~", max_size=8))
def test_what_is_not_quoted_is_text_to_every_reader(text: str) -> None:
    if not ambiguous(text):
        assert yaml.safe_load(f"a: {text}") == {"a": text}
        assert yaml.safe_load(f"a: {text}\n") == yaml.load(f"a: {text}", yaml.BaseLoader)


_UNSEEN = (
    "\x7f\x80\x85\x9f\xad\u200b\u200c\u200d\u200e\u202e\u2028\u2029\u2060\u2066\u3164\ufe0f\ufeff\U000e0041\U000e0100"
)
_ANY = st.text(
    st.sampled_from(_UNSEEN + "\r\n\t \x01\x0b\x1b:#'\"\\-ab$(\u00e4\u2764\U0001f600")
    | st.characters(codec="utf-8", exclude_characters="\x00")
)
_JOINERS = "\u200c\u200d\ufe0f"  # they stand where they shape what is before them


def _raw(text: str) -> list[str]:
    """What stands in a file and a reviewer would not see."""
    wrong = [
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and c not in "\n\t" + _JOINERS
    ]
    return [hex(ord(c)) for c in [*wrong, *HIDDEN.findall(text)]]


@settings(max_examples=300, deadline=None)
@given(_ANY, _ANY)
@example("a\x85b", "a\u2028b\n")
@example("a\rb\r\n", "\ufeffa\n\nb")
@example("a  \n\tb \n", "\tx\n ")
@example("a\u202eb\n", "line\nhid\u200bden\n")
@example("\x01", "a\U000e0041\nb\n")
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_any_text_reads_back_and_nothing_in_it_is_hidden(
    tmp_path_factory: pytest.TempPathFactory, form: str, text: str, key: str
) -> None:
    home = {
        "harness": "hermes",
        "path": "/x",
        "profiles": {"default": {"settings": {"x": {"in": [text], f"k{key}": text}}, "jobs": {"j": {"prompt": text}}}},
    }
    said = home["profiles"]["default"]  # type: ignore[index]
    rendered = render_setup("solo", {"main": home})
    assert _raw(rendered) == []
    read = Document.parse(rendered).root.plain(nulls=True)["homes"]["main"]["profiles"]["default"]
    assert _unescaped(read) == said
    path = tmp_path_factory.getbasetemp() / f"any-text.{form}"
    for begun in ('{"version": 1, "name": "a", "homes": {}}', "version: 1\nname: a\nhomes: {}\nx: {y: 1}\n"):
        if form == "json" and not begun.startswith("{"):
            continue
        path.write_text(begun)
        editor = SetupEditor(path)
        editor.set(("x-a", f"k{key}"), text)
        editor.set(("x-b",), {f"k{key}": [text]})
        editor.add_home("two", home)
        editor.set(("homes", "two", "x-c"), text)
        edited = editor.text()
        assert _raw(edited) == []
        read = Document.parse(edited, str(path)).root.plain(nulls=True)
        assert _unescaped(read["x-a"]) == {f"k{key}": text}
        assert _unescaped(read["x-b"]) == {f"k{key}": [text]}
        assert _unescaped(read["homes"]["two"]["profiles"]["default"]) == said
        assert form != "json" or json.loads(edited)["x-b"]


def test_what_shapes_a_letter_stands_as_it_is() -> None:
    text = "\u2764\ufe0f \U0001f468\u200d\U0001f469 1\ufe0f\u20e3 \u0645\u06cc\u200c\u062e\n" * 2
    home = {"harness": "hermes", "path": "/x", "profiles": {"default": {"jobs": {"j": {"prompt": text}}}}}
    assert text.splitlines()[0] in render_setup("solo", {"main": home})


def _unescaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("$$(", "$(")
    if isinstance(value, dict):
        return {k: _unescaped(v) for k, v in value.items()}
    return [_unescaped(v) for v in value] if isinstance(value, list) else value
