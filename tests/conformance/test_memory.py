"""The conformance suite on the home in memory: the double must behave as a real home would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, World, world
from reconciler.testing.memory import MemoryHome, MemoryProvider
from reconciler_specs.address import Kind


@dataclass
class Somebody:
    """Who else changes a home in memory."""

    path: Path
    home: MemoryHome

    def jobs(self) -> Mapping[str, str]:
        return {i: str(j["name"]) for i, j in self.home.jobs().items()}

    def add_job(self, name: str, prompt: str) -> str:
        return self.home.add_job(name, prompt=prompt, schedule={"every": "120m"}, deliver="local")

    def edit_job(self, harness_id: str, prompt: str) -> None:
        self.home.jobs()[harness_id]["prompt"] = prompt

    def delete_job(self, harness_id: str) -> None:
        del self.home.jobs()[harness_id]

    def break_jobs(self) -> None:
        self.home.unreadable["default", Kind.JOB] = "cron/jobs.json: cut off"

    def put_secret(self, value: str) -> None:
        self.home.things["default", Kind.SETTING] = {"a.token": {"value": {"$hidden": "0" * 32}}}


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_memory(check: Callable[[World], None], tmp_path: Path) -> None:
    provider = MemoryProvider()

    def make(path: Path) -> Somebody:
        path.mkdir()
        return Somebody(path, provider.home(path.resolve()))

    check(world(Kit(provider, make), tmp_path))
