"""Match: which declared, owned and observed things are one thing (L1). Pure; by harness id, never by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_state.record import HomeState, Owned

from .observe import ABSENT, Absent, Observation, Observed, Unknown
from .provider import KindTraits, traits_of
from .values import from_base

Identity = tuple[str, Kind, str]
"""Profile, kind, and harness id or place."""


@dataclass(frozen=True, slots=True)
class Triple:
    """The three sides of one address: declared D, owned B, observed O.

    `namesakes` are observed things of the same name that nobody owns; only where there is none of these, those that
    other setups own: they suggest, they never match. `foreign` is the setup that owns the first of those, or the
    place; "" if none does.
    """

    address: Address
    desired: Resource | None
    owned: Owned | None
    observed: Observed | Absent | Unknown
    namesakes: tuple[Observed, ...] = ()
    foreign: str = ""


def match(
    home: str,
    resources: Mapping[Address, Resource],
    owned: Mapping[str, Owned],
    others: Mapping[str, Mapping[str, Owned]],
    observation: Observation,
    traits: Mapping[Kind, KindTraits],
) -> list[Triple]:
    """One Triple per address that is declared or owned, in the setup's order and then by address.

    `owned` is this setup's set (address path → Owned), `others` the sets of the other setups on this home.
    """
    ours = {Address.parse(f"{home}/{path}"): thing for path, thing in owned.items()}
    theirs = sharing(others, traits)
    names = _Names(observation, {(a.profile, a.kind, t.id) for a, t in ours.items()})
    triples = []
    for address in [*resources, *sorted(a for a in ours if a not in resources)]:
        kind_traits = traits_of(traits, address.kind)
        resource, thing = resources.get(address), ours.get(address)
        found: tuple[Observed, ...] = ()
        if kind_traits.by_place:
            observed = _look(observation, address, place_id(address))
            owner = _first(theirs.get((address.profile, address.kind, place_id(address))))
        else:
            observed = _look(observation, address, thing.id) if thing else ABSENT
            store = observation.things.get(_store(address), Unknown("not looked at"))
            if thing is None and isinstance(store, Unknown):
                observed = store
            if resource is not None and observed is ABSENT:
                found = names.of(address, str(resource.fields.get("name", address.key)))
            owners = {t.id: _first(theirs.get((address.profile, address.kind, t.id))) for t in found}
            found = tuple(t for t in found if not owners[t.id]) or found
            owner = owners[found[0].id] if found else ""
        triples.append(Triple(address, resource, thing, observed, found, owner))
    return triples


def place_id(address: Address) -> str:
    """The harness id of a thing whose id is its place: a profile's name, else the address key."""
    return address.profile if address.kind is Kind.PROFILE else address.key


def remembered(observation: Observation, state: HomeState, traits: Mapping[Kind, KindTraits]) -> Observation:
    """The observation with what state says of kinds that the harness does not show (`write_only`)."""
    kinds = {kind for kind, of in traits.items() if of.write_only}
    things = dict(observation.things)
    for owner in state.owners.values() if kinds else ():
        for path, owned in owner.items():
            address = Address.parse(f"-/{path}")
            there = things.get(_store(address), {})
            if address.kind in kinds and not isinstance(there, Unknown):
                fields = {name: from_base(base.observed) for name, base in owned.fields.items()}
                key = place_id(address)
                thing = Observed(
                    address.kind, address.profile, key, {n: v for n, v in fields.items() if v is not ABSENT}, name=key
                )
                things[_store(address)] = {**there, key: thing}
    return replace(observation, things=things) if kinds else observation


def _store(address: Address) -> tuple[str, Kind]:
    return ("" if address.kind is Kind.PROFILE else address.profile, address.kind)


def _look(observation: Observation, address: Address, harness_id: str) -> Observed | Absent | Unknown:
    return observation.at(*_store(address), harness_id)


def sharing(
    others: Mapping[str, Mapping[str, Owned]], traits: Mapping[Kind, KindTraits]
) -> dict[Identity, dict[str, Owned]]:
    """What other setups own, by what it is and then by setup: two of them may call one thing by other keys, and other
    things by one key (L1)."""
    found: dict[Identity, dict[str, Owned]] = {}
    for owner, things in others.items():
        for path, thing in things.items():
            address = Address.parse(f"-/{path}")
            found.setdefault(identity(address, thing.id, traits), {})[owner] = thing
    return found


def identity(address: Address, harness_id: str, traits: Mapping[Kind, KindTraits]) -> Identity:
    """What a thing of ours is in its home: its place, or its harness id."""
    by_place = traits_of(traits, address.kind).by_place
    return address.profile, address.kind, place_id(address) if by_place else harness_id


def _first(owners: Mapping[str, Owned] | None) -> str:
    return next(iter(owners or ()), "")


class _Names:
    """Observed things by name, per store, made only for the stores that are asked for."""

    def __init__(self, observation: Observation, owned: set[tuple[str, Kind, str]]) -> None:
        self._observation = observation
        self._owned = owned
        self._index: dict[tuple[str, Kind], dict[str, list[Observed]]] = {}

    def of(self, address: Address, name: str) -> tuple[Observed, ...]:
        store = _store(address)
        if store not in self._index:
            index: dict[str, list[Observed]] = defaultdict(list)
            things = self._observation.things.get(store, {})
            if not isinstance(things, Unknown):
                for thing in things.values():
                    if (address.profile, address.kind, thing.id) not in self._owned:
                        index[thing.name.casefold()].append(thing)
            self._index[store] = index
        return tuple(self._index[store].get(name.casefold(), ()))
