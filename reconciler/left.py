"""Homes that a setup owns things in and no longer names, as state tells (laws, presence). No home is looked at."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from reconciler_specs.errors import ReconcilerError
from reconciler_state.record import HomeState
from reconciler_state.store import Physical

from .action import Hold
from .contact import as_named
from .place import LocalPlace, Place
from .place_exec import ExecPlace
from .plan import HomePlan
from .provider import HomeRef

if TYPE_CHECKING:
    from .workspace import Workspace


def touched(home_id: str, targets: Sequence[str]) -> bool:
    """Whether targets take in something of a home, or all if there are none."""
    return not targets or any(fnmatchcase(home_id, t.partition("/")[0]) for t in targets)


def left(space: Workspace) -> list[tuple[str, HomeState]]:
    """(label, state) of each. Raises StateError."""
    named = set()
    for home_id, home in space.setup.homes.items():
        try:
            named.add(space.physical(home_id))
        except ReconcilerError:
            named.add(Physical("local", home.harness, home.path))
    found = []
    for where in space.store.list(skip=named):
        found_state = space.store.read(where)
        if found_state is None:
            continue
        state = as_named(found_state, space.setup)
        label = state.labels.get(space.setup.name)
        if label is None or label in space.setup.homes:
            continue
        if state.owned(space.setup.name):
            found.append((label, state))
    return found


def held(owner: str, state: HomeState, label: str) -> HomePlan:
    """The plan of such a home: held as a whole, nothing in it is deleted."""
    # Where it is, nobody says any more but its state; its key has been kept since that was written.
    ref = HomeRef(label, state.harness, _place(state.place), state.path, keyed=True)
    count = len(state.owned(owner))
    why = f"its block left the setup, and {count} thing(s) in it are ours; nothing is deleted"
    hold = Hold(why, f"reconciler release {label}")
    return HomePlan(ref, owner, state=state, lineage=state.lineage, serial=state.serial, hold=hold)


def _place(name: str) -> Place:
    """The place of that name, as `Place.name` says it. Nothing is started."""
    prefix = name.removeprefix("exec:")
    return LocalPlace(name) if prefix == name else ExecPlace(shlex.split(prefix))


def state_of(space: Workspace, home_id: str) -> HomePlan | None:
    """A home's state as a plan without rows, for what changes state only; None if it has none."""
    for label, state in left(space):
        if label == home_id:
            return held(space.setup.name, state, label)
    if home_id not in space.setup.homes:
        return None
    ref = space.ref(home_id)
    found = space.store.read(space.physical(home_id))
    if found is None:
        return None
    found = as_named(found, space.setup)
    return HomePlan(
        ref, space.setup.name, state=found, lineage=found.lineage, serial=found.serial, version=found.version
    )
