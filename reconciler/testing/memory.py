"""A home in memory with its provider: the test double that stands for a harness in tests of the engine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from reconciler_specs.tables import TABLES

from ..action import CLEAR, Action, Fact, Row
from ..bind import resolve_refs
from ..observe import Gateway, Observation, Observed, Store, Unknown, Wanted
from ..place import Place
from ..provider import Answer, Canon, Code, Door, HomeRef, KindTraits, Note, Resolve, Step, silent
from ..redact import hide

_ids = count(1)
_KINDS = (Kind.FILE, Kind.SETTING, Kind.INFERENCE, *TABLES, Kind.JOB)


@dataclass
class MemoryHome:
    """What one home holds: (profile, kind) → harness id → fields. `unreadable` maps a store to why; `secrets` are
    values by name, by profile ("" for what the home keeps for all). `gateways` are the starts of what runs, by profile,
    which takes channels in when it starts; `shut` says why it cannot be restarted, and one that is `stuck` says yes
    and does not."""

    things: dict[tuple[str, Kind], dict[str, dict[str, Any]]] = field(default_factory=dict)
    exists: bool = True
    version: str | None = "1.0"
    blocked: str = ""
    unreadable: dict[tuple[str, Kind], str] = field(default_factory=dict)
    stores: dict[tuple[str, Kind], Store] = field(default_factory=dict)
    ended: dict[tuple[str, Kind], dict[str, str]] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=lambda: {"": {}})
    clear: frozenset[str] = frozenset()
    gateways: dict[str, str] = field(default_factory=dict)
    shut: str = ""
    stuck: bool = False
    writes: int = 0
    reads: int = 0

    def __post_init__(self) -> None:
        self.things.setdefault(("", Kind.PROFILE), {"default": {}})
        self.things.setdefault(("default", Kind.JOB), {})

    def jobs(self, profile: str = "default") -> dict[str, dict[str, Any]]:
        """The job records of a profile, by id."""
        return self.things.setdefault((profile, Kind.JOB), {})

    def add_job(self, name: str, profile: str = "default", **fields: Any) -> str:
        """A job as somebody else would make it; its id."""
        harness_id = f"id{next(_ids)}"
        self.jobs(profile)[harness_id] = {"name": name, **fields}
        return harness_id


class MemoryProvider:
    """A provider for homes in memory, found by path. Its harness fills `deliver` in and counts minutes."""

    harness = "hermes"
    traits: Mapping[Kind, KindTraits] = {
        Kind.HOME: KindTraits(by_place=True),
        Kind.PROFILE: KindTraits(by_place=True, permanent=frozenset({"default"})),
        Kind.FILE: KindTraits(by_place=True),
        Kind.SETTING: KindTraits(by_place=True, always=True),
        Kind.INFERENCE: KindTraits(by_place=True, always=True),
        Kind.JOB: KindTraits(),
        **dict.fromkeys(TABLES, KindTraits(by_place=True)),
        Kind.SECRET: KindTraits(by_place=True, always=True),
        # What this harness takes and never shows.
        Kind.KIT: KindTraits(by_place=True, write_only=True),
    }

    def __init__(self, homes: dict[str, MemoryHome] | None = None) -> None:
        self.homes = homes if homes is not None else {}
        self.doors = 0

    def home(self, path: Path | str) -> MemoryHome:
        return self.homes.setdefault(str(path), MemoryHome())

    def options(self, door: Mapping[str, Json]) -> list[str]:
        return [f"{name}: not an option of this door" for name in door]

    def home_path(self, path: str, place: Place) -> str:
        return place.resolve(path)

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        store = self.homes.get(home.path)
        if store is None or not store.exists:
            return Observation(exists=False)
        store.reads += 1
        things: dict[tuple[str, Kind], Mapping[str, Observed] | Unknown] = {}
        profiles = list(store.things.get(("", Kind.PROFILE), {}))
        for profile in profiles:
            for kind in _KINDS:
                things[profile, kind] = {}
        for key, records in store.things.items():
            shown = {} if key[1] is Kind.KIT else records
            things[key] = {i: _observed(key, i, fields) for i, fields in shown.items()}
        key_of_digests = bytes.fromhex(str(home.options.get("$key", "00")))
        for profile, names in store.secrets.items():
            things[profile, Kind.SECRET] = {
                name: Observed(Kind.SECRET, profile, name, {"present": True, "value": hide(value, key_of_digests)})
                for name, value in names.items()
            }
        for key, why in store.unreadable.items():
            things[key] = Unknown(why)
        return Observation(
            version=store.version,
            things=things,
            stores=store.stores,
            ended=store.ended,
            blocked=store.blocked,
            clear=store.clear,
            gateways={
                name: Gateway(start, f"the gateway of {name}", "memory restart", store.shut)
                for name, start in store.gateways.items()
            },
        )

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        things: dict[tuple[str, Kind], Mapping[str, Observed] | Unknown] = {
            ("", Kind.PROFILE): {"default": Observed(Kind.PROFILE, "default", "default")},
            ("", Kind.SECRET): {},
        }
        for kind in _KINDS:
            things |= {(name, kind): {} for name in {"default", *profiles}}
        return Observation(version="1.0", things=things)

    def supported(self, version: str | None) -> str:
        return "" if version == "1.0" else f"version {version or 'unknown'} is not tested"

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        return observation

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        fields = dict(resource.fields)
        refused = {n: "the memory home has no such field" for n in fields if n == "monitor"}
        schedule = fields.get("schedule")
        if isinstance(schedule, dict) and str(schedule.get("every", "")).endswith("h"):
            fields["schedule"] = {"every": f"{int(schedule['every'][:-1]) * 60}m"}
        if "context_from" in fields:
            fields["context_from"] = [resolve(p) or {"$ref": p} for p in fields["context_from"]]
        past = isinstance(schedule, dict) and str(schedule.get("at", "9")) < "2026"
        return Canon(fields, refused=refused, expired="its only time has passed" if past else "")

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        facts = set()
        if action.address.kind is Kind.JOB:
            if "run" in desired or "before" in desired:
                facts.add(Fact.RUNS_CODE)
            if desired.get("deliver", "local") != "local":
                facts.add(Fact.REACHES_PEOPLE)
        return frozenset(facts)

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        return [
            replace(a, late=a.address.profile)
            if a.address.kind is Kind.CHANNEL and a.address.profile in observation.gateways
            else a
            for a in actions
        ]

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        return {n: v for n, v in thing.fields.items() if not isinstance(v, Unknown)}

    def batch(self, action: Action) -> str:
        return f"{action.address.profile}/{action.address.kind}"

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        return None

    def limits(self) -> Sequence[str]:
        return ["the memory home has no monitor"]

    def examine(self, home: HomeRef) -> Sequence[str]:
        return ()

    @contextmanager
    def open(self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf) -> Iterator[Door]:
        self.doors += 1
        yield MemoryDoor(self.homes.setdefault(home.path, MemoryHome(exists=False)))

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        return ""


class MemoryDoor:
    """Writes to a MemoryHome as a harness would: checks the object first, makes ids, answers in its own words."""

    name = "memory"

    def __init__(self, home: MemoryHome) -> None:
        self.home = home

    def deadline(self, step: Step) -> float:
        return 0.0

    def perform(self, step: Step) -> Sequence[Answer]:
        made: dict[str, str] = {}
        return [self._one(action, step, made) for action in step.actions]

    def _one(self, action: Action, step: Step, made: dict[str, str]) -> Answer:
        address = action.address
        self.home.writes += 1
        if action.row is Row.PROVISION:
            self.home.exists = True
            return Answer(address, Code.OK)
        if action.row is Row.RESTART:
            for name in action.id.split(",") if not self.home.stuck else ():
                self.home.gateways[name] += "+"
            return Answer(address, Code.OK)
        if address.kind is Kind.SECRET:
            kept = self.home.secrets.setdefault(address.profile, {})
            kept.pop(address.key, None)
            if address in step.secrets:
                kept[address.key] = step.secrets[address].reveal()
            return Answer(address, Code.OK, id=address.key)
        key = ("" if address.kind is Kind.PROFILE else address.profile, address.kind)
        store = self.home.things.setdefault(key, {})
        place = address.profile if address.kind is Kind.PROFILE else address.key
        harness_id = action.id or (place if address.kind is not Kind.JOB else "")
        if action.row in (Row.CREATE, Row.MISSING):
            if address.kind is Kind.JOB:
                harness_id = f"id{next(_ids)}"
            store[harness_id] = {"$marker": step.intents.get(address, "")}
            made[address.path] = harness_id
        elif harness_id in store:
            if action.fingerprint and _fingerprint(store[harness_id]) != action.fingerprint:
                return Answer(address, Code.STALE, words="it changed since the plan")
            if action.row is Row.DELETE:
                del store[harness_id]
                return Answer(address, Code.OK, shown={} if address.kind is Kind.KIT else None)
        elif action.row is Row.DELETE:
            return Answer(address, Code.REFUSED, words="no such thing")
        record = store.setdefault(harness_id, {})
        for change in action.changes:
            if change.writes and change.write is CLEAR:
                record.pop(change.field, None)
            elif change.writes:
                record[change.field] = resolve_refs(change.write, made.get)
        fields = {name: value for name, value in record.items() if name != "$marker"}
        return Answer(address, Code.OK, id=harness_id, shown=fields if address.kind is Kind.KIT else None)


def _fingerprint(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _observed(key: tuple[str, Kind], harness_id: str, fields: Mapping[str, Any]) -> Observed:
    profile, kind = key
    return Observed(
        kind,
        harness_id if kind is Kind.PROFILE else profile,
        harness_id,
        {n: v for n, v in fields.items() if n != "$marker"},
        name=str(fields.get("name", harness_id)),
        marker=str(fields.get("$marker", "")),
        fingerprint=_fingerprint(fields),
    )
