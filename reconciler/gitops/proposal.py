"""Proposal: what homes have captured, as one commit on a branch of our own, for a person to review and to merge."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler_specs.errors import SpecError
from reconciler_specs.load import load
from reconciler_specs.resource import Mode

from ..action import Action, FieldChange, FieldRow, Row
from ..capture import Captured, Passed, write
from ..errors import UsageError
from ..plan import HomePlan, Plan
from ..workspace import Workspace
from .drift import as_json
from .source import Source

BRANCH = "reconciler/capture"
# Keeps git from throwing the commit away before somebody has merged it.
REF = "refs/worktree/reconciler/capture"
LISTED = 200  # addresses in a commit message


@dataclass(frozen=True, slots=True)
class Proposed:
    """What is on the branch now.

    `commit` is ours, "" for none. `of` says what it was made from: the revision and a digest of the values. `captured`
    and `passed` are filled by the round that pushed it; `held` says why a branch is left as it is.
    """

    commit: str = ""
    of: str = ""
    captured: tuple[Captured, ...] = ()
    passed: tuple[Passed, ...] = ()
    held: str = ""


def propose(source: Source, branch: str, space: Workspace, plan: Plan, revision: str, last: Proposed) -> Proposed:
    """Brings the branch up to what is drifted in mode `capture`, from `revision`, which is what the work tree is at.

    Pushes nothing but `branch`, and over nothing there but what we pushed ourselves. Raises GitError or EditRefused,
    and UsageError when the setup would not be one any more with these values.
    """
    if not all(_is_seen(home) for home in plan.homes):
        return last  # what cannot be seen now may be as it was
    values = [(str(a.address), c.field, as_json(c.observed)) for h in plan.homes for a, c in _captures(h.actions)]
    if not values:
        _withdraw(source, branch, last)
        return Proposed()
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]
    of = f"{revision} {digest}"
    if of == last.of:
        return last
    try:
        return _pushed(source, branch, space, plan, of, last)
    finally:
        source.check_out(revision)


def _is_seen(home: HomePlan) -> bool:
    """Whether all that a home holds could be looked at."""
    unknown = (a.row is Row.BLOCKED or any(c.row is FieldRow.BLOCKED for c in a.changes) for a in home.actions)
    return not (home.failed or home.hold or any(unknown))


def _captures(actions: Sequence[Action]) -> list[tuple[Action, FieldChange]]:
    return [(a, c) for a in actions for c in a.changes if _is_captured(a, c)]


def _is_captured(action: Action, change: FieldChange) -> bool:
    """A conflict is not: both sides moved, and a person has to say which one goes."""
    return action.row is Row.UPDATE and change.row is FieldRow.DRIFT and change.mode is Mode.CAPTURE


def _pushed(source: Source, branch: str, space: Workspace, plan: Plan, of: str, last: Proposed) -> Proposed:
    captured, passed = write(space, plan, _is_captured)
    if not captured:
        _withdraw(source, branch, last)
        return Proposed("", of, passed=tuple(passed))
    try:
        load(space.setup.root, stands=source.stands)
    except SpecError as error:
        _withdraw(source, branch, last)
        raise UsageError(f"with the homes' values the setup is none any more: {error.reasons[0].message}") from error
    there = source.remote_head(branch)
    if there not in ("", last.commit):
        why = f"somebody else has pushed to {branch}: merge it, or delete it"
        return Proposed(last.commit, "", held=why)
    if not there and last.of.partition(" ")[2] == of.partition(" ")[2]:
        why = f"{branch} was deleted, and the same values are not proposed twice"
        return Proposed(last.commit, "", held=why)
    commit = source.commit(_message(captured))
    source.push(branch, commit, there)
    source.keep(REF, commit)
    return Proposed(commit, of, tuple(captured), tuple(passed))


def _withdraw(source: Source, branch: str, last: Proposed) -> None:
    """Takes a branch away that is as we left it: it was merged, or no home holds any more what it proposes, and merging
    it would bring that back."""
    if last.commit and source.remote_head(branch) == last.commit:
        source.push(branch, "", last.commit)


def _message(captured: Sequence[Captured]) -> str:
    """Addresses and fields, and no value: what was captured is in the diff, where the setup's own rules have let it."""
    homes = sorted({item.address.partition("/")[0] for item in captured})
    count = f"{len(captured)} value{'s' if len(captured) > 1 else ''}"
    lines = [f"Capture {count} from {', '.join(homes[:5])}{' …' if len(homes) > 5 else ''}", ""]
    lines += [f"- {item.address}#{item.field}" for item in captured[:LISTED]]
    if len(captured) > LISTED:
        lines.append(f"- and {len(captured) - LISTED} more")
    lines += ["", f"These were changed in the homes. Captured by reconciler gitops run on {os.uname().nodename}."]
    return "\n".join(lines)
