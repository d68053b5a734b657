"""Inference as it stands in config.yaml: default model, fallbacks and auxiliary models, in every form Hermes reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.observe import Observed
from reconciler.provider import Canon
from reconciler_shape import models as shape
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, models, versions


def observed(profile: home.Profile) -> Observed:
    """The profile's inference; every field Unknown where config.yaml cannot be read."""
    if profile.config.unknown:
        reason = profile.config.unknown
        return Observed(Kind.INFERENCE, profile.name, "", dict.fromkeys(("default", "fallbacks", "auxiliary"), reason))
    fields = fields_of(profile)
    raw = {key: profile.config.raw[key] for key in shape.INFERENCE if key in profile.config.raw}
    defaults = frozenset({"fallbacks"} if fields.get("fallbacks") == [] else set())
    return Observed(
        Kind.INFERENCE,
        profile.name,
        "",
        fields,
        defaults=defaults,
        fingerprint=digest(raw, profile.hider.key),
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
    return models.from_entry(entry, profile.hider)


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
    missing = sorted({shape.key_name(model) for _, model in shape.each(fields)} - {"", *env}) if env_known else []
    refused = {}
    if "unattended" in fields:
        ours = versions.series(version) or versions.NEWEST
        refused["unattended"] = f"Hermes {ours} has no model for unattended runs: give each job its `model:`"
    held = f"the home's .env has no {', '.join(missing)}" if missing else ""
    return Canon(shape.canon(fields, models.canonical), refused=refused, held=held)
