"""Adopt: take what a home holds into state (and, for a path, into the setup's text). Writes no byte of a home (E47)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind, selects
from reconciler_state.record import HomeState, Owned

from . import contact as contacts
from .action import Action, Row
from .contact import Contact
from .errors import ProviderError, UsageError
from .event import Event, Outcome
from .observe import Observed
from .plan import Options
from .run import HomeRun
from .workspace import Workspace, physical


@dataclass(frozen=True, slots=True)
class Taken:
    """What an adopt has taken: addresses with the fields that the home does not satisfy (the plan claims them)."""

    home: str
    took: tuple[tuple[Address, tuple[str, ...]], ...]
    left: tuple[str, ...]  # declared, and not taken: why


def adopt_home(
    space: Workspace, home_id: str, targets: Sequence[str] = (), mapping: Mapping[Address, str] | None = None
) -> Taken:
    """Takes a declared home's things into state. Raises ProviderError if the home cannot be read, UsageError if a
    `--map` names what is not there, StateLocked if somebody else is at work on it."""
    ref = space.ref(home_id)
    with space.lock(ref) as guard:
        plan = space.plan_home(home_id, Options(in_sync=True))
        if plan.failed:
            raise ProviderError(plan.failed)
        if not plan.observation.exists:
            raise UsageError(f"{home_id}: there is no home at {ref.path}", hint=f"reconciler provision {home_id}")
        for address, harness_id in (mapping or {}).items():
            if not isinstance(plan.observation.at(address.profile, address.kind, harness_id), Observed):
                raise UsageError(f"--map {address}={harness_id}: nothing with this id is there")
        provider = space.provider(ref.harness)
        _check_mapping(plan.state, space.setup.name, mapping or {})
        rows = {action.address: action for action in plan.actions}
        blocked = {address for address, action in rows.items() if action.row is Row.BLOCKED}
        mapping = _to_take(mapping or {}, plan.state.owned(space.setup.name), rows)
        before = space.store.read(physical(ref))
        state = contacts.as_named(before or HomeState(ref.place.name, ref.harness, ref.path), space.setup)
        contact = contacts.adopted(
            Contact(state),
            space.setup.name,
            home_id,
            plan.resources,
            plan.observation,
            provider,
            chosen=lambda a: a not in blocked and (not targets or any(selects(t, a) for t in targets)),
            mapping=mapping,
        )
        # What a cut-off run left open is for a plan to settle: nobody looks for it here.
        fresh = replace(plan, state=contact.state, actions=contact.actions, hold=None, intents=())
        old, new = state.owned(space.setup.name), contact.state.owned(space.setup.name)
        if old != new or not contacts.known(state, space.setup.name):
            _finish(HomeRun(fresh, space, guard).carry_out(contact.actions, lambda: False))
        took = []
        for path, thing in new.items():
            address = Address.parse(f"{home_id}/{path}")
            if path not in old or (address in mapping and old[path] != thing):
                declared = plan.canons[address].fields if address in plan.canons else {}
                took.append((address, tuple(n for n in declared if n not in thing.fields)))
    left = [
        f"{a.address}: {a.hold.why if a.hold else a.reason}"
        for a in space.plan_home(home_id, Options(targets=tuple(targets))).actions
        if a.hold is not None
    ]
    return Taken(home_id, tuple(took), tuple(left))


def _to_take(
    mapping: Mapping[Address, str], owned: Mapping[str, Owned], rows: Mapping[Address, Action]
) -> dict[Address, str]:
    """The `--map` without what is ours already under this address, and still the object that we know. Raises UsageError
    for what cannot be seen."""
    taken = {}
    for address, harness_id in mapping.items():
        row = rows.get(address)
        if row is not None and row.row is Row.BLOCKED:
            raise UsageError(f"--map {address}={harness_id}: {row.reason}")
        mine = address.path in owned and owned[address.path].id == harness_id
        if not mine or (row is not None and row.row is Row.REPLACED):
            taken[address] = harness_id
    return taken


def _check_mapping(state: HomeState, owner: str, mapping: Mapping[Address, str]) -> None:
    """Raises UsageError for a `--map` to what another setup owns, or what we own under another address (L1, L3)."""
    taken: dict[tuple[str, Kind, str], str] = {}
    for name, things in state.owners.items():
        for path, thing in things.items():
            address = Address.parse(f"-/{path}")
            who = f"setup {name!r} owns it" if name != owner else f"it is {path} already"
            taken[address.profile, address.kind, thing.id] = f"{path}\n{who}"
    for address, harness_id in mapping.items():
        path, _, who = taken.get((address.profile, address.kind, harness_id), "").partition("\n")
        if who and (path != address.path or "setup" in who):
            raise UsageError(f"--map {address}={harness_id}: {who}")
        taken[address.profile, address.kind, harness_id] = f"{address.path}\nit is mapped twice"


def _finish(events: Iterable[Event]) -> None:
    for event in events:
        if event.outcome is Outcome.FAILED:
            raise ProviderError(event.reason)
