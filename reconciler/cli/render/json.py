"""Plans, outcomes and states as one versioned JSON document each: names are only added within a version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reconciler_specs.errors import Reason

from ...action import CLEAR, Action, FieldChange
from ...event import Event
from ...observe import ABSENT, Seen, Unknown
from ...plan import HomePlan, Plan
from ...provenance import Provenance
from .plan import next_commands, tally


def plan_json(plan: Plan, provenance: Provenance | None = None) -> str:
    """The plan as `{"format": "reconciler.plan/1", …}`; what is known of where it is from as `provenance`."""
    return dump(
        {
            "format": "reconciler.plan/1",
            "setup": plan.owner,
            "digest": plan.digest,
            **({"provenance": provenance.to_json()} if provenance is not None else {}),
            "homes": [home_dict(h) for h in plan.homes],
            "summary": dict(sorted(tally(plan).items())),
        }
    )


def apply_json(plan: Plan, events: Sequence[Event], code: int) -> str:
    """What an apply did as `{"format": "reconciler.apply/1", …}`; `exit` is the process's exit code."""
    rows = [e.to_json() for e in events if e.what == "outcome"]
    ends = [e.to_json() for e in events if e.what == "home-end"]
    return dump(
        {
            "format": "reconciler.apply/1",
            "setup": plan.owner,
            "digest": plan.digest,
            "outcomes": rows,
            "homes": ends,
            "exit": code,
        }
    )


def home_dict(home: HomePlan) -> dict[str, Any]:
    """One home of a plan."""
    data: dict[str, Any] = {
        "home": home.id,
        "harness": home.ref.harness,
        "place": home.ref.place.name,
        "path": home.ref.path,
        "version": home.version,
        "lineage": home.lineage,
        "serial": home.serial,
        "unchanged": home.unchanged,
        "rows": [row_dict(home, a) for a in home.actions],
    }
    if home.hold:
        data["held"] = {"why": home.hold.why, "next": home.hold.command}
    if home.failed:
        data["failed"] = home.failed
    if home.notes:
        data["notes"] = list(home.notes)
    if home.left_out:
        data["left_out"] = home.left_out
    return data


def row_dict(home: HomePlan, action: Action) -> dict[str, Any]:
    """One row of a plan."""
    data: dict[str, Any] = {
        "address": str(action.address),
        "row": str(action.row),
        "id": action.id,
        "writes": action.writes,
        "tier": str(action.tier),
        "digest": home.digests[action.address],
    }
    for name, value in (("reason", action.reason), ("rule", action.rule), ("notes", list(action.notes))):
        if value:
            data[name] = value
    if action.hold is not None:
        data["held"] = action.hold.why
    commands = next_commands(action)
    if commands:
        data["next"] = commands
    if action.facts:
        data["facts"] = sorted(str(f) for f in action.facts)
    if action.changes:
        data["fields"] = [_field(c) for c in action.changes]
    return data


def _field(change: FieldChange) -> dict[str, Any]:
    data: dict[str, Any] = {"field": change.field, "row": str(change.row), "observed": value(change.observed)}
    if change.declared is not ABSENT:
        data["declared"] = value(change.declared)
    if change.writes:
        data["write"] = value(change.write)
    if change.base is not None:
        data["base"] = {"declared": change.base.declared, "observed": change.base.observed}
    return data


def value(side: Seen) -> Any:
    """A side of a field as JSON."""
    if side is ABSENT:
        return {"$absent": True}
    if side is CLEAR:
        return {"$clear": True}
    return {"$unknown": side.reason} if isinstance(side, Unknown) else side


def dump(document: dict[str, Any]) -> str:
    """One document as text, in ASCII."""
    return json.dumps(document, ensure_ascii=True, indent=2)


def reasons_json(reasons: Sequence[Reason]) -> str:
    """What is wrong with a setup as `{"format": "reconciler.validate/1", …}`; no reasons: it is in order."""
    return dump(
        {
            "format": "reconciler.validate/1",
            "ok": not reasons,
            "reasons": [
                {
                    "file": r.where.file,
                    "line": r.where.line,
                    "column": r.where.column,
                    "message": r.message,
                    "hint": r.hint,
                }
                for r in reasons
            ],
        }
    )
