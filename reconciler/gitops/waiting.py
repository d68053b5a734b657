"""Waiting: what was held when its revision was carried out, and is carried out once nothing holds it any more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler_specs.address import Kind

from ..action import Action, FieldRow
from ..plan import HomePlan, Plan
from .drift import puts_back

_UNTRIED = frozenset({FieldRow.CONFLICT, FieldRow.BLOCKED})


def held(plan: Plan) -> tuple[str, ...]:
    """The homes, and of the others the addresses, that are held, in whole or in a field that the setup has changed."""
    return tuple(sorted({what for home in plan.homes for what in _held(home)}))


def _held(home: HomePlan) -> Iterator[str]:
    if home.hold is not None:
        yield home.id
    for action in home.actions if home.hold is None else ():
        # The home's own rows (a restart) go with others; its name alone would stand for all that is in it.
        if action.address.kind is Kind.HOME:
            continue
        if action.hold is not None or any(c.row in _UNTRIED for c in action.changes):
            yield str(action.address)


def still(plan: Plan, waiting: Collection[str]) -> tuple[str, ...]:
    """Of what is held now, that which has been `waiting`."""
    return tuple(what for what in held(plan) if what in waiting or what.partition("/")[0] in waiting)


def freed(plan: Plan, waiting: Collection[str]) -> tuple[str, ...]:
    """The addresses of what has been `waiting` and may be carried out now. What somebody else took away is not put
    back: that is drift, and none of the revision's own."""
    return tuple(
        str(action.address)
        for home in plan.homes
        for action in home.open
        if (home.id in waiting or str(action.address) in waiting) and _may(action)
    )


def _may(action: Action) -> bool:
    return action.address.kind is not Kind.HOME and not puts_back(action)
