"""Decisions: what the gate said of each row, and who approved what; appended to `decisions/SETUP.jsonl`, never edited.

What was carried out is in the journals of the homes; here is why it could be, and what was not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Final

from .files import Files

FORMAT: Final = 1
RECENT: Final = 2**20  # bytes from the end in which it is looked whether the same was said already


class Said(StrEnum):
    """What was decided of a row."""

    APPROVED = "approved"  # by `reconciler approve`
    PERMITTED = "permitted"  # apply carries it out; `why` says by which consent
    REFUSED = "refused"
    WAITED = "waited"
    EXPIRED = "expired"  # waits, and an approval that it had is over


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `address` and `row` say of what, `digest` of which content (the row digest), `tier` and `rule` what
    it needed; `why` is the reason, or the consent. `by`, `host` and `run` are of the one who approved or applied; `at`
    is RFC 3339, in UTC."""

    said: Said
    at: str
    address: str
    row: str
    digest: str
    tier: str
    rule: str
    why: str
    by: str
    host: str
    run: str


_NAMES: Final = tuple(f.name for f in fields(Decision))


class Decisions:
    """The decisions of one setup in the state folder `root`."""

    def __init__(self, root: Path, setup: str, files: Files) -> None:
        self._path = root / "decisions" / f"{setup}.jsonl"
        self._files = files

    def read(self) -> list[Decision]:
        """All of them, oldest first. A line that is not in proper form (cut off by a crash) is passed over."""
        return _decisions(self._files.read(self._path) or b"")

    def record(self, decisions: Sequence[Decision]) -> None:
        """Appends what is news: that a row still waits for the same, or is refused for the same, is said once. Raises
        StateError."""
        tail = self._files.tail(self._path, RECENT) if decisions else b""
        last = {d.address: d for d in _decisions(tail)}
        news = [d for d in decisions if d.said in (Said.PERMITTED, Said.APPROVED) or not _again(last.get(d.address), d)]
        if not news:
            return
        lines = b"".join(json.dumps({"format": FORMAT, **asdict(d)}).encode("ascii") + b"\n" for d in news)
        torn = bool(tail) and not tail.endswith(b"\n")
        self._files.append(self._path, (b"\n" if torn else b"") + lines, sync=False)


def _again(last: Decision | None, now: Decision) -> bool:
    return last is not None and (last.said, last.digest, last.why, last.by) == (now.said, now.digest, now.why, now.by)


def _decisions(data: bytes) -> list[Decision]:
    found = []
    for line in data.splitlines():
        try:
            record = json.loads(line)
            values = {name: record[name] for name in _NAMES}
            if all(isinstance(value, str) for value in values.values()):
                found.append(Decision(**{**values, "said": Said(values["said"])}))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found
