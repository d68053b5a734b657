"""Guards: what holds a home or a row until the command line lifts it by name (L14, L15, “Guards”). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind
from reconciler_state.record import Owned

from .action import Action, Fact, Hold, Row
from .observe import Observation, Store, Unknown
from .provider import KindTraits, traits_of

GUARDS = (
    "rebuild",
    "replaced-home",
    "unknown-version",
    "many-deletes",
    "last-of-kind",
    "restart",
    "comment-loss",
    "rewind",
)
# Below this many deletes in a home no share of it counts as many.
FEW = 5
SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Lost:
    """A store that looks lost or replaced, and why (L14)."""

    profile: str
    kind: Kind
    why: str


def lost_stores(
    home: str,
    owned: Mapping[str, Owned],
    observation: Observation,
    traits: Mapping[Kind, KindTraits],
) -> list[Lost]:
    """L14: the stores with things of ours that are missing, empty or not in proper form, or that lost all of several.

    One thing gone from a proper store is no loss. Where things are matched by place, only the store's form tells.
    """
    stores: dict[tuple[str, Kind], list[Owned]] = defaultdict(list)
    for path, thing in owned.items():
        address = Address.parse(f"{home}/{path}")
        stores[address.profile, address.kind].append(thing)
    lost = []
    for (profile, kind), things in stores.items():
        ended = observation.ended.get((profile, kind), {})
        alive = [t for t in things if t.id not in ended]
        if not alive:
            continue
        where = f"{kind} of profile {profile}"
        state = observation.stores.get((profile, kind), Store.PROPER)
        seen = observation.things.get((profile, kind), {})
        if state is not Store.PROPER:
            why = f"the store with the {where} is {state.value}, and {len(alive)} of ours were in it"
            lost.append(Lost(profile, kind, why))
        elif traits_of(traits, kind).by_place or isinstance(seen, Unknown):
            continue
        elif len(alive) >= 2 and not any(t.id in seen for t in alive):
            lost.append(Lost(profile, kind, f"all {len(alive)} of our {where} are gone at once"))
    return lost


def limit_deletes(
    actions: Sequence[Action], owned: Mapping[str, Owned], home: str, limit: int | None, allowed: Collection[str]
) -> list[Action]:
    """Holds deletes that are too many at once, or that would leave none of a kind of which there were several."""
    deletes = [a for a in actions if a.row is Row.DELETE and a.hold is None]
    many = limit if limit is not None else max(FEW, int(len(owned) * SHARE))
    kinds: dict[Kind, int] = defaultdict(int)
    for path in owned:
        kinds[Address.parse(f"{home}/{path}").kind] += 1
    gone: dict[Kind, int] = defaultdict(int)
    for action in deletes:
        gone[action.address.kind] += 1

    def guarded(action: Action) -> Action:
        if action.row is not Row.DELETE or action.hold is not None:
            return action
        kind = action.address.kind
        if len(deletes) > many and "many-deletes" not in allowed:
            why = f"{len(deletes)} deletes in one run (more than {many})"
            return _held(action, "many-deletes", why)
        if gone[kind] > 1 and gone[kind] == kinds[kind] and "last-of-kind" not in allowed:
            return _held(action, "last-of-kind", f"would delete every {kind} that this setup owns here")
        return action

    return [guarded(a) for a in actions]


def lifted(actions: Sequence[Action], allowed: Collection[str]) -> list[Action]:
    """Without the holds of a provider's review (a door that loses comments) whose guard the command line lifts."""
    return [replace(a, hold=None) if a.hold is not None and a.guard in allowed else a for a in actions]


def restarts(action: Action, may: str, allowed: Collection[str]) -> Action:
    """The home's `restart:`: `never` holds what restarts the harness, `when_needed` asks nobody, `ask` leaves it to
    the gate."""
    if Fact.RESTARTS not in action.facts or not action.writes:
        return action
    if may == "when_needed":
        return replace(action, facts=action.facts - {Fact.RESTARTS})
    if may == "never" and "restart" not in allowed:
        return _held(action, "restart", "restarts the harness (restart: never)")
    return action


def _held(action: Action, guard: str, why: str) -> Action:
    return replace(action, guard=guard, hold=Hold(why, f"reconciler apply --reviewed --allow {guard}"))
