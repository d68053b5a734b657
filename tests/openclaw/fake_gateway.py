"""A gateway of the tests' own that does what a real one does only on a bad day, and a home that it serves."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from reconciler.place import LocalPlace
from reconciler.provider import HomeRef

TOKEN = "fake-token-0123456789abcdef"
KEY = "22" * 32
Raw = dict[str, Any]


class Hang(Exception):
    """Never answers."""


class Drop(Exception):
    """Closes the connection without an answer."""


class Say(Exception):
    """Answers with this very text."""


class No(Exception):
    """Refuses with this error."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        self.error = {"code": code, "message": message, **more}


def limited(seconds: float) -> No:
    """9.6's answer to the 31st write of a kind within a minute."""
    details = {"limit": "30 per 60s"}
    return No("UNAVAILABLE", "rate limit exceeded", retryable=True, retryAfterMs=int(seconds * 1000), details=details)


def reloading() -> No:
    """9.6's answer while it loads its plugins anew, to whatever asks one of them: nothing says that it will pass."""
    words = "PluginInstanceUnavailableError: Plugin anthropic was reloaded or disabled; use its current tools."
    return No("UNAVAILABLE", words)


@dataclass
class Fake:
    """`faults` has, per method, what goes wrong with its next calls, in order; None is a call that goes well. An
    exception given as a pair with True strikes after the call was carried out."""

    root: Path
    methods: dict[str, Callable[[Raw], Any]] = field(default_factory=dict)
    faults: dict[str, list[Exception | tuple[Exception, bool] | None]] = field(default_factory=dict)
    calls: list[tuple[str, Raw]] = field(default_factory=list)
    jobs: dict[str, Raw] = field(default_factory=dict)
    state_dir: str = ""
    version: str = "2026.9.6"
    port: int = 0
    connections: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.state_dir = self.state_dir or str(self.root)
        known = {
            "cron.list": lambda _: {"jobs": [dict(job) for job in self.jobs.values()], "hasMore": False},
            "cron.get": lambda params: dict(self.jobs[params["id"]]),
            "cron.add": self._add,
            "cron.update": self._update,
            "cron.remove": lambda params: self.jobs.pop(params["id"]) and {"removed": True},
            "config.get": lambda _: {"hash": "hash-1", "valid": True},
            "config.patch": lambda _: {"ok": True},
            "agents.list": lambda _: {"agents": [{"id": "main"}]},
            "models.list": lambda _: {"models": []},
        }
        self.methods = {**known, **self.methods}

    def sent(self, method: str) -> list[Raw]:
        return [params for name, params in self.calls if name == method]

    def _add(self, params: Raw) -> Raw:
        made = {**params, "id": f"job-{len(self.jobs) + 1}", "enabled": True, "configRevision": "r1", "state": {}}
        self.jobs[made["id"]] = made
        return {"created": True, "job": made}

    def _update(self, params: Raw) -> Raw:
        job = self.jobs[params["id"]]
        if params.get("expectedConfigRevision") != job["configRevision"]:
            raise No("INVALID_REQUEST", "it changed", details={"code": "CRON_JOB_CHANGED"})
        job.update(params["patch"])
        return job

    def handle(self, line: ServerConnection) -> None:
        self.connections += 1
        line.send(json.dumps({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n"}}))
        try:
            for text in line:
                self._one(line, json.loads(text))
        except (ConnectionClosed, Drop):
            return
        except Hang:
            self._stopped.wait(60)

    def _one(self, line: ServerConnection, request: Raw) -> None:
        method, params = request["method"], request.get("params", {})
        if method != "connect":
            self.calls.append((method, params))
        fault = self.faults.get(method, []).pop(0) if self.faults.get(method) else None
        error, after = fault if isinstance(fault, tuple) else (fault, False)
        try:
            if error is not None and not after:
                raise error
            payload = self._hello(params) if method == "connect" else self.methods[method](params)
            if error is not None:
                raise error
        except Say as say:
            line.send(str(say))
            return
        except No as no:
            line.send(json.dumps({"type": "res", "id": request["id"], "ok": False, "error": no.error}))
            return
        line.send(json.dumps({"type": "event", "event": "tick", "payload": {}}))
        line.send(json.dumps({"type": "res", "id": request["id"], "ok": True, "payload": payload}))

    def _hello(self, params: Mapping[str, Any]) -> Raw:
        if params["auth"].get("token") != TOKEN:
            raise No(
                "INVALID_REQUEST",
                f"unauthorized: {params['auth'].get('token')} is no token",
                details={"code": "AUTH_TOKEN_MISMATCH"},
            )
        return {
            "server": {"version": self.version, "bootId": "boot-1"},
            "snapshot": {"stateDir": self.state_dir},
            "features": {"methods": sorted(self.methods)},
            "auth": {"scopes": params["scopes"]},
        }

    def ref(self, **options: Any) -> HomeRef:
        package = {"openclaw": str(self.root.parent / "package"), "node": "/bin/sh"}
        return HomeRef(
            "main", "openclaw", LocalPlace(), str(self.root), {**package, "$key": KEY, "$owner": "solo", **options}
        )


@contextmanager
def served(folder: Path, text: str = "", **more: Any) -> Iterator[Fake]:
    """A home below `folder`, with this config, that a fake gateway serves."""
    root = Path(os.path.realpath(folder)) / "home"
    package = root.parent / "package"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({"name": "openclaw", "version": "2026.9.6"}))
    (package / "openclaw.mjs").write_text("")
    fake = Fake(root, **more)
    with serve(fake.handle, "127.0.0.1", 0, compression=None) as server:
        fake.port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        _home(fake, text)
        try:
            yield fake
        finally:
            fake._stopped.set()
            _ended(server, thread)


def _ended(server: Server, thread: threading.Thread) -> None:
    server.shutdown()
    thread.join(5)


def _home(fake: Fake, text: str) -> None:
    lock = fake.root / "tmp" / f"openclaw-{os.getuid()}" / "gateway.state.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"pid": os.getpid(), "port": fake.port, "createdAt": time.time()}))
    config = text or f"{{gateway: {{auth: {{token: '{TOKEN}'}}}}}}"
    (fake.root / "openclaw.json").write_text(config)
