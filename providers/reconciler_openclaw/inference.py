"""Inference of a profile as openclaw.json has it: primary model, fallbacks, models per task, and their providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.observe import Observed
from reconciler.provider import Canon
from reconciler_shape import models as shape
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import digest, holds_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import MAP_OF_SCALARS, Class, Json, Shape

from . import jobwords, secretrefs
from .view import Path, View, look_up

FIELDS = ("default", "fallbacks", "auxiliary", "providers")
SHAPES = {"auxiliary": MAP_OF_SCALARS, "providers": Shape(Class.MAP, of=Shape(Class.MAP))}
TASKS = {"image": "imageModel", "pdf": "pdfModel", "utility": "utilityModel", "voice": "voiceModel"}
"""The setup's auxiliary tasks, and the key beside `model` that has each."""
PROVIDER = {"base_url": "baseUrl", "key": "apiKey", "api_mode": "api"}
"""What a model of the setup says of its provider, and the key of `models.providers.NAME` that has it."""
PROVIDERS = ("models", "providers")


def model_path(view: View) -> Path:
    """Where the profile's model stands: in the defaults of all agents for the default one, unless its own entry has
    one; else in the agent's entry."""
    if view.first and view.agent.entry.get("model") is None:
        return ("agents", "defaults", "model")
    return (*view.agent.path, "model")


def task_path(view: View, task: str) -> Path:
    """Where the model of an auxiliary task stands."""
    above = ("agents", "defaults") if view.first else view.agent.path
    return (*above, TASKS[task])


def observed(view: View) -> Observed:
    """The profile's inference; every field Unknown where the config cannot be read."""
    if view.config.unknown:
        return Observed(Kind.INFERENCE, view.profile, "", dict.fromkeys(FIELDS, view.config.unknown))
    primary, chain = _chosen(look_up(view.tree, model_path(view)))
    fields: dict[str, Any] = {"fallbacks": [model for ref in chain if (model := _model(view, ref))]}
    default = _model(view, primary)
    if default:
        fields["default"] = default
    tasks = {task: _model(view, _chosen(look_up(view.tree, task_path(view, task)))[0]) for task in TASKS}
    if any(tasks.values()):
        fields["auxiliary"] = {task: model for task, model in tasks.items() if model}
    known = {name: _provider(view, entry) for name, entry in _entries(view).items()}
    if any(known.values()):
        fields["providers"] = {name: entry for name, entry in known.items() if entry}
    raw = [look_up(view.tree, model_path(view)), *(look_up(view.tree, task_path(view, t)) for t in TASKS)]
    return Observed(
        Kind.INFERENCE,
        view.profile,
        "",
        fields,
        defaults=frozenset({"fallbacks"} if not fields["fallbacks"] else ()),
        fingerprint=digest([raw, look_up(view.tree, PROVIDERS)], view.hider.key),
    )


def _chosen(value: Any) -> tuple[Any, Sequence[Any]]:
    """Primary and fallbacks of a `model`, which may be a text or both."""
    if isinstance(value, Mapping):
        chain = value.get("fallbacks")
        return value.get("primary"), chain if isinstance(chain, list) else []
    return value, []


def _model(view: View, ref: Any) -> Json:
    """A reference, by an alias too (`agents.defaults.models.REF.alias`), as the setup's model."""
    found = jobwords.model(ref)
    if found and found["provider"] == "auto":
        known = look_up(view.tree, ("agents", "defaults", "models"))
        for name, entry in known.items() if isinstance(known, Mapping) else ():
            if isinstance(entry, Mapping) and entry.get("alias") == found["model"]:
                return jobwords.model(name)
    return found


def _entries(view: View) -> Mapping[str, Any]:
    found = look_up(view.tree, PROVIDERS)
    return found if isinstance(found, Mapping) else {}


def _provider(view: View, entry: Any) -> dict[str, Json]:
    if not isinstance(entry, Mapping):
        return {}
    found = {word: entry[native] for word, native in PROVIDER.items() if entry.get(native) not in (None, "")}
    if "key" in found:
        found["key"] = view.hider.value(secretrefs.named(found["key"], "apiKey"), "apiKey")
    if "base_url" in found:
        found["base_url"] = view.hider.value(str(found["base_url"]).rstrip("/"))
    return found


def usual_key(provider: str) -> str:
    """The variable from which OpenClaw takes a provider's key where the config names none."""
    return f"{provider.upper().replace('-', '_')}_API_KEY"


def canon(fields: Mapping[str, Json], names: frozenset[str] | None, keyed: frozenset[str]) -> Canon:
    """Declared inference in canonical terms: what a model says of its address and key becomes its provider's.

    `names` are the secrets that the home has, None if that cannot be told; `keyed` are the providers whose key the
    config names already: for another one the usual variable need not be written down.
    """
    out: dict[str, Json] = {}
    refused: dict[str, str] = {}
    providers: dict[str, dict[str, Json]] = {}
    missing: set[str] = set()
    for name, model in shape.each(fields):
        provider = str(model.get("provider", ""))
        said = {word: model[word] for word in PROVIDER if model.get(word) not in (None, "", {})}
        if "base_url" in said:
            said["base_url"] = str(said["base_url"]).rstrip("/")
        secret = shape.key_name(model)
        if secret and names is not None and secret not in names:
            missing.add(secret)
        if secret == usual_key(provider) and provider not in keyed and "base_url" not in said:
            said.pop("key", None)
        if said and provider in ("", "auto"):
            refused[name] = f"{model.get('model')}: say its provider; an address and a key belong to one"
        known = providers.setdefault(provider, {})
        for word, value in said.items():
            if known.setdefault(word, value) != value:
                refused[name] = f"OpenClaw has one {word} per provider, and {provider} is given two"
    for name, form in shape.canon(fields, _canonical).items():
        out[name] = form
    for task in fields.get("auxiliary") or {}:
        if task not in TASKS:
            refused["auxiliary"] = f"OpenClaw has no model for {task} (it has {', '.join(TASKS)})"
    if "unattended" in fields:
        out["unattended"] = fields["unattended"]
        refused["unattended"] = "OpenClaw has no model for unattended runs: give each job its `model:`"
    wanted = {name: entry for name, entry in providers.items() if entry}
    if wanted:
        out["providers"] = wanted
    held = (
        f"the home has no secret {', '.join(sorted(missing))} (.env, env.vars or its secret store)" if missing else ""
    )
    return Canon(out, {k: v for k, v in SHAPES.items() if k in out}, refused, held)


def _canonical(model: shape.Model) -> dict[str, Json]:
    return {"provider": str(model.get("provider") or "auto"), "model": str(model.get("model", ""))}


def express(fields: Mapping[str, Any]) -> dict[str, Any]:
    """As a setup's `inference:`, each model with what its provider's entry says."""
    known = fields.get("providers") if isinstance(fields.get("providers"), Mapping) else {}

    def whole(model: Any) -> Any:
        if not isinstance(model, Mapping):
            return model
        more = known.get(model.get("provider"), {}) if isinstance(known, Mapping) else {}
        return {
            **model,
            **{word: value for word, value in more.items() if not (is_hidden(value) or holds_native(value))},
        }

    chain, tasks = fields.get("fallbacks"), fields.get("auxiliary")
    return shape.express(
        {
            "default": whole(fields.get("default")),
            "fallbacks": [whole(item) for item in chain] if isinstance(chain, list) else chain,
            "auxiliary": {task: whole(item) for task, item in tasks.items()} if isinstance(tasks, Mapping) else tasks,
        }
    )
