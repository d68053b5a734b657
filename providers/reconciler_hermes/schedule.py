"""Schedules and delivery targets: the setup's typed words, and the strings that Hermes keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reconciler_specs.shape import Json

NATIVE = "$native"
GRACE = 120  # seconds: Hermes still takes a one-shot that is this late (`ONESHOT_GRACE_SECONDS`)

_DURATION = re.compile(r"(\d+)\s*(m|h|d)", re.IGNORECASE)
_MINUTES = {"m": 1, "h": 60, "d": 1440}
_FIELD = re.compile(r"[\d*\-,/]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    3: {name: str(n) for n, name in enumerate(_MONTHS, 1)},
    4: {name: str(n) for n, name in enumerate(_DAYS)},
}
_WORD = re.compile(r"[a-z]{3}", re.IGNORECASE)


def native(value: Json) -> Json:
    """What the setup's words cannot say: it equals nothing declared."""
    return {NATIVE: value}


def is_native(value: Json) -> bool:
    return isinstance(value, dict) and NATIVE in value


@lru_cache(maxsize=4096)
def cron(expr: str) -> str:
    """One space between fields, and numbers for names, since Hermes takes no `MON-FRI`."""
    return " ".join(_numbers(field, _NAMES.get(index, {})) for index, field in enumerate(expr.split()))


def _numbers(field: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: names.get(match[0].lower(), match[0]), field)


def minutes(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip())
    return int(match[1]) * _MINUTES[match[2].lower()] if match else None


def instant(text: str, zone: str = "") -> datetime | None:
    """A moment in UTC; one without an offset is in `zone`. None if it is no time, or the zone is not known."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            if not zone:
                return None
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        return None


def utc(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def canonical(schedule: Mapping[str, Json], zone: str) -> tuple[dict[str, Json], str]:
    """A declared schedule in the form that `observed` gives, and "" or why Hermes cannot keep it."""
    if "every" in schedule:
        count = minutes(str(schedule["every"]))
        if not count:
            return dict(schedule), f"every: {schedule['every']} is no whole number of minutes, hours or days"
        return {"every": f"{count}m"}, ""
    if "at" in schedule:
        moment = instant(str(schedule["at"]), zone)
        return ({"at": utc(moment)}, "") if moment else (dict(schedule), f"at: {schedule['at']} is no moment")
    expr, tz = cron(str(schedule.get("cron", ""))), schedule.get("tz")
    fields = expr.split()
    if len(fields) != 5 or not all(_FIELD.fullmatch(field) for field in fields):
        return dict(schedule), f"cron: Hermes takes five fields of digits and * - , / (got {schedule.get('cron')!r})"
    if tz and tz != zone:
        home = f" ({zone})" if zone else ""
        return dict(schedule), (
            "tz: Hermes has no time zone per job; drop tz"
            + (f" or set it to the home's zone{home}" if zone else " (the home has no `timezone` setting)")
        )
    return {"cron": expr}, ""


def observed(record: Json, zone: str) -> Json:
    """A record's `schedule` in canonical words; None where there is none."""
    if not isinstance(record, dict):
        return None if record is None else native(record)
    kind = record.get("kind")
    count, expr, run_at = record.get("minutes"), record.get("expr"), record.get("run_at")
    if kind == "interval" and isinstance(count, int) and not isinstance(count, bool) and count >= 1:
        return {"every": f"{count}m"}
    if kind == "cron" and isinstance(expr, str) and len(expr.split()) == 5:
        return {"cron": cron(expr)}
    if kind == "once" and isinstance(run_at, str):
        moment = instant(run_at, zone)
        if moment:
            return {"at": utc(moment)}
    return native({key: value for key, value in record.items() if key != "display"})


def to_hermes(schedule: Mapping[str, Json]) -> str:
    """A canonical schedule as the text that Hermes's `parse_schedule` reads."""
    if "every" in schedule:
        return f"every {schedule['every']}"
    return str(schedule["cron"] if "cron" in schedule else schedule["at"])


def is_past(schedule: Json, now: datetime) -> bool:
    """Whether a canonical schedule has only a time that Hermes would no longer take."""
    if not isinstance(schedule, dict) or "at" not in schedule:
        return False
    moment = instant(str(schedule["at"]))
    return moment is not None and (now - moment).total_seconds() > GRACE


def target(text: Json) -> Json:
    """A record's `deliver` as a Target: `"local"`, `{"to", "chat"?, "thread"?}`, or native (`origin`, lists)."""
    if not isinstance(text, str):
        return None if text is None else native(text)
    word = text.strip()
    if word == "local":
        return "local"
    if word in ("", "origin", "all") or "," in word:
        return native(text)
    platform, colon, rest = word.partition(":")
    if not colon:
        return {"to": platform.lower()}
    chat, thread = _chat_and_thread(platform.lower(), rest)
    if not chat:
        return native(text)
    return {"to": platform.lower(), "chat": chat, **({"thread": thread} if thread else {})}


def _chat_and_thread(platform: str, rest: str) -> tuple[str, str]:
    if platform == "matrix":  # rooms hold colons; a thread begins with `$`
        chat, mark, thread = rest.rpartition(":$")
        return (chat, "$" + thread) if mark else (rest, "")
    if platform in ("telegram", "discord", "slack", "feishu", "mattermost"):
        chat, _, thread = rest.partition(":")
        return chat, thread
    return rest, ""


def deliver_text(deliver: Json) -> str:
    """A canonical Target as Hermes's text."""
    if deliver == "local":
        return "local"
    parts = [str(deliver[key]) for key in ("to", "chat", "thread") if deliver.get(key) not in (None, "")]
    return ":".join(parts)


def shortest(every: str) -> str:
    """`360m` as a person says it: `6h`."""
    minutes = int(every.removesuffix("m"))
    for unit, size in (("d", 1440), ("h", 60)):
        if minutes % size == 0:
            return f"{minutes // size}{unit}"
    return every
