"""Guards: what holds a home or a row until the command line lifts it by name (L14, L15, “Guards”). Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind, selects
from reconciler_state.record import Owned

from .action import Action, Fact, Hold, Row
from .observe import Observation, Store, Unknown
from .plan import Options
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
        elif len(alive) >= 2 and not any(t.id in seen or (kind, t.id) in observation.strays for t in alive):
            lost.append(Lost(profile, kind, f"all {len(alive)} of our {where} are gone at once"))
    return lost


def limited(
    actions: Sequence[Action], owned: Mapping[str, Owned], home: str, limits: Mapping[str, int], options: Options
) -> list[Action]:
    """Holds deletes and changes that are more than `policy.limits` lets a run do, and deletes that would leave none of
    a kind of which there were several.

    All deletes of the home count; of the changes, those that the targets take in: a run with fewer does fewer.
    """
    deletes = Counter(a.address.kind for a in actions if a.row is Row.DELETE and a.hold is None)
    changes = Counter(a.address.kind for a in actions if _changes(a) and _taken_in(a, options.targets))
    kinds = Counter(Address.parse(f"{home}/{path}").kind for path in owned)
    many = {"deletes": max(FEW, int(len(owned) * SHARE)), **limits}

    def guarded(action: Action) -> Action:
        kind = action.address.kind
        if action.row is Row.DELETE and action.hold is None:
            why = _too_many("deletes", deletes, kind, many)
            if why and "many-deletes" not in options.allow:
                return _held(action, "many-deletes", why)
            if deletes[kind] > 1 and deletes[kind] == kinds[kind] and "last-of-kind" not in options.allow:
                return _held(action, "last-of-kind", f"would delete all {kind} that this setup owns here")
        elif _changes(action) and (why := _too_many("changes", changes, kind, many)):
            # No flag lifts it: fewer at once do, or a limit that was reviewed with the setup.
            return replace(action, hold=Hold(f"{why}; apply some by address", f"reconciler apply {action.address}"))
        return action

    return [guarded(a) for a in actions]


def _changes(action: Action) -> bool:
    return action.writes and action.row is not Row.DELETE


def _taken_in(action: Action, targets: Sequence[str]) -> bool:
    return not targets or any(selects(target, action.address) for target in targets)


def _too_many(what: str, counts: Counter[Kind], kind: Kind, limits: Mapping[str, int]) -> str:
    """Why a run would do too much, "" if it would not. `limits` are as in Policy."""
    for name, number in ((what, counts.total()), (f"{what} {kind}", counts[kind])):
        if name in limits and number > limits[name]:
            of = f" of {kind}" if name != what else ""
            return f"{number} {what}{of} in one run (more than {limits[name]})"
    return ""


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
