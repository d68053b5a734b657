"""Small homes of our own, as OpenClaw's files were measured to look; nothing is started here."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.observe import Observation, Observed, Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.address import Address, Kind

NEW, OLD = "2026.9.6", "2026.7.1-2"
CONFIG = """\
{
  // by hand
  gateway: {mode: 'local', auth: {mode: 'token', token: 'Tr0ub4dor-and-3'},},
  agents: {
    ownership: 'explicit',
    defaults: {
      model: {primary: 'opus', fallbacks: ['openai/gpt-6', 'local/qwen']},
      imageModel: 'google/gemini-4',
      models: {'anthropic/claude-opus-5': {alias: 'opus'}},
    },
    entries: {main: {default: true}, ops: {name: 'Ops', description: ' Runs things. ', model: 'openai/gpt-6-mini'}},
  },
  models: {providers: {
    local: {baseUrl: 'http://127.0.0.1:8080/v1/', api: 'openai-completions', apiKey: '${LOCAL_API_KEY}'},
    openai: {apiKey: {source: 'env', provider: 'default', id: 'OPENAI_API_KEY'}},
    odd: {apiKey: 'plain-value-of-a-key'},
  }},
  mcp: {servers: {fs: {command: 'npx', env: {PASS: 'hunter2-hunter2'}}}},
  env: {vars: {LOCAL_API_KEY: 'value-of-the-local-key'}},
  channels: {telegram: {botToken: '${TELEGRAM_BOT_TOKEN}', enabled: true}},
  bindings: [{agentId: 'ops', match: {channel: 'telegram', accountId: 'ops'}}],
}
"""
_TABLES = """
CREATE TABLE cron_jobs (store_key TEXT NOT NULL, job_id TEXT NOT NULL, declaration_key TEXT, name TEXT NOT NULL,
  enabled INTEGER NOT NULL, job_json TEXT NOT NULL, state_json TEXT NOT NULL DEFAULT '{}',
  sort_order INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (store_key, job_id));
CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, app_version TEXT);
CREATE TABLE secret_store_entries (scope_kind TEXT, scope_id TEXT, name TEXT, value TEXT, deleted_at_ms INTEGER);
"""


def job(**more: Any) -> dict[str, Any]:
    """A job as 9.6 stores it."""
    return {
        "id": "j1",
        "agentId": "main",
        "name": "Brief",
        "enabled": True,
        "createdAtMs": 1796071835474,
        "schedule": {"kind": "every", "everyMs": 7_200_000, "anchorMs": 1796071835474},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "payload": {"kind": "agentTurn", "message": "Write.", "toolsAllow": ["*"]},
        "delivery": {"mode": "announce"},
        "scheduledToolPolicy": {"version": 1, "mode": "trusted"},
        "state": {},
        **more,
    }


class Site:
    """A home below tmp_path, and an install that is only its package.json."""

    def __init__(self, folder: Path) -> None:
        self.user = folder
        self.root = folder / ".openclaw"
        self.package = folder / "lib" / "node_modules" / "openclaw"
        self.provider = OpenClawProvider()
        self.timezone = ""
        self.install(NEW)

    def install(self, version: str) -> None:
        self.package.mkdir(parents=True, exist_ok=True)
        (self.package / "package.json").write_text(json.dumps({"name": "openclaw", "version": version}))
        (self.package / "openclaw.mjs").touch(mode=0o755)
        node = self.user / "bin" / "node"
        node.parent.mkdir(exist_ok=True)
        node.touch()

    def write(self, path: str, text: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    def config(self, text: str = CONFIG) -> Path:
        return self.write("openclaw.json", text)

    def jobs(
        self, *records: Mapping[str, Any], key: str = "", ran: str = NEW, state: Mapping[str, Any] | None = None
    ) -> None:
        path = self.root / "state" / "openclaw.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists()
        connection = sqlite3.connect(path)
        with connection:
            if fresh:
                connection.executescript(_TABLES)
            connection.execute("INSERT OR REPLACE INTO schema_meta VALUES ('startup-migrations', ?)", (f"{ran}\n3\nx",))
            for record in records:
                row = (
                    key or f"{os.path.realpath(self.root)}/cron/jobs.json",
                    record["id"],
                    record["name"],
                    json.dumps(dict(record)),
                    json.dumps(dict(state or {})),
                    record.get("declarationKey"),
                )
                connection.execute(
                    "INSERT INTO cron_jobs (store_key, job_id, name, enabled, job_json, state_json, declaration_key) "
                    "VALUES (?, ?, ?, 1, ?, ?, ?)",
                    row,
                )
        connection.close()

    def secret(self, name: str) -> None:
        connection = sqlite3.connect(self.root / "state" / "openclaw.sqlite")
        with connection:
            row = ("team", "", name, "the-value-of-it-0123", None)
            connection.execute("INSERT INTO secret_store_entries VALUES (?, ?, ?, ?, ?)", row)
        connection.close()

    @property
    def ref(self) -> HomeRef:
        options = {"openclaw": str(self.package), "$key": "22" * 32, "$owner": "solo"}
        return HomeRef("main", "openclaw", LocalPlace(), os.path.realpath(self.root), options, timezone=self.timezone)

    def observe(self, *addresses: str, everything: bool = False) -> Observation:
        wanted = frozenset(Address.parse(a) for a in addresses)
        return self.provider.observe(self.ref, Wanted(wanted, everything))

    def job(self, **more: Any) -> Observed:
        """The one job of the home, which is made here."""
        if not (self.root / "openclaw.json").exists():
            self.config()
        record = job(**more)
        self.jobs(record, state=more.get("state"))
        found = self.observe().at("default", Kind.JOB, str(record["id"]))
        assert isinstance(found, Observed)
        return found


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = Site(Path(os.path.realpath(tmp_path)))
    found.root.mkdir(mode=0o700)
    return found
