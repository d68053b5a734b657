"""Schedules between a record's `schedule` and the setup's typed words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .plain import native

_DURATION = re.compile(r"([0-9]+)\s*([mhd])", re.IGNORECASE)
_MINUTES = {"m": 1, "h": 60, "d": 1440}
_WORD = re.compile(r"[a-z]{3}", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    3: {name: str(number) for number, name in enumerate(_MONTHS, 1)},
    4: {name: str(number) for number, name in enumerate(_DAYS)},
}


def instant(text: Any, zone: str = "") -> datetime | None:
    """A moment in UTC; one without an offset is in `zone`. None if it is no time, or the zone is not known."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            if not zone:
                return None
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, ZoneInfoNotFoundError):
        return None


def utc(moment: datetime) -> str:
    """As a setup has it: `2031-02-03T08:00:00Z`."""
    return moment.isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def cron(expr: str) -> str:
    """One form for cron lines that mean the same: one space between fields, and numbers for names."""
    return " ".join(_numbers(field, _NAMES.get(index, {})) for index, field in enumerate(expr.split()))


def _numbers(field: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: names.get(match[0].lower(), match[0]), field)


def minutes(text: str) -> int:
    """The minutes of `30m`, `2h`, `1d`; 0 for anything else."""
    match = _DURATION.fullmatch(text.strip())
    return int(match[1]) * _MINUTES[match[2].lower()] if match else 0


def shortest(every: str) -> str:
    """`360m` as a person says it: `6h`."""
    count = int(every.removesuffix("m"))
    unit, size = next(((u, s) for u, s in (("d", 1440), ("h", 60)) if count % s == 0), ("m", 1))
    return f"{count // size}{unit}"


def observed(record: Any, zone: str) -> Any:
    """A record's `schedule` in canonical words; None where there is none. A moment without an offset is in `zone`."""
    if not isinstance(record, dict):
        return None if record is None else native(record)
    kind = record.get("kind")
    count, expr = record.get("minutes"), record.get("expr")
    if kind == "interval" and isinstance(count, int) and not isinstance(count, bool) and count >= 1:
        return {"every": f"{count}m"}
    if kind == "cron" and isinstance(expr, str) and len(expr.split()) == 5:
        return {"cron": cron(expr)}
    moment = instant(record.get("run_at"), zone) if kind == "once" else None
    if moment is not None:
        return {"at": utc(moment)}
    return native({key: value for key, value in record.items() if key != "display"})
