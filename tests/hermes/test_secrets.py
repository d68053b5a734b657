"""Secrets on the real Hermes: what we write is what it reads, nothing else of `.env` changes, and no value is seen."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.lab import python_of
from reconciler.testing.kit import Kit, World, outcomes, world
from reconciler_hermes.provider import HermesProvider

pytestmark = pytest.mark.hermes

FIRST, SECOND = "canary-first-4711-0123", "canary-second-0815-0123"
CONFIG = "# mine\n_config_version: 33\nmodel: {default: a/b, provider: openrouter}\n"
_READ = "import json; from hermes_cli.config import load_env; print(json.dumps(load_env()))"
# Every trap of `.env` that doors/hermes.md names; the line that counts is the last of its name.
ENVS = {
    "none": "",
    "one": "# keys\nA=1\nOR_KEY=old-value-0123456789\nB=2\n",
    "two of a name": "OR_KEY=one-0123456789\nA=1\nOR_KEY=two-0123456789\n",
    "export, quotes, spaces": "export OR_KEY='old-value-0123456789'\nA = 1\n\n#end",
    "joined lines": "OPENROUTER_API_KEY=abcTELEGRAM_BOT_TOKEN=def\nA=1\n",
    "a value of several lines": 'PEM="-----BEGIN X\nOR_KEY=no\n-----END X"\nA=1\n',
    "no line end, CRLF": "A=1\r\nB=é",
}


@dataclass
class Home:
    path: Path

    def read(self) -> dict[str, str]:
        env = {"HOME": str(self.path.parent), "HERMES_HOME": str(self.path), "PATH": os.environ["PATH"]}
        done = subprocess.run([str(python_of("0.19.0")), "-I", "-c", _READ], env=env, capture_output=True, check=True)
        found: dict[str, str] = json.loads(done.stdout)
        return found

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"nobody does {name} here")


def lab(root: Path, env: str) -> World:
    def make(path: Path) -> Home:
        path.mkdir(mode=0o700)
        (path / "config.yaml").write_text(CONFIG)
        if env:
            (path / ".env").write_bytes(env.encode())
        return Home(path)

    return world(Kit(HermesProvider(), make, f"{{python: {python_of('0.19.0')}}}"), root)


def setup(here: World, source: str = "{env: SOURCE}") -> str:
    text = here.text(rest="settings: {x.api_key: {secret: OR_KEY}}")
    return text.replace("homes:\n", f"secrets: {{OR_KEY: {source}}}\nhomes:\n", 1)


@pytest.mark.parametrize("case", ENVS)
def test_what_we_write_is_what_hermes_reads(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = lab(tmp_path, ENVS[case])
    home: Any = here.home
    before = home.read() if ENVS[case] else {}
    lines = (home.path / ".env").read_bytes().splitlines(True) if ENVS[case] else []
    monkeypatch.setenv("SOURCE", FIRST)
    if "several lines" in case:
        # Its readers disagree on whether OR_KEY stands there: nothing is written over it.
        done = outcomes(here.apply(setup(here)))
        assert done["secrets/OR_KEY"] == "refused" and done["default/settings/x.api_key"] == "skipped"
        assert (home.path / ".env").read_bytes() == ENVS[case].encode()
        return
    for value in (FIRST, SECOND):
        monkeypatch.setenv("SOURCE", value)
        here.converge(setup(here))
        after = home.read()
        assert after.pop("OR_KEY") == value
        assert after == {name: old for name, old in before.items() if name != "OR_KEY"}
    left = (home.path / ".env").read_bytes().splitlines(True)
    others = [
        line.rstrip(b"\r\n") for line in lines if not line.lstrip().removeprefix(b"export ").startswith(b"OR_KEY")
    ]
    assert [line.rstrip(b"\r\n") for line in left if SECOND.encode() not in line and b"OR_KEY" not in line] == others
    state = b"".join(p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file())
    assert FIRST.encode() not in state and SECOND.encode() not in state


def test_it_is_held_when_somebody_changed_it_and_goes_if_we_brought_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab(tmp_path, "A=1\n")
    home: Any = here.home
    monkeypatch.setenv("SOURCE", FIRST)
    here.converge(setup(here))
    (home.path / ".env").write_text(f"A=1\nOR_KEY={SECOND}\n")
    assert here.rows(setup(here))["secrets/OR_KEY"].held_fields
    (home.path / ".env").write_text(f"A=1\nOR_KEY={FIRST}\n")
    here.converge(here.text(rest="settings: {x.y: 1}"))
    assert (home.path / ".env").read_text() == "A=1\n"


def test_a_value_that_hermes_would_read_in_another_way_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab(tmp_path, "A=1\n")
    home: Any = here.home
    for value in (f"{FIRST} x", f"{FIRST}#x", f"${FIRST}", f"{FIRST}\nB=2", f'"{FIRST}"'):
        monkeypatch.setenv("SOURCE", value)
        events = here.apply(setup(here))
        assert outcomes(events)["secrets/OR_KEY"] == "refused"
        assert FIRST not in repr(events) and (home.path / ".env").read_text() == "A=1\n"
