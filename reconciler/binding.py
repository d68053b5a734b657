"""Binding: what a row and a home of a plan stand on, as digests, so that a later plan can tell what has changed (L8).

A row's own digest decides whether it may be carried out. These say in which part it is another one by now. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler_specs.address import Address
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from .action import Action
from .observe import Absent, Observed, Unknown
from .plan import HomePlan, content, sha, side_json, unkeyed
from .provider import HomeRef
from .secret import ASKED, UNCHECKED


@dataclass(frozen=True, slots=True)
class Bound:
    """Digests of a row's three sides: what the `setup` declares ("" for nothing), what the `home` showed, and what our
    `state` had recorded."""

    setup: str = ""
    home: str = ""
    state: str = ""


def bound(home: HomePlan, action: Action, harness_id: str = "") -> Bound:
    """What a row of `home` stands on; `harness_id` for a row that says none by itself any more."""
    owned = home.state.owned(home.owner).get(action.address.path)
    bases: Json = {n: [unkeyed(b.declared), unkeyed(b.observed)] for n, b in owned.fields.items()} if owned else {}
    recorded: Json = [owned.id, owned.origin, owned.protect, bases] if owned else []
    thing = home.observed(action.address, action.id or harness_id or (owned.id if owned else ""))
    return Bound(declared(home, action.address), _seen(home, thing), sha(recorded))


def _seen(home: HomePlan, thing: Observed | Absent | Unknown) -> str:
    if not isinstance(thing, Observed):
        return sha(side_json(thing))
    if home.ref.keyed and thing.fingerprint:
        return thing.fingerprint
    return content(thing)


def declared(home: HomePlan, address: Address) -> str:
    """What the setup declares at an address; "" for nothing."""
    resource = home.resources.get(address)
    return sha(_resource(resource)) if resource is not None else ""


def resolved(home: HomePlan) -> str:
    """All that the setup declares for a home, with its names, templates and files resolved."""
    return sha([block(home.ref), [[a.path, _resource(home.resources[a])] for a in sorted(home.resources, key=str)]])


def block(ref: HomeRef) -> str:
    """Where a home is and through what it would be written: its place, path, door, zone and pinned version."""
    door: Json = {name: value for name, value in ref.options.items() if not name.startswith("$")}
    return sha([ref.place.name, ref.harness, ref.path, door, ref.timezone, ref.version_range])


def _resource(resource: Resource) -> Json:
    modes: Json = {name: str(mode) for name, mode in resource.modes.items()}
    # Whether a secret's source was asked is the plan's, and no part of what is declared.
    options: Json = {name: value for name, value in resource.options.items() if name not in (ASKED, UNCHECKED)}
    return [
        unkeyed(dict(resource.fields)),
        modes,
        sorted(resource.unset),
        resource.protect,
        unkeyed(options),
        sorted(need.path for need in resource.needs),
    ]
