"""A job between the words of three: the record in `cron/jobs.json`, the door's arguments, and the setup's fields."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.action import CLEAR, Clear
from reconciler_shape import record as records
from reconciler_shape import schedule
from reconciler_shape.plain import native
from reconciler_specs.shape import Json

OURS = "reconciler"
"""Our mark in a job's metadata, which the record keeps under `host`: who made it, and by which intent (L11)."""
LONGEST = 60 * 24 * 366 * 8
"""Minutes between runs; the language wants a run within 8 years of every schedule."""

_OUR_ID = re.compile(r"job_[0-9]{8}_[0-9]{6}_([0-9a-f]{20})")
_PLATFORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)?")
_TARGET = ("to", "chat", "thread")
_SHOWN = (
    ("every", re.compile(r"every ([0-9]+) min")),
    ("cron", re.compile(r"cron (.+) (\S+)")),
    ("at", re.compile(r"once at (\S+)")),
)
_LABEL = 50  # characters of the prompt that stand for a name where there is none
_PART = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]+))?")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


# -- targets


def target(word: Any) -> Json:
    """A delivery word in the setup's terms; a mark for one that a setup cannot say."""
    if word in (None, ""):
        return None
    if word == "local":
        return "local"
    if word == "home":
        return "owner_chat"
    parts = str(word).split(":")
    if word == "origin" or not isinstance(word, str) or len(parts) > len(_TARGET) or not _PLATFORM.fullmatch(parts[0]):
        return native(word)
    return {key: part for key, part in zip(_TARGET, parts, strict=False) if part}


def word_of(value: Json) -> str:
    """A setup's target as the door's word. Pure; `unfit` says whether the door would read it so."""
    if value == "local":
        return "local"
    if value == "owner_chat":
        return "home"
    return ":".join(str(value[key]) for key in _TARGET if value.get(key) not in (None, ""))


def unfit(value: Json) -> str:
    """Why the door would read a target as another one, "" if it would not: it drops what follows a third colon."""
    if target(word_of(value)) == value:
        return ""
    return f"{word_of(value)!r} would be read as another target: its parts may hold no colon"


# -- schedules


def when(found: Any) -> Json:
    """A record's schedule, canonical. A line without a zone runs in UTC, whatever the home says."""
    seen = schedule.observed(found, "UTC")
    if isinstance(seen, dict) and "cron" in seen:
        return _cron(str(seen["cron"]), str(found.get("tz") or ""))
    return seen


def _cron(line: str, tz: str) -> dict[str, Json]:
    return {"cron": line} if tz in ("", "UTC") else {"cron": line, "tz": tz}


def canonical(said: Mapping[str, Json], zone: str) -> tuple[dict[str, Json], str]:
    """A declared schedule as `when` gives it, and why the door could not keep it. `zone` is the setup's own."""
    if "every" in said:
        minutes = schedule.minutes(str(said["every"]))
        if not minutes:
            return dict(said), f"every: {said['every']} is no whole number of minutes, hours or days"
        return {"every": f"{minutes}m"}, "every: that is no run within 8 years" if minutes > LONGEST else ""
    if "at" in said:
        moment = schedule.instant(str(said["at"]), zone or "UTC")
        return ({"at": schedule.utc(moment)}, "") if moment else (dict(said), f"at: {said['at']} is no moment")
    line = schedule.cron(str(said.get("cron", "")))
    return _cron(line, str(said.get("tz") or zone)), _unread(line)


def _unread(line: str) -> str:
    """Why the door's own reader of cron lines would refuse this one, "" if it would not (`cron.mjs`, parseCron)."""
    for field, (low, high) in zip(line.split(" "), _RANGES, strict=False):
        for part in field.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                return f"cron: {part} is nothing that the orchestrator reads (it knows *, a, a-b, /n and lists)"
            first = int(match[1]) if match[1] else low
            last = int(match[2]) if match[2] else first
            if not low <= first <= last <= high or (match[3] and not int(match[3])):
                return f"cron: {part} is out of range for the orchestrator ({low} to {high}, the lower one first)"
    return ""


def _typed(value: Any) -> dict[str, Any]:
    if "every" in value:
        return {"kind": "interval", "minutes": int(str(value["every"]).removesuffix("m"))}
    if "at" in value:
        return {"kind": "once", "run_at": value["at"]}
    return {"kind": "cron", "expr": value["cron"], "tz": value.get("tz") or "UTC"}


def _listed_when(text: Any) -> Json:
    """The schedule of `cronjob_list`, which tells it as a text of fixed form."""
    for kind, form in _SHOWN:
        match = form.fullmatch(str(text))
        if match and kind == "every":
            return {"every": f"{match[1]}m"}
        if match and kind == "cron":
            return _cron(schedule.cron(match[1]), match[2])
        moment = schedule.instant(match[1], "UTC") if match else None
        if moment is not None:
            return {"at": schedule.utc(moment)}
    return native(text)


# -- jobs


def observed(item: records.Record) -> dict[str, Json]:
    """A record in the setup's terms, canonical; None where it says nothing."""
    agent = not item.get("no_agent")
    repeat, attach = item.get("repeat"), item.get("attach_to_session")
    script, url = item.get("monitor_script"), item.get("monitor_url")
    return {
        "name": str(item.get("name") or "") or _label(item.get("prompt")),
        "schedule": when(item.get("schedule")),
        "prompt": str(item.get("prompt") or "") or None,
        "before" if agent else "run": str(item.get("script") or "") or None,
        "deliver": target(item.get("deliver") or "local"),
        "failure_deliver": target(item.get("failure_deliver")),
        "model": _model(item),
        "skills": records.skills(item),
        "context_from": [item.get("id") if ref == "self" else ref for ref in _context(item.get("context_from"))],
        "toolsets": item.get("enabled_toolsets") or None,
        "workdir": item.get("workdir") or None,
        "repeat": repeat.get("times") if isinstance(repeat, dict) else repeat,
        "monitor": {"script": script} if script else {"url": url} if url else None,
        "session": ("main" if attach else "isolated") if isinstance(attach, bool) else None,
        "metadata": {k: v for k, v in host(item).items() if k != OURS} or None,
        "paused": records.paused(item) and not _spent(item),
        "id": item.get("id"),
    }


def listed(item: Mapping[str, Any]) -> dict[str, Json]:
    """What `cronjob_list` tells of a job, in the setup's terms."""
    return {
        "name": str(item.get("name") or "") or _label(item.get("prompt")),
        "schedule": _listed_when(item.get("schedule")),
        "prompt": str(item.get("prompt") or "") or None,
        "deliver": target(item.get("deliver") or "local"),
    }


def _label(prompt: Any) -> str:
    return str(prompt or "cron job")[:_LABEL].strip()


def _context(found: Any) -> list[Any]:
    return [found] if isinstance(found, str) else found if isinstance(found, list) else []


def _model(item: records.Record) -> Json:
    """The door keeps one word, for the profile's worker; a provider beside it came from elsewhere."""
    pinned = {key: item[key] for key in ("provider", "model", "base_url") if item.get(key)}
    if set(pinned) == {"model"}:
        return {"provider": "auto", **pinned}
    return None if not pinned else pinned if {"provider", "model"} <= pinned.keys() else native(pinned)


def host(item: records.Record) -> dict[str, Json]:
    """A job's metadata."""
    found = item.get("host")
    return found if isinstance(found, dict) else {}


def new_id(moment: datetime, intent: str) -> str:
    """An id of our own, known before the call: by it a lost answer can be looked up (L11)."""
    return f"job_{moment.astimezone(UTC).strftime('%Y%m%d_%H%M%S')}_{intent or secrets.token_hex(10)}"


def marker(job_id: str, item: records.Record) -> str:
    """Our intent's id by the job's metadata, else by its id; "" if the job is not of our making."""
    ours = host(item).get(OURS)
    if isinstance(ours, dict) and ours.get("intent"):
        return str(ours["intent"])
    match = _OUR_ID.fullmatch(job_id)
    return match[1] if match else ""


def _spent(item: records.Record) -> bool:
    """Whether a job is off because it is over: the orchestrator turns it off itself then, and says no more of it."""
    repeat, kind = item.get("repeat"), item.get("schedule")
    times = repeat.get("times") if isinstance(repeat, dict) else None
    over = isinstance(times, int) and isinstance(repeat, dict) and (repeat.get("completed") or 0) >= times
    once = isinstance(kind, dict) and kind.get("kind") == "once" and bool(item.get("last_run_at"))
    return not item.get("next_run_at") and (over or once)


def arguments(values: Mapping[str, Json | Clear]) -> dict[str, Any]:
    """Fields to write as arguments of `jobs.create` and `jobs.update`; CLEAR is null, which the door takes for unset.

    `paused` is left out: the door has verbs for it, and `enabled` would not arm the job.
    """
    args: dict[str, Any] = {}
    for name, value in values.items():
        if name == "paused":
            continue
        if value is CLEAR:
            args[name] = None
        elif name == "schedule":
            args[name] = _typed(value)
        elif name in ("deliver", "failure_deliver"):
            args[name] = word_of(value)
        elif name == "model":
            args[name] = value["model"]
        else:
            args[name] = value
    return args
