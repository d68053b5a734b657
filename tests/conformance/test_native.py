"""The conformance suite on native homes; others edit them by the cold door, and with an editor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, More, World, world
from reconciler_native.home import Home, init
from reconciler_native.operator import apply_operator
from reconciler_native.provider import NativeProvider


@dataclass
class ByVerbs:
    """A person or an agent at work in the home, through the cold door."""

    path: Path

    def call(self, op: str, **args: Any) -> dict[str, Any]:
        answer = apply_operator(Home(self.path), op, args)
        assert answer["ok"], answer
        result: dict[str, Any] = answer["result"]
        return result

    def jobs(self) -> Mapping[str, str]:
        return {j["id"]: j["residue"].get("name") or j["prompt"] for j in self.call("jobs.list")["jobs"]}

    def add_job(self, name: str, prompt: str) -> str:
        made = self.call("jobs.create", name=name, prompt=prompt, schedule="every 2h", deliver="local")
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
        (self.path / "config.yaml").write_text(
            f"_config_version: 33\nmodel: {{default: a/b, provider: openrouter, api_key: {value}}}\n"
            f"notes: {{hint: use {value} here}}\n"
        )
        self.add_job("leaky", f"Call it with {value}.")


class ByEditor(ByVerbs):
    """The same, straight in the file."""

    def _edit(self, change: Callable[[list[dict[str, Any]]], Any]) -> Any:
        store = self.path / "cron" / "jobs.json"
        data = json.loads(store.read_text())
        found = change(data["jobs"])
        store.write_text(json.dumps(data, indent=1))
        return found

    def add_job(self, name: str, prompt: str) -> str:
        def add(jobs: list[dict[str, Any]]) -> str:
            made = f"byhand{len(jobs)}"
            jobs.append(
                {
                    "id": made,
                    "name": name,
                    "prompt": prompt,
                    "schedule": {"kind": "interval", "minutes": 120},
                    "enabled": True,
                    "deliver": "local",
                }
            )
            return made

        return str(self._edit(add))

    def edit_job(self, harness_id: str, prompt: str) -> None:
        self._edit(lambda jobs: [j.update(prompt=prompt) for j in jobs if j["id"] == harness_id])

    def delete_job(self, harness_id: str) -> None:
        def gone(jobs: list[dict[str, Any]]) -> None:
            jobs[:] = [j for j in jobs if j["id"] != harness_id]

        self._edit(gone)


def _by_verb(op: str, **args: Any) -> Callable[[Path], None]:
    def edit(home: Path) -> None:
        assert apply_operator(Home(home), op, args)["ok"]

    return edit


_HOOK = "webhooks: {gh: {secret: {secret: GH_HOOK}, prompt: Look., deliver: local}}"
_ROUTE = "routes: {ops: {match: {channel: discord, chat: C1}}}"
MORE = (
    More(
        "default/channels/telegram",
        "channels: {telegram: {enabled: true, allow: [11, 12], admins: [11]}}",
        "channels: {telegram: {enabled: false, allow: [12, 13], admins: [13]}}",
        _by_verb("access.revoke", platform="telegram", user_id="11"),
    ),
    More(
        "default/routes/ops",
        _ROUTE,
        _ROUTE.replace("C1", "C2"),
        _by_verb("routes.put", name="ops", match={"channel": "x"}),
    ),
    More(
        "default/webhooks/gh",
        _HOOK,
        _HOOK.replace("local", "{to: slack, chat: C1}"),
        _by_verb("webhooks.set", name="gh", prompt="Something else."),
    ),
)


@pytest.mark.parametrize("somebody", [ByVerbs, ByEditor])
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_native(check: Callable[[World], None], somebody: type[ByVerbs], tmp_path: Path) -> None:
    def make(path: Path) -> ByVerbs:
        assert init(path)
        (path / ".env").write_text("GH_HOOK=not-a-real-secret-0123456789\n")
        return somebody(path)

    check(world(Kit(NativeProvider(), make, more=MORE), tmp_path))
