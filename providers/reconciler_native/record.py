"""A Hermes-shaped job record: its field order, what of it is intent, and the orchestrator's view of it."""

from __future__ import annotations

from reconciler_shape import record as records
from reconciler_shape.record import RUNTIME, SNAPSHOTS, Record, skills

from . import schedule, target

NOISE = RUNTIME | SNAPSHOTS
"""Nothing here holds a job to the model under which it was made."""

ORDER = (
    "id", "name", "prompt", "skills", "skill", "model", "provider", "provider_snapshot", "model_snapshot", "base_url",
    "script", "no_agent", "context_from", "schedule", "schedule_display", "repeat", "enabled", "state", "paused_at",
    "paused_reason", "created_at", "next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error",
    "deliver", "origin", "enabled_toolsets", "workdir", "attach_to_session",
)  # fmt: skip
"""The fields of a record in the order in which Hermes 0.19 writes them; others follow as they stood."""

# What the view says in words of its own, or what follows from another field.
_NOT_RESIDUE = NOISE | frozenset(
    {"id", "name", "prompt", "workdir", "model", "context_from", "deliver", "failure_deliver", "origin",
     "attach_to_session"}
)  # fmt: skip


def ordered(record: Record) -> Record:
    """The record with its fields in Hermes's order."""
    found = {key: record[key] for key in ORDER if key in record}
    return found | {key: value for key, value in record.items() if key not in found}


def label(record: Record) -> str:
    """The name that Hermes gives a job whose author gave none."""
    named = skills(record)
    script = record.get("script") if record.get("no_agent") else ""
    return str(record.get("prompt") or (named[0] if named else "") or script or "cron job")[:50].strip()


def intent(record: Record) -> Record:
    """The record without what a scheduler writes; two equal ones mean the same."""
    return records.intent(record, NOISE)


def fingerprint(record: Record, key: bytes) -> str:
    """Changes iff somebody changed the job; a run of it does not count."""
    return records.fingerprint(record, key, NOISE)


def view(record: Record, zone: str) -> Record:
    """The job as the orchestrator's door shows it (ontology `Job`); what has no field there is `residue`. `zone` is
    the home's, for a cron line that has none of its own."""
    residue = {key: value for key, value in record.items() if key not in _NOT_RESIDUE and value not in (None, False)}
    if record.get("name") and record["name"] != label(record):
        residue["name"] = record["name"]
    context = record.get("context_from")
    return {
        "id": record.get("id"),
        "schedule": schedule.view(record.get("schedule"), zone),
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
