"""Publish: the homes of a setup read once, whole, for plans that may not look at them themselves."""

from __future__ import annotations

import os
from datetime import datetime

from reconciler_specs.address import Address, Kind
from reconciler_specs.errors import ReconcilerError

from .contact import as_named
from .errors import ProviderError
from .observe import Wanted
from .observed import Published, Seen, seen
from .provenance import Provenance
from .workspace import Workspace


def publish(space: Workspace, now: datetime, known: Provenance) -> Published:
    """Every home that can be reached from here. One that cannot be read is in it with the reason; one of another
    machine is left out."""
    homes: dict[str, Seen] = {}
    for home_id, home in space.setup.homes.items():
        if home.host and home.host != os.uname().nodename:
            continue
        try:
            homes[home_id] = _seen(space, home_id)
        except ReconcilerError as error:
            homes[home_id] = Seen(home.harness, home.path, "", "", failed=str(error))
    return Published(space.setup.name, now, "" if known.dirty else known.commit, homes)


def _seen(space: Workspace, home_id: str) -> Seen:
    home, ref = space.setup.homes[home_id], space.ref(home_id)
    state = space.store.read(space.physical(home_id))
    owned = as_named(state, space.setup).owned(space.setup.name) if state is not None else {}
    asked = {*space.desired(home_id), *(Address.parse(f"{home_id}/{path}") for path in owned)}
    observation = space.observe(ref, Wanted(frozenset(asked)))
    if observation.exists and not observation.things and not observation.blocked:
        raise ProviderError(f"{home_id}: nothing could be seen of it")
    asked = {address for address in asked if address.kind is not Kind.SECRET}
    return seen(home, ref.place.name, ref.path, observation, state, asked)
