"""The lines of a journal as records: read as a whole, or one by one where a crash has left a part of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from .errors import StateDamaged, StateTooNew

FORMAT: Final = 1


def records(data: bytes, path: Path) -> list[Mapping[str, Any]]:
    """Every record of a journal's bytes, in order. Raises StateDamaged and StateTooNew as `Journal.entries` does, which
    name `path`."""
    found = _all(data)
    if found is None:
        found, bad = [], 0
        for count, line in enumerate(data.split(b"\n"), 1):
            found_one = record(line)
            if found_one is None:
                bad = bad or (count if line else 0)
                continue
            if bad and found_one["what"] != "torn":
                raise StateDamaged(path, f"line {bad} is no record of ours")
            bad = 0
            found.append(found_one)
    if any(r["what"] == "run" and number(r, "format") > FORMAT for r in found):
        raise StateTooNew(f"{path}: a newer program wrote to it", hint="update agent-home-reconciler")
    return found


def _all(data: bytes) -> list[Mapping[str, Any]] | None:
    """Every line's record, read in one go (five times faster than line by line); None if a line is bad."""
    try:
        records = json.loads(b"[" + data.removesuffix(b"\n").replace(b"\n", b",\n") + b"]")
    except (ValueError, RecursionError):
        return None
    whole = all(isinstance(r, dict) and isinstance(r.get("what"), str) for r in records)
    return records if whole else None


def record(line: bytes) -> dict[str, Any] | None:
    """A line's record, None if it is none of ours."""
    try:
        made = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) and isinstance(made.get("what"), str) else None


def number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name, 0)
    return value if isinstance(value, int) else 0


def text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name, "")
    return value if isinstance(value, str) else ""


def part(journal: Path, which: int) -> Path:
    """An earlier part of a journal that has gone on in a new file."""
    return journal.with_name(f"{journal.stem}.{which}{journal.suffix}")


def earlier(journal: Path, names: Iterable[str]) -> dict[int, Path]:
    """Of the `names` beside it a journal's earlier parts, by number, oldest first."""
    found = {}
    for name in names:
        which = name.removeprefix(f"{journal.stem}.").removesuffix(journal.suffix)
        if which.isdecimal() and name == part(journal, int(which)).name:
            found[int(which)] = journal.with_name(name)
    return dict(sorted(found.items()))
