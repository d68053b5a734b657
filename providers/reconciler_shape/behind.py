"""What of a home no setup declares, so that a copy leaves it: folders and files with their sizes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping

from reconciler.place import Place, Stat
from reconciler.provider import Behind

from . import dotenv
from .places import lstat, visible

_SKILLS = "skills (one comes along whose `source:` the setup says)"
_WHAT = {
    ".agents": _SKILLS,
    "AGENTS.md": "instructions",
    "cron/output": "what runs left",
    "hooks": "hooks",
    "kanban": "boards with their cards",
    "logs": "logs",
    "memories": "memories",
    "memory": "memories",
    "pairing": "pairings",
    "platforms/pairing": "pairings",
    "profiles/.trash": "deleted profiles",
    ".reconciler-trash": "copies that undo needs",
    "plugins": "plugins",
    "sessions": "sessions",
    "skills": _SKILLS,
    "state.db": "sessions",
    "workspace": "workspace",
    "webhook_subscriptions.json": "webhooks",
}
_ABOVE = ("cron", "platforms")  # folders that are told by what is in them
_DECLARED = frozenset({"config.yaml", "profile.yaml", "SOUL.md", "scripts", "profiles", "cron/jobs.json"})
_LIMIT = 1 << 20  # bytes of a `.env`
_MOST = 100_000  # files; what lies beyond is not weighed


def behind(place: Place, folders: Mapping[str, str], own: Collection[str]) -> Iterator[Behind]:
    """Each profile's parts in the order of their names. `folders` are the profiles' folders by the path below the home
    ("" for the home itself); `own` are the provider's marks and locks, and what else its kinds stand for."""
    for below, folder in folders.items():
        for name in _parts(place, folder):
            if name in _DECLARED or name in own or name.endswith((".lock", ".pyc")):
                continue
            files, size = _weigh(place, posixpath.join(folder, name))
            if files:
                what = _secrets(place, posixpath.join(folder, name)) if name == ".env" else _what(name)
                yield Behind(posixpath.join(below, name), what, files, size)
        trash = posixpath.join(folder, "profiles", ".trash")
        files, size = _weigh(place, trash)
        if files:
            yield Behind(posixpath.join(below, "profiles/.trash"), _WHAT["profiles/.trash"], files, size)


def _parts(place: Place, folder: str) -> Iterator[str]:
    for name in sorted(visible(place, folder)):
        inner = sorted(visible(place, posixpath.join(folder, name))) if name in _ABOVE else []
        yield from (f"{name}/{part}" for part in inner) if inner else (name,)


def _what(name: str) -> str:
    if name.startswith("state.db"):
        return _WHAT["state.db"]
    return _WHAT.get(name, "not known here")


def _secrets(place: Place, path: str) -> str:
    """The names in a `.env`; its values go nowhere."""
    try:
        lines = place.read(path, _LIMIT).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return "secrets"
    found = dict.fromkeys(entry[0] for line in lines if (entry := dotenv.entry(line)))
    return f"secrets: {', '.join(found)}" if found else "secrets"


def _weigh(place: Place, path: str) -> tuple[int, int]:
    """Files and bytes at and below a path; links count as nothing, and are not followed."""
    files = size = 0
    waiting = [path]
    while waiting and files < _MOST:
        here = waiting.pop()
        stat = lstat(place, here)
        if isinstance(stat, Stat) and stat.kind == "file":
            files, size = files + 1, size + stat.size
        elif isinstance(stat, Stat) and stat.kind == "dir":
            waiting += [posixpath.join(here, name) for name in visible(place, here)]
    return files, size
