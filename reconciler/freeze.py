"""Freeze: what `policy.windows` say of one moment, and when that ends. Pure; right where clocks are put forward.

A time of day that a change of clocks makes happen twice, or never, counts so that the freeze is the longer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from reconciler_specs.address import Kind
from reconciler_specs.window import DAY, DAYS, Window

from .action import Action, Hold

HORIZON = 400  # days that the end of a freeze is looked for
Span = tuple[datetime, datetime]  # from, to (not included), in UTC


@dataclass(frozen=True, slots=True)
class Frozen:
    """Why nothing is written now, and from when on it may be (in the window's zone; None: not within a year)."""

    why: str
    until: datetime | None


def frozen(windows: Sequence[Window], kind: Kind, now: datetime) -> Frozen | None:
    """None iff things of `kind` may be written at `now` (with a zone)."""
    now = now.astimezone(UTC)
    about = [w for w in windows if not w.kinds or kind.value in w.kinds]
    by = _holding(about, now)
    if by is None:
        return None
    until = _opening(about, now)
    return Frozen(_said(by), until.astimezone(ZoneInfo(by.zone)) if until else None)


def froze(action: Action, windows: Sequence[Window], now: datetime) -> Action:
    """The row, held if it would write in a freeze. No flag lifts that: who needs to write changes the setup."""
    if not windows or not action.writes:
        return action
    found = frozen(windows, action.address.kind, now)
    if found is None:
        return action
    until = f"until {found.until:%a %Y-%m-%d %H:%M %Z}" if found.until else "with no end within a year"
    return replace(action, hold=Hold(f"frozen {until}: {found.why}"))


def _holding(windows: Sequence[Window], now: datetime) -> Window | None:
    """The window that freezes a moment: an open `deny`; else, where there are any, an `allow` that is not open."""
    for window in windows:
        if window.deny and _open(window, now):
            return window
    allowing = [w for w in windows if not w.deny]
    return allowing[0] if allowing and not any(_open(w, now) for w in allowing) else None


def _open(window: Window, now: datetime) -> bool:
    # A span begins on the day itself or, past midnight, on the one before; one more for the zones' own days.
    today = now.astimezone(ZoneInfo(window.zone)).date()
    return any(start <= now < end for start, end in _spans(window, today - timedelta(days=2), today))


def _opening(windows: Sequence[Window], now: datetime) -> datetime | None:
    """The first moment after `now` that is not frozen: a freeze ends only where a window begins or ends."""
    for week in range(HORIZON // 7 + 1):
        start, end = now + timedelta(days=7 * week), now + timedelta(days=7 * (week + 1))
        # A span that begins some days before may end in this week.
        days = (start - timedelta(days=3)).date(), (end + timedelta(days=1)).date()
        edges = {edge for w in windows for span in _spans(w, *days) for edge in span}
        for edge in sorted(e for e in edges if start < e <= end):
            if _holding(windows, edge) is None:
                return edge
    return None


def _spans(window: Window, first: date, last: date) -> Iterator[Span]:
    """The window's spans that begin on the days from `first` to `last`."""
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        if day.weekday() not in window.days:
            continue
        if (window.first and day < window.first) or (window.last and day > window.last):
            continue
        yield _span(window, day)


@cache
def _span(window: Window, day: date) -> Span:
    end = window.end if window.end > window.start else window.end + DAY
    (early, late), (first, last) = _moments(window.zone, day, window.start), _moments(window.zone, day, end)
    return (early, last) if window.deny else (late, first)


def _moments(zone: str, day: date, minutes: int) -> tuple[datetime, datetime]:
    """The earliest and the latest moment that a time of day may mean, in UTC."""
    on = day + timedelta(days=minutes // DAY)
    at = datetime.combine(on, time(*divmod(minutes % DAY, 60)), ZoneInfo(zone))
    moments = [at.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
    return min(moments), max(moments)


def _said(window: Window) -> str:
    """A window in words, for the person whose row is held."""
    day, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (window.start, window.end))
    parts = ["deny" if window.deny else "outside of allow"]
    if len(window.days) < len(DAYS):
        parts.append(",".join(DAYS[number] for number in window.days))
    if (window.start, window.end) != (0, DAY):
        parts.append(f"{day}-{end}")
    if window.first and window.last:
        parts.append(f"{window.first}..{window.last}" if window.first != window.last else str(window.first))
    said = f"policy.windows, {' '.join([*parts, window.zone])}"
    return f"{window.why} ({said})" if window.why else said
