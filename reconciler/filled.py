"""Filled: a state that came from another runner, with what this one does not know of it filled in. Pure.

Digests of secrets stay with the runner that made them (L5). Where a base has a hidden value that is known elsewhere
only, the home's own at the same place stands for it: the field then looks unchecked, as if nobody had touched it, and
not like drift. A long text that came as its digest is the declared or the observed one, if it is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from reconciler_state.record import Base, HomeState, Owned
from reconciler_state.veil import LONG, digest_of, resolved, unknown_here

from .observe import Observation, Observed


def filled(state: HomeState, resources: Mapping[Address, Resource], observation: Observation, home: str) -> HomeState:
    """`state` as this runner can stand on it; the same object if it knows all of it."""
    owners = {}
    for owner, things in state.owners.items():
        made = {path: _filled(path, thing, resources, observation, home) for path, thing in things.items()}
        if any(made[path] is not thing for path, thing in things.items()):
            owners[owner] = made
    return replace(state, owners={**state.owners, **owners}) if owners else state


def _filled(
    path: str, thing: Owned, resources: Mapping[Address, Resource], observation: Observation, home: str
) -> Owned:
    if not unknown_here(thing):
        return thing
    address = Address.parse(f"{home}/{path}")
    store = "" if address.kind is Kind.PROFILE else address.profile
    seen = observation.at(store, address.kind, thing.id)
    now = seen.fields if isinstance(seen, Observed) else {}
    said = resources[address].fields if address in resources else {}
    fields = {}
    for name, base in thing.fields.items():
        texts = {digest_of(t): t for t in (*_long(now.get(name)), *_long(said.get(name)))}
        fields[name] = Base(
            resolved(base.declared, now.get(name), texts), resolved(base.observed, now.get(name), texts)
        )
    return replace(thing, fields=fields)


def _long(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LONG:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _long(item)
