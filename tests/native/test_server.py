"""The daemon and its socket, as a process of its own: one line in, one line out, and a clean end."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from native.lab import AT, argv, env, native, serving
from reconciler.errors import DoorLost
from reconciler_native import lease, wire
from reconciler_native.errors import HomeHeld
from reconciler_native.home import Home, init
from reconciler_native.operator import OPS, apply_operator

NEW = {"op": "jobs.create", "args": {"prompt": "x", "schedule": "every 2h"}}


def raw(home: Path, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client, wire.address(home) as where:
        client.settimeout(20)
        client.connect(where)
        client.sendall(data)
        found = b""
        while chunk := client.recv(65536):
            found += chunk
        return found


def test_live_and_cold_give_the_same_answers(home: Path, tmp_path: Path) -> None:
    """S0-46: one implementation, two doors."""
    other = tmp_path / "other"
    init(other)
    (home / ".env").write_text("KEY=abcdef12\n")
    (other / ".env").write_text("KEY=abcdef12\n")
    lines: list[tuple[str, dict[str, Any], str]] = [
        ("jobs.create", {"id": "a", "prompt": "x", "schedule": {"kind": "cron", "expr": "0 8 * * *"}}, "default"),
        ("jobs.create", {"id": "a", "prompt": "x", "schedule": "30m"}, "default"),
        ("jobs.update", {"id": "a", "prompt": "y", "deliver": "slack:C1"}, "default"),
        ("jobs.update", {"id": "a", "nonsense": 1}, "default"),
        ("jobs.pause", {"id": "a"}, "default"),
        ("jobs.run", {"id": "a"}, "default"),
        ("jobs.resume", {"job_id": "a"}, "default"),
        ("jobs.get", {"id": "a"}, "default"),
        ("profiles.create", {"name": "coder", "worker": "codex"}, "default"),
        ("jobs.create", {"id": "b", "prompt": "x", "schedule": "30 7 * * 1"}, "coder"),
        ("jobs.list", {}, "coder"),
        ("profiles.list", {}, "default"),
        ("channels.set", {"platform": "x", "credentials": {"token": {"secret": "KEY"}}}, "default"),
        ("settings.set", {"path": "a.b", "value": [1, {"c": None}]}, "default"),
        ("jobs.nope", {}, "default"),
        ("jobs.list", {}, "nobody"),
        ("sessions.new", {"surface": "slack|dm"}, "default"),
        ("jobs.delete", {"id": "gone"}, "default"),
        ("jobs.delete", {"id": "a"}, "default"),
        ("state.get", {}, "default"),
    ]
    with serving(home):
        live = [wire.call(home, {"op": op, "args": args, "profile": profile}) for op, args, profile in lines]
    cold = [apply_operator(Home(other), op, args, profile) for op, args, profile in lines]
    for line, one, two in zip(lines, live, cold, strict=True):
        assert _timeless(one, home) == _timeless(two, other), line


def _timeless(answer: Any, home: Path) -> Any:
    if isinstance(answer, dict):
        moments = ("created_at", "next_run_at")
        return {k: bool(v) if k in moments else _timeless(v, home) for k, v in answer.items()}
    if isinstance(answer, list):
        return [_timeless(item, home) for item in answer]
    return answer.replace(str(home), "HOME") if isinstance(answer, str) else answer


def test_the_wire(home: Path) -> None:
    """S0-47: one JSON line in, one out, then it closes; nonsense is answered in words."""
    with serving(home):
        mode = (home / lease.SOCKET).stat().st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
        answer = raw(home, json.dumps(NEW).encode() + b"\n" + json.dumps(NEW).encode() + b"\n")
        assert answer.count(b"\n") == 1 and json.loads(answer)["ok"]
        for bad in (b"{\n", b"nonsense\n", b"[]\n", b"{}\n", b'{"op": 1}\n', b'{"op": "x", "args": []}\n', b"\n",
                    b'{"op": "jobs.list", "profile": 5}\n', b'{"op": "batch"}\n', b"\xff\n", b"[" * 100_000 + b"\n",
                    b'{"op": "jobs.list", "expect": 1}\n'):  # fmt: skip
            found = json.loads(raw(home, bad))
            assert found["ok"] is False and found["error"], bad
        assert json.loads(raw(home, b'{"verb": "cronjob_list"}\n'))["error"].startswith("verb (a model tool) or op")
        assert json.loads(raw(home, b'{"op": "x"}\n'))["error"].endswith(", ".join(OPS))
        # A caller that goes away in the middle costs nothing, and nothing is done.
        with socket.socket(socket.AF_UNIX) as client, wire.address(home) as where:
            client.connect(where)
            client.sendall(json.dumps(NEW).encode())
            silent = socket.socket(socket.AF_UNIX)
            silent.connect(where)
        assert len(json.loads(raw(home, b'{"op": "jobs.list"}\n'))["result"]["jobs"]) == 1
        silent.close()


def test_an_editor_and_the_daemon_live_together(home: Path) -> None:
    """The files are the truth: what is edited by hand is seen at the next line, and not written over."""
    with serving(home):
        job_id = wire.call(home, NEW)["result"]["job_id"]
        store = home / "cron" / "jobs.json"
        data = json.loads(store.read_text())
        data["jobs"][0]["prompt"] = "by hand"
        data["jobs"][0]["mine"] = {"kept": True}
        store.write_text(json.dumps(data))
        wire.call(home, {"op": "jobs.update", "args": {"id": job_id, "name": "n"}})
        now = json.loads(store.read_text())["jobs"][0]
        assert (now["prompt"], now["mine"], now["name"]) == ("by hand", {"kept": True}, "n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_within_five_seconds(home: Path, number: signal.Signals) -> None:
    with serving(home) as daemon, socket.socket(socket.AF_UNIX) as hanging:
        with wire.address(home) as where:
            hanging.connect(where)
        hanging.sendall(b'{"op": ')
        begun = time.monotonic()
        daemon.send_signal(number)
        assert daemon.wait(5) == 0
        assert time.monotonic() - begun < 5
        assert not (home / lease.LOCK).exists()
        assert not (home / lease.SOCKET).exists()
        assert not (home / lease.GUARD).exists()


def test_it_stops_while_others_keep_it_waiting(home: Path) -> None:
    """Lines that wait for somebody else's write lock do not hold up the end, however many there are."""
    with serving(home) as daemon, contextlib.ExitStack() as stack:
        stack.enter_context(Home(home).locked())
        for _ in range(3):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            with wire.address(home) as where:
                client.connect(where)
            client.sendall(json.dumps(NEW).encode() + b"\n")
        daemon.terminate()
        assert daemon.wait(5) == 0
        assert not (home / lease.LOCK).exists()


@pytest.mark.parametrize("seen", [lease.GUARD, lease.LOCK, lease.SOCKET])
def test_it_stops_cleanly_while_it_begins(home: Path, seen: str) -> None:
    with subprocess.Popen(argv("serve", "--root", str(home)), env=env(), stdout=subprocess.DEVNULL) as daemon:
        deadline = time.monotonic() + 20
        while not (home / seen).exists() and not (home / lease.LOCK).exists() and time.monotonic() < deadline:
            pass
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(5) == 0
    assert not [name for name in (lease.GUARD, lease.LOCK, lease.SOCKET) if (home / name).exists()]


def test_eight_live_writers_lose_nothing(home: Path) -> None:
    answers: list[bool] = []

    def write(name: str) -> None:
        for n in range(25):
            args = {"id": f"{name}-{n}", "prompt": "x", "schedule": "1h"}
            answers.append(wire.call(home, {"op": "jobs.create", "args": args})["ok"])

    with serving(home):
        threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = wire.call(home, {"op": "jobs.list"})["result"]["jobs"]
    assert answers == [True] * 200
    assert len({job["id"] for job in found}) == 200


def test_a_batch_is_one_write_and_each_line_by_itself(home: Path) -> None:
    lines = [{"op": "jobs.create", "args": {"id": i, "prompt": "x", "schedule": "1h"}} for i in ("a", "b", "a")]
    with serving(home):
        answer = wire.call(home, {"op": "batch", "args": {"lines": [*lines, {"op": "jobs.nope"}]}})
        assert [a["ok"] for a in answer["result"]["answers"]] == [True, True, False, False]
        assert not wire.call(home, {"op": "batch", "args": {"lines": lines * 400}})["ok"]


def test_a_killed_daemon_leaves_a_dead_lease_that_the_next_takes_over(home: Path) -> None:
    with serving(home) as daemon:
        daemon.kill()
        daemon.wait()
        assert lease.inspect(home).state is lease.State.DEAD
        assert apply_operator(Home(home), "jobs.list", at=AT)["ok"]
    with serving(home):
        assert wire.call(home, NEW)["ok"]


def test_a_socket_that_breaks_after_the_line_was_sent_is_uncertain(home: Path) -> None:
    """S0-49: it is never run again by the cold door."""
    with socket.socket(socket.AF_UNIX) as fake:
        fake.bind(str(home / lease.SOCKET))
        with pytest.raises(HomeHeld):  # nobody listens: nothing was sent
            wire.call(home, NEW)
        fake.listen()

        def answer(data: bytes) -> None:
            connection, _ = fake.accept()
            connection.recv(65536)
            connection.sendall(data)
            connection.close()

        for data in (b"", b'{"ok": true', b"nonsense\n", b"[]\n", b'{"ok": 1}\n'):
            thread = threading.Thread(target=answer, args=(data,))
            thread.start()
            with pytest.raises(DoorLost):
                wire.call(home, NEW)
            thread.join()
        with pytest.raises(DoorLost, match=r"in time|timed out"):
            wire.call(home, NEW, timeout=0.2)


def test_a_deep_home_has_a_socket_too(tmp_path: Path) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    home.parent.mkdir()
    init(home)
    with serving(home):
        assert wire.call(home, NEW)["ok"]


def test_the_command_line(tmp_path: Path) -> None:
    """S0-48: answers and exit codes of the cold door."""
    home = tmp_path / "home"
    root = ["--root", str(home)]
    assert native("jobs.list", *root)[0] == 1
    assert native("init", *root) == (0, {"event": "initialised", "root": str(home)})
    assert native("init", *root) == (0, {"event": "exists", "root": str(home)})
    code, line = native("jobs.create", *root, "--at", "2026-12-01T08:00:00Z", "--json", json.dumps(NEW["args"]))
    assert code == 0 and list(line) == ["ok", "result", "root", "door", "context_profile"]
    assert (line["root"], line["door"], line["context_profile"]) == (str(home), "cold", "default")
    assert line["result"]["job"]["next_run_at"] == "2026-12-01T10:00:00.000Z"
    code, line = native("jobs.pause", *root, "--profile", "default", "--json", '{"id": "gone"}')
    assert (code, line["ok"], line["error"], line["door"]) == (1, False, "jobs_pause: no job gone", "cold")
    code, line = native("jobs.frobnicate", *root)
    assert (code, line["event"]) == (2, "error") and line["message"].startswith("unknown argument `jobs.frobnicate`")
    code, line = native("jobs.list", *root, "--json", "{")
    assert code == 1 and line["error"].startswith("--json is not JSON: ")
    assert native("jobs.list", *root, "--json", "[]")[0] == 1
    assert native("jobs.list", *root, "--at", "soon")[0] == 2
    assert native("status", *root)[1]["lease"] == "none"
    assert native("jobs.list", *root, "--door", "live")[0] == 1
    with serving(home):
        assert native("status", *root)[1]["lease"] == "live"
        assert native("jobs.create", *root, "--json", json.dumps(NEW["args"]))[0] == 1
        code, line = native("jobs.create", *root, "--door", "auto", "--json", json.dumps(NEW["args"]))
        assert (code, line["door"]) == (0, "live")
        code, line = native("serve", *root)
        assert code == 1 and "a daemon serves this home" in line["message"]
    (home / "config.yaml").write_text("worker: {harnes: x}\n")
    assert native("status", *root)[0] == 1
    assert native("init", "--root", str(tmp_path))[0] == 1
