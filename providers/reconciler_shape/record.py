"""A job record of `cron/jobs.json`: what of it is intent, and its fingerprint."""

from __future__ import annotations

from typing import Any

from .plain import digest

Record = dict[str, Any]

MARKER = "x_reconciler"
"""The field with our intent id: a create that was cut off is found by it (L11)."""

# What Hermes and its scheduler write by themselves. Everything else is intent or residue that somebody set, so
# that a field which a later Hermes brings counts as intent until we know better.
RUNTIME = frozenset(
    {
        "created_at", "next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error",
        "last_delivery_unverified", "fire_claim", "run_claim", "latest_execution", "monitor_state", "failure_streak",
        "pending_slot", "manual_run_at", "manual_run_prompt", "paused_at", "paused_reason", "state", "enabled",
        "schedule_display", "skill", "repeat", "schedule", "skills", MARKER,
    }
)  # fmt: skip
SNAPSHOTS = frozenset({"provider_snapshot", "model_snapshot"})
"""The model under which a job was made, by which Hermes holds an unpinned one: intent there, and noise elsewhere."""


def paused(record: Record) -> bool:
    """Whether somebody paused the job; a one-shot that is over is not paused."""
    state = record.get("state")
    return state == "paused" or (record.get("enabled", True) is False and state not in ("completed", "error"))


def skills(record: Record) -> list[str]:
    """`skills`, or the older `skill`: in order, each once, as Hermes reads them."""
    raw = record.get("skills")
    if raw is None:
        raw = record.get("skill")
    items = raw if isinstance(raw, list) else [raw]
    return list(dict.fromkeys(text for item in items if (text := str(item or "").strip())))


def intent(record: Record, noise: frozenset[str] = RUNTIME) -> Record:
    """The record without `noise` and empty fields; two equal ones mean the same."""
    kept = {key: value for key, value in record.items() if key not in noise and value is not None}
    schedule, repeat = record.get("schedule"), record.get("repeat")
    kept["schedule"] = {k: v for k, v in schedule.items() if k != "display"} if isinstance(schedule, dict) else schedule
    kept["repeat"] = repeat.get("times") if isinstance(repeat, dict) else repeat
    kept["skills"] = skills(record)
    kept["paused"] = paused(record)
    return kept


def fingerprint(record: Record, key: bytes, noise: frozenset[str] = RUNTIME) -> str:
    """Changes iff somebody changed the job; a run of it does not count."""
    return digest(intent(record, noise), key)
