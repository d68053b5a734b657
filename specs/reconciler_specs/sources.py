"""Files that a setup names: regular, inside the setup's folder with links resolved, small (L18). Reads nothing else."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from .document import Node, shown
from .reading import Reasons
from .secrets import looks_secret

MAX_SOURCE = 1024 * 1024
MAX_FILES = 5_000


class Unusable(Exception):
    """A path that a setup may not read; the text says why."""


class Sources:
    """Reads inside one folder. `files` lists every file that was opened, for whoever watches or digests them; `edited`
    are files, by their real paths, that are taken to hold something else than what is on disk.

    `stands` is where the setup stands for what is not part of it (homes, files of secrets): the folder itself, or for
    a copy of the setup, that of the original.
    """

    def __init__(
        self, folder: Path, stands: Path | None = None, edited: Mapping[Path, bytes] = MappingProxyType({})
    ) -> None:
        self.folder = folder
        self.edited = edited
        self.root = Path(os.path.realpath(folder))
        self.stands = self.root if stands is None else Path(os.path.realpath(stands))
        self.files: dict[Path, None] = {}
        self.folders: dict[str, Path] = {}  # of a file as messages name it → where it lies
        self._texts: dict[Path, str] = {}

    def around(self, file: str) -> Path:
        """The folder that paths on this machine are from which a file of the setup says; `file` as messages name it."""
        folder = self.folders.get(file, self.root)
        return self.stands / folder.relative_to(self.root) if folder.is_relative_to(self.root) else folder

    def inside(self, path: Path) -> Path:
        """`path` with links resolved. Raises Unusable if that is not inside the folder."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            raise Unusable("it lies outside the setup's folder")
        return real

    def bytes(self, path: Path, limit: int) -> bytes:
        """The content of a regular file inside the folder. Raises Unusable."""
        real = self.inside(path)
        if real in self.edited:
            return self.edited[real]
        try:
            # Not blocking: a FIFO would otherwise wait for a writer before we see what it is.
            fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError as error:
            raise Unusable("there is no such file") from error
        except OSError as error:
            raise Unusable(f"it cannot be read ({error.strerror})") from error
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise Unusable("it is not a regular file")
        with os.fdopen(fd, "rb") as file:
            if info.st_size > limit:
                raise Unusable(f"it is too large ({info.st_size} bytes; at most {limit})")
            data = file.read(limit + 1)
        if len(data) > limit:
            raise Unusable(f"it is too large (more than {limit} bytes)")
        if len(self.files) >= MAX_FILES:
            raise Unusable(f"the setup names more than {MAX_FILES} files")
        self.files[real] = None
        return data

    def text(self, name: str, node: Node, what: str, reasons: Reasons) -> str | None:
        """The text of the file that `node` names, relative to the file that says so. None with a reason if unusable."""
        if name.startswith(("/", "~")):
            reasons.add(node.where, f"{what}: a path relative to this file is expected", "keep it beside the setup")
            return None
        path = self.folders.get(node.file, self.root) / name
        try:
            real = self.inside(path)
            known = self._texts.get(real)
            if known is not None:
                return known
            data = self.bytes(path, MAX_SOURCE)
        except Unusable as error:
            reasons.add(node.where, f"{what}: {shown(name)} cannot be used: {error}")
            return None
        except ValueError:
            reasons.add(node.where, f"{what}: {shown(name)} is no path")
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            reasons.add(node.where, f"{what}: {shown(name)} cannot be used: it is not UTF-8 text")
            return None
        if looks_secret(text):
            reasons.add(
                node.where,
                f"{what}: {shown(name)} holds what looks like a credential",
                "keep it in the home's own secret store and name it there",
            )
            return None
        self._texts[real] = text
        return text

    def below(self, name: str, node: Node) -> str:
        """The path of a source relative to the setup's folder. Raises Unusable if it lies outside of it."""
        return self.inside(self.folders.get(node.file, self.root) / name).relative_to(self.root).as_posix()

    def folder_of(self, name: str, node: Node, most: int) -> dict[str, str]:
        """The texts of all files in the folder that `node` names, by their relative POSIX paths. Raises Unusable."""
        try:
            folder = self.inside(self.folders.get(node.file, self.root) / name)
        except ValueError as error:  # a NUL
            raise Unusable("it is no path") from error
        if not folder.is_dir():
            raise Unusable("there is no such folder")
        found: dict[str, str] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                continue
            inner = path.relative_to(folder).as_posix()
            if any("\ud800" <= letter <= "\udfff" for letter in inner):
                raise Unusable("the name of a file in it is not UTF-8 text")
            if len(found) >= most:
                raise Unusable(f"it holds more than {most} files")
            try:
                found[inner] = self.bytes(path, MAX_SOURCE).decode("utf-8")
            except UnicodeDecodeError as error:
                raise Unusable(f"{inner} is not UTF-8 text") from error
            except Unusable as error:
                raise Unusable(f"{inner}: {error}") from error
            if looks_secret(found[inner]):
                raise Unusable(f"{inner} holds what looks like a credential")
        return found
