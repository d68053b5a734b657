"""Small homes of our own, and an interpreter that only has Hermes's version mark: nothing is started here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.observe import Observation, Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.address import Address

CONFIG = """\
_config_version: 33
timezone: Europe/Brussels
model: {default: a/b, provider: openrouter}
agent: {max_turns: 90}
mcp_servers: {fs: {command: npx, headers: {Authorization: plain-value-of-a-header}}}
"""
ENV = "OPENROUTER_API_KEY=sk-or-v1-0000000000\nTELEGRAM_HOME_CHANNEL=-1001234567890\nPASSPHRASE=Tr0ub4dor&3\n"


class Site:
    """A home below tmp_path, read without Hermes."""

    def __init__(self, folder: Path, version: str = "0.19.0") -> None:
        self.root = folder / ".hermes"
        self.venv = folder / "venv"
        (self.venv / "bin").mkdir(parents=True)
        (self.venv / "bin" / "python").touch()
        (self.venv / "lib" / "python3.11" / "site-packages" / f"hermes_agent-{version}.dist-info").mkdir(parents=True)
        self.provider = HermesProvider()
        self.options: dict[str, Any] = {"python": str(self.venv / "bin" / "python"), "$key": "22" * 32}
        self.timezone = ""

    def write(self, path: str, text: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    def jobs(self, *records: Mapping[str, Any], profile: str = "") -> None:
        self.write(f"{profile}cron/jobs.json", json.dumps({"jobs": records}))

    @property
    def ref(self) -> HomeRef:
        return HomeRef("main", "hermes", LocalPlace(), str(self.root), self.options, self.timezone)

    def observe(self, *paths: str, everything: bool = False) -> Observation:
        addresses = frozenset(Address.parse(f"main/{path}") for path in paths)
        return self.provider.observe(self.ref, Wanted(addresses, everything))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.write("config.yaml", CONFIG)
    made.write(".env", ENV)
    made.write("scripts/disk.sh", "df\n")
    return made


@pytest.fixture
def make_site(tmp_path: Path) -> Callable[[str], Site]:
    return lambda version: Site(tmp_path / version, version)
