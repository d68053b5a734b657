"""Homes of the real orchestrator for tests: its cold verbs, its daemon, and what others do with them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.event import Event
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler.testing.kit import Kit, World, world
from reconciler_orchestrator.provider import OrchestratorProvider
from tools import harness

VERSION = "0.1.2"
BRIEF = "default/jobs/brief"
KEY = "11" * 32
CONFIG = "model: {default: a/b, provider: openrouter}\n"


def command() -> list[str]:
    """The words that start the package; a test without it fails, since a skipped test proves nothing."""
    if not harness.is_complete("orchestrator", VERSION):
        pytest.fail(
            f"the orchestrator {VERSION} is not installed: run make test (or python tools/harness.py orchestrator …)"
        )
    return [str(harness.node()), str(harness.program("orchestrator", VERSION))]


def flow(*words: str, mode: str = "auto") -> str:
    """A setup's `door:` block; `words` come before the package's own."""
    return json.dumps({"command": [*words, *command()], "mode": mode})


def ref(root: Path, mode: str = "auto", **options: Any) -> HomeRef:
    found = {"command": command(), "mode": mode, "$key": KEY, "$owner": "solo", **options}
    return HomeRef("main", "orchestrator", LocalPlace(), os.path.realpath(root), found)


@contextmanager
def short() -> Iterator[Path]:
    """A folder with a short path: Node takes no longer one for a socket than the system does, about 100 bytes."""
    with tempfile.TemporaryDirectory(prefix="orc-") as name:
        yield Path(os.path.realpath(name))


def make(root: Path) -> Path:
    root.mkdir(mode=0o700)
    (root / "config.yaml").write_text(CONFIG)
    return root


def run(*words: str) -> tuple[int, dict[str, Any]]:
    """The package's exit code and the last line that it printed."""
    done = subprocess.run(
        [*command(), *words], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def cold(root: Path, op: str, profile: str = "default", at: str = "", **args: Any) -> dict[str, Any]:
    """The answer of a cold verb."""
    when = ["--at", at] if at else []
    return run(op, "--root", str(root), "--profile", profile, *when, "--json", json.dumps(args))[1]


def ask(root: Path, line: Mapping[str, Any]) -> dict[str, Any]:
    """A daemon's answer to one line."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        client.connect(str(root / "orchestrator.sock"))
        client.sendall(json.dumps(line).encode() + b"\n")
        found: dict[str, Any] = json.loads(client.makefile().readline())
        return found


def live(root: Path, op: str, profile: str = "default", **args: Any) -> dict[str, Any]:
    return ask(root, {"op": op, "args": args, "profile": profile})


@contextmanager
def serving(root: Path, stub: str = "") -> Iterator[subprocess.Popen[str]]:
    """A daemon that is ready; killed at the end if the test has not stopped it. `stub`: what its SDK does wrong."""
    daemon = subprocess.Popen(
        [*command(), "--root", str(root)],
        env={"PATH": "/usr/bin:/bin", "SUPERCODE_STUB": stub},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert daemon.stdout is not None
    try:
        for line in daemon.stdout:
            if json.loads(line)["event"] == "ready":
                break
        else:
            raise AssertionError("the daemon ended before it was ready")
        yield daemon
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()


def stored(root: Path, profile: str = "default") -> list[dict[str, Any]]:
    """The job records of a profile's store, as the folder has them."""
    here = root if profile == "default" else root / "profiles" / profile
    path = here / "cron" / "jobs.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["jobs"] if path.exists() else []
    return found


@dataclass
class Someone:
    """Who else is at work in a home; here only its path is asked for."""

    path: Path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"nobody does {name} here")


def planning(root: Path, *words: str, mode: str = "auto") -> World:
    """A setup over the home `root`/home, which is there already; `words` come before the package's own."""
    kit = Kit(OrchestratorProvider(), Someone, flow(*words, mode=mode), ("orchestrator.lock", "orchestrator.sock"))
    return world(kit, root)


def met(root: Path, *words: str) -> World:
    """As `planning`, after first contact."""
    found = planning(root, *words)
    found.apply(found.text())
    return found


def said(events: list[Event], path: str = BRIEF) -> tuple[str, str]:
    """The outcome of a row, and its reason."""
    (found,) = [e for e in events if e.what == "outcome" and e.address is not None and e.address.path == path]
    return str(found.outcome), found.reason


def ended(events: list[Event]) -> str:
    (found,) = [e for e in events if e.what == "home-end"]
    return found.reason


def names(home: Path) -> list[str]:
    return [job["name"] for job in stored(home)]


nothing = nullcontext
