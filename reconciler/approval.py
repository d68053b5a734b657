"""Approval: what given approvals permit now, and what a plan file says of itself. Pure, but for reading that file.

An approval is of row digests: it holds for the homes, objects and values that were seen, whatever else is planned now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from reconciler_state.approvals import Approval, Approved

from . import planfile


@dataclass(frozen=True, slots=True)
class ReviewedPlan:
    """A plan file as a review: its plan digest, the run that made it ("" if it does not say), and its rows' digests
    with their addresses."""

    digest: str
    run: str
    rows: Mapping[str, str]
    approved: planfile.Approved = field(default_factory=planfile.Approved)


def reviewed_plan(path: Path, owner: str, now: datetime, within: int) -> ReviewedPlan:
    """Raises UsageError for what is no plan file of the setup `owner`, or is older than `within` seconds."""
    approved = planfile.read(path, owner, now, within)
    return ReviewedPlan(approved.digest, approved.run, approved.rows, approved)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the approvals of a setup come to at one moment.

    `valid` is row digest → the approval that counts (one of another run before one of ours, then the latest);
    `elsewhere` are the digests with one of another run; `over` is row digest → one that has expired, where none is
    valid.
    """

    valid: Mapping[str, Approval] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    over: Mapping[str, Approval] = field(default_factory=dict)

    @property
    def rows(self) -> Mapping[str, str]:
        """The valid row digests, each with the address that was approved."""
        return {digest: approval.rows[digest] for digest, approval in self.valid.items()}

    @property
    def blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The valid row digests, each with the homes' blocks that it was approved for."""
        return {digest: approval.blocks for digest, approval in self.valid.items()}

    def without(self, digests: frozenset[str]) -> Standing:
        valid = {digest: approval for digest, approval in self.valid.items() if digest not in digests}
        return replace(self, valid=valid, elsewhere=self.elsewhere - digests)


def holds(approval: Approval, now: datetime, within: int) -> bool:
    """Whether an approval counts at `now`: not for longer than `within` seconds, and none from the future counts."""
    age = (now - approval.at).total_seconds()
    return -planfile.SKEW <= age <= within


def until(approval: Approval, within: int) -> datetime:
    return approval.at + timedelta(seconds=within)


def is_other(run: str, ours: str) -> bool:
    """Whether one run is surely another than ours: of a run that is not known nothing is sure."""
    return bool(run) and bool(ours) and run != ours


def standing(approved: Iterable[Approved], now: datetime, within: int, ours: str) -> Standing:
    """`ours` is the run that asks."""
    valid: dict[str, Approval] = {}
    over: dict[str, Approval] = {}
    each = [a for plan in approved for a in plan.approvals]
    for approval in sorted(each, key=lambda a: (is_other(a.run, ours), a.at)):
        kept = valid if holds(approval, now, within) else over
        kept.update(dict.fromkeys(approval.rows, approval))
    return Standing(
        valid,
        frozenset(digest for digest, approval in valid.items() if is_other(approval.run, ours)),
        {digest: approval for digest, approval in over.items() if digest not in valid and approval.at <= now},
    )


def said(approval: Approval) -> str:
    """Who gave it and when, for a person."""
    where = approval.pipeline or approval.host
    return f"approved by {approval.by or 'somebody'} ({where}) at {approval.at:%Y-%m-%d %H:%M %Z}"
