"""Users: a delete comes after what stops using the thing, and is held while something goes on using it (E32). Pure.

What a thing uses is told by its needs, as they were applied last; and for a thing with a harness id by that id in the
home, where what is nobody's may name it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler_specs.address import Address, Kind
from reconciler_state.record import Owned

from .action import Action, Hold, Row
from .match import Identity, identity
from .observe import Observation, Observed, Unknown
from .provider import KindTraits, traits_of

_REFERENCES = ("context_from",)
"""The fields in which a thing names others of its profile by their harness ids."""
_ANY = ("", "")  # no harness id is empty


def after_users(
    actions: Sequence[Action], owned: Mapping[str, Owned], observation: Observation, traits: Mapping[Kind, KindTraits]
) -> list[Action]:
    """The rows, with what each delete comes after. It is held where a user is held, or is not going to let go.

    `owned` is this setup's set, by path.
    """
    if not any(_deletes(action) for action in actions):
        return list(actions)
    by_path = {action.address.path: action for action in actions}
    users = _by_needs(owned)
    naming = _by_names(observation)
    mine = {identity(a.address, owned[p].id, traits): p for p, a in by_path.items() if p in owned}
    rows = [_after(a, by_path, users, naming, mine, traits) if _deletes(a) else a for a in actions]
    return _held_with(rows)


def _deletes(action: Action) -> bool:
    # A profile has a rule of its own: all that is in it goes with it.
    return action.row is Row.DELETE and action.hold is None and action.address.kind is not Kind.PROFILE


def _by_needs(owned: Mapping[str, Owned]) -> dict[str, list[str]]:
    """By path, the paths of what has needed it when it was applied last."""
    users: dict[str, list[str]] = {}
    for path, thing in owned.items():
        for need in thing.needs:
            users.setdefault(need, []).append(path)
    return users


def _after(
    action: Action,
    by_path: Mapping[str, Action],
    users: Mapping[str, Sequence[str]],
    naming: Mapping[tuple[str, str], Sequence[Observed]],
    mine: Mapping[Identity, str],
    traits: Mapping[Kind, KindTraits],
) -> Action:
    needing = [by_path[path] for path in users.get(action.address.path, ()) if path in by_path]
    first = [a.address for a in needing if a.row is Row.DELETE or a.writes or a.held_fields or a.hold is not None]
    by_place = traits_of(traits, action.address.kind).by_place
    named = [] if by_place else [*naming.get((action.address.profile, action.id), ()), *naming.get(_ANY, ())]
    for thing in named:
        if thing.id == action.id or thing.profile != action.address.profile:
            continue
        user = by_path.get(mine.get((thing.profile, thing.kind, thing.id), ""))
        if user is None or not (user.row is Row.DELETE or _lets_go(user, thing, action.id)):
            stranger = f"{thing.kind}/{thing.name or thing.id}, which is not ours,"
            who = str(user.address) if user is not None else stranger
            return replace(action, hold=Hold(f"{who} still names it", f"reconciler release {action.address}"))
        first.append(user.address)
    return replace(action, after=tuple(dict.fromkeys(first)))


def _by_names(observation: Observation) -> dict[tuple[str, str], list[Observed]]:
    """By profile and harness id, the things that name it; under _ANY those whose references cannot be read."""
    found: dict[tuple[str, str], list[Observed]] = {}
    for thing in observation.all():
        for value in (thing.get(name) for name in _REFERENCES):
            if isinstance(value, Unknown):
                found.setdefault(_ANY, []).append(thing)
            elif isinstance(value, list):
                for harness_id in dict.fromkeys(v for v in value if isinstance(v, str)):
                    found.setdefault((thing.profile, harness_id), []).append(thing)
    return found


def _lets_go(user: Action, thing: Observed, harness_id: str) -> bool:
    """Whether a row writes each of the fields that name the id, so that they name it no more."""
    written = {c.field: c.write for c in user.changes if c.writes} if user.writes else {}
    naming = [name for name in _REFERENCES if _names(thing.get(name), harness_id)]
    return all(name in written and not _names(written[name], harness_id) for name in naming)


def _names(value: object, harness_id: str) -> bool:
    """Whether a value names the id, or may: what cannot be read is no absence."""
    return isinstance(value, Unknown) or (isinstance(value, list) and harness_id in value)


def _held_with(actions: Sequence[Action]) -> list[Action]:
    """Holds each delete that comes after what is held, in whole or in part."""
    rows = {action.address: action for action in actions if _deletes(action)}
    waiting: dict[Address, list[Address]] = {}
    for action in rows.values():
        for first in action.after:
            waiting.setdefault(first, []).append(action.address)
    queue = [a.address for a in actions if a.hold is not None or a.held_fields]
    while queue:
        stuck = queue.pop()
        for address in waiting.get(stuck, ()):
            if rows[address].hold is None:
                hold = Hold(f"waits for {stuck}, which is held", f"reconciler release {address}")
                rows[address] = replace(rows[address], hold=hold)
                queue.append(address)
    return [rows.get(action.address, action) if _deletes(action) else action for action in actions]
