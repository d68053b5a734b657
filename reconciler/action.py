"""Action: one row of a plan, and everything that apply needs to carry it out. Plain values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from reconciler_specs.address import Address
from reconciler_specs.resource import Mode
from reconciler_specs.shape import Json, Shape
from reconciler_state.record import Base

from .observe import Seen


class Row(StrEnum):
    """Row names of the laws' presence table, and of the plan's own acts (first contact, moved, released)."""

    PROVISION = "provision"
    ADOPT = "adopt"
    SETTLED = "settled"  # what a run that was cut off has done, found by looking (L11)
    CREATE = "create"
    UPDATE = "update"  # present on all three sides: see the field rows
    MISSING = "missing"  # recreated
    DELETE = "delete"
    FORGET = "forget"
    MOVED = "moved"
    RELEASED = "released"
    RESTART = "restart"  # of a running gateway, for rows that count only after it
    FOLLOW = "follow"  # a consequence for a thing that we do not own (inference's `rebase: all`)
    EXPIRED = "expired"
    SPENT = "spent"
    UNOWNED = "unowned"
    AMBIGUOUS = "ambiguous"
    FOREIGN = "foreign"
    REPLACED = "replaced"
    BLOCKED = "blocked"
    REFUSED = "refused"  # the harness cannot store what is declared (L15)
    UNMANAGED = "unmanaged"
    IN_SYNC = "in-sync"


class FieldRow(StrEnum):
    """Row names of the laws' field table."""

    BLOCKED = "blocked"
    UNSET = "unset"
    RELEASE = "release"
    IN_SYNC = "in-sync"
    STAMP = "stamp"
    CLAIM = "claim"
    DRIFT = "drift"
    RESTORE = "restore"  # drift in mode `restore`, or named by --restore
    SET = "set"
    CONFLICT = "conflict"


class _Clear(Enum):
    CLEAR = "clear"

    def __repr__(self) -> str:
        return "CLEAR"


CLEAR: Final = _Clear.CLEAR
"""To write: the harness's default, by taking the value away."""

Clear = _Clear


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of an action: its row, the three sides, and `write`, the value to send to the door.

    `declared` and `observed` are canonical; `declared` is ABSENT for a field that left the setup. `write` means
    something only where `row` writes: it is the merged whole value, or CLEAR.
    """

    field: str
    row: FieldRow
    declared: Seen
    observed: Seen
    base: Base | None
    shape: Shape
    write: Json | Clear = None
    mode: Mode = Mode.HOLD
    note: str = ""
    removes_found: bool = False  # `write` drops a set member that was in the home before us

    @property
    def writes(self) -> bool:
        return self.row in WRITING_FIELDS

    @property
    def held(self) -> bool:
        return self.row in (FieldRow.CONFLICT, FieldRow.BLOCKED) or (
            self.row is FieldRow.DRIFT and self.mode in (Mode.HOLD, Mode.CAPTURE, Mode.RESTORE)
        )


WRITING_FIELDS = frozenset({FieldRow.UNSET, FieldRow.CLAIM, FieldRow.SET, FieldRow.RESTORE})


class Tier(StrEnum):
    """How much consent a row needs (laws, “Gate and consent”)."""

    AUTO = "auto"
    CONFIRM = "confirm"
    REFUSE = "refuse"


class Fact(StrEnum):
    """What a row would do to the world, as its provider knows it; the gate rules from these, never from words."""

    RUNS_CODE = "runs code on the host"
    REACHES_PEOPLE = "reaches people"
    WIDENS_ACCESS = "widens access"
    LOOSENS_SECURITY = "loosens a security setting"
    NEW_ADDRESS = "sends prompts to a new address"
    NEW_CREDENTIAL = "uses another credential"
    RESTARTS = "restarts the harness"
    RUNNING = "changes what is running now"
    SECRET_IN_CLEAR = "writes a secret in the clear"
    PERMANENT = "the harness's own, never deleted"  # default profile, default board


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a row is held, and the command that lifts it (printed with the row)."""

    why: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One row of a home's plan.

    `id` is the harness id it acts on, "" for what does not exist yet. `needs` are addresses whose rows come
    first; if one of them fails this one is `skipped`. `after` are those that a delete comes after, since they use the
    thing until then; it is skipped with them, too. `fingerprint` is that of the thing as observed ("" when
    absent): the row stands for that object as it was seen (L8). `origin` is what state will record for a new
    thing. `tier` and `rule` are the gate's. `source` says where a secret's value comes from: that is what a row of a
    secret is approved by, as no value of it is in the row. `carries` are the resource's options: what a field's digest
    stands for (a skill's files), which the door needs and no plan shows.
    """

    row: Row
    address: Address
    id: str = ""
    changes: tuple[FieldChange, ...] = ()
    reason: str = ""
    hold: Hold | None = None
    needs: tuple[Address, ...] = ()
    after: tuple[Address, ...] = ()
    fingerprint: str = ""
    notes: tuple[str, ...] = ()
    facts: frozenset[Fact] = frozenset()
    tier: Tier = Tier.AUTO
    rule: str = ""
    origin: str = ""
    protect: bool = False
    moved_from: str = ""  # MOVED: the address path that state has it under
    guard: str = ""  # the `--allow` guard that lifts the hold, if one does
    source: str = ""
    carries: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)
    kept: bool = False  # what state keeps of the thing beside its fields changes (protection, retirement)
    retires: str = ""  # the thing left the setup at this moment, and is paused before it may be deleted
    late: str = ""  # the running gateway that takes the row in only when it starts anew, "" if it counts before that
    content: str = ""  # DELETE: what goes with it, as a digest that another run can make again (plan.content)
    rebuilt: bool = False  # part of a home that is made again from nothing (`--allow rebuild`)

    @property
    def writes(self) -> bool:
        """Whether carrying it out writes to the home. A held row never does."""
        if self.hold is not None:
            return False
        if self.row is Row.UPDATE:
            return any(c.writes for c in self.changes)
        return self.row in _WRITING

    @property
    def records(self) -> bool:
        """Whether carrying it out writes to our state only."""
        if self.hold is not None or self.writes:
            return False
        if self.row is Row.UPDATE:
            return self.kept or any(c.row in (FieldRow.STAMP, FieldRow.RELEASE) for c in self.changes)
        return self.row in _RECORDING

    @property
    def held_fields(self) -> tuple[FieldChange, ...]:
        return tuple(c for c in self.changes if c.held) if self.row is Row.UPDATE else ()


_WRITING = frozenset({Row.PROVISION, Row.CREATE, Row.MISSING, Row.DELETE, Row.FOLLOW, Row.RESTART})
_RECORDING = frozenset({Row.ADOPT, Row.SETTLED, Row.FORGET, Row.MOVED, Row.RELEASED})
