"""The gateway that serves a home, told from its lock file and its process; no connection is made."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.place import Stat
from reconciler_shape import places

from . import home

_TMP = "/tmp"
_ENV_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Gateway:
    """A live gateway of one home: `port` is where it listens on loopback, 0 if the lock does not say. `other` says why
    it is not this home's after all (it holds the state directory with another config), "" if it is. `switches` are the
    read-only switches in its environment."""

    pid: int
    port: int
    lock: str
    other: str = ""
    switches: frozenset[str] = frozenset()


def find(here: home.Home) -> Gateway | None:
    """The gateway whose lock names this home and whose process is alive, None if there is none.

    9.6 keeps its locks in the state directory, 7.1 in the temporary folder of its process: of that only `/tmp` can be
    known from outside.
    """
    place, uid = here.place, here.place.uid()
    inside = here.path("tmp", f"openclaw-{uid}")
    shared = posixpath.join(_TMP, f"openclaw-{uid}")
    # OpenClaw: `gateway-lock`. The name has a digest of the config's path as it was given, so that all have to be read.
    paths = [posixpath.join(inside, "gateway.state.lock")]
    paths += [posixpath.join(folder, name) for folder in (inside, shared) for name in _locks(here, folder)]
    for path in paths:
        data = home.text(place, path, home.SMALL_LIMIT)
        found = _payload(data) if isinstance(data, bytes) else {}
        pid = found.get("pid")
        if not isinstance(pid, int) or found.get("role", "gateway") != "gateway":
            continue
        if not _alive(here, pid, found.get("startTime")):
            continue
        port = found.get("port")
        config = str(found.get("configPath", ""))
        other = ""
        mine = place.resolve(config) == place.resolve(here.config) if config else path.startswith(inside)
        if not mine and not path.startswith(inside):
            continue  # another home's
        if not mine:
            other = f"the gateway (pid {pid}) of {here.root} runs with another config, {config}"
        switches = home.flags(f"{name}={value}" for name, value in environ(here, pid).items())
        return Gateway(pid, port if isinstance(port, int) else 0, path, other, switches)
    return None


def _locks(here: home.Home, folder: str) -> list[str]:
    """The locks in a folder that is ours: in one of somebody else's they could say anything (L17)."""
    stat = places.lstat(here.place, folder)
    if not isinstance(stat, Stat) or stat.kind != "dir" or stat.uid != here.place.uid() or stat.mode & 0o002:
        return []
    return [name for name in places.names(here.place, folder) if name.startswith("gateway.") and name.endswith(".lock")]


def _payload(data: bytes) -> Mapping[str, Any]:
    """The lock's record; OpenClaw pads it with white space."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _alive(here: home.Home, pid: int, started: Any) -> bool:
    """Whether the process lives, and is the one that took the lock (by its start time, in clock ticks since boot)."""
    data = home.text(here.place, f"/proc/{pid}/stat", home.SMALL_LIMIT)
    if not isinstance(data, bytes):
        # Without /proc (macOS) we cannot tell: who claims the home counts as alive.
        return places.lstat(here.place, "/proc/self") is None
    fields = data.decode(errors="replace").rpartition(")")[2].split()
    ticks = fields[19] if len(fields) > 19 else ""  # field 22 of proc(5), counted from behind the name
    state = fields[0] if fields else "Z"
    return state != "Z" and (not isinstance(started, int) or str(started) == ticks)


def environ(here: home.Home, pid: int) -> dict[str, str]:
    """A process's environment, {} if it may not be seen. It holds secrets: never shown."""
    data = home.text(here.place, f"/proc/{pid}/environ", _ENV_LIMIT)
    pairs = (data if isinstance(data, bytes) else b"").decode(errors="replace").split("\0")
    return {name: value for name, found, value in (pair.partition("=") for pair in pairs) if found}
