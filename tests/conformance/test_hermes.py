"""The conformance suite on real Hermes homes, each tested version; others edit them with Hermes's own functions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.lab import VERSIONS, python_of
from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, More, World, world
from reconciler_hermes.provider import HermesProvider

pytestmark = pytest.mark.hermes

_CALL = """
import json, sys
from cron import jobs as cj
name, args = json.loads(sys.argv[1])
if name == "list":
    found = {j["id"]: j["name"] for j in cj.load_jobs()}
elif name == "create":
    found = cj.create_job(**args)["id"]
elif name == "update":
    cj.update_job(args["id"], {"prompt": args["prompt"]})
    found = None
else:
    cj.remove_job(args["id"])
    found = None
print(json.dumps(found))
"""


@dataclass
class Somebody:
    """A person or an agent at work in the home, through Hermes's own functions."""

    path: Path
    version: str

    def call(self, what: str, **args: Any) -> Any:
        env = {
            "HOME": str(self.path.parent),
            "HERMES_HOME": str(self.path),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
        }
        argv = [str(python_of(self.version)), "-I", "-c", _CALL, json.dumps([what, args])]
        done = subprocess.run(argv, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout.decode().strip().splitlines()[-1])

    def jobs(self) -> Mapping[str, str]:
        found: dict[str, str] = self.call("list")
        return found

    def add_job(self, name: str, prompt: str) -> str:
        return str(self.call("create", name=name, prompt=prompt, schedule="every 2h", deliver="local"))

    def edit_job(self, harness_id: str, prompt: str) -> None:
        self.call("update", id=harness_id, prompt=prompt)

    def delete_job(self, harness_id: str) -> None:
        self.call("remove", id=harness_id)

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


def _replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    """What an editor does: one text for another, in a file of the home."""

    def edit(home: Path) -> None:
        text = (home / file).read_text()
        assert old in text, text
        (home / file).write_text(text.replace(old, new))

    return edit


_HOOK = "webhooks: {gh: {secret: {secret: GH_HOOK}, prompt: Look., deliver: local}}"
_ROUTE = "routes: {ops: {match: {channel: discord, chat: C1}}}"
MORE = (
    More(
        "default/channels/telegram",
        "channels: {telegram: {enabled: true, allow: [11, 12], admins: [11]}}",
        "channels: {telegram: {enabled: false, allow: [12, 13], admins: [13]}}",
        _replaced(".env", ",11", ""),
    ),
    More("default/routes/ops", _ROUTE, _ROUTE.replace("C1", "C2"), _replaced("config.yaml", "C1", "C3")),
    More(
        "default/webhooks/gh",
        _HOOK,
        _HOOK.replace("local", "{to: slack, chat: C1}"),
        _replaced("webhook_subscriptions.json", "Look.", "Something else."),
    ),
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_hermes(check: Callable[[World], None], version: str, tmp_path: Path) -> None:
    def make(path: Path) -> Somebody:
        path.mkdir(mode=0o700)
        (path / "config.yaml").write_text("_config_version: 33\nmodel: {default: a/b, provider: openrouter}\n")
        (path / ".env").write_text("GH_HOOK=not-a-real-secret-0123456789\n")
        return Somebody(path, version)

    door = f"{{python: {python_of(version)}}}"
    # Routes came with 0.19.
    more = [thing for thing in MORE if version >= "0.19" or "/routes/" not in thing.path]
    check(world(Kit(HermesProvider(), make, door, more=more), tmp_path))
