"""The conformance suite on real homes of the orchestrator, cold and served; others edit them by its own verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator import lab
from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, World, world
from reconciler_orchestrator.provider import OrchestratorProvider

pytestmark = pytest.mark.orchestrator

VOLATILE = ("orchestrator.lock", "orchestrator.sock")


@dataclass
class ByVerbs:
    """A person or an agent at work in the home, through the door that is open."""

    path: Path
    send: Callable[..., dict[str, Any]]

    def call(self, op: str, **args: Any) -> dict[str, Any]:
        answer = self.send(self.path, op, **args)
        assert answer["ok"], answer
        result: dict[str, Any] = answer["result"]
        return result

    def jobs(self) -> Mapping[str, str]:
        return {job["id"]: job.get("name") or job["prompt"] for job in lab.stored(self.path)}

    def add_job(self, name: str, prompt: str) -> str:
        made = self.call("jobs.create", name=name, prompt=prompt, schedule="every 2h", deliver="local", id=_free(self))
        return str(made["job_id"])

    def edit_job(self, harness_id: str, prompt: str) -> None:
        self.call("jobs.update", id=harness_id, prompt=prompt)

    def delete_job(self, harness_id: str) -> None:
        self.call("jobs.delete", id=harness_id)

    def break_jobs(self) -> None:
        store = self.path / "cron" / "jobs.json"
        store.write_bytes(store.read_bytes()[:-40])

    def put_secret(self, value: str) -> None:
        (self.path / ".env").write_text(f"OPENROUTER_API_KEY={value}\n")
        (self.path / "config.yaml").write_text(f"model: {{default: a/b, provider: openrouter, api_key: {value}}}\n")
        self.add_job("leaky", f"Call it with {value}.")


def _free(home: ByVerbs) -> str:
    return f"theirs{len(home.jobs())}"


@pytest.mark.parametrize("served", [False, True], ids=["cold", "live"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_orchestrator(check: Callable[[World], None], served: bool) -> None:
    def make(path: Path) -> ByVerbs:
        return ByVerbs(path, lab.live if served else lab.cold)

    with lab.short() as root:
        home = lab.make(root / "home")
        with lab.serving(home) if served else nullcontext():
            check(world(Kit(OrchestratorProvider(), make, lab.flow(), VOLATILE), root))
