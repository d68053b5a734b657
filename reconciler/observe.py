"""What a home holds, as its provider read it: Present, Absent or Unknown, never guessed (L10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json


class _Absent(Enum):
    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent.ABSENT
"""Seen, and not there. A field, a thing or a store may be absent; `Unknown` is something else."""

Absent = _Absent


@dataclass(frozen=True, slots=True)
class Unknown:
    """Could not be seen. `reason` is for a person and names the file; it blocks and is never read as absent."""

    reason: str


Seen = Json | Absent | Unknown


class Store(StrEnum):
    """The state of the file or table that holds a profile's things of one kind (L14)."""

    PROPER = "proper"
    MISSING = "missing"  # not there at all
    EMPTY = "empty"  # there, and without even the frame of a store (0 bytes, `{}`); no records in a frame is PROPER
    IMPROPER = "improper"  # there, and not what the harness writes


@dataclass(frozen=True, slots=True)
class Observed:
    """One thing in a home.

    `id` is the harness id (L1): for a kind matched by place it is the address key (the profile's name for a
    profile, "" for inference). `fields` are in the setup's terms and canonical (`{"every": "120m"}`), secrets
    already hidden (L5); a field not listed is absent; a value may be `Unknown`. `defaults` names the fields
    whose value is what the harness fills in by itself. `marker` is our intent id, if the record carries one.
    `fingerprint` digests everything but run-time state: it changes iff somebody changed the thing. `about`
    holds run-time facts for people (next run, last status, who changed it) and is never compared.
    """

    kind: Kind
    profile: str
    id: str
    fields: Mapping[str, Json | Unknown] = field(default_factory=dict)
    name: str = ""
    defaults: frozenset[str] = frozenset()
    marker: str = ""
    fingerprint: str = ""
    about: Mapping[str, Json] = field(default_factory=dict)

    def get(self, name: str) -> Seen:
        return self.fields.get(name, ABSENT)


Things = Mapping[str, Observed]


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running process of the harness that serves a home, or a profile of it.

    `start` tells one start of it from the next (pid and moment; opaque). `words` name it for a person. `refused` says
    why no door can restart it, "" if one can; `command` is what a person can type for it.
    """

    start: str
    words: str
    command: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """One read of a home.

    `exists` is False iff there is nothing at the path (then the rest is empty). `things` has an entry per
    (profile, kind) that the provider looked at: id → Observed, or Unknown for the whole store. `stores` says in
    what state each store file is. `ended` names ids that are gone by themselves (a one-shot that ran) with the
    evidence. `version` is the harness's, None if it cannot be told. `blocked` says why nothing may be written
    here (managed by another system, not owned by us …), "" if nothing stands against it. `notes` are for the
    plan's head. `facts` are the provider's own, handed back to its pure functions. `sure` is False if what is there
    may as well be another harness's home of the same shape: then `adopt PATH` takes it for that one's. `clear` are the
    places in the home's files (`config.yaml: model.api_key`) where a secret stands in the clear. `gateways` are the
    running processes that take some of the home's config in only when they start, by a name that rows use (`late`).
    `strays` says of a thing that is there, and not to be seen where it was: why (it is another profile's now, its
    record cannot be read). Such a thing is Unknown and never absent: making it again would make a twin.
    """

    exists: bool = True
    version: str | None = None
    things: Mapping[tuple[str, Kind], Things | Unknown] = field(default_factory=dict)
    stores: Mapping[tuple[str, Kind], Store] = field(default_factory=dict)
    ended: Mapping[tuple[str, Kind], Mapping[str, str]] = field(default_factory=dict)
    blocked: str = ""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    sure: bool = True
    clear: frozenset[str] = frozenset()
    gateways: Mapping[str, Gateway] = field(default_factory=dict)
    strays: Mapping[tuple[Kind, str], str] = field(default_factory=dict)

    def at(self, profile: str, kind: Kind, harness_id: str) -> Observed | Absent | Unknown:
        """One thing by harness id. A store that was not looked at is Unknown."""
        things = self.things.get((profile, kind), Unknown("not looked at"))
        if isinstance(things, Unknown):
            return things
        found = things.get(harness_id, ABSENT)
        stray = self.strays.get((kind, harness_id), "") if found is ABSENT else ""
        return Unknown(stray) if stray else found

    def all(self) -> Iterable[Observed]:
        """Every thing that could be seen."""
        for things in self.things.values():
            if not isinstance(things, Unknown):
                yield from things.values()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read has to answer: the addresses to look up by place (settings, files), or `everything` for adopt."""

    addresses: frozenset[Address] = frozenset()
    everything: bool = False

    def keys(self, profile: str, kind: Kind) -> list[str]:
        return sorted(a.key for a in self.addresses if a.profile == profile and a.kind is kind)
