"""The conformance suite on real OpenClaw homes, each tested version, with the gateway up; others edit them by its RPC.

One home and gateway per version serve all the checks, since a gateway takes ten seconds to start: each check finds the
home as it was at first.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, World, tree
from reconciler_openclaw import jobs
from reconciler_openclaw.provider import OpenClawProvider

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


@pytest.fixture(scope="module", params=labs.VERSIONS)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Somebody, bytes]]:
    user = Path(os.path.realpath(tmp_path_factory.mktemp("user")))
    lab = labs.make(user, str(request.param))
    (lab.root / "openclaw.json").write_text(
        f"{{ gateway: {{mode: 'local', bind: 'loopback', port: {lab.port}, "
        f"auth: {{mode: 'token', token: '{labs.TOKEN}'}}}},\n"
        " agents: {defaults: {model: {primary: 'anthropic/claude-sonnet-5'}}} }\n"
    )
    lab.start()
    try:
        settle(lab.root)
        yield Somebody(lab.root, lab), (lab.root / "openclaw.json").read_bytes()
    finally:
        lab.stop()


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
    kit = Kit(OpenClawProvider(), make, door, VOLATILE)
    check(Served(kit, tmp_path, make(tmp_path), kit.provider))
