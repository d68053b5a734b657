"""Records of state: frozen values; every change makes a new HomeState, and writing it raises the serial by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler_specs.shape import Json


@dataclass(frozen=True, slots=True)
class Base:
    """A field when we last wrote or adopted it: what the setup said, and what the read-back showed.

    Both are canonical JSON. `{"$absent": true}` stands for a field that was absent.
    """

    declared: Json
    observed: Json


@dataclass(frozen=True, slots=True)
class Retired:
    """What left the setup and waits for its end: `at` is when that was seen (RFC 3339); `was` are the values that
    pausing it has replaced, for its return."""

    at: str
    was: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owned:
    """One owned thing. `origin` is `created` or `adopted`. `needs` are address paths (delete order hangs on them
    once the thing has left the setup). `protect` outlives its block in the setup. `found` holds the members of
    declared sets that were in the home before us, per field (their removal is a `confirm`). `retired` is None for what
    is in the setup, or left it under `on_removed: delete`."""

    id: str
    origin: str
    fields: Mapping[str, Base] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    protect: bool = False
    found: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    retired: Retired | None = None


@dataclass(frozen=True, slots=True)
class HomeState:
    """One physical home's state: `owners` is setup name → address path → Owned (L3).

    `place`, `harness` and `path` say which home; `labels` the home id each setup calls it by; `lineage` is drawn
    at the first write and never changes; `serial` rises by one with each write; `version` is the harness's when
    we last wrote. `damaged` names what could not be read of the file (`setup: address path: why`); those addresses
    are owned by nobody any more (E20), and it is no part of what is written.
    """

    place: str
    harness: str
    path: str
    lineage: str = ""
    serial: int = 0
    version: str = ""
    owners: Mapping[str, Mapping[str, Owned]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    damaged: tuple[str, ...] = field(default=(), compare=False)

    def owned(self, owner: str) -> Mapping[str, Owned]:
        return self.owners.get(owner, {})

    def with_changes(self, owner: str, changes: Mapping[str, Owned | None]) -> HomeState:
        """Several things of one setup at once; None lets go of one."""
        return self._with(owner, {p: t for p, t in {**self.owned(owner), **changes}.items() if t is not None})

    def with_owned(self, owner: str, path: str, thing: Owned) -> HomeState:
        return self._with(owner, {**self.owned(owner), path: thing})

    def without(self, owner: str, path: str) -> HomeState:
        return self._with(owner, {k: v for k, v in self.owned(owner).items() if k != path})

    def _with(self, owner: str, things: Mapping[str, Owned]) -> HomeState:
        owners = {**self.owners, owner: things}
        return replace(self, owners={k: v for k, v in owners.items() if v})
