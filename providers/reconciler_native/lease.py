"""The daemon's lease on a home: who serves it, told apart from who did once, and never a reason to signal anybody."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from reconciler.observe import Gateway
from reconciler_shape import lease as shared
from reconciler_shape.lease import GUARD, LOCK, SOCKET, Found, Lease, State, boot_id, guard_words, host, start_time

from .disk import FILE, Disk
from .errors import HomeHeld, WriteFailed

__all__ = [
    "GUARD", "LOCK", "SOCKET", "Found", "Held", "Lease", "State", "acquire", "acquiring", "boot_id", "check_cold",
    "gateway", "guard_words", "host", "inspect", "start_time",
]  # fmt: skip


class Held(NamedTuple):
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
    return shared.inspect(root, _is_locked)


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


def gateway(found: Found, root: Path) -> Gateway:
    """The live daemon as the engine sees it. One that restarts keeps its pid, and takes a new lease."""
    since = found.lease.started_at if found.lease else ""
    command = f"reconciler native restart --root {shlex.quote(str(root))}"
    refused = "" if since else "its lease does not say since when it runs, so that a restart could not be seen"
    return Gateway(f"{found.pid} {since}", "the daemon", command, refused)


def check_cold(root: Path) -> None:
    """Raises HomeHeld iff a cold verb may not write: a live daemon, a lease that cannot be read, or a guard."""
    guard = root / GUARD
    if guard.exists():
        raise HomeHeld(guard_words(guard))
    found = inspect(root)
    if found.state in (State.LIVE, State.UNREADABLE):
        raise HomeHeld(f"{root}: {found.words}; a cold verb beside it could be lost (use its socket, {SOCKET})")


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
        mine = Lease(os.getpid(), now, str(root), host(), boot_id(), start_time(os.getpid()))
        temporary = root / f".{LOCK}.{os.urandom(6).hex()}.tmp"
        fd = -1
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            disk.put(fd, json.dumps(mine._asdict(), indent=2).encode() + b"\n")
            disk.sync(fd)
            temporary.replace(root / LOCK)
            disk.sync_folder(root)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            if fd >= 0:
                os.close(fd)
            raise WriteFailed(f"{root / LOCK}: {error.strerror or error}; the home was not taken") from error
        return Held(root, fd, mine), before
