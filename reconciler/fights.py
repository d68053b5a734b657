"""Fights: a field that we restore and somebody changes back, over and over; reported, and stopped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler_specs.address import Address
from reconciler_specs.resource import Mode

from .action import Action, FieldChange, FieldRow
from .plan import HomePlan

OFTEN: Final = 3
"""Restores of one field by as many runs, one after the other, that make a fight."""

Named = Callable[[Address, str], bool]
"""Whether the command line names a field (address, field) with --restore."""


def restoring(plan: HomePlan) -> bool:
    """Whether some field is to be restored because of its mode: then it is worth looking into the journal."""
    return any(_by_mode(change) for action in plan.open for change in action.changes)


def _by_mode(change: FieldChange) -> bool:
    return change.row is FieldRow.RESTORE and change.mode is Mode.RESTORE


def stopped(actions: Sequence[Action], counts: Mapping[tuple[str, str], int], named: Named) -> list[Action]:
    """`actions` with each field held that was restored OFTEN times by the last runs. `counts` are those restores by
    (path, field); `named` says what the command line itself asks to restore: a person may go on."""
    return [_row(action, counts, named) for action in actions]


def _row(action: Action, counts: Mapping[tuple[str, str], int], named: Named) -> Action:
    changes = tuple(_field(action, change, counts, named) for change in action.changes)
    return action if changes == action.changes else replace(action, changes=changes)


def _field(action: Action, change: FieldChange, counts: Mapping[tuple[str, str], int], named: Named) -> FieldChange:
    count = counts.get((action.address.path, change.field), 0)
    if not _by_mode(change) or count < OFTEN or named(action.address, change.field):
        return change
    why = f"a fight: restored {count} times, and changed back each time; find who writes it, or watch it"
    return replace(change, row=FieldRow.DRIFT, mode=Mode.HOLD, note=why)
