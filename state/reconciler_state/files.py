"""The state folder's file system calls: all of them, so that tests can count them and let them fail."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from .errors import StateDamaged, StateError

PRIVATE_FILE = 0o600
PRIVATE_DIR = 0o700
LIMIT = 256 * 1024 * 1024  # a state or journal file larger than this is not ours


class Files:
    """Owner-only files under one folder. `fsyncs`, `writes` and `bytes` count what was done; L7 is tested with them.

    Every OSError comes out as StateError naming the path. Folders are made on the first write and not before.
    """

    def __init__(self) -> None:
        self.fsyncs = 0
        self.writes = 0
        self.bytes = 0

    def read(self, path: Path) -> bytes | None:
        """A regular file of ours, None iff nothing is there. A link, a pipe or another's file is refused."""
        with self._named(path):
            try:
                # O_NONBLOCK: opening a pipe must not wait for its writer.
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.EMLINK):
                    raise StateDamaged(path, "is a symbolic link") from error
                raise
            try:
                self._check(path, os.fstat(fd))
                with open(fd, "rb", closefd=False) as file:
                    return file.read()
            finally:
                os.close(fd)

    def _check(self, path: Path, info: os.stat_result) -> None:
        if not stat.S_ISREG(info.st_mode):
            raise StateDamaged(path, "is no regular file")
        if info.st_uid != os.geteuid():
            raise StateError(f"{path}: belongs to uid {info.st_uid}, not to you (uid {os.geteuid()})")
        if info.st_size > LIMIT:
            raise StateDamaged(path, f"is larger than {LIMIT // 2**20} MiB")

    def tail(self, path: Path, size: int) -> bytes:
        """At most the last `size` bytes of a file as `read` takes it; empty if nothing is there."""
        with self._named(path):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                return b""
            with open(fd, "rb") as file:
                info = os.fstat(fd)
                self._check(path, info)
                file.seek(max(0, info.st_size - size))
                return file.read()

    def write(self, path: Path, data: bytes) -> None:
        """Replaces the file as a whole: after a crash the old or the new one is there, never a part."""
        with self._named(path), self._temporary(path, data) as temporary:
            for left in path.parent.glob(f".{path.name}.*.tmp"):
                if left != temporary:
                    left.unlink(missing_ok=True)  # a run was killed here; the home's lock says that none is at work
            temporary.replace(path)
            self.sync_dir(path.parent)

    def create(self, path: Path, data: bytes) -> bool:
        """Makes the file, whole or not at all; False iff it is there already."""
        with self._named(path), self._temporary(path, data) as temporary:
            try:
                os.link(temporary, path, follow_symlinks=False)
            except FileExistsError:
                return False
            self.sync_dir(path.parent)
            return True

    def append(self, path: Path, data: bytes, sync: bool) -> None:
        """Adds to the file's end; with `sync` it is on the disk on return."""
        with self._named(path):
            self.mkdir(path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            is_new = not path.exists()
            fd = os.open(path, flags, PRIVATE_FILE)
            try:
                self._check(path, os.fstat(fd))
                self.put(fd, data)
                if sync:
                    self.sync(fd)
            finally:
                os.close(fd)
            if is_new and sync:
                self.sync_dir(path.parent)

    def probe(self, folder: Path) -> None:
        """Raises StateError unless a file can be written in `folder` now. Leaves nothing behind but the folder."""
        with self._named(folder), self._temporary(folder / "probe", bytes(4096)):
            pass

    def size(self, path: Path) -> int:
        """Of a file in bytes; 0 if there is none."""
        with self._named(path):
            try:
                return path.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                return 0

    def move(self, path: Path, to: Path) -> None:
        """Renames a file to a name that is free. Raises StateError if it is not."""
        with self._named(to):
            os.link(path, to, follow_symlinks=False)  # unlike a rename this never replaces what is there
            path.unlink()
            self.sync_dir(path.parent)

    def remove(self, path: Path) -> None:
        with self._named(path):
            path.unlink(missing_ok=True)

    def names(self, folder: Path) -> list[str]:
        """The plain files' names in a folder, sorted; [] if there is no such folder."""
        with self._named(folder):
            if not folder.is_dir():
                return []
            return sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))

    def mkdir(self, folder: Path) -> None:
        """The folder with its parents, each for us alone."""
        if folder.is_dir():
            return
        self.mkdir(folder.parent)
        with self._named(folder), contextlib.suppress(FileExistsError):  # another run was quicker
            folder.mkdir(PRIVATE_DIR)
            self.sync_dir(folder.parent)

    @contextlib.contextmanager
    def alone(self, folder: Path) -> Iterator[None]:
        """Keeps others who ask so from changing what is in a folder meanwhile. They are quick: it is waited for."""
        with self._named(folder):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                os.close(fd)

    # The calls that can fail half-way, one each, for tests to override.

    def put(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        self.writes += 1
        self.bytes += len(data)

    def sync(self, fd: int) -> None:
        os.fsync(fd)
        self.fsyncs += 1

    def sync_dir(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _temporary(self, path: Path, data: bytes) -> Iterator[Path]:
        """A file beside `path` that holds `data` on the disk; gone afterwards unless it was renamed."""
        self.mkdir(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            try:
                self.put(fd, data)
                self.sync(fd)
            finally:
                os.close(fd)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _named(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(f"{error.filename or path}: {error.strerror or error}") from error
