"""Throw-away Hermes homes for tests: the provider on one side, Hermes's own functions on the other."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import CLEAR, Action, Clear, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Observation, Observed, Wanted
from reconciler.place import LocalPlace, Place
from reconciler.provider import Answer, Canon, HomeRef, Step
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, shape_of

VERSIONS = ("0.19.0", "0.18.2", "0.16.0")
KEY = "11" * 32


def python_of(version: str) -> Path:
    """The interpreter with this Hermes; a test without it fails, since a skipped test proves nothing."""
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "agent-home-reconciler"
    found = cache / f"hermes-{version}" / "bin" / "python"
    if not found.exists():
        pytest.fail(f"hermes-agent {version} is not installed: run make test (or python tools/harness.py hermes …)")
    return found


def change(name: str, write: Json | Clear, observed: Json = ABSENT, row: FieldRow | None = None) -> FieldChange:
    row = row or (FieldRow.UNSET if write is CLEAR else FieldRow.SET)
    declared = ABSENT if write is CLEAR else write
    return FieldChange(name, row, declared, observed, None, shape_of(None if write is CLEAR else write), write)


@dataclass
class Lab:
    """One home and the provider for it; `home` is the label in addresses."""

    root: Path
    version: str = "0.19.0"
    place: Place = field(default_factory=LocalPlace)
    provider: HermesProvider = field(default_factory=HermesProvider)

    @property
    def python(self) -> Path:
        return python_of(self.version)

    @property
    def ref(self) -> HomeRef:
        options = {"python": str(self.python), "$key": KEY, "$owner": "solo"}
        return HomeRef("main", "hermes", self.place, os.path.realpath(self.root), options)

    def observe(self, *paths: str, everything: bool = False) -> Observation:
        return self.provider.observe(self.ref, Wanted(frozenset(map(address, paths)), everything))

    def canon(self, resource: Resource, ids: Mapping[str, str] | None = None) -> Canon:
        observation = self.provider.prepare({resource.address: resource}, self.observe(str(resource.address)))
        return self.provider.canon(resource, observation, (ids or {}).get)

    def perform(self, *actions: Action) -> list[Answer]:
        with self.provider.open(self.ref, None) as door:
            return list(door.perform(step(self.ref, actions)))

    def job(self, job_id: str, profile: str = "default") -> Observed:
        found = self.observe().at(profile, Kind.JOB, job_id)
        assert isinstance(found, Observed), found
        return found

    def create(self, key: str, fields: Mapping[str, Json], profile: str = "default") -> Answer:
        return self.perform(create(f"{profile}/jobs/{key}", fields))[0]

    def update(self, job_id: str, changes: Mapping[str, Json | Clear], key: str = "brief") -> Answer:
        seen = self.job(job_id)
        return self.perform(update(f"default/jobs/{key}", seen, changes))[0]

    def jobs(self, profile: str = "") -> list[dict[str, Any]]:
        path = self.folder(profile) / "cron" / "jobs.json"
        found: list[dict[str, Any]] = json.loads(path.read_text())["jobs"]
        return found

    def folder(self, profile: str = "") -> Path:
        return self.root if profile in ("", "default") else self.root / "profiles" / profile

    def config(self, text: str | None = None, profile: str = "") -> str:
        path = self.folder(profile) / "config.yaml"
        if text is not None:
            path.write_text(text)
        return path.read_text()

    def hermes(self, code: str, profile: str = "") -> Any:
        """The JSON that `code` prints under Hermes's interpreter for this home."""
        env = {
            "HOME": str(self.root.parent),
            "HERMES_HOME": str(self.folder(profile)),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
        }
        done = subprocess.run([str(self.python), "-I", "-c", code], env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout.decode().strip().splitlines()[-1])


def address(path: str) -> Address:
    return Address.parse(path if path.startswith("main/") else f"main/{path}")


def resource(path: str, fields: Mapping[str, Json], **more: Any) -> Resource:
    return Resource(address(path), fields, {name: shape_of(value) for name, value in fields.items()}, **more)


def create(path: str, fields: Mapping[str, Json], row: Row = Row.CREATE) -> Action:
    return Action(row, address(path), changes=tuple(change(k, v) for k, v in fields.items()), origin="created")


def update(path: str, seen: Observed, changes: Mapping[str, Json | Clear]) -> Action:
    rows = tuple(change(k, v, seen.get(k)) for k, v in changes.items())
    return Action(Row.UPDATE, address(path), id=seen.id, changes=rows, fingerprint=seen.fingerprint)


def delete(path: str, seen: Observed, fields: Iterable[str] = ()) -> Action:
    rows = tuple(change(k, CLEAR, seen.get(k)) for k in fields)
    return Action(Row.DELETE, address(path), id=seen.id, changes=rows, fingerprint=seen.fingerprint)


def step(ref: HomeRef, actions: Sequence[Action]) -> Step:
    return Step(ref, tuple(actions), {a.address: f"intent-{n}" for n, a in enumerate(actions)})


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and time of change, to see that nothing was written."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


Make = Callable[..., Lab]
