"""Places: where a home's files and doors are. Every read and every process start of a provider goes through one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import place_reader


@dataclass(frozen=True, slots=True)
class Stat:
    """What `lstat` says: kind is file, dir, link or other; `target` is a link's resolved path."""

    kind: str
    size: int
    mode: int  # permission bits
    uid: int
    mtime_ns: int
    target: str = ""


class Place(Protocol):
    """`name` identifies the place in state (`local`, or `exec:` and the prefix). Paths are absolute there."""

    name: str
    local: bool

    def read(self, path: str, limit: int) -> bytes:
        """A regular file's bytes. Raises FileNotFoundError; OSError for what is no regular file (a link at the
        path's last part too), larger than `limit`, or may not be read."""
        ...

    def stat(self, path: str) -> Stat | None:
        """None iff nothing is there. Raises OSError when that cannot be told."""
        ...

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted. Raises OSError."""
        ...

    def resolve(self, path: str) -> str:
        """Absolute, `~` expanded, links resolved; the last parts need not exist."""
        ...

    def which(self, program: str) -> str | None: ...

    def uid(self) -> int: ...

    def free(self, path: str) -> int:
        """Bytes that may still be written at `path` (or at its nearest parent that is there)."""
        ...

    def writable(self, path: str) -> bool:
        """Whether we may make files in the folder `path`."""
        ...

    def environ(self) -> Mapping[str, str]:
        """PATH, LANG and TZ as they are set at the place: what a clean environment is built from."""
        ...

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """A process with pipes on stdin, stdout and stderr, and exactly this environment.

        It has a session of its own, so that a Ctrl-C meant for us does not end it in the middle of a write.
        """
        ...

    def close(self) -> None: ...


class LocalPlace:
    """This machine. `name` is another one where several machines share state."""

    local = True

    def __init__(self, name: str = "local") -> None:
        self.name = name

    def read(self, path: str, limit: int) -> bytes:
        return place_reader.read(path, limit)

    def stat(self, path: str) -> Stat | None:
        found = place_reader.stats(path)
        return None if found is None else Stat(**found)

    def list(self, path: str) -> list[str]:
        return place_reader.names(path)

    def resolve(self, path: str) -> str:
        return place_reader.resolve(path)

    def which(self, program: str) -> str | None:
        return place_reader.which(program)

    def uid(self) -> int:
        return int(place_reader.VERBS["uid"]())

    def free(self, path: str) -> int:
        return place_reader.free(path)

    def writable(self, path: str) -> bool:
        return place_reader.writable(path)

    def environ(self) -> Mapping[str, str]:
        return place_reader.environ()

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )

    def close(self) -> None:
        """Nothing is held open."""
