"""A skill's folder on this machine: found, read, made exactly what a source says, moved into the trash.

Links are never followed. Sent to a home's place with the worker: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import trash as trashes
from .plain import digest

SKILL = "SKILL.md"
IGNORED = frozenset({"__pycache__"})
"""What running a skill leaves in its folder."""
SUPPORT = frozenset({"references", "templates", "assets", "scripts"})
"""Folders of a skill in which no other skill is looked for, as Hermes does it."""
NOT_SKILLS = frozenset(
    {".git", ".github", ".hub", ".archive", ".venv", "venv", "node_modules", "site-packages", *IGNORED}
)
LINK = "a link; links are not followed here"
MOST = 200
LARGEST = 1 << 20  # bytes of a file
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")  # the names that `put` gives
_NAME = re.compile(r"name:[ \t]*(.*?)[ \t]*\Z")


class Odd(ValueError):
    """A folder that cannot be compared with a source, or must not be written; the reason is for a person."""


def fingerprint(path: str, files: Mapping[str, str] | str | None, off: bool, key: bytes) -> str:
    """What a skill is as somebody saw it: the folder's path, its files (or why they cannot be told), and whether it is
    switched off. "" for one that is neither there nor switched off."""
    return "" if files is None and not off else digest([path, files, off], key)


def called(text: str) -> str:
    """The name that a SKILL.md gives itself, "" if it gives none."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return ""
    for line in lines[1:]:
        if line.strip() == "---":
            return ""
        match = _NAME.match(line)
        if match:
            return match[1].strip("\"'")
    return ""


def find(home: Path, below: Iterable[str], name: str) -> list[Path]:
    """The folders called `name` that hold a SKILL.md, links to such among them. Raises Odd where the folder of all
    skills is a link."""
    found: list[Path] = []
    for top in below:
        root = home / top
        if root.is_symlink():
            raise Odd(f"{top}: {LINK}")
        for folder, inner, files in os.walk(root):
            here = Path(folder)
            found += [here / each for each in inner if each == name and _is_linked(here / each)]
            skip = NOT_SKILLS | (SUPPORT if SKILL in files else frozenset())
            inner[:] = [each for each in inner if each not in skip]
            if SKILL in files and here.name == name:
                found.append(here)
    return sorted(found)


def _is_linked(path: Path) -> bool:
    return path.is_symlink() and (path / SKILL).is_file()


def read(folder: Path) -> dict[str, str]:
    """All files' texts by relative path. Raises Odd for what no source could be."""
    found: dict[str, str] = {}
    if folder.is_symlink():
        raise Odd(LINK)
    for here, inner, files in os.walk(folder):
        inner[:] = [each for each in inner if each not in IGNORED]
        # What a write of ours left that was cut off is no part of the skill.
        files = [each for each in files if not _UNFINISHED.fullmatch(each)]
        for name in (*files, *(each for each in inner if (Path(here) / each).is_symlink())):
            path = Path(here) / name
            relative = path.relative_to(folder).as_posix()
            if len(found) >= MOST:
                raise Odd(f"it holds more than {MOST} files")
            info = path.lstat()
            if not stat.S_ISREG(info.st_mode):
                raise Odd(f"{relative} is no regular file")
            if info.st_size > LARGEST:
                raise Odd(f"{relative} is larger than {LARGEST >> 20} MiB")
            try:
                found[relative] = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError as error:
                raise Odd(f"{relative} is not UTF-8 text") from error
    return found


def seen(home: Path, below: Iterable[str], name: str) -> tuple[Path | None, dict[str, str] | str | None]:
    """The skill's folder and its files, or why they cannot be told. Raises Odd for several folders, and
    where the folder of all skills is a link."""
    folders = find(home, below, name)
    if len(folders) > 1:
        raise Odd(f"{len(folders)} folders are called {name}: {', '.join(str(f.relative_to(home)) for f in folders)}")
    if not folders:
        return None, None
    try:
        return folders[0], read(folders[0])
    except Odd as error:
        return folders[0], str(error)


def sync(home: Path, folder: Path, files: Mapping[str, str], there: Iterable[str]) -> None:
    """Makes the folder exactly `files`; of `there`, the files that were read, those that are no more of them go.
    Each file is whole or as it was. SKILL.md comes last: a folder without one is no skill, so that one that was cut off
    in the middle is made again, and is nobody's own. Raises OSError."""
    for path, text in sorted(files.items(), key=lambda file: file[0] == SKILL):
        with _opened(home, (folder / path).parent, make=True) as inside:
            _write(inside, Path(path).name, text.encode())
    for path in sorted(set(there) - set(files)):
        with _opened(home, (folder / path).parent, make=False) as inside:
            os.unlink(Path(path).name, dir_fd=inside)
            os.fsync(inside)
        for above in (folder / path).parents:
            if above == folder:
                break
            with contextlib.suppress(OSError):  # it holds something else
                above.rmdir()


def keep(folder: Path, trash: Path) -> None:
    """Puts a copy of the folder into the trash. Raises OSError."""
    trashes.prune(trash)
    copy = trashes.place_for(trash, f"skill-{folder.name}")
    shutil.copytree(folder, copy, symlinks=True)
    trashes.close(copy)


def discard(folder: Path, trash: Path) -> None:
    """Moves the folder into the trash. Raises OSError."""
    trashes.prune(trash)
    copy = trashes.place_for(trash, f"skill-{folder.name}")
    folder.rename(copy)
    trashes.close(copy)


@contextlib.contextmanager
def _opened(home: Path, folder: Path, make: bool) -> Iterator[int]:
    """A folder below the home, reached through no link. Raises OSError."""
    here = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folder.relative_to(home).parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _write(folder: int, name: str, data: bytes) -> None:
    mode = 0o644
    with contextlib.suppress(FileNotFoundError):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        mode = stat.S_IMODE(info.st_mode) & 0o777 if stat.S_ISREG(info.st_mode) else mode
        if stat.S_ISREG(info.st_mode) and _same(folder, name, data):
            return
    put(folder, name, data, mode)


def put(folder: int, name: str, data: bytes, mode: int) -> None:
    """A file in an opened folder, whole or as it was. Raises OSError."""
    other = f".{name[:100]}.{secrets.token_hex(6)}.tmp"
    fd = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        os.replace(other, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(other, dir_fd=folder)
        raise


def _same(folder: int, name: str, data: bytes) -> bool:
    fd: Any = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file:
        return bool(file.read(len(data) + 1) == data)
