"""What of a job record is intent, and fingerprints: one definition for the plan's side and for the worker."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import math
from typing import Any

Record = dict[str, Any]

# What Hermes and its scheduler write by themselves. Everything else is intent or residue that somebody set, so
# that a field which a later Hermes brings counts as intent until we know better.
RUNTIME = frozenset(
    {
        "created_at",
        "next_run_at",
        "last_run_at",
        "last_status",
        "last_error",
        "last_delivery_error",
        "last_delivery_unverified",
        "fire_claim",
        "run_claim",
        "latest_execution",
        "monitor_state",
        "failure_streak",
        "pending_slot",
        "manual_run_at",
        "manual_run_prompt",
        "paused_at",
        "paused_reason",
        "state",
        "enabled",
        "schedule_display",
        "skill",
        "repeat",
        "schedule",
        "skills",
        "x_reconciler",
    }
)
MARKER = "x_reconciler"


def paused(record: Record) -> bool:
    """Whether somebody paused the job; a one-shot that is over is not paused."""
    state = record.get("state")
    return state == "paused" or (record.get("enabled", True) is False and state not in ("completed", "error"))


def skills(record: Record) -> list[str]:
    """`skills`, or the older `skill`: in order, each once, as Hermes reads them."""
    raw = record.get("skills")
    if raw is None:
        raw = [record.get("skill")]
    elif isinstance(raw, str):
        raw = [raw]
    found: list[str] = []
    for item in raw if isinstance(raw, list) else []:
        text = str(item or "").strip()
        if text and text not in found:
            found.append(text)
    return found


def intent(record: Record) -> Record:
    """The record without what the scheduler and the display code write."""
    schedule, repeat = record.get("schedule"), record.get("repeat")
    kept = {key: value for key, value in record.items() if key not in RUNTIME}
    kept["schedule"] = {k: v for k, v in schedule.items() if k != "display"} if isinstance(schedule, dict) else schedule
    kept["repeat"] = repeat.get("times") if isinstance(repeat, dict) else repeat
    kept["skills"] = skills(record)
    kept["paused"] = paused(record)
    return kept


def digest(value: Any, key: bytes) -> str:
    """A keyed digest of a JSON value: without the key a short secret could be guessed from it."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


def fingerprint(record: Record, key: bytes) -> str:
    """Changes iff somebody changed the job; a run of it does not count."""
    return digest(intent(record), key)


def to_json(value: Any) -> Any:
    """YAML's value as plain JSON: dates, NaN and bytes become `{"$native": text}`, keys become text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return {"$native": value.isoformat()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$native": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"$native": str(value)}


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
