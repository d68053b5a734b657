"""What we start is nobody else's to write (L17)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from reconciler.observe import Unknown
from reconciler.place import Place

from . import places


def unsafe(place: Place, paths: Iterable[str]) -> str:
    """Why what lies at these paths is not started: somebody else may write one of them. "" if nobody may; an empty
    path is none."""
    uid = place.uid()
    for path in dict.fromkeys(path for path in paths if path):
        stat = places.lstat(place, path)
        if isinstance(stat, Unknown) or stat is None:
            return f"{path} cannot be looked at"
        if stat.uid not in (0, uid):
            return f"{path} belongs to uid {stat.uid}, who could change what runs as you"
        if stat.kind != "link" and stat.mode & 0o002:
            return f"{path} may be written by everybody"
    return ""


def around(place: Place, program: str) -> tuple[str, ...]:
    """A program with what its links lead to, and the folders of both: who may write one of them may change it."""
    real = place.resolve(program)
    return program, posixpath.dirname(program), real, posixpath.dirname(real)
