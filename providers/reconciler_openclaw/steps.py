"""Rows of a plan as edits of openclaw.json. Pure: it gets the config as it stands, and says what to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.action import CLEAR, Action, Clear, Row
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import inference, jobwords, kinds, secretrefs, settings
from .edits import GONE, Config, Edit, changes_of, differences, seen, written
from .view import Path, View, look_up


def edits(action: Action, config: Config) -> list[Edit]:
    """What a row changes. Raises Refused."""
    match action.address.kind:
        case Kind.SETTING:
            return list(_setting(action, config))
        case Kind.INFERENCE:
            return list(_inference(action, config))
        case Kind.PROFILE:
            return list(_profile(action, config))
    return list(kinds.PARTS[action.address.kind].edits(action, config))


# -- settings


def _setting(action: Action, config: Config) -> Iterator[Edit]:
    path = settings.split(action.address.key, config.roster, action.address.profile)
    if action.row is Row.DELETE:
        yield path, GONE
        return
    for change in changes_of(action):
        if change.write is CLEAR:
            yield path, GONE
        else:
            yield from differences(path, seen(change), change.write, config)


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
