"""Migrate: a setup's state copied from one place to another, and read back; what it was copied from stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from reconciler_specs.setup import Setup
from reconciler_state.codec import encode
from reconciler_state.local import LocalStore
from reconciler_state.lock import lock_home
from reconciler_state.record import HomeState
from reconciler_state.store import Physical

from .workspace import host_place


@dataclass(frozen=True, slots=True)
class Copied:
    """What becomes of one home's state: `what` in words; `refused` iff it cannot be copied, `done` iff it was."""

    state: HomeState
    what: str
    refused: bool = False
    done: bool = False


def migrate(setup: Setup, source: LocalStore, target: LocalStore, *, do: bool) -> Iterator[Copied]:
    """Copies every home in which the setup owns something. Without `do` it only says what it would do.

    A home's state goes as a whole, with what other setups own there, since it is of the home. Raises StateError if one
    of the two places cannot be read or written.
    """
    for physical in source.list():
        found = source.read(physical)
        if found is None or not {setup.name, *setup.formerly} & {*found.owners, *found.labels}:
            continue
        with _locked(source, physical) if do else nullcontext():
            state = source.read(physical) or found
            yield _one(state, _there(setup, state, target), physical, source, target, do=do)


def _locked(store: LocalStore, physical: Physical) -> AbstractContextManager[object]:
    meeting = store.root / "locks" / physical.key
    store.files.mkdir(meeting)
    return lock_home(meeting, physical, store.root, command="reconciler state migrate")


def _there(setup: Setup, state: HomeState, target: LocalStore) -> HomeState:
    """The state as the target names its place: a home that the setup says is on a machine of its own is `local` in that
    machine's folder, and has the machine's name where several share state."""
    home = setup.homes.get(state.labels.get(setup.name, ""))
    named = host_place(home.host) if home is not None and home.host else "local"
    if state.place not in ("local", named):
        return state
    return replace(state, place=named if target.shared else "local")


def _one(
    state: HomeState, as_there: HomeState, physical: Physical, source: LocalStore, target: LocalStore, *, do: bool
) -> Copied:
    where = Physical.of(as_there)
    there = next((target.read(p) for p in target.list() if p == where), None)
    if there is not None and there.lineage != state.lineage:
        why = f"another state is there already (lineage {there.lineage}, here {state.lineage})"
        return Copied(state, why, refused=True)
    if there is not None and there.serial >= state.serial:
        return Copied(state, f"is there already, at serial {there.serial}")
    things = sum(len(owned) for owned in state.owners.values())
    what = f"{things} thing(s), serial {state.serial}"
    if not do:
        return Copied(state, f"would be copied: {what}")
    files = {name.replace(physical.key, where.key): data for name, data in source.copy(physical).items()}
    files[f"homes/{where.key}.json"] = encode(as_there)
    kept = source.key_for(physical)
    if kept is not None:
        target.keep_key(where, kept)
    target.put(where, files)
    return Copied(state, f"copied and read back: {what}", done=True)
