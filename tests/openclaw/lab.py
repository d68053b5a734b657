"""Throw-away homes of the real OpenClaw: its gateway on loopback, its CLI, and a small RPC client of the tests' own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from reconciler.observe import Observation, Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_openclaw import rpc
from reconciler_openclaw.provider import OpenClawProvider
from tools import harness

NEW, OLD = "2026.9.6", "2026.7.1-2"
VERSIONS = (NEW, OLD)
KEY = "11" * 32
TOKEN = "token-of-the-tests-0123456789"
_START = 90.0  # seconds: two cores shared with others
# Found once: tests that live in another HOME must not look for them there.
NODE = harness.node()
SCRIPTS = {version: harness.program("openclaw", version) for version in VERSIONS}
_MISSING = [version for version in VERSIONS if not harness.is_complete("openclaw", version)]


def program(version: str) -> Path:
    """The script; a test without it fails, since a skipped test proves nothing."""
    if version in _MISSING:
        pytest.fail(f"OpenClaw {version} is not installed: run make test (or python tools/harness.py openclaw …)")
    return SCRIPTS[version]


def config(port: int, version: str) -> str:
    """A home written by hand: the least that a gateway takes, and a second agent. It has no comments, which would hold
    each row that writes it."""
    if version == NEW:
        roster = (
            "ownership: 'explicit', defaults: {model: {primary: 'anthropic/claude-sonnet-5'}, "
            "systemAgent: {agentId: 'main'}}, entries: {main: {}, ops: {name: 'Ops', description: 'Runs things.'}}"
        )
    else:
        roster = (
            "defaults: {model: {primary: 'anthropic/claude-sonnet-5'}}, "
            "list: [{id: 'ops', name: 'Ops', description: 'Runs things.'}, {id: 'main', default: true}]"
        )
    return (
        "{\n"
        f"  gateway: {{mode: 'local', bind: 'loopback', port: {port}, auth: {{mode: 'token', token: '{TOKEN}'}},}},\n"
        f"  agents: {{{roster}}},\n}}\n"
    )


def _passes(method: str, error: Mapping[str, Any] | None) -> bool:
    """Whether a refusal is one of a moment: nothing was done, or nothing is done by asking."""
    if not error:
        return False
    restarting = (error.get("details") or {}).get("reason") == "gateway-restarting"
    return restarting or error.get("retryable") is True or (method in rpc.READS and error.get("code") == rpc.FAILED)


@dataclass
class Lab:
    """One home at `user/.openclaw`; HOME of everything that runs for it is `user`."""

    user: Path
    version: str
    port: int
    gateway: subprocess.Popen[bytes] | None = None
    calls: int = field(default=0)
    auth: Mapping[str, str] = field(default_factory=lambda: {"token": TOKEN})

    @property
    def root(self) -> Path:
        return self.user / ".openclaw"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{NODE.parent}:/usr/bin:/bin",
            "HOME": str(self.user),
            "TMPDIR": "/tmp",
            "OPENCLAW_STATE_DIR": str(self.root),
            "OPENCLAW_CONFIG_PATH": str(self.root / "openclaw.json"),
            "OPENCLAW_SKIP_CHANNELS": "1",
            "OPENCLAW_SKIP_CRON": "1",
            "npm_config_offline": "true",
        }

    def start(self) -> None:
        """Starts the gateway and waits until it takes calls."""
        with (self.user / "gateway.log").open("ab") as log:
            argv = [str(NODE), str(program(self.version)), "gateway", "run"]
            self.gateway = subprocess.Popen(argv, env=self.env, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + _START
        while True:
            try:
                with self.session():
                    return
            except (OSError, ConnectionError) as error:
                ended = self.gateway.poll() is not None
                if ended or time.monotonic() > deadline:
                    log_text = (self.user / "gateway.log").read_text(errors="replace")[-2000:]
                    pytest.fail(f"the gateway did not start: {error}\n{log_text}")
                time.sleep(0.25)

    def stop(self) -> None:
        if self.gateway is not None:
            self.gateway.send_signal(signal.SIGTERM)
            try:
                self.gateway.wait(20)
            except subprocess.TimeoutExpired:
                self.gateway.kill()
                self.gateway.wait()
            self.gateway = None

    @contextmanager
    def session(self) -> Iterator[ClientConnection]:
        """A connection that has said hello. Raises OSError while the gateway does not take it."""
        with connect(f"ws://127.0.0.1:{self.port}", compression=None, max_size=64 << 20, open_timeout=30) as wire:
            wire.recv(10)
            hello = {
                "minProtocol": 4,
                "maxProtocol": 4,
                "client": {"id": "gateway-client", "version": "test", "platform": "linux", "mode": "backend"},
                "role": "operator",
                "scopes": ["operator.admin", "operator.read", "operator.write"],
                "caps": [],
                "auth": dict(self.auth),
            }
            answer = self._ask(wire, "connect", hello)
            if not answer["ok"]:
                raise ConnectionError(str(answer.get("error")))
            yield wire

    def _ask(self, wire: ClientConnection, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.calls += 1
        wire.send(json.dumps({"type": "req", "id": str(self.calls), "method": method, "params": params}))
        while True:
            answer = json.loads(wire.recv(60))
            if answer.get("type") == "res" and answer.get("id") == str(self.calls):
                assert isinstance(answer, dict)
                return answer

    def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call; a gateway that restarts itself, as it does for some edits of its config, is waited
        for, and so is one that fails at a question while it loads its plugins anew. A write that was sent is never sent
        again, unless the gateway says that it did not take it."""
        deadline = time.monotonic() + _START
        while True:
            with ExitStack() as stack:
                try:
                    wire = stack.enter_context(self.session())
                except (OSError, ConnectionError, WebSocketException):
                    if time.monotonic() > deadline:
                        raise
                else:
                    answer = self._ask(wire, method, params)
                    if not _passes(method, answer.get("error")) or time.monotonic() > deadline:
                        return answer
            time.sleep(0.25)

    def rpc(self, method: str, **params: Any) -> Any:
        """One call; fails the test with the gateway's own words where it refuses."""
        answer = self._answer(method, params)
        assert answer["ok"], (method, answer.get("error"))
        return answer["payload"]

    def refused(self, method: str, **params: Any) -> str:
        """The words with which a call is refused."""
        answer = self._answer(method, params)
        assert not answer["ok"], (method, answer)
        return str(answer["error"]["message"])

    def patch(self, body: Mapping[str, Any], replacing: Sequence[str] = ()) -> None:
        """An edit of the config, taken in; for some edits the gateway restarts itself before it answers."""
        base = self.rpc("config.get")["hash"]
        with suppress(ConnectionClosed):
            self.rpc("config.patch", raw=json.dumps(body), baseHash=base, replacePaths=list(replacing))
        self.settle()
        assert self.rpc("config.get")["hash"] != base, "nothing was written"

    def add_job(self, **job: Any) -> dict[str, Any]:
        found = self.rpc("cron.add", **job)
        made = found.get("job", found)
        assert isinstance(made, dict)
        return made

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Every job as the gateway tells it, by id."""
        found: dict[str, dict[str, Any]] = {}
        while True:
            page = self.rpc("cron.list", includeDisabled=True, limit=200, offset=len(found))
            found |= {job["id"]: job for job in page["jobs"]}
            if not page.get("hasMore") or not page["jobs"]:
                return found

    def add_agent(self, name: str) -> None:
        """An agent with a workspace of its own; the gateway takes a moment to know it."""
        self.rpc("agents.create", name=name, workspace=str(self.root / f"workspace-{name}"))
        self.settle()
        deadline = time.monotonic() + _START
        while name not in {agent["id"] for agent in self.rpc("agents.list")["agents"]}:
            assert time.monotonic() < deadline, f"the gateway does not list its new agent {name}"
            time.sleep(0.25)

    def delete_agent(self, name: str) -> None:
        self.rpc("agents.delete", agentId=name, deleteFiles=False)
        self.settle()

    def settle(self) -> None:
        """Waits until the gateway runs on the config as it is written; 7.1 answers a write when it does."""
        deadline = time.monotonic() + _START
        while (found := self.rpc("config.get")).get("configRevisionHash") != found.get("appliedConfigHash"):
            assert time.monotonic() < deadline, "the gateway does not take its config in"
            time.sleep(0.1)

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(NODE), str(program(self.version)), *words]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=120, check=False)

    def ref(self, **options: Any) -> HomeRef:
        door = {"openclaw": str(program(self.version)), "node": str(NODE)}
        found = {**door, "$key": KEY, "$owner": "solo", **options}
        return HomeRef("main", "openclaw", LocalPlace(), os.path.realpath(self.root), found)

    def observe(self, wanted: Wanted | None = None) -> Observation:
        return OpenClawProvider().observe(self.ref(), wanted or Wanted(everything=True))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def make(user: Path, version: str) -> Lab:
    """A home written by hand; nothing runs yet."""
    lab = Lab(user, version, free_port())
    lab.root.mkdir(parents=True, mode=0o700)
    path = lab.root / "openclaw.json"
    path.write_text(config(lab.port, version))
    path.chmod(0o600)
    return lab
