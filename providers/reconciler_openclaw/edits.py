"""What a row writes into openclaw.json, as edits of paths, and the edits of many rows as one patch. Pure."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from reconciler.action import CLEAR, Action, Clear, FieldChange, Row
from reconciler.observe import Absent, Unknown
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import holds_native
from reconciler_specs.shape import Json

from . import secretrefs
from .authored import Authored
from .roster import Roster
from .view import Path, View, look_up


class Refused(Exception):
    """The row is not tried: why, for a person."""


class _Gone(Enum):
    GONE = "gone"


GONE: Final = _Gone.GONE
"""To write: nothing, the key is taken away."""

Rewrite = Callable[[Any], Any]
"""A whole list as it is to be, from what stands there when all rows before have been carried out."""

Edit = tuple[Path, Any]
"""A path of openclaw.json and what it is to hold, GONE, or a Rewrite."""


@dataclass(frozen=True, slots=True)
class Config:
    """The config that is written on. `views` are the profiles' own parts of it, `store` the names in OpenClaw's secret
    store."""

    authored: Authored
    roster: Roster
    views: Mapping[str, View]
    store: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Patch:
    """What `config.patch` and `config patch` take: objects merge, None deletes, lists stand in it whole. `replace`
    names the lists that may lose members: RPC asks for them, the command line replaces every list."""

    body: Mapping[str, Any] = field(repr=False)
    replace: Sequence[str] = ()


def written(action: Action) -> dict[str, Json | Clear]:
    """Field → the value to write, or CLEAR. Raises Refused."""
    values = {}
    for change in changes_of(action):
        if change.write is not CLEAR and (is_hidden(change.write) or holds_native(change.write)):
            raise Refused(f"{change.field}: the value cannot be written back as it was read")
        values[change.field] = change.write
    return values


def changes_of(action: Action) -> list[FieldChange]:
    return [change for change in action.changes if action.row is not Row.UPDATE or change.writes]


def seen(change: FieldChange) -> Json:
    return None if isinstance(change.observed, Absent | Unknown) else change.observed


def differences(path: Path, old: Json, new: Json, config: Config) -> Iterator[Edit]:
    """Only what differs, so that hidden values beside it stay."""
    if is_plain(old) and is_plain(new) and new:
        for key in old.keys() - new.keys():
            yield (*path, key), GONE
        for key, value in new.items():
            if key not in old:
                yield from differences((*path, key), None, value, config)
            elif old[key] != value or type(old[key]) is not type(value):
                yield from differences((*path, key), old[key], value, config)
        return
    if is_hidden(new) or holds_native(new):
        raise Refused(f"{dotted_path(path)}: it holds a value that cannot be written back as it was read")
    yield path, secretrefs.native(new, config.store, look_up(config.authored.tree, path))


def is_plain(value: Json) -> bool:
    """Whether it is an object of the config, and not a mark of ours or a reference."""
    return isinstance(value, dict) and set(value) != {"secret"} and not any(key.startswith("$") for key in value)


# -- the patch


def patch(config: Config, changes: Sequence[Edit]) -> Patch:
    """One patch for all of them."""
    tree = config.authored.tree
    after: Any = copy.deepcopy(dict(tree))
    body: dict[str, Any] = {}
    replace: set[str] = set()
    whole: dict[Path, None] = {}
    for path, value in changes:
        cut = next((at for at, step in enumerate(path) if isinstance(step, int)), None)
        if callable(value):
            _put(after, path, value(look_up(after, path)), config.roster)
            whole[path] = None
            continue
        _put(after, path, value, config.roster)
        if cut is not None:
            whole[path[:cut]] = None
            replace |= _lists(look_up(tree, path), path, value)
            continue
        _set(body, path, None if value is GONE else value)
        replace |= _lists(look_up(tree, path), path, value)
    for path in whole:
        _set(body, path, look_up(after, path))
        replace.add(dotted_path(path))
    return Patch(body, sorted(replace))


def _lists(old: Any, path: Path, new: Any) -> set[str]:
    """The lists at or below a path that the new value replaces or takes away."""
    if isinstance(old, list):
        return {dotted_path(path)}
    if isinstance(old, Mapping) and not isinstance(new, Mapping):
        return {name for key, item in old.items() for name in _lists(item, (*path, str(key)), GONE)}
    if isinstance(old, Mapping):
        return {
            name for key, item in old.items() if key in new for name in _lists(item, (*path, str(key)), new[str(key)])
        }
    return set()


def dotted_path(path: Path) -> str:
    """As `config.patch` names a path, without quotes (`formatConfigPatchPath`); every item of a list is `[]`."""
    return ".".join("[]" if isinstance(step, int) else str(step) for step in path).replace(".[]", "[]")


def _set(body: dict[str, Any], path: Path, value: Any) -> None:
    for step in path[:-1]:
        below = body.get(str(step))
        if not isinstance(below, dict):
            below = body[str(step)] = {}
        body = below
    body[str(path[-1])] = value


def _put(tree: Any, path: Path, value: Any, roster: Roster) -> None:
    """Carries a change out on a copy of the config; an agent that the list lacks gets an entry."""
    at = tree
    for step, after in itertools.pairwise(path):
        if isinstance(step, int):
            if step < 0:
                entry = next((item for item in at if item.get("id") == roster.default), None)
                if entry is None:
                    entry = {"id": roster.default}
                    at.append(entry)
                at = entry
            else:
                at = at[step]
            continue
        below = at.get(step)
        if not isinstance(below, dict | list):
            below = at[step] = [] if isinstance(after, int) else {}
        at = below
    if value is GONE:
        at.pop(path[-1], None)
    else:
        at[path[-1]] = value
