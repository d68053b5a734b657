"""Users: a delete comes after what stops using the thing, and is held while something goes on using it (E32). Pure.

What a thing uses is told by its needs, as they were applied last; and for a thing with a harness id by that id in the
home, where what is nobody's may name it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler_specs.address import Kind
from reconciler_state.record import Owned

from .action import Action, Hold, Row
from .match import Identity, identity
from .observe import Observation, Observed
from .provider import KindTraits, traits_of

_REFERENCES = ("context_from",)
"""The fields in which a thing names others of its profile by their harness ids."""


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
    mine = {identity(a.address, owned[p].id, traits): p for p, a in by_path.items() if p in owned}
    rows = [_after(a, by_path, users, observation, mine, traits) if _deletes(a) else a for a in actions]
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
    observation: Observation,
    mine: Mapping[Identity, str],
    traits: Mapping[Kind, KindTraits],
) -> Action:
    needing = [by_path[path] for path in users.get(action.address.path, ()) if path in by_path]
    first = [a.address for a in needing if a.row is Row.DELETE or a.writes or a.held_fields or a.hold is not None]
    for thing in () if traits_of(traits, action.address.kind).by_place else _naming(action, observation):
        user = by_path.get(mine.get((thing.profile, thing.kind, thing.id), ""))
        if user is None or not (user.row is Row.DELETE or _lets_go(user, thing, action.id)):
            stranger = f"{thing.kind}/{thing.name or thing.id}, which is not ours,"
            who = str(user.address) if user is not None else stranger
            return replace(action, hold=Hold(f"{who} still names it", f"reconciler release {action.address}"))
        first.append(user.address)
    return replace(action, after=tuple(dict.fromkeys(first)))


def _naming(action: Action, observation: Observation) -> Iterator[Observed]:
    """The things of the profile that name what is deleted by its harness id."""
    for thing in observation.all():
        other = thing.profile == action.address.profile and thing.id != action.id
        if other and any(_names(thing.get(name), action.id) for name in _REFERENCES):
            yield thing


def _lets_go(user: Action, thing: Observed, harness_id: str) -> bool:
    """Whether a row writes each of the fields that name the id, so that they name it no more."""
    written = {c.field: c.write for c in user.changes if c.writes} if user.writes else {}
    naming = [name for name in _REFERENCES if _names(thing.get(name), harness_id)]
    return all(name in written and not _names(written[name], harness_id) for name in naming)


def _names(value: object, harness_id: str) -> bool:
    return isinstance(value, list) and harness_id in value


def _held_with(actions: Sequence[Action]) -> list[Action]:
    """Holds each delete that comes after what is held, in whole or in part."""
    rows = list(actions)
    changed = True
    while changed:
        held = {a.address for a in rows if a.hold is not None or a.held_fields}
        changed = False
        for index, action in enumerate(rows):
            stuck = next((a for a in action.after if a in held), None) if _deletes(action) else None
            if stuck is not None:
                hold = Hold(f"waits for {stuck}, which is held", f"reconciler release {action.address}")
                rows[index] = replace(action, hold=hold)
                changed = True
    return rows
