"""The conformance suite on real OpenClaw homes, each tested version, served by a gateway and stopped.

One home and gateway per version serve all the checks, since a gateway takes ten seconds to start: each check finds the
home as it was at first. Of a stopped home too: its quiet gateway is the provider's own, started once for all the
checks, and hidden from every look at the home; that it comes and goes with each run is shown in `openclaw/test_life_*`.
Somebody else edits the home by the gateway's RPC.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from reconciler.provider import HomeRef, Note
from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, World, tree
from reconciler_openclaw import home as homes
from reconciler_openclaw import jobs, quiet, rpc, serving
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_shape.hiding import Hider

pytestmark = pytest.mark.openclaw

# What a gateway writes by itself; the jobs in its database are compared one by one.
VOLATILE = ("*.sqlite*", "*.lock", "*.bak*", "*.last-good", "*.jsonl", "*.log", "*.json.*", "canvas/*", "devices/*")
_SCHEDULE = {"kind": "every", "everyMs": 7_200_000}


@dataclass
class Somebody:
    """A person or an agent at work in the home, through its gateway."""

    path: Path
    lab: labs.Lab

    @property
    def database(self) -> Path:
        return self.path / "state" / "openclaw.sqlite"

    def jobs(self) -> Mapping[str, str]:
        return {i: str(job["name"]) for i, job in self.lab.jobs().items() if not jobs.own(job)}

    def add_job(self, name: str, prompt: str) -> str:
        payload = {"kind": "agentTurn", "message": prompt}
        made = self.lab.add_job(
            name=name,
            schedule=_SCHEDULE,
            sessionTarget="isolated",
            wakeMode="now",
            payload=payload,
            delivery={"mode": "none"},
        )
        return str(made["id"])

    def edit_job(self, harness_id: str, prompt: str) -> None:
        self.lab.rpc("cron.update", id=harness_id, patch={"payload": {"kind": "agentTurn", "message": prompt}})

    def delete_job(self, harness_id: str) -> None:
        self.lab.rpc("cron.remove", id=harness_id)

    def break_jobs(self) -> None:
        self._kept.mkdir()
        for name in ("", "-wal", "-shm"):
            file = self.database.with_name(self.database.name + name)
            if file.exists():
                file.rename(self._kept / file.name)
        self.database.write_bytes(b"no database" * 100)

    def put_secret(self, value: str) -> None:
        (self.path / ".env").write_text(f"OPENROUTER_API_KEY={value}\n")
        text = self._config.read_text()
        self._config.write_text(text.replace("gateway:", f"env: {{vars: {{SOME_API_KEY: '{value}'}}}}, gateway:", 1))
        self.add_job("leaky", f"Call it with {value}.")

    @property
    def _config(self) -> Path:
        return self.path / "openclaw.json"

    @property
    def _kept(self) -> Path:
        return self.lab.user / "kept"

    def reset(self, config: bytes) -> None:
        """The home as it was at first."""
        if self._kept.exists():
            for file in self._kept.iterdir():
                file.rename(self.database.with_name(file.name))
            self._kept.rmdir()
        (self.path / ".env").unlink(missing_ok=True)
        shutil.rmtree(self.path / ".reconciler-trash", ignore_errors=True)
        if self._config.read_bytes() != config:
            self._config.write_bytes(config)
        for harness_id in self.jobs():
            self.delete_job(harness_id)


@dataclass
class Served(World):
    """Beside the files, every job counts as the gateway tells it, with its next run."""

    def text(self, jobs: str = "", *args: Any, **kwargs: Any) -> str:
        """OpenClaw gives a job no other's answer, and says so at plan time."""
        return super().text(jobs.replace("    context_from: [brief]\n", ""), *args, **kwargs)

    def tree(self) -> dict[str, str]:
        assert isinstance(self.home, Somebody)
        if self.home._kept.exists():
            return super().tree()
        found = {i: json.dumps(job, sort_keys=True) for i, job in self.home.lab.jobs().items() if not jobs.own(job)}
        return {**super().tree(), **found}


def settle(root: Path) -> None:
    """Waits until a gateway that has just started writes nothing by itself any more."""
    until = time.monotonic() + 60
    before: dict[str, str] = {}
    while (now := tree(root, VOLATILE)) != before:
        assert time.monotonic() < until, "the gateway writes all the time"
        before = now
        time.sleep(2)


@contextmanager
def stopped(lab: labs.Lab) -> Iterator[None]:
    """The home is a stopped one to us, and each of our doors to it finds a quiet gateway: always the same."""
    opened: list[tuple[int, rpc.Credential]] = []
    begin, find, started = rpc.open_at, serving.find, quiet.started

    def remembered(port: int, credential: rpc.Credential, *more: Any) -> rpc.Connection:
        opened.append((port, credential))
        return begin(port, credential, *more)

    def unseen(here: homes.Home) -> serving.Gateway | None:
        return None if here.root == str(lab.root) else find(here)

    @contextmanager
    def again(
        ref: HomeRef, lock_fd: int | None, hider: Hider, note: Note, until: float = math.inf
    ) -> Iterator[rpc.Connection]:
        if ref.path != str(lab.root):
            with started(ref, lock_fd, hider, note, until) as connection:
                yield connection
            return
        # For an edit of `env` it restarts itself, as one that is started anew each time never does.
        connection = begin(*opened[0], note, quiet.START, lambda: True)
        try:
            yield connection
        finally:
            connection.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(lab.user))
        patch.setattr(rpc, "open_at", remembered)
        with quiet.started(lab.ref(), None, Hider(b"k"), lambda words: None):
            (port, credential), *_ = opened
            lab.port, lab.auth = port, credential.params()
            patch.setattr(serving, "find", unseen)
            patch.setattr(quiet, "started", again)
            yield


@contextmanager
def served(lab: labs.Lab) -> Iterator[None]:
    try:
        lab.start()
        yield
    finally:
        lab.stop()


WAYS = [(way, version) for way in (served, stopped) for version in labs.VERSIONS]


@pytest.fixture(scope="module", params=WAYS, ids=[f"{way.__name__}-{version}" for way, version in WAYS])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Somebody, bytes]]:
    way, version = request.param
    user = Path(os.path.realpath(tmp_path_factory.mktemp("user")))
    lab = labs.make(user, version)
    (lab.root / "openclaw.json").write_text(
        f"{{ gateway: {{mode: 'local', bind: 'loopback', port: {lab.port}, "
        f"auth: {{mode: 'token', token: '{labs.TOKEN}'}}}},\n"
        " agents: {defaults: {model: {primary: 'anthropic/claude-sonnet-5'}}} }\n"
    )
    with way(lab):
        settle(lab.root)
        yield Somebody(lab.root, lab), (lab.root / "openclaw.json").read_bytes()


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_openclaw(
    check: Callable[[World], None],
    home: tuple[Somebody, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    somebody, config = home
    monkeypatch.setenv("HOME", str(somebody.lab.user))

    def make(_: Path) -> Somebody:
        somebody.reset(config)
        return somebody

    door = f"{{openclaw: {labs.program(somebody.lab.version)}, node: {labs.NODE}}}"
    # A home that is made is a stopped one, whatever serves the home beside it: shown once.
    kit = Kit(OpenClawProvider(), make, door, VOLATILE, provisions="token" in somebody.lab.auth)
    check(Served(kit, tmp_path, make(tmp_path), kit.provider))
