"""When a cron line runs next in a time zone: five fields, `*` or names or numbers, Vixie's rule for the two days.

Whether a line is one at all is judged by `reconciler_specs.values.cron`; here only the moments are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

YEARS = 8
"""How far is looked; a line that `values.cron` accepts runs within that time."""
_SHIFT = 3
"""Hours; no zone's clock is put forward or back by more within a day."""

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_NONE: dict[str, int] = {}
_RANGES = ((0, 59, _NONE), (0, 23, _NONE), (1, 31, _NONE), (1, 12, _MONTHS), (0, 7, _DAYS))
_USUAL = re.compile(r"(?:\*|[0-9]{1,2}(?:-[0-9]{1,2})?)(?:/([1-9][0-9]?))?")
_ZONE = re.compile(r"UTC|[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)+")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")


class Line:
    """The sets of minutes, hours, days, months and weekdays that a line names."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for forms beyond `*`, values, names, ranges, steps and lists (`L`, `#`, `W`)."""
        self.fields = text.split()
        if len(self.fields) != 5:
            raise ValueError(f"{text!r}: a cron line has five fields")
        parsed = [_values(field, *spec) for field, spec in zip(self.fields, _RANGES, strict=True)]
        self.minutes, self.hours = sorted(parsed[0]), sorted(parsed[1])
        self.days, self.months = parsed[2], parsed[3]
        self.weekdays = {day % 7 for day in parsed[4]}

    def on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, (day.isoweekday() % 7) in self.weekdays
        # Either day will do where both are given, as Hermes's library and the orchestrator have it.
        if self.fields[2] == "*" or self.fields[4] == "*":
            return in_month and in_week
        return in_month or in_week

    @property
    def repeats(self) -> bool:
        """Whether it runs every so often rather than at a time of day: then also in the hour that comes twice."""
        return self.fields[1][0] == "*" or self.fields[0][0] == "*"


def _values(field: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    def number(word: str) -> int:
        value = names.get(word[:3].lower()) if not word.isdigit() else int(word)
        if value is None:
            raise ValueError(f"{word!r} is no value of a cron line here")
        return value

    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no part of a cron line here")
        first, last, step = match.groups()
        start = low if first == "*" else number(first)
        end = number(last) if last else high if first == "*" or step else start
        if not low <= start <= end <= high or step == "0":
            raise ValueError(f"{part!r} is out of range")
        found.update(range(start, end + 1, int(step or 1)))
    return found


def is_usual(text: str) -> bool:
    """Whether a line is one beyond doubt, numbers only: `values.cron`, which is slow to load, would take it as it is
    unless it never runs."""
    fields = text.split(" ")
    if len(fields) != 5:
        return False
    for field, (_, high, _) in zip(fields, _RANGES, strict=True):
        for part in field.split(","):
            match = _USUAL.fullmatch(part)
            if match is None or int(match[1] or 1) > high:
                return False
    try:
        line(text)
    except ValueError:
        return False
    return True


def is_zone(name: str) -> bool:
    """Whether `values.zone` would take a name as it is."""
    if not _ZONE.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=1024)
def line(text: str) -> Line:
    return Line(text)


def after(text: str, moment: datetime, zone: str) -> datetime | None:
    """The first run strictly after `moment` (aware), in UTC; None if there is none within YEARS.

    As Debian's cron: a time of day in the hour that a zone skips runs when the clock has moved on, one in the hour that
    comes twice runs once; a line that runs every so often goes by the clock's ticking.
    """
    found, tz = line(text), ZoneInfo(zone)
    local = moment.astimezone(tz)
    day, since = local.date(), local.hour - _SHIFT
    for _ in range(366 * YEARS + 2):
        run = _first(found, day, since, tz, moment) if found.on(day) else None
        if run is not None:
            return run
        day, since = day + timedelta(days=1), 0
    return None


def _first(found: Line, day: date, since: int, tz: ZoneInfo, moment: datetime) -> datetime | None:
    """The day's first run after the moment. Runs come by the clock on the wall, which a change puts out of order."""
    best: datetime | None = None
    for run in _runs(found, day, since, tz):
        if run > moment and (best is None or run < best):
            best = run
        if best is not None and run - best > timedelta(hours=_SHIFT):
            break
    return best


def _runs(found: Line, day: date, since: int, tz: ZoneInfo) -> Iterator[datetime]:
    for hour in (hour for hour in found.hours if hour >= since):
        for minute in found.minutes:
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=tz)
            first, second = wall.astimezone(UTC), wall.replace(fold=1).astimezone(UTC)
            if first > second:  # the clock never shows this time
                if not found.repeats:
                    yield _moved_on(second, first, tz)
                continue
            yield first
            if found.repeats and second > first:
                yield second


def _moved_on(low: datetime, high: datetime, tz: ZoneInfo) -> datetime:
    """The moment between two at which the zone's offset changes."""
    offset = low.astimezone(tz).utcoffset()
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) // 2
        middle = middle.replace(second=0, microsecond=0)
        low, high = (middle, high) if middle.astimezone(tz).utcoffset() == offset else (low, middle)
    return high
