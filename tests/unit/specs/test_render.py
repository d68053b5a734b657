"""What adopt and init write: it reads back to the same things, and looks as a person would keep it."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler_specs.load import load_text
from reconciler_specs.render import ambiguous, render_home, render_setup, starter

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
