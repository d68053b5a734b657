"""`cron/jobs.json`: the records with their own text, so that a change re-encodes what changed and nothing else."""

from __future__ import annotations

import json
from typing import Any

from reconciler_shape.plain import same

from . import jsontext, record
from .errors import LoadFailed
from .shown import Shown

Record = dict[str, Any]
_TAIL = '],\n  "updated_at": ""\n}'


class _Part:
    """One record and its text. `gap` is what stands between it and the record before."""

    __slots__ = ("gap", "raw", "record", "shown")

    def __init__(self, value: Record, raw: str, gap: str) -> None:
        self.record, self.raw, self.gap = value, raw, gap
        self.shown: Shown | None = None


class JobsFile:
    """One profile's job store. `encode()` gives the very bytes it was read from while nothing has changed.

    `state` is missing, empty or proper, as `Store` has it.
    """

    def __init__(self, data: bytes | None, path: str) -> None:
        """Raises LoadFailed naming the file and the place."""
        self.path = path
        self.original = data
        self._changed = False
        self._parts: list[_Part] = []
        self._mark = self._lead = self._trail = ""
        self._head, self._tail = '{\n  "jobs": [', _TAIL
        self._stamp: tuple[str, int, int] | None = ("tail", _TAIL.index('""'), _TAIL.index('""') + 2)
        self.state = "missing" if data is None else "empty"
        if data and data.strip():
            self._read(data)
        self._by_id: dict[str, _Part] = {}
        self.twice: set[str] = set()
        for part in self._parts:
            name = part.record.get("id")
            if isinstance(name, str) and name:
                if name in self._by_id:
                    self.twice.add(name)
                self._by_id.setdefault(name, part)

    def _read(self, data: bytes) -> None:
        try:
            text, self._mark = jsontext.decode_bytes(data, self.path)
        except ValueError as error:
            raise LoadFailed(self.path, str(error).removeprefix(f"{self.path}: ")) from error
        scanner = jsontext.Scanner(text)
        try:
            if scanner.space() == "[":
                raise LoadFailed(self.path, 'a bare list; Hermes\'s form is {"jobs": [...]}: wrap it')
            found = self._scan(scanner, text)
            scanner.end()
        except json.JSONDecodeError as error:
            raise LoadFailed(f"{self.path}:{error.lineno}:{error.colno}", error.msg) from error
        except RecursionError as error:
            raise LoadFailed(self.path, "nested too deeply") from error
        if found:
            self.state = "proper"
        elif text.strip() not in ("", "{}"):
            raise LoadFailed(self.path, "there is no list of jobs in it")

    def _scan(self, scanner: jsontext.Scanner, text: str) -> bool:
        jobs: tuple[int, int] | None = None
        stamp: jsontext.Span | None = None
        for key in scanner.names():
            if key.value != "jobs":
                value = scanner.value()
                stamp = value if key.value == "updated_at" else stamp
                continue
            if jobs is not None:
                raise LoadFailed(self.path, "the key `jobs` stands there twice")
            if scanner.space() != "[":
                raise LoadFailed(self.path, "`jobs` is not a list")
            scanner.at += 1
            start = last = scanner.at
            for item in scanner.items():
                if not isinstance(item.value, dict):
                    raise LoadFailed(self.path, f"job number {len(self._parts) + 1} is no record")
                self._parts.append(_Part(item.value, text[item.start : item.end], text[last : item.start]))
                last = item.end
            jobs = (start, scanner.at - 1)
            self._trail = text[last : scanner.at - 1]
            if self._parts:
                self._lead, self._parts[0].gap = self._parts[0].gap, ""
        if jobs is None:
            return False
        self._head, self._tail = text[: jobs[0]], text[jobs[1] :]
        self._stamp = None
        if stamp is not None and isinstance(stamp.value, str | None):
            where, off = ("head", 0) if stamp.start < jobs[0] else ("tail", jobs[1])
            self._stamp = (where, stamp.start - off, stamp.end - off)
        return True

    # -- reading

    @property
    def changed(self) -> bool:
        return self._changed

    def records(self) -> list[Record]:
        """Every record in the file's order, those without an id too. Not to be changed in place."""
        return [part.record for part in self._parts]

    def shown(self, zone: str) -> list[Shown]:
        """Every job as it is shown, in the file's order; `zone` is the home's."""
        for part in self._parts:
            if part.shown is None or part.shown.zone != zone:
                part.shown = Shown(part.record, zone)
        return [part.shown for part in self._parts if part.shown is not None]

    def get(self, job_id: str) -> Record | None:
        part = self._by_id.get(job_id)
        return None if part is None else part.record

    def ids(self) -> list[str]:
        return list(self._by_id)

    # -- writing

    def put(self, new: Record) -> None:
        """Adds the record, or replaces the one with its id; an equal one keeps its text."""
        part = self._by_id.get(new["id"])
        if part is not None and same(part.record, new):
            return
        ordered = record.ordered(new)
        raw = jsontext.encode(ordered, 2, ascii_only=True)
        self._changed = True
        if part is not None:
            part.record, part.raw, part.shown = ordered, raw, None
            return
        if self._parts:
            gap = self._parts[-1].gap if len(self._parts) > 1 else ",\n    "
        else:
            gap, self._lead, self._trail = "", "\n    ", "\n  "
        part = _Part(ordered, raw, gap)
        self._parts.append(part)
        self._by_id[new["id"]] = part

    def remove(self, job_id: str) -> None:
        part = self._by_id.pop(job_id)
        index = self._parts.index(part)
        del self._parts[index]
        if index == 0 and self._parts:
            self._parts[0].gap = ""
        if not self._parts:
            self._lead = self._trail = ""
        self._changed = True

    def settle(self, data: bytes) -> None:
        """`data`, what `encode` gave, is on the disk now."""
        self.original, self._changed, self.state = data, False, "proper"

    def encode(self, now: str) -> bytes:
        """The file's bytes; `now` (RFC 3339) becomes `updated_at` iff something changed. Pure."""
        if not self._changed:
            return self.original or b""
        head, tail = self._head, self._tail
        if self._stamp is not None:
            where, start, end = self._stamp
            stamped = json.dumps(now)
            if where == "head":
                head = head[:start] + stamped + head[end:]
            else:
                tail = tail[:start] + stamped + tail[end:]
        body = "".join([part.gap + part.raw for part in self._parts])
        return (self._mark + head + self._lead + body + self._trail + tail).encode("utf-8")
