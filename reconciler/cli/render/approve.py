"""Approvals as text and as JSON: what was approved, what waits, by whom and until when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from reconciler_state.approvals import Approval

from ...action import Action, Tier
from ...approval import Standing, said, until
from ...plan import Plan
from .json import dump
from .style import safe


def approved_text(path: Path, plan: str, approval: Approval, ends: datetime, *, added: bool) -> Iterator[str]:
    """The rows of one approval, and what carries them out."""
    for address in sorted(set(approval.rows.values())):
        yield f"  ✓ {safe(address)}"
    word = "Approved" if added else "Approved already"
    yield f"{word}: {len(approval.rows)} row(s) of plan {plan}, by {safe(approval.by)}; until {_minute(ends)} at most."
    yield f"next, from another run or login session: reconciler apply --plan {safe(quote(str(path)))} --reviewed"


def approved_json(plan: str, approval: Approval, ends: datetime, *, added: bool) -> str:
    """`{"format": "reconciler.approve/1", …}`."""
    return dump({"format": "reconciler.approve/1", "plan": plan, "added": added, **_approval(approval, ends)})


def list_text(plan: Plan, now: Standing, within: int) -> Iterator[str]:
    """One line per row that needs a person, and what is approved and is in no plan any more."""
    waits = 0
    for home, action, digest in _needing(plan):
        approval = now.valid.get(digest)
        line = f"{safe(str(action.address))}  {action.row}  [{action.tier}: {safe(action.rule)}]"
        if approval is not None:
            yield f"  ✓ {line}  {safe(said(approval))}, until {_minute(until(approval, within))}"
            continue
        waits += 1
        over = f"; {safe(said(now.over[digest]))}, which is over" if digest in now.over else ""
        yield f"  … {line}  waits{over}"
        if home.hold is not None:
            yield f"      and its home is held: {safe(home.hold.why)}"
    others = _gone(plan, now)
    for approval in others:
        addresses = ", ".join(sorted(set(approval.rows.values())))
        yield f"  · {safe(said(approval))}: {safe(addresses)}  in no plan any more"
    for home in plan.homes:
        if home.failed:
            yield f"  ✗ {safe(home.id)}  {safe(home.failed)}"
    yield f"{waits} row(s) wait for a person." if waits else "Nothing waits for a person."


def list_json(plan: Plan, now: Standing, within: int) -> str:
    """`{"format": "reconciler.approvals/1", …}`."""
    rows = []
    for _home, action, digest in _needing(plan):
        row: dict[str, Any] = {
            "address": str(action.address),
            "row": str(action.row),
            "tier": str(action.tier),
            "rule": action.rule,
            "digest": digest,
        }
        for name, approvals in (("approved", now.valid), ("expired", now.over)):
            if digest in approvals:
                row[name] = _approval(approvals[digest], until(approvals[digest], within))
        rows.append(row)
    return dump({"format": "reconciler.approvals/1", "setup": plan.owner, "digest": plan.digest, "rows": rows})


def _needing(plan: Plan) -> Iterator[tuple[Any, Action, str]]:
    """(home, row, row digest) of what needs a person and may be approved."""
    for home in plan.homes:
        for action in home.actions:
            if (action.writes or action.records) and action.tier is Tier.CONFIRM and not home.failed:
                yield home, action, home.digests[action.address]


def _gone(plan: Plan, now: Standing) -> list[Approval]:
    """Approvals of which no row is planned any more, oldest first."""
    planned = {digest for home in plan.homes for digest in home.asked}
    found = {id(a): a for a in now.valid.values() if not a.rows.keys() & planned}
    return sorted(found.values(), key=lambda approval: approval.at)


def _approval(approval: Approval, ends: datetime) -> dict[str, Any]:
    return {
        "by": approval.by,
        "host": approval.host,
        "run": approval.run,
        "pipeline": approval.pipeline,
        "at": approval.at.isoformat(timespec="seconds"),
        "until": ends.isoformat(timespec="seconds"),
        "rows": dict(approval.rows),
    }


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M %Z}"
