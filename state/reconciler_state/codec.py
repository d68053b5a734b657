"""HomeState as the bytes of a state file and back; knows the format, not where it is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reconciler_specs.shape import Json

from .errors import StateDamaged, StateError
from .record import Base, HomeState, Owned, Retired
from .upgrade import FORMAT, upgrade

_TEXTS: Final = ("place", "harness", "path", "lineage", "version")
_ENCODER: Final = json.JSONEncoder(sort_keys=True, allow_nan=False)
_CONFLICT: Final = re.compile(rb"^(<{7}|={7}|>{7}|\|{7})( |\r?$)", re.MULTILINE)


def encode(state: HomeState) -> bytes:
    """Sorted, one line per owned thing, so that a diff shows what changed; ASCII, so that any string survives.

    Raises StateError for a number that JSON has no word for (NaN).
    """
    return f'{{"format": {FORMAT}, "serial": {state.serial},\n'.encode() + body(state)


def body(state: HomeState) -> bytes:
    """All but the first line: two states have the same body iff there is nothing to write."""
    try:
        # Not `indent`, which the standard library encodes fifty times slower.
        head = [f"{_json(name)}: {_json(getattr(state, name))}" for name in _TEXTS]
        owners = [
            f"{_json(owner)}: {{\n" + ",\n".join(f"{_json(p)}: {_json(_thing(t))}" for p, t in sorted(things.items()))
            for owner, things in sorted(state.owners.items())
        ]
        labels = _json(dict(state.labels))
    except ValueError as error:
        raise StateError(f"the state of {state.path}: a value is no JSON: {error}") from error
    whole = ",\n".join(
        [*head, f'"labels": {labels}', '"owners": {' + "\n},\n".join(owners) + ("\n}" if owners else "")]
    )
    return whole.encode("ascii") + b"}}\n"


def _json(value: Json) -> str:
    return _ENCODER.encode(value)


def _thing(thing: Owned) -> Json:
    out: dict[str, Json] = {
        "id": thing.id,
        "origin": thing.origin,
        "fields": {k: {"declared": b.declared, "observed": b.observed} for k, b in thing.fields.items()},
    }
    # What is rarely there is written only when it is.
    if thing.needs:
        out["needs"] = list(thing.needs)
    if thing.protect:
        out["protect"] = True
    if thing.found:
        out["found"] = {k: list(v) for k, v in thing.found.items()}
    if thing.retired:
        out["retired"] = {"at": thing.retired.at, "was": dict(thing.retired.was)}
    return out


def decode(data: bytes, path: Path) -> HomeState:
    """Raises StateTooNew, or StateDamaged naming `path` and why.

    A single owned thing that is not in proper form does not cost the rest: it is left out and named in `damaged`.
    """
    content = upgrade(_parse(data, path), path)
    serial, labels, owners = content.get("serial"), content.get("labels"), content.get("owners")
    texts: dict[str, str] = {}
    for name in _TEXTS:
        if not isinstance(value := content.get(name), str):
            raise StateDamaged(path, f"{name!r} is missing or no text")
        texts[name] = value
    if isinstance(serial, bool) or not isinstance(serial, int) or serial < 1:
        raise StateDamaged(path, "'serial' is missing or no number")
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise StateDamaged(path, "'labels' is missing or no map of texts")
    if not isinstance(owners, dict) or not all(isinstance(v, dict) for v in owners.values()):
        raise StateDamaged(path, "'owners' is missing or no map of maps")
    damaged: list[str] = []
    kept: dict[str, dict[str, Owned]] = {}
    for owner, things in owners.items():
        for address, record in things.items():
            try:
                kept.setdefault(owner, {})[address] = _owned(record)
            except ValueError as error:
                damaged.append(f"{owner}: {address}: {error}")
    return HomeState(**texts, serial=serial, owners=kept, labels=labels, damaged=tuple(sorted(damaged)))


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    if mark := _CONFLICT.search(data):
        line = data.count(b"\n", 0, mark.start()) + 1
        raise StateDamaged(path, f"line {line}: a git conflict was left in it; a state is never merged by hand")
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise StateDamaged(path, f"byte {error.start} is no text") from error
    except json.JSONDecodeError as error:
        raise StateDamaged(path, f"line {error.lineno}: {error.msg} (is it cut off?)") from error
    except ValueError as error:
        raise StateDamaged(path, str(error)) from error
    except RecursionError as error:
        raise StateDamaged(path, "is nested too deeply") from error
    if not isinstance(content, dict):
        raise StateDamaged(path, "holds no JSON object")
    return content


def _owned(record: Json) -> Owned:
    """Raises ValueError saying what is wrong."""
    if not isinstance(record, dict):
        raise ValueError("no JSON object")
    if not isinstance(record.get("id"), str):
        raise ValueError("'id' is missing or no text")
    if record.get("origin") not in ("created", "adopted"):
        raise ValueError("'origin' is neither created nor adopted")
    fields, found = record.get("fields"), record.get("found", {})
    if not isinstance(fields, dict):
        raise ValueError("'fields' is missing or no map")
    for name, base in fields.items():
        if not isinstance(base, dict) or base.keys() != {"declared", "observed"}:
            raise ValueError(f"field {name!r} has not both halves of a base")
    needs, protect = record.get("needs", []), record.get("protect", False)
    if not isinstance(needs, list) or not all(isinstance(n, str) for n in needs):
        raise ValueError("'needs' is no list of addresses")
    if not isinstance(protect, bool):
        raise ValueError("'protect' is neither true nor false")
    if not isinstance(found, dict) or not all(isinstance(v, list) for v in found.values()):
        raise ValueError("'found' is no map of lists")
    retired = record.get("retired")
    if retired is not None and not (
        isinstance(retired, dict) and isinstance(retired.get("was"), dict) and _is_moment(retired.get("at"))
    ):
        raise ValueError("'retired' has no `at` and `was`")
    return Owned(
        id=record["id"],
        origin=record["origin"],
        fields={name: Base(base["declared"], base["observed"]) for name, base in fields.items()},
        needs=tuple(needs),
        protect=protect,
        found={name: tuple(values) for name, values in found.items()},
        retired=Retired(retired["at"], retired["was"]) if retired else None,
    )


def _is_moment(value: Json) -> bool:
    """Whether it is a time with its zone, as we write it."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _unique(pairs: list[tuple[str, Json]]) -> Mapping[str, Json]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice in one object (was it merged by hand?)")
    return out


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")
