"""Capture and release: the home's value into the setup's text, and letting go. Neither touches a home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind, selects, split_field
from reconciler_specs.edit import EditRefused, SetupEditor
from reconciler_specs.shape import Json
from reconciler_specs.tables import TABLES

from . import contact as contacts
from .action import Action, FieldChange, FieldRow, Row
from .contact import Contact
from .errors import ProviderError, UsageError
from .jobdraft import SELF
from .left import left, state_of
from .observe import ABSENT, Observed, Unknown
from .plan import HomePlan, Options, Plan
from .redact import unsayable
from .run import HomeRun
from .workspace import Workspace

_CAPTURED = frozenset({FieldRow.DRIFT, FieldRow.CONFLICT, FieldRow.CLAIM, FieldRow.RESTORE})


@dataclass(frozen=True, slots=True)
class Captured:
    """One value that went from the home into the setup, and where it stands now."""

    address: str
    field: str
    where: str


def capture(space: Workspace, targets: Sequence[str], again: Callable[[], Workspace]) -> list[Captured]:
    """Writes the homes' values of the targets into the setup, and records them as applied, so that the next plan is
    quiet. `again()` loads the setup anew. Raises EditRefused or UsageError when a value cannot stand in a setup."""
    plan = space.plan(Options(targets=tuple(split_field(t)[0] for t in targets)))
    editor = SetupEditor(space.setup.root)
    taken = []
    for home in plan.homes:
        if home.failed:
            raise ProviderError(home.failed)
        for action in home.actions:
            for change in _chosen(action, targets):
                taken.append(_take(space, editor, home, action, change))
    if not taken:
        return []
    editor.check()
    editor.write()
    stamp(again(), [item.address for item in taken])
    return taken


@dataclass(frozen=True, slots=True)
class Passed:
    """A value that was to be captured and cannot stand in a setup, with the reason."""

    address: str
    field: str
    why: str


def write(
    space: Workspace, plan: Plan, chosen: Callable[[Action, FieldChange], bool]
) -> tuple[list[Captured], list[Passed]]:
    """Writes the chosen values of a plan into the setup, and nothing else: no state, no home. A value that cannot stand
    there is passed over. Raises EditRefused if the files cannot be edited."""
    editor = SetupEditor(space.setup.root)
    taken: list[Captured] = []
    passed: list[Passed] = []
    for home in plan.homes:
        for action in home.actions if not home.failed else ():
            for change in (c for c in action.changes if chosen(action, c)):
                try:
                    taken.append(_take(space, editor, home, action, change))
                except (UsageError, EditRefused) as error:
                    passed.append(Passed(str(action.address), change.field, str(error)))
    if taken:
        editor.write()
    return taken, passed


def _chosen(action: Action, targets: Sequence[str]) -> list[FieldChange]:
    if action.row is not Row.UPDATE:
        return []
    fields = {split_field(t)[1] for t in targets if selects(t, action.address)}
    return [c for c in action.changes if c.row in _CAPTURED and (None in fields or c.field in fields)]


def _take(space: Workspace, editor: SetupEditor, home: HomePlan, action: Action, change: FieldChange) -> Captured:
    value = change.observed
    name = f"{action.address}#{change.field}"
    if isinstance(value, Unknown) or value is ABSENT:
        raise UsageError(f"{name}: the home has no value to capture", hint=f"reconciler show {action.address}")
    table = TABLES.get(action.address.kind)
    if table is not None and change.field not in table.written:
        raise UsageError(f"{name}: it is made from a source; copy the home's files there instead")
    value = _said(space, home, action, change)
    if unsayable(value):
        raise UsageError(f"{name}: the home's value cannot stand in a setup", hint=f"reconciler show {action.address}")
    ids = {thing.id: path for path, thing in home.state.owned(home.owner).items()}
    if isinstance(value, list):
        if change.field == "context_from":
            ids[action.id] = SELF
            strangers = [v for v in value if v not in ids]
            if strangers:
                why = f"it names what this setup does not own: {', '.join(map(str, strangers))}"
                raise UsageError(f"{name}: {why}", hint=f"reconciler plan {action.address.home} --unmanaged")
        value = [ids.get(v, v) if isinstance(v, str) else v for v in value]
    spot = editor.capture(space.setup, action.address, change.field, value)
    where = ".".join(spot.path) if spot.path else spot.note
    return Captured(str(action.address), change.field, f"{spot.file.name}: {where}" if spot.path else where)


def _said(space: Workspace, home: HomePlan, action: Action, change: FieldChange) -> Json:
    """The home's value in the setup's words: what the harness keeps as `${NAME}` is `{secret: NAME}` there."""
    address = action.address
    thing = home.observation.at(address.profile, address.kind, action.id or address.key)
    if isinstance(thing, Observed) and (address.kind in TABLES or address.kind is Kind.SETTING):
        said = space.provider(home.ref.harness).express(thing, home.observation)
        return said.get(change.field, change.observed)
    return change.observed


def stamp(space: Workspace, targets: Sequence[str]) -> None:
    """Records what is now as declared: state only, no door call. What differs is left for the next plan."""
    plan = space.plan(Options(targets=tuple(targets)))
    for home in plan.homes:
        rows = tuple(a for a in home.actions if a.records)
        if rows and home.hold is None:
            with space.lock(home.ref) as guard:
                for _event in HomeRun(home, space, guard).carry_out(rows, lambda: False):
                    pass


def release(space: Workspace, targets: Sequence[str]) -> list[Address]:
    """Lets go of owned things that the targets take in; the addresses let go of. State only."""
    gone: list[Address] = []
    for home_id in [*space.setup.homes, *(label for label, _ in left(space))]:
        if not any(t.partition("/")[0] == home_id or selects(t, Address(home_id)) for t in targets):
            continue
        home = state_of(space, home_id)
        if home is None:
            continue
        owner = space.setup.name
        chosen = [
            a
            for a in (Address.parse(f"{home_id}/{p}") for p in home.state.owned(owner))
            if any(selects(t, a) for t in targets)
        ]
        if not chosen and home_id not in targets:
            continue
        contact = contacts.released(Contact(home.state), owner, home_id, chosen)
        with space.lock(home.ref) as guard:
            state = contact.state
            if home_id in targets and not state.owned(owner):
                # The whole home: it is not met any more, and its next plan is first contact again.
                state = replace(state, labels={k: v for k, v in state.labels.items() if k != owner})
            run = HomeRun(replace(home, state=state, actions=contact.actions), space, guard)
            for _event in run.carry_out(contact.actions, lambda: False):
                pass
        gone += chosen
    return gone
