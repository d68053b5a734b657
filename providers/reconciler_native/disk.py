"""Every file system call that changes a native home: whole files by rename and fsync, owner-only."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from .errors import LoadFailed, WriteFailed

FILE = 0o600
FOLDER = 0o700
_LEFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
LIMIT = 64 << 20  # bytes; 5,000 jobs are some 6 MB


class Disk:
    """Reads and writes below one root. Tests override `put` and `sync`, the calls that a full disk fails.

    Links are not followed: a home's own files lie in the home.
    """

    def read(self, path: Path, limit: int = LIMIT) -> bytes | None:
        """A regular file's bytes, None iff nothing is there. Raises LoadFailed naming the file."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return None
        except OSError as error:
            why = "a link; a native home's own files lie in it" if error.errno == errno.ELOOP else error.strerror
            raise LoadFailed(str(path), str(why)) from error
        with os.fdopen(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise LoadFailed(str(path), "not a regular file")
            if info.st_size > limit:
                raise LoadFailed(str(path), f"larger than {limit >> 20} MiB")
            return file.read()

    def write(self, path: Path, data: bytes, mode: int = FILE) -> None:
        """Replaces the file: after a crash the old or the new one is there, whole. Raises WriteFailed."""
        temporary = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}.tmp")
        with self._told(path):
            self.mkdir(path.parent)
            self._sweep(path)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
            try:
                try:
                    self.put(fd, data)
                    os.fchmod(fd, mode)
                    self.sync(fd)
                finally:
                    os.close(fd)
                temporary.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            self.sync_folder(path.parent)

    def remove(self, path: Path) -> None:
        """Raises WriteFailed."""
        with self._told(path):
            path.unlink(missing_ok=True)
            self.sync_folder(path.parent)

    def move(self, old: Path, new: Path) -> None:
        """Renames a folder within the home; both parents are on the disk afterwards. Raises WriteFailed."""
        with self._told(new):
            self.mkdir(new.parent)
            old.rename(new)
            self.sync_folder(new.parent)
            self.sync_folder(old.parent)

    def mkdir(self, folder: Path) -> None:
        """The folder with its parents, each 0700. Raises OSError."""
        if folder.is_dir():
            return
        self.mkdir(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER)
            self.sync_folder(folder.parent)

    def put(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def sync_folder(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(fd)
        finally:
            os.close(fd)

    def _sweep(self, path: Path) -> None:
        """What a writer that was killed left beside the file; the write lock says that none is at work."""
        for left in path.parent.glob(f".{path.name[:100]}.*.tmp"):
            left.unlink(missing_ok=True)

    def sweep(self, folder: Path) -> None:
        """The same for all files of a folder, also those that nobody writes again; under the write lock."""
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if _LEFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    (folder / entry.name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise WriteFailed(
                f"{path}: {error.strerror or error}; nothing was changed in it, the file is as it was before"
            ) from error
