"""Whether a process runs inside a home's own process tree: such a one may not approve what is done to the home."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence

from reconciler.provider import HomeRef
from reconciler_shape import places

from . import home

_PROC_LIMIT = 1 << 20


def insider(ref: HomeRef, ancestors: Sequence[int]) -> str:
    """Why a process with these ancestors does. Pids are of this machine, so that other places have none."""
    if not ref.place.local:
        return ""
    for folder in (ref.path, *_profile_folders(ref)):
        pid = gateway(ref, folder)
        if pid in ancestors:
            return f"it runs below the gateway of {folder} (pid {pid})"
    for pid in ancestors:
        argv = proc(ref, pid, "cmdline")
        if _is_hermes(argv) and _home_of(ref, pid) in (ref.path, *_profile_folders(ref)):
            return f"it runs below `{' '.join(argv)[:80]}` (pid {pid})"
    return ""


def _profile_folders(ref: HomeRef) -> list[str]:
    below = posixpath.join(ref.path, "profiles")
    return [posixpath.join(below, name) for name in places.visible(ref.place, below)]


def gateway(ref: HomeRef, folder: str) -> int:
    """The pid of a live gateway, 0 if there is none: a pid that another process has by now does not count."""
    return running(ref, folder)[0]


def running(ref: HomeRef, folder: str) -> tuple[int, int | None]:
    """The pid of a folder's live gateway, 0 if there is none, and when it began (None where that is not told)."""
    if not ref.place.local:
        return 0, None
    data = home.text(ref.place, posixpath.join(folder, "gateway.pid"), home.SMALL_LIMIT)
    try:
        record = json.loads(data) if isinstance(data, bytes) else {}
    except ValueError:
        return 0, None
    if isinstance(record, int):
        return record, started(ref, record)
    pid, began = (record.get("pid"), record.get("start_time")) if isinstance(record, dict) else (None, None)
    if not isinstance(pid, int):
        return 0, None
    now = started(ref, pid)
    return (pid, now) if began is None or now is None or now == began else (0, None)


def started(ref: HomeRef, pid: int) -> int | None:
    """Field 22 of /proc/PID/stat, which is what Hermes writes down."""
    data = home.text(ref.place, f"/proc/{pid}/stat", _PROC_LIMIT)
    if not isinstance(data, bytes):
        return None
    fields = data.rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def lines(ref: HomeRef, path: str) -> list[str]:
    """A small file of the system's by lines; none if it cannot be read."""
    data = home.text(ref.place, path, _PROC_LIMIT)
    return data.decode(errors="replace").splitlines() if isinstance(data, bytes) else []


def proc(ref: HomeRef, pid: int, name: str) -> list[str]:
    data = home.text(ref.place, f"/proc/{pid}/{name}", _PROC_LIMIT)
    return data.decode(errors="replace").rstrip("\0").split("\0") if isinstance(data, bytes) else []


def _is_hermes(argv: Sequence[str]) -> bool:
    return any(
        posixpath.basename(word) in ("hermes", "hermes-gateway") or word.startswith("hermes_cli") for word in argv[:4]
    )


def _home_of(ref: HomeRef, pid: int) -> str:
    for item in proc(ref, pid, "environ"):
        name, _, value = item.partition("=")
        if name == "HERMES_HOME" and value:
            return ref.place.resolve(value)
    return ref.place.resolve("~/.hermes")
