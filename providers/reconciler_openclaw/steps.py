"""Rows of a plan as one patch of openclaw.json. Pure: it gets the config as it stands, and says what to write."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from reconciler.action import CLEAR, Action, Clear, FieldChange, Row
from reconciler.observe import Absent, Unknown
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import holds_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import inference, jobwords, secretrefs, settings
from .authored import Authored
from .roster import Roster
from .view import Path, View, look_up


class Refused(Exception):
    """The row is not tried: why, for a person."""


class _Gone(Enum):
    GONE = "gone"


GONE: Final = _Gone.GONE
"""To write: nothing, the key is taken away."""

Edit = tuple[Path, Any]
"""A path of openclaw.json and what it is to hold, or GONE."""


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


def edits(action: Action, config: Config) -> list[Edit]:
    """What a row changes. Raises Refused."""
    match action.address.kind:
        case Kind.SETTING:
            return list(_setting(action, config))
        case Kind.INFERENCE:
            return list(_inference(action, config))
        case _:
            return list(_profile(action, config))


def written(action: Action) -> dict[str, Json | Clear]:
    """Field → the value to write, or CLEAR. Raises Refused."""
    values = {}
    for change in _changes(action):
        if change.write is not CLEAR and (is_hidden(change.write) or holds_native(change.write)):
            raise Refused(f"{change.field}: the value cannot be written back as it was read")
        values[change.field] = change.write
    return values


def _changes(action: Action) -> list[FieldChange]:
    return [change for change in action.changes if action.row is not Row.UPDATE or change.writes]


def _seen(change: FieldChange) -> Json:
    return None if isinstance(change.observed, Absent | Unknown) else change.observed


# -- settings


def _setting(action: Action, config: Config) -> Iterator[Edit]:
    path = settings.split(action.address.key, config.roster, action.address.profile)
    if action.row is Row.DELETE:
        yield path, GONE
        return
    for change in _changes(action):
        if change.write is CLEAR:
            yield path, GONE
        else:
            yield from _differences(path, _seen(change), change.write, config)


def _differences(path: Path, old: Json, new: Json, config: Config) -> Iterator[Edit]:
    """Only what differs, so that hidden values beside it stay."""
    if _plain(old) and _plain(new) and new:
        for key in old.keys() - new.keys():
            yield (*path, key), GONE
        for key, value in new.items():
            if key not in old:
                yield from _differences((*path, key), None, value, config)
            elif old[key] != value or type(old[key]) is not type(value):
                yield from _differences((*path, key), old[key], value, config)
        return
    if is_hidden(new) or holds_native(new):
        raise Refused(f"{_named(path)}: it holds a value that cannot be written back as it was read")
    yield path, secretrefs.native(new, config.store, look_up(config.authored.tree, path))


def _plain(value: Json) -> bool:
    """Whether it is an object of the config, and not a mark of ours or a reference."""
    return isinstance(value, dict) and set(value) != {"secret"} and not any(key.startswith("$") for key in value)


# -- inference


def _inference(action: Action, config: Config) -> Iterator[Edit]:
    view, values = config.views[action.address.profile], written(action)
    if "default" in values or "fallbacks" in values:
        yield from _model(inference.model_path(view), values, view)
    if "auxiliary" in values:
        said = values["auxiliary"]
        wanted = {} if said is CLEAR else said
        for task in inference.TASKS:
            path = inference.task_path(view, task)
            now = look_up(view.tree, path)
            ref = jobwords.ref(wanted[task]) if wanted.get(task) else GONE
            if isinstance(now, Mapping) and ref is not GONE:
                yield (*path, "primary"), ref
            elif ref is not GONE or now is not None:
                yield path, ref
    if "providers" in values and values["providers"] is not CLEAR:
        yield from _providers(action, values["providers"], config)


def _model(path: Path, values: Mapping[str, Json | Clear], view: View) -> Iterator[Edit]:
    """A `model` is a text, or an object where it has fallbacks."""
    now = look_up(view.tree, path)
    kept = dict(now) if isinstance(now, Mapping) else {"primary": now} if now else {}
    if "default" in values:
        said = values["default"]
        kept["primary"] = None if said is CLEAR else jobwords.ref(said)
    if "fallbacks" in values:
        chain = values["fallbacks"]
        kept["fallbacks"] = None if chain is CLEAR or not chain else [jobwords.ref(model) for model in chain]
    left = {key: value for key, value in kept.items() if value is not None}
    if not left:
        yield path, GONE
    elif isinstance(now, Mapping):
        for key, value in kept.items():
            if value != now.get(key):
                yield (*path, key), GONE if value is None else value
    else:
        yield path, left["primary"] if set(left) == {"primary"} and isinstance(now, str) else left


def _providers(action: Action, wanted: Mapping[str, Any], config: Config) -> Iterator[Edit]:
    tree = config.authored.tree
    for name, entry in wanted.items():
        path: Path = (*inference.PROVIDERS, name)
        now = look_up(tree, path)
        for word, value in entry.items():
            place: Path = (*path, inference.PROVIDER[word])
            new = secretrefs.native(value, config.store, look_up(tree, place))
            if look_up(tree, place) != new:
                yield place, new
        if "base_url" in entry and not (isinstance(now, Mapping) and now.get("models")):
            # OpenClaw asks for the list of a provider's models where it has an address of its own.
            yield (*path, "models"), [{"id": model, "name": model} for model in _models_of(name, action)]


def _models_of(provider: str, action: Action) -> list[str]:
    """The models of a provider that the row names, each once."""
    found: dict[str, None] = {}
    for change in action.changes:
        value: Any = change.declared
        tasks = change.field == "auxiliary" and isinstance(value, Mapping)
        items = value if isinstance(value, list) else list(value.values()) if tasks else [value]
        for model in items:
            if isinstance(model, Mapping) and model.get("provider") == provider and model.get("model"):
                found[str(model["model"])] = None
    return list(found)


# -- profiles


def _profile(action: Action, config: Config) -> Iterator[Edit]:
    agent = config.roster.agent(action.address.profile)
    values = written(action)
    if "description" in values:
        text = values["description"]
        yield (*agent.path, "description"), GONE if text in (CLEAR, "") else text


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
        _put(after, path, value, config.roster)
        if cut is not None:
            whole[path[:cut]] = None
            continue
        _set(body, path, None if value is GONE else value)
        replace |= _lists(look_up(tree, path), path, value)
    for path in whole:
        _set(body, path, look_up(after, path))
        replace.add(_named(path))
    return Patch(body, sorted(replace))


def _lists(old: Any, path: Path, new: Any) -> set[str]:
    """The lists at or below a path that the new value replaces or takes away."""
    if isinstance(old, list):
        return {_named(path)}
    if isinstance(old, Mapping) and not isinstance(new, Mapping):
        return {name for key, item in old.items() for name in _lists(item, (*path, str(key)), GONE)}
    if isinstance(old, Mapping):
        return {
            name for key, item in old.items() if key in new for name in _lists(item, (*path, str(key)), new[str(key)])
        }
    return set()


def _named(path: Path) -> str:
    """As `config.patch` names a path, without quotes (`formatConfigPatchPath`)."""
    return ".".join(map(str, path))


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
