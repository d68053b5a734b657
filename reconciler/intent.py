"""Intent: what the journal says of a row: enough to settle it, and to undo it (L9, L11). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json
from reconciler_state.journal import FOUND, Done, Intent, Planned
from reconciler_state.record import HomeState

from .action import Action, FieldChange, FieldRow, Row
from .bind import as_json
from .observe import Observation, Unknown
from .plan import HomePlan, row_digest, unkeyed
from .provider import KindTraits, traits_of
from .redact import scrub
from .verdict import Verdict

_MAKING = (Row.CREATE, Row.MISSING)


def planned(plan: HomePlan, action: Action, traits: KindTraits | None) -> Planned:
    """One row as it is journaled; `traits` are its kind's, None for a kind that the provider has none of."""
    known: tuple[str, ...] | None = None
    if traits is not None and not traits.by_place:
        things = plan.observation.things.get((action.address.profile, action.address.kind), {})
        known = tuple(sorted(things)) if action.row in _MAKING and not isinstance(things, Unknown) else ()
    return Planned(
        action.address,
        str(action.row),
        action.id,
        row_digest(plan.ref, action),
        known,
        str(action.tier),
        _before(plan, action),
        {c.field: _row(c) for c in action.changes if c.writes} if action.row is Row.UPDATE else {},
    )


def _row(change: FieldChange) -> str:
    """A conflict that a person has settled with --restore writes what the setup says anew: it is no restore."""
    return str(FieldRow.CONFLICT if change.row is FieldRow.RESTORE and change.note else change.row)


def _before(plan: HomePlan, action: Action) -> Mapping[str, Json]:
    """What undo would declare: for a field that is set anew, what was declared before; for one whose value in the home
    is overwritten, that value. Of a secret only that it was one: a journal may be kept in git (L5)."""
    if action.row is Row.DELETE:
        thing = plan.state.owned(plan.owner).get(action.address.path)
        return {name: unkeyed(base.declared) for name, base in thing.fields.items()} if thing is not None else {}
    if action.row is not Row.UPDATE:
        return {}
    before = {}
    for change in action.changes:
        if change.writes and not isinstance(change.observed, Unknown):
            base = change.base if change.row in (FieldRow.SET, FieldRow.UNSET) else None
            before[change.field] = unkeyed(base.declared if base is not None else as_json(change.observed))
    return before


def ended(verdicts: Sequence[tuple[Action, Verdict]], intents: Mapping[Address, str], door: str) -> list[Done]:
    """How the rows of a step ended; `door` is the name of the one that was used for those that write."""
    return [
        Done(
            intents[action.address],
            str(verdict.outcome),
            verdict.reason,
            verdict.fields,
            verdict.owned.id if verdict.owned else "",
            door if action.writes else "",
        )
        for action, verdict in verdicts
    ]


def settled(
    open_: Sequence[Intent], plan: HomePlan, state: HomeState, traits: Mapping[Kind, KindTraits]
) -> tuple[list[Done], list[Intent]]:
    """What a run that was cut off left open: how each ended, now that `state` says what was found of it (L11); and
    those that stay open, since nobody could look."""
    owned = state.owned(plan.owner)
    closed, still = [], []
    for intent in open_:
        address = Address.parse(f"{plan.id}/{intent.path}") if intent.path else Address(plan.id)
        store = ("" if address.kind is Kind.PROFILE else address.profile, address.kind)
        if isinstance(plan.observation.things.get(store), Unknown):
            still.append(intent)
            continue
        said = FOUND if intent.path in owned else "not found"
        if said != FOUND and traits_of(traits, address.kind).write_only:
            # Whether it was done nobody will ever know; doing it again changes nothing if it was.
            said = "nothing shows whether it was done; it is planned again"
        closed.append(Done(intent.intent, "settled", said, id=intent.id))
    return closed, still


def unmanaged(observation: Observation, *states: HomeState) -> Mapping[str, Sequence[str]]:
    """What nobody declared (by none of `states`) and the home holds all the same, by `PROFILE/KIND`: ids, with names
    where the ids say nothing; 100 of a store at most."""
    owned = set()
    for path, ours in ((p, t) for state in states for things in state.owners.values() for p, t in things.items()):
        address = Address.parse(f"-/{path}")
        owned.add((address.profile, address.kind, ours.id))
    found: dict[str, list[str]] = {}
    for thing in observation.all():
        profile = thing.id if thing.kind is Kind.PROFILE else thing.profile
        standing = not thing.id or (thing.kind is Kind.PROFILE and thing.id == "default")
        if standing or thing.kind in (Kind.SECRET, Kind.SETTING):
            continue  # always there, or no thing to be lost
        if (profile, thing.kind, thing.id) not in owned:
            store = "" if thing.kind is Kind.PROFILE else thing.profile
            said = f"{thing.id} {thing.name}" if thing.name and thing.name != thing.id else thing.id
            found.setdefault(f"{store or 'home'}/{thing.kind}", []).append(scrub(said))
    return {store: sorted(names)[:100] for store, names in sorted(found.items())}
