"""Record: what the loop remembers from one round, and one start, to the next."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from reconciler_state.errors import StateError, StateLocked
from reconciler_state.files import Files

FORMAT = "reconciler.gitops/1"
LONGEST = 3600.0  # seconds between two tries of one revision


@dataclass(frozen=True, slots=True)
class Record:
    """Revisions are full commit ids, "" for none yet; times are in seconds since 1970.

    `tip` is the last one that was accepted, `good` the last whose setup could be read. `done` was carried out; `tried`
    was begun `failures` times without being done, and is tried again from `retry_at` on. `code` is the exit code of the
    last time that rows were carried out. `waiting` are the homes and the addresses that were held when `done` was
    carried out, and have been since: they are still to come. `told` are the drifts that were told, as digests.
    `proposed` is the commit that we pushed last to the branch of captured values, `proposed_of` what it was made from.
    """

    tip: str = ""
    good: str = ""
    done: str = ""
    tried: str = ""
    failures: int = 0
    retry_at: float = 0.0
    code: int = 0
    waiting: tuple[str, ...] = field(default=())
    told: tuple[str, ...] = field(default=())
    proposed: str = ""
    proposed_of: str = ""


def read(path: Path, files: Files) -> Record:
    """An empty one if there is no file. Raises StateError."""
    data = files.read(path)
    if data is None:
        return Record()
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "is not JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _damaged(path, "is no record of a loop of this version")
    return _checked(path, document)


def _checked(path: Path, document: Mapping[str, Any]) -> Record:
    known: dict[str, Any] = {}
    for item in fields(Record):
        value = document.get(item.name, item.default)
        if isinstance(item.default, tuple):
            value = tuple(value) if isinstance(value, list | tuple) else None
            right = value is not None and all(isinstance(v, str) for v in value)
        elif isinstance(item.default, str):
            right = isinstance(value, str)
        else:
            right = isinstance(value, int | float) and not isinstance(value, bool)
        if not right:
            raise _damaged(path, f"{item.name} is not in proper form")
        known[item.name] = value
    return Record(**known)


def _damaged(path: Path, why: str) -> StateError:
    return StateError(f"{path}: {why}", hint="move it away: the loop then takes the branch as it finds it")


def write(path: Path, record: Record, files: Files) -> None:
    """Raises StateError."""
    text = json.dumps({"format": FORMAT, **asdict(record)}, sort_keys=True, indent=1)
    files.write(path, text.encode() + b"\n")


def wait(failures: int, interval: float) -> float:
    """Seconds to wait after so many failures in a row: the interval, doubled each time, an hour at most."""
    return min(LONGEST, max(1.0, interval) * 2.0 ** min(failures - 1, 32))


@contextmanager
def alone(folder: Path, files: Files) -> Iterator[None]:
    """One loop per state folder. Raises StateLocked if another runs."""
    files.mkdir(folder)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            why = f"{folder}: another loop runs with this state"
            raise StateLocked(why, hint="one loop per state folder; --state DIR gives another one") from error
        yield
    finally:
        os.close(fd)
