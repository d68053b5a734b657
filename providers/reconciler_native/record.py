"""A Hermes-shaped job record: its field order, what of it is intent, and the orchestrator's view of it."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from . import schedule, target

Record = dict[str, Any]

ORDER = (
    "id", "name", "prompt", "skills", "skill", "model", "provider", "provider_snapshot", "model_snapshot", "base_url",
    "script", "no_agent", "context_from", "schedule", "schedule_display", "repeat", "enabled", "state", "paused_at",
    "paused_reason", "created_at", "next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error",
    "deliver", "origin", "enabled_toolsets", "workdir", "attach_to_session",
)  # fmt: skip
"""The fields of a record in the order in which Hermes 0.19 writes them; others follow as they stood."""

MARKER = "x_reconciler"
"""The field with our intent id: a create that was cut off is found by it (L11)."""

_RUNTIME = frozenset(
    {
        "created_at", "next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error",
        "last_delivery_unverified", "fire_claim", "run_claim", "latest_execution", "monitor_state", "failure_streak",
        "pending_slot", "manual_run_at", "manual_run_prompt", "paused_at", "paused_reason", "state", "enabled",
        "schedule_display", "skill", "repeat", "schedule", "skills", "provider_snapshot", "model_snapshot", MARKER,
    }
)  # fmt: skip
# What the view says in words of its own, or what follows from another field.
_NOT_RESIDUE = _RUNTIME | frozenset(
    {"id", "name", "prompt", "workdir", "model", "context_from", "deliver", "failure_deliver", "origin",
     "attach_to_session"}
)  # fmt: skip


def ordered(record: Record) -> Record:
    """The record with its fields in Hermes's order."""
    found = {key: record[key] for key in ORDER if key in record}
    return found | {key: value for key, value in record.items() if key not in found}


def paused(record: Record) -> bool:
    """Whether somebody paused the job; a one-shot that is over is not paused."""
    state = record.get("state")
    return state == "paused" or (record.get("enabled", True) is False and state not in ("completed", "error"))


def skills(record: Record) -> list[str]:
    """`skills`, or the older `skill`: in order, each once."""
    raw = record.get("skills")
    if raw is None:
        raw = [record.get("skill")]
    items = raw if isinstance(raw, list) else [raw]
    return list(dict.fromkeys(text for item in items if (text := str(item or "").strip())))


def label(record: Record) -> str:
    """The name that Hermes gives a job whose author gave none."""
    named = skills(record)
    script = record.get("script") if record.get("no_agent") else ""
    return str(record.get("prompt") or (named[0] if named else "") or script or "cron job")[:50].strip()


def intent(record: Record) -> Record:
    """The record without what a scheduler writes; two equal ones mean the same."""
    kept = {key: value for key, value in record.items() if key not in _RUNTIME and value is not None}
    when, repeat = record.get("schedule"), record.get("repeat")
    kept["schedule"] = {k: v for k, v in when.items() if k != "display"} if isinstance(when, dict) else when
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


def view(record: Record) -> Record:
    """The job as the orchestrator's door shows it (ontology `Job`); what has no field there is `residue`."""
    residue = {key: value for key, value in record.items() if key not in _NOT_RESIDUE and value not in (None, False)}
    if record.get("name") and record["name"] != label(record):
        residue["name"] = record["name"]
    context = record.get("context_from")
    return {
        "id": record.get("id"),
        "schedule": schedule.view(record.get("schedule")),
        "prompt": record.get("prompt"),
        "workdir": record.get("workdir"),
        "model": record.get("model"),
        "skills": skills(record),
        "context_from": [context] if isinstance(context, str) else context or None,
        "deliver": target.parse(record.get("deliver")) or {"kind": "local"},
        "failure_deliver": target.parse(record.get("failure_deliver")),
        "origin": record.get("origin"),
        "attach_to_session": record.get("attach_to_session"),
        "repeat": _repeat(record),
        "enabled": record.get("enabled", True) is not False,
        "next_run_at": schedule.zulu(record.get("next_run_at")),
        "last_run_at": schedule.zulu(record.get("last_run_at")),
        "last_status": record.get("last_status"),
        "created_at": schedule.zulu(record.get("created_at")),
        "residue": residue,
    }


def _repeat(record: Record) -> Record | None:
    repeat = record.get("repeat")
    if not isinstance(repeat, dict):
        return None
    times, completed = repeat.get("times"), repeat.get("completed", 0)
    once = isinstance(record.get("schedule"), dict) and record["schedule"].get("kind") == "once"
    if not completed and (times is None or (once and times == 1)):
        return None  # nobody asked for it: Hermes writes the field into every record
    return {"times": times, "completed": completed}
