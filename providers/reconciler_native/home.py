"""A native home on this machine: its write lock, and the one way in which its folder is loaded and saved."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import lease
from .disk import Disk
from .errors import HomeHeld, LoadFailed
from .folder import MARK, DiskSource, Folder, KeptSource

WAIT = 10.0
"""Seconds that a writer waits for another one."""
_POLL = 0.005
_STAMP = b"_config_version: 33\n"
"""What Hermes 0.19 writes into a new home; without it an update of Hermes would rewrite the file."""
_EMPTY_JOBS = b'{\n  "jobs": [],\n  "updated_at": null\n}'


class Home:
    """`serving` is the lease of the daemon that this process is, None for a cold writer."""

    def __init__(
        self, root: Path, disk: Disk | None = None, *, serving: lease.Held | None = None, wait: float = WAIT
    ) -> None:
        self.root = root
        self.disk = disk or Disk()
        self.serving = serving
        self._source = DiskSource(self.disk) if serving is None else KeptSource(self.disk)
        self.wait = wait

    def load(self) -> Folder:
        """The folder as it stands, for reading: nothing is written, no lock is taken. Raises LoadFailed."""
        self._is_one()
        return Folder(self.root, self._source)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Folder]:
        """The folder under the write lock, pasted secrets taken in. The caller saves.

        Raises HomeHeld: another writer for too long, a daemon's lease, or an acquisition guard; LoadFailed for what
        is no home, or one that is not in proper form.
        """
        with self.locked():
            if self.serving is None:
                lease.check_cold(self.root)
            folder = self.load()
            folder.check()
            for profile in folder.profiles.values():
                self.disk.sweep(profile.folder)
            folder.take_in_secrets()
            with contextlib.ExitStack() as stack:
                for profile in folder.profiles.values():
                    stack.enter_context(self._hermes_lock(profile.folder / "cron" / ".jobs.lock"))
                try:
                    yield folder
                except BaseException:
                    if isinstance(self._source, KeptSource):
                        self._source.forget()  # a change in it may not be on the disk
                    raise

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The one lock of every writer. Raises HomeHeld (also where the home is another user's), LoadFailed."""
        self._is_one()
        check_owner(self.root)
        with self._flock(self.root / MARK):
            yield

    def _is_one(self) -> None:
        if not is_home(self.root):
            raise LoadFailed(str(self.root), "not a home; `reconciler native init --root DIR` makes one")

    @contextlib.contextmanager
    def _hermes_lock(self, path: Path) -> Iterator[None]:
        """Hermes's own lock of a job store, where a Hermes has been here and left one."""
        if not path.exists():
            yield
            return
        with self._flock(path):
            yield

    @contextlib.contextmanager
    def _flock(self, path: Path) -> Iterator[None]:
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise HomeHeld(f"{path}: {error.strerror or error}") from error
        try:
            if not _within(self.wait, lambda: _try_lock(fd)):
                raise HomeHeld(f"{self.root}: another process has written for {self.wait:.0f} s ({path.name} is held)")
            yield
        finally:
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


def check_owner(root: Path) -> None:
    """Raises HomeHeld for a folder of another uid: what we would write there, its owner could not read (L17)."""
    try:
        uid = root.stat().st_uid
    except OSError as error:
        raise HomeHeld(f"{root}: {error.strerror or error}") from error
    if uid != os.geteuid():
        raise HomeHeld(f"{root} belongs to uid {uid}, and we are uid {os.geteuid()}: write it as its owner")


def _is_half_made(root: Path, disk: Disk) -> bool:
    """Whether an `init` was cut off here: nothing is there but what it writes."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if not path.name.endswith(".tmp")}
    if found - {"cron", "cron/jobs.json", "config.yaml"} or "cron" not in found:
        return False
    jobs, config = disk.read(root / "cron" / "jobs.json"), disk.read(root / "config.yaml")
    return jobs in (None, _EMPTY_JOBS) and config in (None, _STAMP)


def is_home(root: Path) -> bool:
    """Whether a folder is one: it bears the mark."""
    return root.is_dir() and (root / MARK).is_file()


def init(root: Path, disk: Disk | None = None) -> bool:
    """Makes an empty home, 0700; False iff one is there already. Raises LoadFailed for another folder with content,
    HomeHeld for one of another user, WriteFailed."""
    disk = disk or Disk()
    if is_home(root):
        return False
    if root.exists() and not root.is_dir():
        raise LoadFailed(str(root), "not a folder")
    if root.exists():
        check_owner(root)
    there = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    if there and not _is_half_made(root, disk):
        raise LoadFailed(str(root), f"not empty, and not a native home: it holds {there[0]} and no {MARK}")
    disk.write(root / "cron" / "jobs.json", _EMPTY_JOBS)
    root.chmod(0o700)
    disk.write(root / "config.yaml", _STAMP)
    # Last, since it is what makes the folder a home.
    disk.write(root / MARK, b"")
    return True
