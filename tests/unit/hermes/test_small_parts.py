"""Blocks in files, `.env` names, hiding, schedules, and the places."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from reconciler.errors import ProviderError
from reconciler.place import LocalPlace, Place
from reconciler.place_exec import ExecPlace
from reconciler_hermes import dotenv, schedule
from reconciler_shape import block
from reconciler_shape.hiding import Hider, is_hidden


@pytest.mark.parametrize("path", ["SOUL.md", "scripts/a.sh", "hooks/x.js"])
@pytest.mark.parametrize("text", ["", "one\n", "one", "one\n\ntwo\n"])
def test_a_block_comes_and_goes(path: str, text: str) -> None:
    first = block.put(text, path, "solo", "mine\n")
    assert block.find(first, path, "solo") == "mine\n"
    assert block.find(first, path, "other") is None
    second = block.put(block.put(first, path, "other", "theirs\n"), path, "solo", "new\nlines\n")
    assert block.find(second, path, "solo") == "new\nlines\n"
    assert block.find(second, path, "other") == "theirs\n"
    gone = block.put(block.put(second, path, "other", None), path, "solo", None)
    assert gone.rstrip("\n") == text.rstrip("\n")
    assert block.put(first, path, "solo", "mine\n") == first
    assert block.put("x\n", path, "solo", None) == "x\n"


@pytest.mark.parametrize("order", ["s", "e", "es", "sse", "see"])
def test_torn_markers(order: str) -> None:
    first, last = block.markers("SOUL.md", "solo")
    text = "\n".join(first if c == "s" else last for c in order) + "\n"
    with pytest.raises(block.Torn):
        block.find(text, "SOUL.md", "solo")


def test_env_names() -> None:
    found = dotenv.parse(
        b"\xef\xbb\xbfexport A=1\n#B=2\n C = 'x y' \nNOEQ\nA=2\nE=\n"
        b"OPENROUTER_API_KEY=sk-aTELEGRAM_BOT_TOKEN=1:b\nSLACK_BOT_TOKEN=https://h/?DISCORD_BOT_TOKEN=x\n"
    )
    assert found.names == ("A", "C", "E", "OPENROUTER_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN")
    assert "E" not in found.filled
    assert set(found.secrets) == {"sk-a", "1:b", "https://h/?DISCORD_BOT_TOKEN=x"}


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("TELEGRAM_HOME_CHANNEL", "-1001234567890", False),
        ("TELEGRAM_ALLOWED_USERS", "1001,1002", False),
        ("HERMES_MODEL", "anthropic/claude", False),
        ("X_URL", "https://host:8080/v1", False),
        ("DSN", "postgres://u:p4ss@h/db", True),
        ("SMTP", "Hunter2!", True),
        ("A_KEY", "abc", True),
        ("WORKDIR", "/srv/agents", False),
    ],
)
def test_what_in_env_is_secret(name: str, value: str, secret: bool) -> None:
    assert bool(dotenv.parse(f"{name}={value}\n".encode()).secrets) is secret


def test_hiding() -> None:
    hider = Hider(b"k", ["Hunter2!-long", "short"])
    value = {
        "a": ["x Hunter2!-long y", "short"],
        "api_key": "abc",
        "ref_key": "${NAME}",
        "max_token": 5,
        "on_key": True,
    }
    hidden = hider.value(value)
    assert [is_hidden(v) for v in hidden["a"]] == [True, False]
    assert (is_hidden(hidden["api_key"]), hidden["ref_key"], hidden["on_key"]) == (True, "${NAME}", True)
    assert is_hidden(hidden["max_token"])
    assert hider.value("abc", "api_key") == hidden["api_key"]
    assert Hider(b"other").value("abc", "api_key") != hidden["api_key"]
    assert hider.text("it said Hunter2!-long and ghp_" + "a" * 36) == "it said ‹hidden› and ‹hidden›"


@pytest.mark.parametrize("form", [{"every": "5m"}, {"cron": "0 8 * * *"}, {"at": "2031-02-03T14:00:00Z"}])
def test_schedules_say_what_hermes_reads(form: dict[str, str]) -> None:
    assert schedule.to_hermes(form) in ("every 5m", "0 8 * * *", "2031-02-03T14:00:00Z")
    assert schedule.canonical(form, "") == (form, "")


@pytest.fixture(params=["local", "exec"])
def place(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    made: Place = LocalPlace() if request.param == "local" else ExecPlace(["env", "-i"], sys.executable)
    yield made
    made.close()


def test_places_read_alike(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\x00\xffdata")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    assert place.read(str(file), 100) == b"\x00\xffdata"
    found = place.stat(str(file))
    assert found is not None and (found.kind, found.size, found.uid) == ("file", 6, os.geteuid())
    link = place.stat(str(tmp_path / "link"))
    assert link is not None and (link.kind, link.target) == ("link", str(file))
    kinds = {name: place.stat(str(tmp_path / name)) for name in place.list(str(tmp_path))}
    assert {name: stat.kind for name, stat in kinds.items() if stat} == {"a": "file", "link": "link", "pipe": "other"}
    assert place.stat(str(tmp_path / "none")) is None
    assert place.stat(str(file / "below")) is None
    for path, limit in ((tmp_path / "link", 100), (tmp_path, 100), (tmp_path / "pipe", 100), (file, 3)):
        with pytest.raises(OSError) as error:
            place.read(str(path), limit)
        assert not isinstance(error.value, FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        place.read(str(tmp_path / "none"), 1)
    with pytest.raises(OSError):
        place.list(str(file))
    assert place.resolve(f"{tmp_path}/link/../x") == f"{tmp_path}/x"
    assert place.uid() == os.geteuid()
    assert place.writable(str(tmp_path))
    assert place.free(str(tmp_path / "not" / "there")) > 0
    assert set(place.environ()) <= {"PATH", "LANG", "TZ"}
    assert place.which("no-such-program-here") is None


def test_a_process_gets_exactly_its_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK", "1")
    code = "import os,sys;print(sorted(os.environ), sys.stdin.read(), os.getsid(0)==os.getpid() or 'exec')"
    with place.start([sys.executable, "-I", "-c", code], {"A": "b c'd"}) as process:
        out, _ = process.communicate(b"hello")
    assert out.decode().startswith("['A'")
    assert "LEAK" not in out.decode() and "hello" in out.decode()


def test_a_closed_reader_starts_again() -> None:
    place = ExecPlace(["env"], sys.executable)
    assert place.uid() == os.geteuid()
    place.close()
    assert place.uid() == os.geteuid()
    place.close()
    wrong = ExecPlace(["env"], "no-such-python")
    with pytest.raises(ProviderError, match="no-such-python"):
        wrong.uid()
    wrong.close()
