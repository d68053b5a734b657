"""Retire: what leaves the setup under `on_removed: pause` is paused, and may be deleted once a time is over. Pure.

A kind that the harness can pause (a field `paused`, or `enabled`, that the home shows) is paused; another is left as it
is. Either way it stays owned, state keeps since when, and its return to the setup gives back what pausing took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler_specs.address import Kind
from reconciler_specs.home import BY_KIND
from reconciler_specs.shape import Json
from reconciler_state.record import Base, Owned, Retired

from .action import Action, FieldChange, FieldRow, Hold, Row
from .observe import ABSENT, Observed, Seen, Unknown
from .provider import Canon
from .values import same

# The field that stops a thing without taking it away, and its value then.
_PAUSES: Mapping[str, Json] = {"paused": True, "enabled": False}


@dataclass(frozen=True, slots=True)
class Grace:
    """`on_removed: pause`: the moment that the plan is for (with its zone), and how many seconds things are kept."""

    now: datetime
    seconds: int


def retiring(action: Action, owned: Owned, observed: Observed, grace: Grace | None) -> Action:
    """The row of a thing that left the setup and would be deleted: to pause it, to wait, or that very row."""
    if grace is None or action.row is not Row.DELETE or action.hold is not None:
        return action
    if owned.retired is None:
        return _pause(action, observed, grace)
    left = datetime.fromisoformat(owned.retired.at)
    until = left + timedelta(seconds=grace.seconds)
    since = f"left the setup at {_minute(left)}"
    if grace.now < until:
        command = f"reconciler release {action.address}"
        return replace(action, hold=Hold(f"{since}; may be deleted from {_minute(until)}", command))
    return replace(action, reason=action.reason.replace("left the setup", since, 1))


def along(actions: Sequence[Action]) -> list[Action]:
    """What stands inside of a profile that leaves with it (its model, its settings) is let go of, and not cleared
    before: the profile may wait for its review for long, and is then deleted as it was."""
    going = {
        a.address.profile for a in actions if a.address.kind is Kind.PROFILE and (a.row is Row.DELETE or a.retires)
    }
    return [_let_go(a) if a.address.profile in going else a for a in actions] if going else list(actions)


def _let_go(action: Action) -> Action:
    if action.row is not Row.UPDATE or not any(c.row is FieldRow.UNSET for c in action.changes):
        return action
    released = (replace(c, row=FieldRow.RELEASE, write=None) if c.row is FieldRow.UNSET else c for c in action.changes)
    return replace(action, changes=tuple(released))


def _pause(action: Action, observed: Observed, grace: Grace) -> Action:
    address = action.address
    until = grace.now + timedelta(seconds=grace.seconds)
    changes: tuple[FieldChange, ...] = ()
    name = pausing(address.kind, observed)
    word = "kept"
    if name:
        off, now = _PAUSES[name], observed.get(name)
        word = "paused"
        if not same(now, off):
            shape = BY_KIND[address.kind][name].shape
            changes = (FieldChange(name, FieldRow.SET, off, now, None, shape, write=off),)
    return Action(
        Row.UPDATE,
        address,
        action.id,
        changes,
        reason=f"{action.reason}: {word}, and may be deleted from {_minute(until)}",
        fingerprint=action.fingerprint,
        origin=action.origin,
        kept=True,
        retires=grace.now.isoformat(timespec="seconds"),
    )


def pausing(kind: Kind, observed: Observed) -> str:
    """The field by which the harness can pause this thing, "" if it shows none."""
    for name in _PAUSES:
        if name in BY_KIND[kind] and not (observed.get(name) is ABSENT or isinstance(observed.get(name), Unknown)):
            return name
    return ""


def returning(owned: Owned | None, name: str, declared: Seen) -> tuple[Seen, Base | None]:
    """What a field of a thing is to be that is in the setup, and its base: for one that came back, what pausing took
    is wanted again though the setup says nothing of it."""
    base = owned.fields.get(name) if owned else None
    if owned is None or owned.retired is None or name not in owned.retired.was or declared is not ABSENT:
        return declared, base
    return owned.retired.was[name], base


def recorded(owned: Owned, action: Action, wrong: Sequence[str], canon: Canon | None) -> Owned:
    """What state keeps after a row: since when the thing is retired, or, once it is back (`canon`), that it is not.
    `wrong` are the fields that do not hold."""
    if action.retires:
        was = {c.field: c.observed for c in action.changes if c.writes and c.observed is not ABSENT}
        return owned if wrong else replace(owned, retired=Retired(action.retires, was))
    if owned.retired is None or wrong or canon is None:
        return owned
    given_back = owned.retired.was.keys() - (canon.fields.keys() if canon is not None else set())
    fields = {name: base for name, base in owned.fields.items() if name not in given_back}
    return replace(owned, retired=None, fields=fields)


def _minute(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="minutes")
