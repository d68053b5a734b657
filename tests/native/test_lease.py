"""The lease: who serves the home, told apart from who did once; the guard fails closed; nobody is signalled."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from native.lab import refused
from reconciler_native import lease
from reconciler_native.errors import HomeHeld
from reconciler_native.home import Home
from reconciler_native.lease import State
from reconciler_native.operator import apply_operator
from reconciler_native.server import holding


def write(home: Path, **change: Any) -> None:
    mine = {
        "pid": os.getpid(),
        "started_at": "2026-12-01T08:00:00.000Z",
        "root": str(home),
        "hostname": socket.gethostname(),
        "boot_id": lease.boot_id(),
        "start_time": lease.start_time(os.getpid()),
    }
    (home / lease.LOCK).write_text(json.dumps({**mine, **change}))


def dead_pid() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, State.LIVE),
        ({"start_time": ""}, State.LIVE),  # the orchestrator's own form says less
        ({"hostname": "", "boot_id": "", "start_time": ""}, State.LIVE),
        ({"start_time": "1"}, State.DEAD),  # the pid is another program's by now
        ({"pid": 2**22 + 7}, State.DEAD),
        ({"hostname": "elsewhere"}, State.FOREIGN),
        ({"boot_id": "00000000-0000-0000-0000-000000000000"}, State.EARLIER),
        ({"pid": "x"}, State.UNREADABLE),
        ({"pid": True}, State.UNREADABLE),
    ],
)
def test_leases_are_told_apart(home: Path, change: dict[str, Any], state: State) -> None:
    write(home, **change)
    before = (home / lease.LOCK).read_bytes()
    assert lease.inspect(home).state is state
    held = state in (State.LIVE, State.UNREADABLE)
    answer = apply_operator(Home(home), "jobs.create", {"prompt": "x", "schedule": "30m"})
    assert answer["ok"] is not held
    assert answer.get("held", False) is held
    assert (home / lease.LOCK).read_bytes() == before  # looked at, never cleared
    assert apply_operator(Home(home), "jobs.list")["ok"]


def test_a_process_that_is_gone_is_dead(home: Path) -> None:
    write(home, pid=dead_pid(), start_time="")
    assert lease.inspect(home).state is State.DEAD


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1"])
def test_a_lease_that_cannot_be_read_holds_the_home(home: Path, text: str) -> None:
    (home / lease.LOCK).write_text(text)
    assert lease.inspect(home).state is State.UNREADABLE
    assert "cold verb" in refused(home, "jobs.create", prompt="x", schedule="30m")
    with pytest.raises(HomeHeld), holding(home):
        pass


def test_the_guard_fails_closed_and_stays(home: Path) -> None:
    (home / lease.GUARD).mkdir()
    assert "remove it" in refused(home, "jobs.create", prompt="x", schedule="30m")
    with pytest.raises(HomeHeld, match="remove it"), holding(home):
        pass
    assert (home / lease.GUARD).is_dir()
    assert not (home / lease.LOCK).exists()


def test_one_daemon_at_a_time_and_it_removes_its_own_lease_only(home: Path) -> None:
    with holding(home) as (served, before):
        assert before.state is State.NONE
        assert lease.inspect(home).state is State.LIVE
        assert ((home / lease.LOCK).stat().st_mode & 0o777) == 0o600
        found = json.loads((home / lease.LOCK).read_text())
        assert set(found) == {"pid", "started_at", "root", "hostname", "boot_id", "start_time"}
        with pytest.raises(HomeHeld, match="a daemon serves this home"), holding(home):
            pass
        assert apply_operator(served, "jobs.create", {"prompt": "x", "schedule": "30m"})["ok"]
        assert not apply_operator(Home(home), "jobs.create", {"prompt": "x", "schedule": "30m"})["ok"]
        # Whatever host name and boot it was written under: the kernel knows that it is held.
        assert lease.inspect(home).state is State.LIVE
    assert lease.inspect(home).state is State.NONE
    assert not (home / lease.GUARD).exists()
    with holding(home):
        (home / lease.LOCK).unlink()
        write(home, hostname="elsewhere")
    assert lease.inspect(home).state is State.FOREIGN


@pytest.mark.parametrize("change", [{"start_time": "1"}, {"hostname": "elsewhere"}, {"boot_id": "0"}])
def test_a_daemon_takes_over_from_one_that_died_and_says_so(home: Path, change: dict[str, Any]) -> None:
    write(home, **change)
    with holding(home) as (_, before):
        assert before.state in (State.DEAD, State.FOREIGN, State.EARLIER)
        assert lease.inspect(home).lease is not None
        assert json.loads((home / lease.LOCK).read_text())["hostname"] == socket.gethostname()


def test_nobody_is_signalled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home)
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    lease.inspect(home)
    apply_operator(Home(home), "jobs.create", {"prompt": "x", "schedule": "30m"})
    with pytest.raises(HomeHeld), holding(home):
        pass
    assert [number for _, number in sent if number] == []


def test_a_daemon_does_not_begin_on_a_home_that_cannot_be_loaded(home: Path) -> None:
    (home / "config.yaml").write_text("worker: {harnes: x}\n")
    with pytest.raises(Exception, match=r"worker\.harnes"), holding(home):
        pass
    assert not (home / lease.LOCK).exists()
