"""The home's things in the setup's words, secrets hidden; and back, for adopt and capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.observe import Observed, Things, Unknown
from reconciler_shape import dotted, files, models, reach, worker
from reconciler_shape import jobs as shape
from reconciler_shape import record as records
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.plain import digest, holds_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import jobwords, kits, ops_files, ops_profiles, record
from .errors import LoadFailed
from .folder import Profile
from .ops_reach import DIALECT


def profile(found: Profile, hider: Hider, held: Sequence[str]) -> Observed:
    """The profile with its description; `held` keeps it from being deleted."""
    fields: dict[str, Json | Unknown] = {}
    try:
        text = str(found.meta.get(("description",)) or "").strip()
        if text:
            fields["description"] = hider.value(text)
    except LoadFailed as error:
        fields["description"] = Unknown(str(error))
    try:
        block = worker.observed(found.config.raw, hider)
        if block is not None:
            fields[worker.FIELD] = block
        print_of = ops_profiles.fingerprint(found, hider.key)
    except LoadFailed as error:
        fields[worker.FIELD], print_of = Unknown(str(error)), ""
    about: dict[str, Json] = {"holds": list(held)} if held else {}
    return Observed(Kind.PROFILE, "", found.name, fields, name=found.name, fingerprint=print_of, about=about)


def jobs(found: Profile, hider: Hider, notes: list[str]) -> Things:
    """The profile's jobs by id. Raises LoadFailed."""
    store = found.jobs
    things: dict[str, Observed] = {}
    for index, item in enumerate(store.records()):
        if not isinstance(item.get("id"), str) or not item["id"]:
            notes.append(f"{store.path}: job number {index + 1} has no id, and is left alone")
    for name in store.ids():
        thing = things[name] = _job(store.get(name) or {}, found, hider)
        if name in store.twice:
            reason = Unknown(f"{store.path}: two jobs have the id {name}")
            things[name] = Observed(
                Kind.JOB,
                found.name,
                name,
                dict.fromkeys(thing.fields, reason),
                thing.name,
                fingerprint=thing.fingerprint,
            )
            notes.append(reason.reason)
    return things


def _job(item: records.Record, found: Profile, hider: Hider) -> Observed:
    fields: dict[str, Json] = {
        key: hider.value(value) for key, value in jobwords.observed(item, found.zone).items() if value is not None
    }
    defaults = shape.defaults(fields)
    defaults.add("id")
    if fields.get("name") == record.label(item):
        defaults.add("name")
    marker = item.get(records.MARKER)
    return Observed(
        Kind.JOB,
        found.name,
        str(item["id"]),
        fields,
        name=str(hider.text(str(item.get("name") or record.label(item)))),
        defaults=frozenset(defaults),
        marker=str(marker.get("intent", "")) if isinstance(marker, dict) else "",
        fingerprint=record.fingerprint(item, hider.key),
        about=shape.about(item, hider),
    )


def _elsewhere(path: tuple[str, ...]) -> bool:
    return path[0] == worker.FIELD or reach.elsewhere(path)


def settings(found: Profile, hider: Hider, wanted: Sequence[str], everything: bool) -> Things:
    """The wanted settings that are there; with `everything`, all that no other kind stands for. Raises LoadFailed."""
    things = {}
    for key, path, value in dotted.chosen(found.config.raw, wanted, everything, _elsewhere):
        shown = hider.value(value, path[-1], forced=dotted.under_secret(path))
        fingerprint = digest(value, hider.key)
        things[key] = Observed(Kind.SETTING, found.name, key, {"value": shown}, name=key, fingerprint=fingerprint)
    return things


def inference(found: Profile, hider: Hider) -> Observed:
    """The profile's models. Raises LoadFailed."""
    raw = found.config.raw
    fields: dict[str, Json | Unknown] = {"fallbacks": []}
    beside = {key: raw[key] for key in ("provider", "base_url", "api_base") if raw.get(key)}
    default = _model({**beside, **_section(raw)}, hider)
    if default and default.get("model"):
        fields["default"] = default
    chain = []
    for key in ("fallback_providers", "fallback_model"):
        entries = raw.get(key)
        for entry in entries if isinstance(entries, list) else [entries]:
            model = _model(entry, hider)
            if model and model not in chain:
                chain.append(model)
    fields["fallbacks"] = chain
    auxiliary = raw.get("auxiliary")
    tasks: dict[str, Json] = {}
    for task, entry in auxiliary.items() if isinstance(auxiliary, dict) else ():
        model = _model(entry, hider)
        if model and model != {"provider": "auto"}:
            tasks[task] = model
    if tasks:
        fields["auxiliary"] = tasks
    own = {key: raw[key] for key in models.INFERENCE if key in raw}
    return Observed(
        Kind.INFERENCE,
        found.name,
        "",
        fields,
        defaults=frozenset({"fallbacks"} if not chain else set()),
        fingerprint=digest(own, hider.key),
    )


def no_inference(name: str, hider: Hider) -> Observed:
    """As a profile has it that says nothing about its models."""
    fingerprint = digest({}, hider.key)
    return Observed(
        Kind.INFERENCE, name, "", {"fallbacks": []}, defaults=frozenset({"fallbacks"}), fingerprint=fingerprint
    )


def _section(raw: Mapping[str, Any]) -> dict[str, Any]:
    entry = raw.get("model")
    return {"default": entry} if isinstance(entry, str) else dict(entry) if isinstance(entry, dict) else {}


def _model(entry: Any, hider: Hider) -> dict[str, Any] | None:
    if isinstance(entry, str) and entry:
        entry = {"default": entry}
    if not isinstance(entry, dict):
        return None
    return models.from_entry(entry, hider)


def file(name: str, path: str, data: bytes | Unknown, mode: int, hider: Hider, owner: str) -> Observed:
    """A file with its text, our block in it, and its mode."""
    if isinstance(data, Unknown):
        return files.unknown(name, path, data)
    return files.observed(name, path, data, mode, hider, owner, path)


def express(thing: Observed) -> dict[str, Json]:
    """A thing as a setup's fields: defaults left out, nothing hidden, nothing that the language has no word for."""
    if thing.kind in reach.KINDS:
        return reach.express(thing, DIALECT)
    match thing.kind:
        case Kind.JOB:
            return jobwords.express(thing)
        case Kind.INFERENCE:
            return models.express(thing.fields)
        case Kind.SETTING:
            value = thing.get("value")
            said = None if isinstance(value, Unknown) or is_hidden(value) or holds_native(value) else value
            return {} if said is None else {"value": dotted.named(said, dotted.last(thing.id))}
        case Kind.KIT:
            return kits.express(thing)
        case Kind.FILE:
            return files.express(thing, (f"0{ops_files.usual(thing.id):03o}",))
    text, block = thing.get("description"), worker.express(thing.get(worker.FIELD))
    own: dict[str, Json] = {"description": text} if isinstance(text, str) else {}
    return {**own, **({worker.FIELD: block} if block is not None else {})}
