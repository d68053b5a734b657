"""Looking at a home's folder through its place, and whether it may be written."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from reconciler.errors import ProviderError
from reconciler.observe import Unknown
from reconciler.place import Place, Stat

_FREE = 16 << 20  # bytes: a write is a whole new file beside the old one


def lstat(place: Place, path: str) -> Stat | Unknown | None:
    """What is at a path, links not followed; None if nothing is."""
    try:
        return place.stat(path)
    except OSError as error:
        return Unknown(f"{path}: {error.strerror or error}")


def names(place: Place, path: str) -> list[str]:
    """The names in a folder, none if there is no folder.

    Raises ProviderError for a folder that cannot be read: what is not seen is not absent (L10).
    """
    try:
        return place.list(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ProviderError(f"{path}: cannot be looked at ({error.strerror or error})") from error


def visible(place: Place, path: str) -> list[str]:
    """As `names`, for what only adds to what a person is told: none where the folder cannot be read."""
    try:
        return names(place, path)
    except ProviderError:
        return []


def folders(place: Place, path: str) -> list[str]:
    """The folders in a folder, links left out. Raises ProviderError where that cannot be told."""
    found = []
    for name in names(place, path):
        stat = lstat(place, posixpath.join(path, name))
        if isinstance(stat, Unknown):
            raise ProviderError(stat.reason)
        if stat is not None and stat.kind == "dir":
            found.append(name)
    return found


def tree(place: Place, folder: str, below: str, limit: int = 2000) -> list[str]:
    """Regular files below `folder`/`below` as paths relative to `folder`, links left out, at most `limit`.

    Raises ProviderError where that cannot be told."""
    found: list[str] = []
    waiting = [below]
    while waiting and len(found) < limit:
        here = waiting.pop()
        for name in names(place, posixpath.join(folder, here)):
            path = posixpath.join(here, name)
            stat = lstat(place, posixpath.join(folder, path))
            if isinstance(stat, Unknown):
                raise ProviderError(stat.reason)
            if stat is not None and stat.kind == "dir":
                waiting.append(path)
            elif stat is not None and stat.kind == "file":
                found.append(path)
    return sorted(found)


def ended(place: Place, folder: str, alive: set[str]) -> Mapping[str, str]:
    """Ids without a record whose output is still there, with what shows that they ran: a job that somebody removed
    takes its output with it, one that ended by itself leaves it."""
    output = posixpath.join(folder, "cron", "output")
    found = {}
    for name in names(place, output):
        if name and name not in alive and not name.startswith("."):
            runs = [run for run in names(place, posixpath.join(output, name)) if run.endswith(".md")]
            if runs:
                found[name] = f"it ran: cron/output/{name}/{max(runs)}"
    return found


def check_writable(place: Place, root: str) -> bool:
    """Whether the home is there; raises ProviderError where it is not ours to write, or could not be."""
    if place.free(root) < _FREE:
        raise ProviderError(f"{root}: less than {_FREE >> 20} MiB are free")
    stat = place.stat(root)
    if stat is None:
        return False
    if stat.uid != place.uid():
        raise ProviderError(f"{root} belongs to uid {stat.uid}, and we are uid {place.uid()}")
    if stat.mode & 0o002:
        raise ProviderError(f"{root} may be written by everybody: chmod 700 it first")
    if not place.writable(root):
        raise ProviderError(f"{root} cannot be written")
    return True
