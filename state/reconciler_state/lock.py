"""One writer per home: an exclusive `flock` on the home directory itself, and a note of who holds it (L13)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from .errors import StateError, StateLocked
from .files import Files
from .store import Physical

WAIT: Final = 10.0  # seconds
POLL: Final = 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    """A process: `started` is the kernel's start time of the pid, so that a pid used again is told apart."""

    host: str
    boot: str
    pid: int
    started: str
    command: str = ""
    since: str = ""

    @classmethod
    def me(cls, command: str) -> Holder:
        pid = os.getpid()
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(socket.gethostname(), _boot(), pid, _started(pid), command, since)

    def describe(self) -> str:
        """Where it stands, in words for the one who waits."""
        who = f"pid {self.pid} ({self.command or 'unknown command'}, since {self.since})"
        if self.host != socket.gethostname():
            return f"{who} on another machine, {self.host}"
        if self.boot != _boot():
            return f"a process that left no note; the last note is from before this machine was started again: {who}"
        if _started(self.pid) != self.started or not self.started:
            return f"a worker that is still finishing; the run that started it is gone: {who}"
        return f"{who} on this machine"


@dataclass(frozen=True, slots=True)
class HomeLock:
    """A held lock. A child that gets `fd` through `pass_fds` holds it too: the home is free once all are gone."""

    fd: int


@contextlib.contextmanager
def lock_home(
    directory: Path,
    physical: Physical,
    root: Path,
    *,
    command: str,
    wait: float = WAIT,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    files: Files | None = None,
    announce: bool = True,
) -> Iterator[HomeLock]:
    """Holds the lock of the home at `directory` (a real path) while the block runs.

    Waits up to `wait` seconds. Raises StateLocked naming the holder, StateError if the directory cannot be opened.
    `root` is the state folder: the note `holders/KEY.json` stands there while the lock is held, only for others'
    messages. `command` goes into it and must hold no secret (L5). Without `announce` no note is written: the lock is
    one of two that a run takes, and the other one has the note.
    """
    note = root / "holders" / f"{physical.key}.json"
    files = files or Files()
    fd = _acquire(directory, note, files, clock() + wait, clock, pause)
    try:
        me = Holder.me(command)
        # The note is a courtesy: a state folder that cannot be written is `probe`'s to report.
        with contextlib.suppress(StateError):
            if announce:
                files.write(note, json.dumps(asdict(me), sort_keys=True).encode() + b"\n")
        try:
            yield HomeLock(fd)
        finally:
            if announce:
                _withdraw(note, me, files)
    finally:
        # Not LOCK_UN: that would let go for a worker that still holds the same open file.
        os.close(fd)


def _acquire(
    directory: Path,
    note: Path,
    files: Files,
    deadline: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> int:
    while True:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise StateError(f"{directory}: cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(directory, fd):
                return fd
        except BlockingIOError:
            pass
        except OSError as error:
            os.close(fd)
            raise StateError(f"{directory}: cannot be locked: {error.strerror}") from error
        os.close(fd)
        if clock() >= deadline:
            holder = _holder(note, files)
            who = holder.describe() if holder else "a process that left no note"
            raise StateLocked(f"{directory} is locked by {who}", hint="run again when it is done")
        pause(POLL)


def _is_still(directory: Path, fd: int) -> bool:
    """Whether the locked directory is still the one at the path: it may have been replaced while we waited."""
    try:
        now = directory.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    ours = os.fstat(fd)
    return (now.st_dev, now.st_ino) == (ours.st_dev, ours.st_ino)


def _holder(note: Path, files: Files) -> Holder | None:
    """The note's holder, None if there is no note that can be read."""
    try:
        return Holder(**json.loads(files.read(note) or b"{}"))
    except (StateError, ValueError, TypeError):
        return None


def _withdraw(note: Path, me: Holder, files: Files) -> None:
    """Takes our own note away."""
    with contextlib.suppress(StateError):
        if _holder(note, files) == me:
            files.remove(note)


def _boot() -> str:
    """The kernel's id of this boot, "" where there is none (then boots cannot be told apart)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When the process began, in the kernel's ticks; "" iff there is no such process.

    Where the kernel does not say (no /proc), "?" for a process that lives.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            return "?"
        return "?"
    # The command in parentheses may hold spaces and parentheses of its own.
    return stat.rpartition(")")[2].split()[19]
