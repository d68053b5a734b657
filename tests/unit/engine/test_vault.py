"""The vault: each way to a value, what it refuses, and that a value shows nowhere."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler import vault
from reconciler.observe import Unknown
from reconciler.secret import words
from reconciler.vault import Value, Vault

TEXT = "canary value"


def say(code: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", code]}


FETCHED: dict[str, tuple[dict[str, Any], str]] = {
    "env": ({"env": "VAULT_TEST"}, TEXT),
    "file, its line end aside": ({"file": "{here}/value"}, TEXT),
    "a file of several lines": ({"file": "{here}/pem"}, "a\nb"),
    "dotenv": ({"dotenv": {"file": "{here}/.env", "key": "B"}}, TEXT),
    "dotenv, the last of two, nothing expanded": ({"dotenv": {"file": "{here}/.env", "key": "A"}}, "$B ${B}"),
    "command": (say(f"print({TEXT!r})"), TEXT),
    "a command runs in the setup's folder": (say("print(open('value').read(), end='')"), TEXT),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no variable": ({"env": "VAULT_NOT_THERE"}, "the environment has no VAULT_NOT_THERE"),
    "an empty one": ({"env": "VAULT_EMPTY"}, "the environment has no VAULT_EMPTY"),
    "no file": ({"file": "{here}/none"}, "No such file"),
    "a folder": ({"file": "{here}"}, "not a regular file"),
    "an empty file": ({"file": "{here}/empty"}, "is empty"),
    "a large file": ({"file": "{here}/large"}, "too large"),
    "no text": ({"file": "{here}/binary"}, "not UTF-8 text"),
    "no such key": ({"dotenv": {"file": "{here}/.env", "key": "NONE"}}, "has no NONE"),
    "no program": ({"command": ["/nowhere/op"]}, "cannot be started"),
    "no such user": ({"file": "~nobody-of-that-name/x"}, "is no path here"),
    "what cannot be read": ({"file": "/proc/self/mem"}, "error"),
    "a program that fails": (say("import sys; print('x'); sys.exit(3)"), "ended with 3"),
    "a program without an answer": (say("pass"), "gave nothing"),
    "a program that says too much": (say("print('x' * 70000)"), "more than 65536 bytes"),
    "a program that says no text": (say("import sys; sys.stdout.buffer.write(b'\\xff')"), "no UTF-8 text"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VAULT_TEST", TEXT)
    monkeypatch.setenv("VAULT_EMPTY", "")
    (tmp_path / "value").write_text(f"{TEXT}\n")
    (tmp_path / "pem").write_text("a\nb\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "large").write_text("x" * (vault.LONGEST + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / ".env").write_text(f"A=first\nexport B='{TEXT}'\nA=$B ${{B}}\n")
    return tmp_path


def asked(folder: Path, source: dict[str, Any]) -> Value | Unknown:
    """What a source gives once somebody has agreed to its row."""
    made = Vault(folder)
    made.permit(source)
    return made.fetch(source)


def source_in(folder: Path, source: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(source).replace("{here}", str(folder)))
    return made


@pytest.mark.parametrize("case", FETCHED)
def test_fetched(case: str, here: Path) -> None:
    source, want = FETCHED[case]
    found = asked(here, source_in(here, source))
    assert isinstance(found, Value) and found.reveal() == want


@pytest.mark.parametrize("case", REFUSED)
def test_not_fetched(case: str, here: Path) -> None:
    source, why = REFUSED[case]
    found = asked(here, source_in(here, source))
    assert isinstance(found, Unknown) and why in found.reason


def test_a_plan_looks_at_nothing_outside_the_folder(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "value"
    outside.write_text(TEXT)
    (here / "link").symlink_to(outside)
    planning = Vault(here)
    for source in ({"file": str(outside)}, {"file": str(here / "link")}, say("print(1)")):
        assert isinstance(planning.fetch(source), Unknown)
    assert isinstance(planning.fetch({"file": str(here / "value")}), Value)


def test_a_program_that_hangs_is_given_up(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "SECONDS", 0.5)
    began = time.monotonic()
    found = asked(here, say("import time; time.sleep(60)"))
    assert isinstance(found, Unknown) and "no answer" in found.reason
    assert time.monotonic() - began < 30


def test_a_value_shows_nowhere() -> None:
    value = Value(TEXT)
    for text in (repr(value), str(value), f"{value}", repr([value]), repr({"a": value})):
        assert TEXT not in text
    for save in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            save(value)


def test_two_commands_that_read_the_same_are_two(here: Path) -> None:
    """What is asked once is told apart by its parts, not by how it looks in a plan."""
    one, two = ({"command": ["printf", "%s-", *more]} for more in (["a b"], ["a", "b"]))
    made = Vault(here)
    made.permit(one)
    assert isinstance(made.fetch(two), Unknown)
    made.permit(two)
    found = [made.fetch(source) for source in (one, two)]
    assert [value.reveal() for value in found if isinstance(value, Value)] == ["a b-", "a-b-"]
    assert words(one) != words(two)


def test_a_program_that_says_no_end_is_stopped_with_all_that_it_started(here: Path) -> None:
    found = asked(here, {"command": ["sh", "-c", "sleep 300 & echo $! > pid; yes"]})
    assert isinstance(found, Unknown) and "more than" in found.reason
    pid = int((here / "pid").read_text())
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
