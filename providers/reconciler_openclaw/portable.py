"""What a copy to another harness should know of a home: what its things mean beyond their words, and what stays."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.place import Place, Stat
from reconciler.provider import Behind
from reconciler_shape import models, places
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, inference

_WHAT = {
    ".env": "secrets",
    "agents": "sessions and what agents remember of them",
    "credentials": "credentials",
    "extensions": "plugins",
    "identity": "the device's own key",
    "media": "media",
    "plugins": "plugins",
    "skills": "skills",
    "state": "run history, approvals, pairings, the secret store",
    "workspace": "workspace",
}
_LEFT_OUT = frozenset({home.CONFIG, "cache", "cron", "logs", "tmp"})
_MOST = 100_000  # files; what lies beyond is not weighed


def implied(kind: Kind, fields: Mapping[str, Json], zone: str) -> Mapping[str, str]:
    """What a declared thing means here beyond its words, by aspect. `zone` is the setup's time zone."""
    if kind is Kind.INFERENCE:
        return models.keys(fields, inference.usual_key)
    when: Any = fields.get("schedule")
    if kind is not Kind.JOB or not isinstance(when, Mapping) or "cron" not in when:
        return {}
    return {"time zone": str(when.get("tz") or zone or "the machine's own")}


def behind(place: Place, root: str) -> Iterator[Behind]:
    """The home's own parts with their sizes; copies of the config that OpenClaw keeps count as nothing."""
    for name in places.names(place, root):
        if name in _LEFT_OUT or name.startswith((f"{home.CONFIG}.", "clawdbot.json")):
            continue
        files, size = _weigh(place, posixpath.join(root, name))
        if files:
            word = "workspace" if name.startswith("workspace") else name
            yield Behind(name, _WHAT.get(word, "not known here"), files, size)


def leftovers(place: Place, root: str) -> list[str]:
    """Copies that lie in the home and hold its secrets, a line each: OpenClaw's of a config that it refused or found
    replaced, and ours of what was there before a write."""
    found = []
    for name in places.names(place, root):
        if name.startswith((f"{home.CONFIG}.rejected.", f"{home.CONFIG}.clobbered.")):
            found.append(f"{name}: OpenClaw's copy of a config that it did not take; it holds what the config holds")
        elif name == ".reconciler-trash":
            below = places.names(place, posixpath.join(root, name))
            found += [f"trash: a copy from before a write, {copy} (kept for 14 days)" for copy in below]
    return found


def _weigh(place: Place, path: str) -> tuple[int, int]:
    """Files and bytes at and below a path; links are not followed."""
    files = size = 0
    waiting = [path]
    while waiting and files < _MOST:
        here = waiting.pop()
        stat = places.lstat(place, here)
        if isinstance(stat, Stat) and stat.kind == "file":
            files, size = files + 1, size + stat.size
        elif isinstance(stat, Stat) and stat.kind == "dir":
            waiting += [posixpath.join(here, name) for name in places.names(place, here)]
    return files, size
