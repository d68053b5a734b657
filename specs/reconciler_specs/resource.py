"""Resource: one declared thing, in the author's terms, ready for the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .address import Address
from .errors import Where
from .shape import Json, Shape


class Mode(StrEnum):
    """What plan does when a home's value moved away from what was applied (laws, field table row 6)."""

    HOLD = "hold"
    RESTORE = "restore"
    WATCH = "watch"
    CAPTURE = "capture"
    SEED = "seed"  # written at create, never compared again


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: its place in a text, and the template or parameter it came `via` ("" if none)."""

    where: Where
    via: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One declared thing.

    `fields` holds what the author set (L2), as plain JSON, with names that the setup itself resolves already
    resolved (a job's `model: cheap` is the model's definition; `context_from` holds address paths such as
    `default/jobs/brief`; a file's `source` is its text). `shapes` has one entry per field. `needs` are the
    addresses that must exist first, declared here or not. `modes` gives each field that is not `hold` its
    mode. `unset` are the fields to clear in the harness. `options` steer the plan and are stored nowhere
    (inference's `rebase: all`). `origin(field)` says where a value was written; the
    thing as a whole with "".
    """

    address: Address
    fields: Mapping[str, Json]
    shapes: Mapping[str, Shape]
    needs: tuple[Address, ...] = ()
    modes: Mapping[str, Mode] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    protect: bool = False
    options: Mapping[str, Json] = field(default_factory=dict)
    origin: Callable[[str], Origin] = field(default=lambda _field: Origin(Where("")), compare=False, repr=False)

    def mode(self, name: str) -> Mode:
        return self.modes.get(name, Mode.HOLD)
