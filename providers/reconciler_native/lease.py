"""The daemon's lease on a home: who serves it, told apart from who did once, and never a reason to signal anybody."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from .disk import FILE, Disk
from .errors import HomeHeld, WriteFailed

LOCK = "orchestrator.lock"
GUARD = "orchestrator.acquire"
SOCKET = "orchestrator.sock"
_LIMIT = 64 << 10


class State(StrEnum):
    NONE = "none"
    LIVE = "live"
    DEAD = "dead"  # its process is gone, or the pid is another program's by now
    FOREIGN = "foreign-host"  # written on another machine
    EARLIER = "earlier-boot"  # written on this machine before it was started again
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Lease:
    """What `orchestrator.lock` says. `start_time` is the kernel's start of the pid, "" where it is not known."""

    pid: int
    started_at: str
    root: str
    hostname: str = ""
    boot_id: str = ""
    start_time: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A lease as it was found, with what it means; `words` is for a person."""

    state: State
    lease: Lease | None = None
    words: str = ""


@dataclass(slots=True)
class Held:
    """Our own lease. `fd` keeps a lock on its file, which the kernel lets go when we are gone."""

    root: Path
    fd: int
    lease: Lease

    def release(self) -> None:
        """Takes the lease away iff the file is still our own."""
        path = self.root / LOCK
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(path.stat(follow_symlinks=False), os.fstat(self.fd)):
                path.unlink()
        os.close(self.fd)


def inspect(root: Path) -> Found:
    """Looks, and touches nothing."""
    path = root / LOCK
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Found(State.NONE)
    except OSError as error:
        return Found(State.UNREADABLE, words=f"{path}: {error.strerror or error}")
    try:
        held = _is_locked(fd)
        data = os.read(fd, _LIMIT)
    finally:
        os.close(fd)
    lease = _read(data)
    if lease is None:
        state = State.LIVE if held else State.UNREADABLE
        return Found(state, words=f"{path} is no lease that can be read")
    return _judge(lease, held)


def _judge(lease: Lease, held: bool) -> Found:
    who = f"pid {lease.pid} (since {lease.started_at})"
    if held:
        return Found(State.LIVE, lease, f"a daemon serves this home: {who}")
    if lease.hostname and lease.hostname != socket.gethostname():
        return Found(State.FOREIGN, lease, f"a lease from another machine, {lease.hostname}: {who}")
    if lease.boot_id and boot_id() and lease.boot_id != boot_id():
        return Found(State.EARLIER, lease, f"a lease from before this machine was started again: {who}")
    now = start_time(lease.pid)
    if not now:
        return Found(State.DEAD, lease, f"the daemon that left this lease is gone: {who}")
    if lease.start_time and lease.start_time != now:
        return Found(State.DEAD, lease, f"the daemon that left this lease is gone, its pid is another's now: {who}")
    return Found(State.LIVE, lease, f"a daemon serves this home: {who}")


def _read(data: bytes) -> Lease | None:
    try:
        raw = json.loads(data)
    except ValueError:
        return None
    pid = raw.get("pid") if isinstance(raw, dict) else None
    if isinstance(pid, bool) or not isinstance(pid, int) or pid <= 0:
        return None
    names = ("started_at", "root", "hostname", "boot_id", "start_time")
    return Lease(pid, *(str(raw.get(name) or "") for name in names))


def _is_locked(fd: int) -> bool:
    """Whether a daemon of ours holds the file: true whatever pids and host names say."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def check_cold(root: Path) -> None:
    """Raises HomeHeld iff a cold verb may not write: a live daemon, a lease that cannot be read, or a guard."""
    guard = root / GUARD
    if guard.exists():
        raise HomeHeld(guard_words(guard))
    found = inspect(root)
    if found.state in (State.LIVE, State.UNREADABLE):
        raise HomeHeld(f"{root}: {found.words}; a cold verb beside it could be lost (use its socket, {SOCKET})")


def guard_words(guard: Path) -> str:
    return f"{guard} is there: a daemon was cut off while it took the home; look that none runs, then remove it"


@contextlib.contextmanager
def acquiring(root: Path) -> Iterator[None]:
    """The guard folder around the taking of a lease. Raises HomeHeld if one is there: it fails closed."""
    guard = root / GUARD
    try:
        guard.mkdir(0o700)
    except FileExistsError:
        raise HomeHeld(guard_words(guard)) from None
    except OSError as error:
        raise HomeHeld(f"{guard}: {error.strerror or error}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            guard.rmdir()  # what somebody put into it stays, and the next one is told


def acquire(root: Path, disk: Disk | None = None) -> tuple[Held, Found]:
    """Our lease, and what stood there before (a daemon that died). The caller holds the write lock.

    Raises HomeHeld when a daemon serves the home, when its lease cannot be read, or when a guard is there.
    """
    disk = disk or Disk()
    with acquiring(root):
        before = inspect(root)
        if before.state in (State.LIVE, State.UNREADABLE):
            raise HomeHeld(f"{root}: {before.words}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        mine = Lease(os.getpid(), now, str(root), socket.gethostname(), boot_id(), start_time(os.getpid()))
        temporary = root / f".{LOCK}.{secrets.token_hex(6)}.tmp"
        fd = -1
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            disk.put(fd, json.dumps(asdict(mine), indent=2).encode() + b"\n")
            disk.sync(fd)
            temporary.replace(root / LOCK)
            disk.sync_folder(root)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            if fd >= 0:
                os.close(fd)
            raise WriteFailed(f"{root / LOCK}: {error.strerror or error}; the home was not taken") from error
        return Held(root, fd, mine), before


def boot_id() -> str:
    """The kernel's id of this boot, "" where there is none (then boots cannot be told apart)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """When a process began, in the kernel's ticks; "" iff there is none. "?" for one that lives, where there is no
    /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        try:
            os.kill(pid, 0)  # signal 0 reaches nobody: it only asks
        except ProcessLookupError:
            return ""
        except PermissionError:
            return "?"
        return "?"
    # The command in parentheses may hold spaces and parentheses of its own. A zombie has ended.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
