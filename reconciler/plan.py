"""Plan: what apply would do to each home, as a value: the object that is printed, saved, reviewed and applied (L8)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from reconciler_specs.address import Address, Kind
from reconciler_specs.policy import Policy
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from reconciler_state.journal import Intent
from reconciler_state.record import HomeState

from .action import CLEAR, Action, Fact, FieldRow, Hold, Row, Tier
from .bind import ABSENT_JSON
from .match import place_id
from .observe import ABSENT, Absent, Observation, Observed, Unknown
from .provider import Canon, HomeRef
from .redact import is_hidden
from .secret import SAID, UNCHECKED
from .undo import Undo


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks of a plan.

    `targets` narrow it (all if empty), `restore` are the targets of --restore, `allow` the guards lifted,
    `unmanaged` lists what nobody declared, `in_sync` what is as it should be. `provision` are homes that the
    command itself asks to be made. `undo` is the id of a run to be undone: then only what it wrote is planned.
    """

    targets: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    unmanaged: bool = False
    in_sync: bool = False
    provision: frozenset[str] = frozenset()
    undo: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing narrows it: what such a plan does not have is over, and not merely left out."""
        return not (self.targets or self.undo)


@dataclass(frozen=True, slots=True)
class HomeInputs:
    """Everything a home's plan is made from. `observation` is Unknown when the home could not be read; `now`, with its
    zone, is the moment that windows and grace periods are judged by; `restored` is how often the last runs restored a
    field, by (path, field)."""

    ref: HomeRef
    owner: str
    resources: Mapping[Address, Resource]
    state: HomeState | None
    observation: Observation | Unknown
    policy: Policy
    now: datetime
    formerly: Sequence[str] = ()
    first_contact: str = "ask"
    moved: Sequence[tuple[Address, Address]] = ()
    released: Sequence[Address] = ()
    intents: Sequence[Intent] = ()
    damaged: Sequence[str] = ()
    shared: bool = False
    restart: str = "ask"
    undo: Undo = field(default_factory=Undo)
    restored: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class HomePlan:
    """One home's rows, in the order in which apply takes them.

    `hold` holds the whole home (`guard` names what lifts it). `failed` says why the home could not be read, and
    `remedy` what to do about it; it then has no rows; `elsewhere` names the machine whose runner it is for. `state`
    is the state the rows stand on, with what recording rows bring about. `serial` and `lineage` are of the state as
    stored; `intents` are what runs that were cut off left open. `unchanged` counts what is in sync, `left_out` what
    the targets leave.
    """

    ref: HomeRef
    owner: str
    actions: tuple[Action, ...] = ()
    state: HomeState = field(default_factory=lambda: HomeState("", "", ""))
    lineage: str = ""
    serial: int = 0
    version: str | None = None
    hold: Hold | None = None
    guard: str = ""
    failed: str = ""
    remedy: str = ""
    elsewhere: str = ""
    notes: tuple[str, ...] = ()
    unchanged: int = 0
    left_out: int = 0
    intents: tuple[Intent, ...] = ()
    observation: Observation = field(default_factory=Observation, repr=False, compare=False)
    canons: Mapping[Address, Canon] = field(default_factory=dict, repr=False, compare=False)
    resources: Mapping[Address, Resource] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.ref.id

    def observed(self, address: Address, harness_id: str = "") -> Observed | Absent | Unknown:
        """One thing as it was seen; `harness_id` for a kind that is not matched by place."""
        store = "" if address.kind is Kind.PROFILE else address.profile
        return self.observation.at(store, address.kind, harness_id or place_id(address))

    @property
    def open(self) -> tuple[Action, ...]:
        """The rows that apply would carry out, with consent."""
        if self.hold or self.failed:
            return ()
        return tuple(a for a in self.actions if a.writes or a.records)

    @property
    def checks(self) -> tuple[Action, ...]:
        """What apply alone can tell whether it is to be done: the secrets whose source is not looked at by a plan."""
        if self.hold or self.failed:
            return ()
        told = {a.address for a in self.open}
        return tuple(
            Action(
                Row.UPDATE,
                address,
                reason=f"not checked here: {resource.options[UNCHECKED]}",
                tier=Tier.CONFIRM,
                rule=str(Fact.NEW_CREDENTIAL),
                facts=frozenset({Fact.NEW_CREDENTIAL}),
                source=str(resource.options[SAID]),
            )
            for address, resource in self.resources.items()
            if UNCHECKED in resource.options and address not in told
        )

    @property
    def asked(self) -> list[str]:
        """The digests of all that a person is asked about: the open rows, and the sources that apply alone may ask."""
        return [self.digests[a.address] for a in self.open] + [row_digest(self.ref, a) for a in self.checks]

    @cached_property
    def digests(self) -> Mapping[Address, str]:
        """Row digest per address: over what would be written and the object it would be written to (L8)."""
        return {a.address: row_digest(self.ref, a) for a in self.actions}


@dataclass(frozen=True)
class Plan:
    """The plan of a run: the object that is printed, saved, reviewed and applied (L8)."""

    owner: str
    homes: tuple[HomePlan, ...]

    @cached_property
    def digest(self) -> str:
        """Over all that a person is asked about; two plans with one digest do the same."""
        rows = sorted(digest for h in self.homes for digest in h.asked)
        return sha([self.owner, rows])


def row_digest(ref: HomeRef, action: Action) -> str:
    """Binds a row to the home, the object as it was seen, and every value that would be written.

    Fingerprints are keyed (L5), and a home that we have not written yet has no key that outlives this run: there the
    row is bound to the values of its own fields instead, and a delete to all that is seen of the thing, so that another
    run (`--plan`, `--expect`) can tell it.
    """
    where = [ref.place.name, ref.harness, ref.path]
    if action.source:
        # A value may be fetched only later, or change until then: what is approved is where it comes from.
        gone = sorted({str(c.row) for c in action.changes if c.row in (FieldRow.UNSET, FieldRow.RELEASE)})
        return sha([where, action.address.path, action.source, gone])
    return sha(
        [
            where,
            str(action.row),
            action.address.path,
            action.id,
            action.fingerprint if ref.keyed else action.content or _before(action),
            [
                [c.field, str(c.row), side_json(c.write) if c.writes else None, side_json(c.declared)]
                for c in action.changes
                if c.writes or not c.held
            ],
            # A restart is of what runs now, and of nothing that is started after it.
            dict(action.carries) if action.row is Row.RESTART else action.moved_from,
        ]
    )


def _before(action: Action) -> Json:
    return [[c.field, unkeyed(side_json(c.observed))] for c in action.changes]


def content(thing: Observed) -> str:
    """All that is seen of a thing, as a digest that another run can make again."""
    return sha([thing.id, {name: unkeyed(side_json(value)) for name, value in thing.fields.items()}])


def side_json(value: object) -> Json:
    """A side of a field as JSON; what is absent, cleared or unknown is written out."""
    if value is ABSENT:
        return ABSENT_JSON
    if value is CLEAR:
        return {"$clear": True}
    return {"$unknown": True} if isinstance(value, Unknown) else value


def unkeyed(value: Json) -> Json:
    """A value without the digests of secrets in it, which another run may make with another key (L5)."""
    if is_hidden(value):
        return {"$hidden": ""}
    if isinstance(value, dict):
        return {k: unkeyed(v) for k, v in value.items()}
    return [unkeyed(v) for v in value] if isinstance(value, list) else value


def sha(value: Json) -> str:
    """32 hex digits over a JSON value, whatever order its keys are in."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
