"""Observed: homes and their state as a file, published by a runner that may look at them for plans that may not.

No secret is in it, nor a digest of one (L5). Of a thing that the setup neither declares nor owns it has the name; what
a provider plans from (its `facts`) is in it as the provider gave it, with its secrets blanked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler_specs.address import Address, Kind
from reconciler_specs.setup import Home
from reconciler_specs.shape import Json
from reconciler_state.codec import decode, encode
from reconciler_state.errors import StateError
from reconciler_state.files import Files
from reconciler_state.record import Base, HomeState, Owned

from .errors import UsageError
from .match import place_id
from .observe import Observation, Observed, Store, Things, Unknown
from .redact import HIDDEN, is_hidden

FORMAT = "reconciler.observed/1"
LIMIT = 64 * 1024 * 1024
UNPUBLISHED = "it was not published: the setup did not declare it then"


@dataclass(frozen=True, slots=True)
class Seen:
    """One home as it was seen. `said` is the path as the setup said it then, `path` the real one, `place` the place's
    name in state. `asked` are the address paths that the read was to answer. `failed` says why it could not be read."""

    harness: str
    said: str
    place: str
    path: str
    asked: frozenset[str] = frozenset()
    observation: Observation = field(default_factory=Observation)
    state: HomeState | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """What a runner saw, by home id. `made` is when, `commit` the setup's then ("" if it is not known)."""

    setup: str
    made: datetime
    commit: str
    homes: Mapping[str, Seen]


# -- publishing ------------------------------------------------------------------------------------------------------


def seen(
    home: Home, place: str, path: str, observation: Observation, state: HomeState | None, asked: Collection[Address]
) -> Seen:
    """A home fit to be published; `asked` is what the setup declares or owns in it."""
    known = {(a.profile if a.kind is not Kind.PROFILE else "", a.kind, place_id(a)) for a in asked}
    if state is not None:
        for things in state.owners.values():
            for owned_path, thing in things.items():
                address = Address.parse(f"{home.id}/{owned_path}")
                known.add(("" if address.kind is Kind.PROFILE else address.profile, address.kind, thing.id))
    declared_names = {a.key for a in asked if a.kind is Kind.JOB}
    things_: dict[tuple[str, Kind], Things | Unknown] = {}
    for key, found in observation.things.items():
        if isinstance(found, Unknown):
            things_[key] = found
            continue
        things_[key] = {
            i: _clean(t, whole=(*key, i) in known or (key[1] is Kind.JOB and t.name in declared_names))
            for i, t in found.items()
        }
    clean = replace(observation, things=things_, facts=_blank(dict(observation.facts)), clear=frozenset())
    asked_ = frozenset(a.path for a in asked)
    return Seen(home.harness, home.path, place, path, asked_, clean, _state(state) if state is not None else None)


def _clean(thing: Observed, *, whole: bool) -> Observed:
    if thing.kind is Kind.SECRET:
        fields: Mapping[str, Json | Unknown] = {"present": True} if thing.fields.get("present") else {}
    elif whole:
        fields = {k: v if isinstance(v, Unknown) else _blank(v) for k, v in thing.fields.items()}
    else:
        fields = dict.fromkeys(thing.fields, Unknown(UNPUBLISHED))
    return replace(thing, fields=fields, fingerprint="", marker="", about={})


def _state(state: HomeState) -> HomeState:
    """The state without what secrets are in it: their rows, and digests in others."""
    owners: dict[str, dict[str, Owned]] = {}
    for owner, things in state.owners.items():
        for path, thing in things.items():
            if Address.parse(f"-/{path}").kind is not Kind.SECRET:
                fields = {k: Base(_blank(b.declared), _blank(b.observed)) for k, b in thing.fields.items()}
                found = {k: tuple(_blank(list(v))) for k, v in thing.found.items()}
                owners.setdefault(owner, {})[path] = replace(thing, fields=fields, found=found)
    return replace(state, owners=owners)


def _blank(value: Any) -> Any:
    """A value whose digests of secrets say nothing: a secret is told to be there, and not which."""
    if is_hidden(value):
        return {HIDDEN: ""}
    if isinstance(value, dict):
        return {k: _blank(v) for k, v in value.items()}
    return [_blank(v) for v in value] if isinstance(value, list) else value


def text(published: Published) -> str:
    """The file's text. Raises UsageError if it would be too large to be read."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "setup": published.setup,
        "made": published.made.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": published.commit,
        "homes": {home: _home(item) for home, item in published.homes.items()},
    }
    document["digest"] = _digest(document)
    said = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    if len(said) > LIMIT:
        raise UsageError(f"what the homes hold is too large to be published ({len(said)} bytes, {LIMIT} at most)")
    return said


def _home(item: Seen) -> dict[str, Any]:
    o = item.observation
    return {
        "harness": item.harness,
        "said": item.said,
        "place": item.place,
        "path": item.path,
        "asked": sorted(item.asked),
        "failed": item.failed,
        "state": json.loads(encode(item.state)) if item.state is not None else None,
        "exists": o.exists,
        "version": o.version,
        "blocked": o.blocked,
        "notes": list(o.notes),
        "facts": dict(o.facts),
        "sure": o.sure,
        "stores": [[p, str(k), str(s)] for (p, k), s in sorted(o.stores.items())],
        "ended": [[p, str(k), dict(e)] for (p, k), e in sorted(o.ended.items())],
        "things": [[p, str(k), _things(t)] for (p, k), t in sorted(o.things.items())],
    }


def _things(things: Things | Unknown) -> dict[str, Any]:
    if isinstance(things, Unknown):
        return {"unknown": things.reason}
    return {"known": {i: _thing(t) for i, t in things.items()}}


def _thing(thing: Observed) -> dict[str, Any]:
    return {
        "name": thing.name,
        "defaults": sorted(thing.defaults),
        "fields": {k: v for k, v in thing.fields.items() if not isinstance(v, Unknown)},
        "unknown": {k: v.reason for k, v in thing.fields.items() if isinstance(v, Unknown)},
    }


def _digest(document: Mapping[str, Any]) -> str:
    told = {k: v for k, v in document.items() if k != "digest"}
    return hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# -- reading ---------------------------------------------------------------------------------------------------------


AGAIN = "reconciler observe --out homes.json  # on a runner that reaches the homes"


def read(path: Path) -> Published:
    """Raises UsageError for what is no such file, was cut off, or was changed since it was written."""
    try:
        if path.stat().st_size > LIMIT:
            raise UsageError(f"{path}: too large for an observation")
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})", hint=AGAIN) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no observation (it is not JSON)", hint=AGAIN) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"{path}: no observation of this version", hint=AGAIN)
    if document.get("digest") != _digest(document):
        raise UsageError(f"{path}: its digest does not hold: it was changed since it was written", hint=AGAIN)
    try:
        made = datetime.fromisoformat(document["made"])
        homes = {home: _read_home(item, path) for home, item in document["homes"].items()}
        return Published(document["setup"], made, document["commit"], homes)
    except (KeyError, TypeError, ValueError, AttributeError, StateError) as error:
        raise UsageError(f"{path}: not in proper form ({error})", hint=AGAIN) from error


def _read_home(item: Mapping[str, Any], path: Path) -> Seen:
    state = decode(json.dumps(item["state"]).encode(), path) if item["state"] is not None else None
    observation = Observation(
        exists=bool(item["exists"]),
        version=item["version"],
        things=dict(_read_things(item["things"])),
        stores={(p, Kind(k)): Store(s) for p, k, s in item["stores"]},
        ended={(p, Kind(k)): dict(e) for p, k, e in item["ended"]},
        blocked=str(item["blocked"]),
        notes=tuple(map(str, item["notes"])),
        facts=dict(item["facts"]),
        sure=bool(item["sure"]),
    )
    said, place, real = str(item["said"]), str(item["place"]), str(item["path"])
    asked = frozenset(map(str, item["asked"]))
    return Seen(str(item["harness"]), said, place, real, asked, observation, state, str(item["failed"]))


def _read_things(listed: Any) -> Iterator[tuple[tuple[str, Kind], Things | Unknown]]:
    for profile, kind_, things in listed:
        kind = Kind(kind_)
        if "unknown" in things:
            yield (profile, kind), Unknown(str(things["unknown"]))
        else:
            yield (profile, kind), {i: _read_thing(kind, profile, i, t) for i, t in things["known"].items()}


def _read_thing(kind: Kind, profile: str, harness_id: str, thing: Mapping[str, Any]) -> Observed:
    unknown = {k: Unknown(str(v)) for k, v in thing["unknown"].items()}
    fields = {**thing["fields"], **unknown}
    return Observed(kind, profile, harness_id, fields, str(thing["name"]), frozenset(thing["defaults"]))


def write(path: Path, published: Published) -> None:
    """Writes the file whole, for its owner only. Raises UsageError, also where something else is at `path`."""
    said = text(published)
    try:
        there = path.stat(follow_symlinks=False).st_size
        if there and FORMAT not in path.read_text("utf-8", "replace"):
            raise UsageError(f"{path} is there, and is no observation: it would be lost", hint="--out homes.json")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        Files().write(path.absolute(), said.encode())
    except StateError as error:
        raise UsageError(str(error)) from error
