"""Schedules and delivery targets: the setup's typed words, and the strings that Hermes keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from reconciler_shape import schedule as words
from reconciler_shape.plain import native
from reconciler_specs.shape import Json

GRACE = 120  # seconds: Hermes still takes a one-shot that is this late (`ONESHOT_GRACE_SECONDS`)

_FIELD = re.compile(r"[\d*\-,/]+")


def canonical(schedule: Mapping[str, Json], zone: str) -> tuple[dict[str, Json], str]:
    """A declared schedule in the form that `observed` gives, and "" or why Hermes cannot keep it."""
    if "every" in schedule:
        count = words.minutes(str(schedule["every"]))
        if not count:
            return dict(schedule), f"every: {schedule['every']} is no whole number of minutes, hours or days"
        return {"every": f"{count}m"}, ""
    if "at" in schedule:
        moment = words.instant(str(schedule["at"]), zone)
        return ({"at": words.utc(moment)}, "") if moment else (dict(schedule), f"at: {schedule['at']} is no moment")
    expr, tz = words.cron(str(schedule.get("cron", ""))), schedule.get("tz")
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


def to_hermes(schedule: Mapping[str, Json]) -> str:
    """A canonical schedule as the text that Hermes's `parse_schedule` reads."""
    if "every" in schedule:
        return f"every {schedule['every']}"
    return str(schedule["cron"] if "cron" in schedule else schedule["at"])


def is_past(schedule: Json, now: datetime) -> bool:
    """Whether a canonical schedule has only a time that Hermes would no longer take."""
    if not isinstance(schedule, dict) or "at" not in schedule:
        return False
    moment = words.instant(str(schedule["at"]))
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
