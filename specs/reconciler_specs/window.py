"""Windows: when a policy lets homes be written, and when not. `deny` wins; where an `allow` is, all else is frozen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from .address import Kind
from .document import shown
from .reading import Schema
from .values import Refusal, closed, described, filled, names, zone

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KEYS = ("allow", "deny", "zone", "kinds", "why")
WHEN = ("days", "from", "to", "dates")
DAY = 24 * 60  # minutes

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z|(24):(00)\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_FORM = 'write {deny: {days: [fri], from: "16:00", to: "24:00"}, zone: Europe/Vienna}'


@dataclass(frozen=True, slots=True)
class Window:
    """One window of `policy.windows`.

    On each of `days` (0 is Monday) from `first` to `last` (None: no bound) it is open from `start` to `end`, minutes
    of that day by the clock of `zone`; an `end` that is not after `start` is on the next day. `kinds` are those that it
    is about, all if empty.
    """

    deny: bool
    zone: str
    days: tuple[int, ...] = tuple(range(7))
    start: int = 0
    end: int = DAY
    first: date | None = None
    last: date | None = None
    kinds: tuple[str, ...] = ()
    why: str = ""


_WHEN: Schema = {
    "type": "object",
    "properties": {
        "days": {"type": "array", "items": {"enum": list(DAYS)}, "minItems": 1},
        "from": {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"},
        "to": {"type": "string", "pattern": "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"},
        "dates": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d(\.\.\d{4}-\d\d-\d\d)?$"},
    },
    "additionalProperties": False,
    "minProperties": 1,
}
SCHEMA: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "allow": _WHEN,
            "deny": _WHEN,
            "zone": {"type": "string"},
            "kinds": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "why": {"type": "string"},
        },
        "required": ["zone"],
        "oneOf": [{"required": ["allow"]}, {"required": ["deny"]}],
        "additionalProperties": False,
    },
}


def read_windows(kinds: Mapping[str, str]) -> Callable[[Any], tuple[Window, ...]]:
    """A validator for `policy.windows`; `kinds` are the words for kinds, with each one's word in an address."""

    def check(value: Any) -> tuple[Window, ...]:
        if not isinstance(value, list):
            raise Refusal(f"a list of windows is expected, got {described(value)}", _FORM)
        return tuple(_under(i, partial(_window, item, kinds)) for i, item in enumerate(value))

    return check


def _under(key: str | int, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Refusal as refusal:
        raise refusal.under(key) from refusal


def _window(value: Any, kinds: Mapping[str, str]) -> Window:
    value = closed(value, KEYS, "a window")
    if ("allow" in value) is ("deny" in value):
        raise Refusal("a window has either `allow` or `deny`", _FORM)
    if "zone" not in value:
        raise Refusal("a window has a `zone`: hours mean nothing without it", "write zone: Europe/Vienna, or UTC")
    word = "deny" if "deny" in value else "allow"
    return Window(
        deny=word == "deny",
        zone=_under("zone", lambda: zone(value["zone"])),
        **_under(word, lambda: _when(value[word])),
        kinds=_under("kinds", lambda: _kinds(value["kinds"], kinds)) if "kinds" in value else (),
        why=_under("why", lambda: filled(value["why"])) if "why" in value else "",
    )


def _when(value: Any) -> dict[str, Any]:
    value = closed(value, WHEN, "{days: …, from: …, to: …, dates: …}")
    if not value:
        raise Refusal("it says no time", _FORM)
    found: dict[str, Any] = {}
    if "days" in value:
        found["days"] = _under("days", lambda: _days(value["days"]))
    if "from" in value:
        found["start"] = _under("from", lambda: _minutes(value["from"], last=False))
    if "to" in value:
        found["end"] = _under("to", lambda: _minutes(value["to"], last=True))
    if "from" in value and value["from"] == value.get("to"):
        raise Refusal("it begins and ends at the same time", "leave both out for the whole day", ("to",))
    if "dates" in value:
        found["first"], found["last"] = _under("dates", lambda: _dates(value["dates"]))
    return found


def _days(value: Any) -> tuple[int, ...]:
    found = []
    for i, name in enumerate(names(value)):
        if name not in DAYS:
            raise Refusal(f"{shown(name)} is no day", f"one of {', '.join(DAYS)}", (i,))
        found.append(DAYS.index(name))
    if not found:
        raise Refusal("there is no day in it", "leave the line out for every day")
    return tuple(sorted(found))


def _minutes(value: Any, *, last: bool) -> int:
    match = _TIME.match(value) if isinstance(value, str) else None
    if match is None or (match[3] and not last):
        raise Refusal(f'a time of day as "HH:MM" is expected, got {described(value)}', 'quote it: "06:00"')
    return DAY if match[3] else int(match[1]) * 60 + int(match[2])


def _dates(value: Any) -> tuple[date, date]:
    parts: Sequence[str] = value.split("..") if isinstance(value, str) else ()
    if len(parts) not in (1, 2) or not all(_DATE.match(part) for part in parts):
        raise Refusal(f"a date or FIRST..LAST is expected, got {described(value)}", "write 2026-12-20..2027-01-02")
    try:
        first, last = date.fromisoformat(parts[0]), date.fromisoformat(parts[-1])
    except ValueError as error:
        raise Refusal(f"{shown(value)}: there is no such day") from error
    if last < first:
        raise Refusal(f"{shown(value)} ends before it begins")
    return first, last


def _kinds(value: Any, kinds: Mapping[str, str]) -> tuple[str, ...]:
    found = []
    for i, name in enumerate(names(value)):
        if name not in kinds:
            raise Refusal(f"{shown(name)} is no kind", f"one of {', '.join(k.value for k in Kind)}", (i,))
        found.append(kinds[name])
    return tuple(found)
