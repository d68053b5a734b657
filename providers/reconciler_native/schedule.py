"""Schedules: the verbs' typed and text forms, the records that Hermes keeps, and the moment of the next run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from reconciler_shape import schedule as words

from . import cron
from .errors import Refused

_UNITS = {
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 1),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 60),
    **dict.fromkeys(("d", "day", "days"), 1440),
}
_IN = re.compile(r"in\s+(\d+)\s*([a-z]+)")
_EVERY = re.compile(r"(?:every\s+)?(\d*)\s*([a-z]+)")
LONGEST = 60 * 24 * 366 * cron.YEARS
"""Minutes: a schedule has to run within 8 years."""


def instant(text: Any, zone: str = "UTC") -> datetime | None:
    """A moment in UTC; one without an offset is in `zone`, else in UTC. None if it is no time."""
    return words.instant(text, zone or "UTC")


def zulu(value: Any) -> str | None:
    """A stored moment as the orchestrator writes it (`2031-02-03T08:00:00.000Z`); what is none stays as it is."""
    moment = instant(value)
    if moment is None:
        return value if isinstance(value, str) else None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def stored(moment: datetime) -> str:
    """A moment as Hermes keeps it."""
    return moment.astimezone(UTC).isoformat()


def parse(spec: Any, now: datetime, zone: str) -> dict[str, Any]:
    """A verb's `schedule` as a record's. `zone` is the home's, for cron lines without one.

    Raises Refused for what no clock can evaluate, for what never runs within 8 years, and for a time that is past.
    """
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        try:
            spec = json.loads(spec)
        except ValueError:
            raise Refused(f"schedule {spec[:80]!r} is not a schedule") from None
    found = _typed(spec) if isinstance(spec, Mapping) else _text(spec, now)
    if found["kind"] == "once":
        moment = instant(found["run_at"])
        if moment is None or moment <= now:
            raise Refused(f"schedule: {found['run_at']} has passed; a one-shot needs a time to come")
    elif found["kind"] == "cron" and next_run(found, now, zone) is None:
        raise Refused(f"schedule: cron {found['expr']!r} has no run within {cron.YEARS} years")
    elif found["kind"] == "interval" and found["minutes"] > LONGEST:
        raise Refused(f"schedule: every {found['minutes']} minutes is no run within {cron.YEARS} years")
    return found


def _typed(spec: Mapping[str, Any]) -> dict[str, Any]:
    kind = spec.get("kind")
    allowed = {"once": {"run_at"}, "interval": {"minutes"}, "cron": {"expr", "tz"}}.get(str(kind))
    if allowed is None:
        raise Refused(f"schedule.kind must be once | interval | cron, got {json.dumps(kind)}")
    extra = sorted(set(spec) - allowed - {"kind", "display"})
    if extra:
        raise Refused(f"schedule.{extra[0]} is not a part of a {kind} schedule")
    if kind == "once":
        return _once(spec.get("run_at"))
    if kind == "interval":
        minutes = spec.get("minutes")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float) or minutes != int(minutes) or minutes < 1:
            raise Refused("schedule.minutes must be a whole number of minutes, at least 1")
        return _interval(int(minutes))
    return _cron(spec.get("expr"), spec.get("tz"))


def _text(spec: Any, now: datetime) -> dict[str, Any]:
    raw = str(spec or "").strip()
    low = raw.lower()
    later = _IN.fullmatch(low)
    if later:
        if later[2] not in _UNITS:
            raise Refused(f"schedule {raw!r}: unknown unit {later[2]!r}")
        return _once(_shifted(now, int(later[1]) * _UNITS[later[2]], raw))
    every = _EVERY.fullmatch(low)
    if every and every[2] in _UNITS:
        minutes = int(every[1] or 1) * _UNITS[every[2]]
        if minutes < 1:
            raise Refused("schedule.minutes must be a whole number of minutes, at least 1")
        return _interval(minutes)
    if len(raw.split()) == 5:
        return _cron(raw, None)
    if instant(raw) is not None and len(raw) >= 10:
        return _once(raw)
    raise Refused(
        f"schedule {json.dumps(raw[:80])} is not a schedule: use '30m' / 'every 2h', 'in 30m', five-field cron "
        "('0 9 * * *'), an ISO timestamp, or the typed {kind: once|interval|cron} form. Day/time phrasing such as "
        "'every monday 9am' is not accepted: write it as cron."
    )


def _shifted(now: datetime, minutes: int, raw: str) -> str:
    try:
        return stored(now + timedelta(minutes=minutes))
    except OverflowError:
        raise Refused(f"schedule {raw!r}: no such time") from None


def _once(run_at: Any) -> dict[str, Any]:
    moment = instant(run_at)
    if moment is None:
        raise Refused("schedule.run_at must be an instant")
    return {"kind": "once", "run_at": stored(moment), "display": f"once at {moment.strftime('%Y-%m-%d %H:%M')}"}


def _interval(minutes: int) -> dict[str, Any]:
    return {"kind": "interval", "minutes": minutes, "display": f"every {minutes}m"}


def _cron(expr: Any, tz: Any) -> dict[str, Any]:
    line = " ".join(expr.split()) if isinstance(expr, str) else ""
    zone = "" if tz in (None, "") else tz
    if not cron.is_usual(line) or not (zone == "" or (isinstance(zone, str) and cron.is_zone(zone))):
        line, zone = _judged(expr, zone)
    return {"kind": "cron", "expr": line, **({"tz": zone} if zone else {}), "display": line}


def _judged(expr: Any, tz: Any) -> tuple[str, str]:
    """An unusual line and its zone. Raises Refused with what is wrong with them."""
    from reconciler_specs import values  # slow to load, and seldom needed

    try:
        line = values.cron(expr)
        zone = values.zone(tz) if tz != "" else ""
        cron.line(line)
    except values.Refusal as refusal:
        raise Refused(f"schedule: {refusal.message}" + (f" ({refusal.hint})" if refusal.hint else "")) from refusal
    except ValueError as error:
        raise Refused(f"schedule: {error}") from error
    return line, zone


def next_run(schedule: Any, now: datetime, zone: str) -> datetime | None:
    """When a record's schedule runs next after `now`; None if never, or if nothing can evaluate it."""
    if not isinstance(schedule, dict):
        return None
    match schedule.get("kind"):
        case "once":
            moment = instant(schedule.get("run_at"), zone)
            return moment if moment is not None and moment > now else None
        case "interval":
            minutes = schedule.get("minutes")
            if not isinstance(minutes, int) or isinstance(minutes, bool) or not 1 <= minutes <= LONGEST:
                return None
            return now + timedelta(minutes=minutes)
        case "cron":
            try:
                return cron.after(str(schedule.get("expr")), now, str(schedule.get("tz") or zone or "UTC"))
            except (ValueError, ZoneInfoNotFoundError):
                return None
    return None


def view(schedule: Any, zone: str = "") -> Any:
    """A record's schedule as the orchestrator's: typed, moments in UTC, `tz` filled in with the zone that it runs in
    (`zone` is the home's, "" if it has none)."""
    if not isinstance(schedule, dict):
        return schedule
    match schedule.get("kind"):
        case "once":
            return {"kind": "once", "run_at": zulu(schedule.get("run_at"))}
        case "interval":
            return {"kind": "interval", "minutes": schedule.get("minutes")}
        case "cron":
            return {"kind": "cron", "expr": schedule.get("expr"), "tz": schedule.get("tz") or zone or "UTC"}
    return dict(schedule)


def describe(schedule: Mapping[str, Any], zone: str) -> str:
    """For a verb's `ran`, as the orchestrator says it."""
    shown = view(schedule, zone)
    if shown["kind"] == "once":
        return f"once at {shown['run_at']}"
    if shown["kind"] == "interval":
        return f"every {shown['minutes']} min"
    return f"cron {shown['expr']} {shown['tz']}"
