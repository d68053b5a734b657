"""Inference as it stands in config.yaml: default model, fallbacks and auxiliary models, in every form Hermes reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.observe import Observed, Unknown
from reconciler.provider import Canon
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, models, versions
from .hiding import is_hidden
from .worker import record as records

KEYS = ("model", "fallback_providers", "fallback_model", "auxiliary", "provider", "base_url", "api_base")
"""Top-level keys of config.yaml that this kind reads and writes."""


def observed(profile: home.Profile) -> Observed:
    """The profile's inference; every field Unknown where config.yaml cannot be read."""
    if profile.config.unknown:
        reason = profile.config.unknown
        return Observed(Kind.INFERENCE, profile.name, "", dict.fromkeys(("default", "fallbacks", "auxiliary"), reason))
    fields = fields_of(profile)
    raw = {key: profile.config.raw[key] for key in KEYS if key in profile.config.raw}
    defaults = frozenset({"fallbacks"} if fields.get("fallbacks") == [] else set())
    return Observed(
        Kind.INFERENCE,
        profile.name,
        "",
        fields,
        defaults=defaults,
        fingerprint=records.digest(raw, profile.hider.key),
    )


def fields_of(profile: home.Profile) -> dict[str, Json]:
    raw = profile.config.raw
    fields: dict[str, Json] = {"fallbacks": _chain(raw, profile)}
    default = _default(raw, profile)
    if default:
        fields["default"] = default
    auxiliary = raw.get("auxiliary")
    tasks: dict[str, Json] = {}
    for task, entry in auxiliary.items() if isinstance(auxiliary, dict) else ():
        model = _model(entry, profile) if isinstance(entry, dict) else None
        if model and model != {"provider": "auto"}:
            tasks[task] = model
    if tasks:
        fields["auxiliary"] = tasks
    return fields


def current(profile: home.Profile) -> dict[str, str]:
    """Provider and model that an unpinned job runs on now, in the words of its snapshots; {} if that is not set."""
    default = _default(profile.config.raw, profile)
    return snapshot_of(default) if default else {}


def snapshot_of(model: Mapping[str, Json]) -> dict[str, str]:
    """How a job's snapshots call a Model."""
    return {
        "provider": models.resolved_provider(str(model.get("provider", ""))),
        "model": str(model.get("model", "")),
    }


def _default(raw: Mapping[str, Json], profile: home.Profile) -> dict[str, Json] | None:
    entry = raw.get("model")
    found: dict[str, Json] = {"default": entry} if isinstance(entry, str) else dict(entry or {}) if _map(entry) else {}
    # Root keys are read only where the section says nothing (Hermes `_normalize_root_model_keys`).
    for key in ("provider", "base_url"):
        if raw.get(key) and not found.get(key):
            found[key] = raw[key]
    if not found.get("base_url"):
        found["base_url"] = raw.get("api_base") or found.get("api_base")
    if not any(found.get(key) for key in ("default", "model", "name")):
        return None
    return _model(found, profile)


def _map(value: Json) -> bool:
    return isinstance(value, dict)


def _model(entry: Mapping[str, Json], profile: home.Profile) -> dict[str, Json] | None:
    hidden = profile.hider.value(entry.get("api_key"), "api_key")
    return models.from_entry(entry, hidden)


def _chain(raw: Mapping[str, Json], profile: home.Profile) -> list[Json]:
    """As Hermes's `get_fallback_chain`: the older key's entries come last, each route once."""
    chain: list[Json] = []
    seen: set[tuple[str, str, str]] = set()
    for key in ("fallback_providers", "fallback_model"):
        entries = raw.get(key)
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict) or not entry.get("provider") or not entry.get("model"):
                continue
            model = _model(entry, profile) or {}
            route = tuple(str(model.get(k, "")).lower() for k in ("provider", "model", "base_url"))
            if route not in seen:
                seen.add(route)  # type: ignore[arg-type]
                chain.append(model)
    return chain


def canon(fields: Mapping[str, Json], env: Sequence[str], env_known: bool, version: str | None) -> Canon:
    """Declared inference in canonical Models. `env` are the names in the profile's `.env`."""
    out: dict[str, Json] = {}
    missing: list[str] = []
    for name, value in fields.items():
        if name == "unattended":
            continue
        out[name] = (
            models.canonical(value)
            if name == "default"
            else [models.canonical(item) for item in value]
            if name == "fallbacks"
            else {task: models.canonical(item) for task, item in value.items()}
        )
        for model in _each(name, value):
            secret = models.key_name(model)
            if secret and env_known and secret not in env and secret not in missing:
                missing.append(secret)
    refused = {}
    if "unattended" in fields:
        ours = versions.series(version) or versions.NEWEST
        refused["unattended"] = f"Hermes {ours} has no model for unattended runs: give each job its `model:`"
    held = f"the home's .env has no {', '.join(missing)}" if missing else ""
    return Canon(out, refused=refused, held=held)


def _each(field: str, value: Json) -> list[Mapping[str, Json]]:
    if field == "default":
        return [value]
    return list(value) if field == "fallbacks" else list(value.values())


def addresses(fields: Mapping[str, Json | Unknown]) -> tuple[set[str], set[str]]:
    """The base URLs and the key names that these fields hold."""
    urls, keys = set(), set()
    for name in ("default", "fallbacks", "auxiliary"):
        value = fields.get(name)
        if value is None or isinstance(value, Unknown):
            continue
        for model in _each(name, value):
            if not isinstance(model, Mapping):
                continue
            if model.get("base_url"):
                urls.add(str(model["base_url"]))
            secret = models.key_name(model)
            keys |= {secret} if secret else set()
            # A provider that is new here gets prompts and a key too, even where nothing is spelled out.
            urls.add(f"provider:{model.get('provider')}")
    return urls, keys


def express(thing: Observed) -> dict[str, Json]:
    """As a setup's `inference:` with each distinct Model under a name of its own."""
    named: dict[str, Json] = {}

    def name_of(model: Mapping[str, Json]) -> str:
        for known, definition in named.items():
            if definition == model:
                return known
        base = "".join(c if c.isalnum() else "-" for c in str(model["model"]).rpartition("/")[2].lower()).strip("-")
        name = base = (base or "model")[:40]
        count = 2
        while name in named:
            name, count = f"{base}-{count}", count + 1
        named[name] = dict(model)
        return name

    def usable(model: Json) -> bool:
        return isinstance(model, Mapping) and bool(model.get("model")) and not is_hidden(dict(model))

    out: dict[str, Json] = {}
    default, fallbacks, auxiliary = (thing.get(name) for name in ("default", "fallbacks", "auxiliary"))
    if isinstance(default, dict) and usable(default):
        out["default"] = name_of(default)
    if isinstance(fallbacks, list) and fallbacks and all(usable(item) for item in fallbacks):
        out["fallbacks"] = [name_of(item) for item in fallbacks]
    if isinstance(auxiliary, dict):
        tasks = {task: name_of(model) for task, model in auxiliary.items() if usable(model)}
        if tasks:
            out["auxiliary"] = tasks
    return {"models": named, **out} if named else {}
