"""A SQLite file of OpenClaw's, read without touching a byte of it or of the files beside it."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from reconciler.observe import Unknown
from reconciler.place import Place, Stat
from reconciler_shape import places

from . import home

_COPY_LIMIT = 256 << 20  # bytes of a database that is copied before it is read
_WAIT = 2.0  # seconds for a lock
_TRIES = 3
Found = TypeVar("Found")


def read(place: Place, path: str, look: Callable[[sqlite3.Connection], Found]) -> Found:
    """What `look` finds in the database as it is now. Raises sqlite3.Error and OSError."""
    try:
        with _opened(place, path) as connection:
            return look(connection)
    except sqlite3.OperationalError:
        # Shared memory that a reader alone cannot use: a copy can be.
        with _copy_opened(place, path) as connection:
            return look(connection)


@contextlib.contextmanager
def _opened(place: Place, path: str) -> Iterator[sqlite3.Connection]:
    """A reader of the database as it is now.

    In WAL mode it would write its marks into the `-shm` file, and leave a `-wal` where there was none. So: with both
    files there the shared memory is mapped read-only; with no `-wal` the database is all there is; and with a `-wal`
    alone, or at another place, copies of the files are read.
    """
    wal = places.lstat(place, f"{path}-wal")
    shm = places.lstat(place, f"{path}-shm")
    for found in (wal, shm):
        if isinstance(found, Unknown):
            raise OSError(found.reason)  # without the log the database would be an older one
    # A path with `?` or `#` in it must not become an option.
    name = f"file:{quote(path)}"
    if not place.local or (isinstance(wal, Stat) and wal.size and not isinstance(shm, Stat)):
        with _copy_opened(place, path) as connection:
            yield connection
    elif isinstance(wal, Stat) and isinstance(shm, Stat):
        yield from _connected(f"{name}?mode=ro&readonly_shm=1")
    else:
        yield from _connected(f"{name}?immutable=1")


@contextlib.contextmanager
def _copy_opened(place: Place, path: str) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
        yield from _connected(f"file:{quote(str(_copied(place, path, Path(folder))))}?mode=rw")


def _connected(uri: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT)
    try:
        yield connection
    finally:
        connection.close()


def _copied(place: Place, path: str, folder: Path) -> Path:
    """A copy of the database and its log that belong together. Raises OSError."""
    for _ in range(_TRIES):
        before = _stats(place, path)
        for suffix in ("", "-wal"):
            data = home.text(place, path + suffix, _COPY_LIMIT)
            if isinstance(data, Unknown):
                raise OSError(data.reason)
            (folder / f"copy{suffix}").write_bytes(data or b"")
        if _stats(place, path) == before:
            return folder / "copy"
    raise OSError("it is being written all the time; try again")


def _stats(place: Place, path: str) -> list[Any]:
    return [places.lstat(place, path + suffix) for suffix in ("", "-wal")]
