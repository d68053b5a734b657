"""A daemon's lease on a home, `orchestrator.lock`: who serves it, and who only did. It is read, and nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from reconciler_specs.secrets import looks_secret

LOCK = "orchestrator.lock"
GUARD = "orchestrator.acquire"
SOCKET = "orchestrator.sock"
_LIMIT = 64 << 10
_MOMENT = re.compile(r"[0-9TZ:.+-]{1,40}")


class State(StrEnum):
    NONE = "none"
    LIVE = "live"
    DEAD = "dead"  # its process is gone, or the pid is another program's by now
    FOREIGN = "foreign-host"  # written on another machine
    EARLIER = "earlier-boot"  # written on this machine before it was started again
    UNREADABLE = "unreadable"


class Lease(NamedTuple):
    """What `orchestrator.lock` says. `start_time` is the kernel's start of the pid, "" where it is not known."""

    pid: int
    started_at: str
    root: str
    hostname: str = ""
    boot_id: str = ""
    start_time: str = ""


class Found(NamedTuple):
    """A lease as it was found, with what it means; `words` is for a person."""

    state: State
    lease: Lease | None = None
    words: str = ""

    @property
    def pid(self) -> int:
        """0 where none is told."""
        return self.lease.pid if self.lease else 0


def inspect(root: Path, holds: Callable[[int], bool] = lambda _fd: False) -> Found:
    """Looks, and touches nothing. The home is on this machine. `holds` says of the open file that a daemon surely has
    it, whatever pids and host names say."""
    path = root / LOCK
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            held = holds(fd)
            data = os.read(fd, _LIMIT)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return Found(State.NONE)
    except OSError as error:
        return Found(State.UNREADABLE, words=f"{path}: {error.strerror or error}")
    lease = _read(data)
    if lease is None:
        state = State.LIVE if held else State.UNREADABLE
        return Found(state, words=f"{path} is no lease that can be read")
    return _judge(lease, held)


def _judge(lease: Lease, held: bool) -> Found:
    who = f"pid {lease.pid} (since {lease.started_at if _MOMENT.fullmatch(lease.started_at) else 'no moment'})"
    if held:
        return Found(State.LIVE, lease, f"a daemon serves this home: {who}")
    if lease.hostname and lease.hostname != host():
        where = "‹hidden›" if looks_secret(lease.hostname) else lease.hostname
        return Found(State.FOREIGN, lease, f"a lease from another machine, {where}: {who}")
    if lease.boot_id and boot_id() and lease.boot_id != boot_id():
        return Found(State.EARLIER, lease, f"a lease from before this machine was started again: {who}")
    now = start_time(lease.pid)
    if not now:
        return Found(State.DEAD, lease, f"the daemon that left this lease is gone: {who}")
    if lease.start_time and now != "?" and lease.start_time != now:
        return Found(State.DEAD, lease, f"the daemon that left this lease is gone, its pid is another's now: {who}")
    return Found(State.LIVE, lease, f"a daemon serves this home: {who}")


def _read(data: bytes) -> Lease | None:
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return None
    pid = raw.get("pid") if isinstance(raw, dict) else None
    if isinstance(pid, bool) or not isinstance(pid, int) or pid <= 0:
        return None

    def said(*names: str) -> str:
        found: list[Any] = [raw[name] for name in names if raw.get(name)]
        return str(found[0]) if found else ""

    # The orchestrator's later versions say host and boot.
    host_name, boot = said("hostname", "host"), said("boot_id", "boot")
    return Lease(pid, said("started_at"), said("root"), host_name, boot, said("start_time"))


def guard_words(guard: Path) -> str:
    """Why nothing may be written while the acquisition guard is there. It is never removed by us."""
    return f"{guard} is there: a daemon was cut off while it took the home; look that none runs, then remove it"


def host() -> str:
    """This machine's name, as `socket.gethostname` has it (a module that a cold verb does without)."""
    return os.uname().nodename


def boot_id() -> str:
    """The kernel's id of this boot, "" where there is none (then boots cannot be told apart)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """When a process began, in the kernel's ticks; "" iff there is none. "?" for one that lives and does not show it
    (no /proc, or another user's)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        try:
            os.kill(pid, 0)  # signal 0 reaches nobody: it only asks
        except (ProcessLookupError, OverflowError):
            return ""
        except PermissionError:
            return "?"
        return "?"
    # The command in parentheses may hold spaces and parentheses of its own. A zombie has ended.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
