"""Places: where a home's files and doors are. Every read and every process start of a provider goes through one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


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
        """A regular file's bytes. Raises FileNotFoundError; OSError for what is no regular file, larger than
        `limit`, or may not be read."""
        ...

    def stat(self, path: str) -> Stat | None:
        """None iff nothing is there. Raises OSError when that cannot be told."""
        ...

    def list(self, path: str) -> list[str]: ...

    def resolve(self, path: str) -> str:
        """Absolute, `~` expanded, links resolved; the last parts need not exist."""
        ...

    def which(self, program: str) -> str | None: ...

    def uid(self) -> int: ...

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """A process with pipes on stdin, stdout and stderr, and exactly this environment."""
        ...

    def close(self) -> None: ...
