"""The provider protocol: what a harness has to bring so that the engine can plan and apply on its homes.

A provider is found by entry point (`reconciler.providers`). Everything but `observe`, `preflight` and the
door is pure. A door is open only inside `apply` and `provision`, for one home, under that home's lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, Shape

from .action import Action, Fact
from .observe import Observation, Observed, Wanted
from .place import Place

if TYPE_CHECKING:
    from .vault import Value


@dataclass(frozen=True, slots=True)
class HomeRef:
    """One home as a provider sees it.

    `path` is absolute and resolved at the place. `options` is the setup's `door:` block for the home, closed and
    validated by the provider's `options`, with `$key`, the key of its digests as hex, and `$owner` and `$formerly`,
    the setup's name and former names for marks in files. `timezone` is the setup's word, "" if it says nothing.
    `keyed` says whether that key is kept, so that a digest of this run can be compared with one of another.
    """

    id: str
    harness: str
    place: Place
    path: str
    options: Mapping[str, Json] = field(default_factory=dict)
    timezone: str = ""
    version_range: str = ""
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class KindTraits:
    """How things of a kind are matched.

    `by_place`: the harness id is the place (L1), so a found one is the declared one. `always`: it exists as
    soon as its profile does, so presence is never created or deleted, only its fields are; so does what
    `permanent` names (the default profile). `settling`: fields that the harness rewrites after a write.
    `parts`: fields that are a part of a thing which others may share (a marked block in a file): who declares one
    owns the part, and not the thing. `write_only`: the harness does not show such things: what state says of one counts
    as what is there, and a write holds by the door's `Answer.shown` (decision 0019).
    """

    by_place: bool = False
    always: bool = False
    permanent: frozenset[str] = frozenset()
    settling: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    write_only: bool = False

    def stands(self, harness_id: str) -> bool:
        """Whether the thing with this id always exists."""
        return self.always or harness_id in self.permanent


def traits_of(traits: Mapping[Kind, KindTraits], kind: Kind) -> KindTraits:
    """A kind's traits; plain ones for a kind that the provider does not have, whose things `canon` refuses by name."""
    return traits.get(kind, KindTraits())


@dataclass(frozen=True, slots=True)
class Canon:
    """A resource in the harness's terms.

    `fields` are canonical and comparable with `Observed.fields` (canon of the laws); it may add derived fields
    that the harness needs (with their `shapes`). A reference to a thing whose harness id is not known yet is
    `{"$ref": "<address path>"}`. `refused` maps a declared field to why this version cannot store it (L15): an
    error at plan time. `held` says why the row must wait (a secret that the home lacks, a reference to nothing),
    "" if nothing. `notes` are shown with the row (defaults that the harness fills, what a reference resolved to).
    """

    fields: Mapping[str, Json]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    held: str = ""
    notes: tuple[str, ...] = ()
    needs: tuple[Address, ...] = ()
    expired: str = ""  # with a past only time: why it would never run


Resolve = Callable[[str], str | None]
"""Address path → harness id, or None if nothing is bound to it yet."""

Note = Callable[[str], None]
"""Takes a sentence about what a door waits for, for a person, while it waits."""


def silent(words: str) -> None:
    """The note of who wants to hear nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """Actions of one profile and kind that a door takes as one batch, in order. `intents` maps each action's
    address to the id of its journaled intent: the marker that a create leaves in the record (L11). `secrets` are the
    values for the actions on secrets, to be written and shown nowhere (L5). `wanted` has each declared thing whole, in
    canonical fields, for a door that takes things whole."""

    home: HomeRef
    actions: tuple[Action, ...]
    intents: Mapping[Address, str] = field(default_factory=dict)
    secrets: Mapping[Address, Value] = field(default_factory=dict, repr=False)
    wanted: Mapping[Address, Mapping[str, Json]] = field(default_factory=dict)


class Code(StrEnum):
    """What the door said of one action; what is true is what the read-back shows (L9)."""

    OK = "ok"
    REFUSED = "refused"  # the harness's words are in `words`
    STALE = "stale"  # the object is not the one that was planned for
    LOST = "lost"  # no answer
    HARMED = "harmed"  # our write touched a neighbour (L16): the home stops


@dataclass(frozen=True, slots=True)
class Answer:
    address: Address
    code: Code
    id: str = ""  # the harness id of what was created
    words: str = ""  # verbatim, secrets hidden
    inert: str = ""  # stored, but it can never run: why
    said: str = ""  # of a write that holds: what a person should hear
    shown: Mapping[str, Json] | None = None  # `write_only`: what the harness says is there now; {} if nothing is


class Door(Protocol):
    """A home's write door. `perform` raises `DoorLost` when it cannot tell what happened."""

    name: str

    def perform(self, step: Step) -> Sequence[Answer]: ...

    def deadline(self, step: Step) -> float:
        """Seconds within which a write of this step shows in a read; 0 = at once."""
        ...


class Provider(Protocol):
    harness: str
    traits: Mapping[Kind, KindTraits]

    def options(self, door: Mapping[str, Json]) -> list[str]:
        """What is wrong with a setup's `door:` block, in words; empty if nothing. Pure."""
        ...

    def home_path(self, path: str, place: Place) -> str:
        """The absolute, link-resolved path that identifies the home at its place."""
        ...

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        """All kinds in one read; writes nothing and starts no process where files say it.

        Raises ProviderError when what is at the path is not a home of this harness.
        """
        ...

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        """What `provision` would make, as it would be observed; `profiles` are those that will be made in it, and of
        which there is nothing yet. Pure."""
        ...

    def supported(self, version: str | None) -> str:
        """ "" if this version is tested, else why the home is plan-only (`--allow unknown-version`). Pure."""
        ...

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        """The observation with what canon has to know of the other resources in `facts`. Pure."""
        ...

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon: ...

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        """What carrying out `action` would do to the world. Pure."""
        ...

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        """The home's rows with the harness's consequences noted or added. Pure; the default is `list(actions)`."""
        ...

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        """An observed thing as a setup's fields (adopt, capture): defaults left out, no secret. Pure."""
        ...

    def batch(self, action: Action) -> str:
        """Actions with the same key may go to the door in one step. Pure."""
        ...

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        """Raises ProviderError if the door cannot be used now. Writes nothing, cheap."""
        ...

    def limits(self) -> Sequence[str]:
        """What this provider cannot do, a line each, for `reconciler explain HARNESS` and its page. Pure."""
        ...

    def examine(self, home: HomeRef) -> Sequence[str]:
        """What `doctor` should tell of a home besides its plan (copies in the trash …). Only reads."""
        ...

    def open(
        self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf
    ) -> AbstractContextManager[Door]:
        """`note` is told of each wait for the harness; none goes on beyond `until` (`time.monotonic()`), the end of
        the run."""
        ...

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        """Why a process with these ancestor pids runs inside the home's own process tree, "" if it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Behind:
    """What of a home no setup can declare: one file, or a folder with the number of its files; `size` in bytes.

    `path` is relative to the home, `what` says what it is (memories, pairings …) for a person.
    """

    path: str
    what: str
    files: int
    size: int


@runtime_checkable
class Portable(Protocol):
    """What a provider may say beyond `Provider`, so that `reconciler copy` can tell what a move would change.

    `config` is what a setup's settings are paths of: where two harnesses have the same one, a setting means the same.
    """

    config: str

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        """What a declared thing means here beyond its words, by aspect (“time zone”: “UTC”): where two harnesses say
        different things of one aspect, a copy is not exact. `observation` is a prepared one. Pure."""
        ...

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        """What a copy leaves in the home, biggest parts as they lie there. Only reads."""
        ...
