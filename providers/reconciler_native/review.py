"""What carrying out a row would do to the world, for the gate: facts, never words in a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.action import Action, Fact, FieldRow, Row
from reconciler.observe import Observation
from reconciler_shape import reachreview, worker
from reconciler_shape import review as review_of
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import ops_files
from .pasted import is_pasted

_RULES = review_of.Rules(ops_files.CODE, is_pasted, security=("worker",))


def review(actions: Sequence[Action], observation: Observation) -> list[Action]:
    """The rows, with what the home cannot do taken out of them."""
    rows = [_let_go(review_of.noted(action, observation, _RULES.security)) for action in actions]
    rows = [reachreview.review(row, observation) for row in rows]
    return [reachreview.waiting(row, observation) if _works_otherwise(row) else row for row in rows]


def _works_otherwise(action: Action) -> bool:
    """Whether a row changes the worker that a running daemon has started with."""
    return action.address.kind is Kind.PROFILE and any(c.field == worker.FIELD and c.writes for c in action.changes)


def _let_go(action: Action) -> Action:
    """A job keeps its id for life: one that the setup no longer says is let go of, and never cleared."""
    if action.address.kind is not Kind.JOB or action.row is not Row.UPDATE:
        return action
    changes = [
        replace(change, row=FieldRow.RELEASE, write=None)
        if change.field == "id" and change.row is FieldRow.UNSET
        else change
        for change in action.changes
    ]
    return replace(action, changes=tuple(changes))


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What `action` would do."""
    return review_of.facts(action, desired, observation, _RULES)
