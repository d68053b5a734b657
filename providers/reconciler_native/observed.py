"""The home's things in the setup's words, secrets hidden; and back, for adopt and capture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.observe import Observed, Things, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json

from . import block, jobwords, models, ops_config, ops_files, ops_profiles, record
from .errors import LoadFailed
from .folder import Profile
from .hiding import Hider, is_hidden

_ABOUT = ("next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error", "state", "created_at")
_DEFAULTS: Mapping[str, Json] = {"skills": [], "context_from": [], "paused": False}


def profile(found: Profile, hider: Hider, held: Sequence[str]) -> Observed:
    """The profile with its description; `held` keeps it from being deleted."""
    fields: dict[str, Json | Unknown] = {}
    try:
        text = str(found.meta.get(("description",)) or "").strip()
        if text:
            fields["description"] = hider.value(text)
        print_of = ops_profiles.fingerprint(found.meta.original, hider.key)
    except LoadFailed as error:
        fields["description"], print_of = Unknown(str(error)), ""
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


def _job(item: record.Record, found: Profile, hider: Hider) -> Observed:
    fields: dict[str, Json] = {
        key: hider.value(value) for key, value in jobwords.observed(item, found.zone).items() if value is not None
    }
    defaults = {key for key, plain in _DEFAULTS.items() if key in fields and fields[key] == plain}
    defaults.add("id")
    if fields.get("name") == record.label(item):
        defaults.add("name")
    when = fields.get("schedule")
    if isinstance(when, dict) and "at" in when and fields.get("repeat") == 1:
        defaults.add("repeat")
    marker = item.get(record.MARKER)
    about: dict[str, Json] = {key: hider.value(item[key]) for key in _ABOUT if item.get(key) is not None}
    repeat = item.get("repeat")
    if isinstance(repeat, dict) and repeat.get("completed"):
        about["runs"] = repeat["completed"]
    if item.get("fire_claim") or item.get("run_claim"):
        about["running"] = True
    origin = item.get("origin")
    if isinstance(origin, dict) and origin.get("platform"):
        about["changed_by"] = f"made in a {origin['platform']} session"
    return Observed(
        Kind.JOB,
        found.name,
        str(item["id"]),
        fields,
        name=str(hider.text(str(item.get("name") or record.label(item)))),
        defaults=frozenset(defaults),
        marker=str(marker.get("intent", "")) if isinstance(marker, dict) else "",
        fingerprint=record.fingerprint(item, hider.key),
        about=about,
    )


class _Missing:
    pass


_MISSING = _Missing()


def _at(raw: Mapping[str, Any], path: Sequence[str]) -> Any:
    here: Any = raw
    for segment in path:
        if not isinstance(here, dict) or segment not in here:
            return _MISSING
        here = here[segment]
    return here


def _leaves(raw: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in raw.items():
        path = (*above, key)
        if isinstance(value, dict) and value and "$native" not in value:
            yield from _leaves(value, path)
        else:
            yield path


def settings(found: Profile, hider: Hider, wanted: Sequence[str], everything: bool) -> Things:
    """The wanted settings that are there; with `everything`, all that no other kind stands for. Raises LoadFailed."""
    raw = found.config.raw
    paths: dict[str, tuple[str, ...]] = {}
    for key in wanted:
        try:
            paths[key] = ops_config.split(key)
        except ValueError:
            continue  # `canon` refuses it, with the reason
    if everything:
        for path in _leaves(raw):
            if not ops_config.owned(path):
                paths.setdefault(ops_config.join(path), path)
    things = {}
    for key, path in paths.items():
        value = _at(raw, path)
        if isinstance(value, _Missing):
            continue
        # What lies in `headers` and `env` of a server is a credential more often than not.
        forced = any(segment in ("headers", "env") for segment in path[:-1])
        shown = hider.value(value, path[-1], forced=forced)
        fingerprint = record.digest(value, hider.key)
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
    own = {key: raw[key] for key in ops_config.INFERENCE if key in raw}
    return Observed(
        Kind.INFERENCE,
        found.name,
        "",
        fields,
        defaults=frozenset({"fallbacks"} if not chain else set()),
        fingerprint=record.digest(own, hider.key),
    )


def no_inference(name: str, hider: Hider) -> Observed:
    """As a profile has it that says nothing about its models."""
    fingerprint = record.digest({}, hider.key)
    return Observed(
        Kind.INFERENCE, name, "", {"fallbacks": []}, defaults=frozenset({"fallbacks"}), fingerprint=fingerprint
    )


def _section(raw: Mapping[str, Any]) -> dict[str, Any]:
    entry = raw.get("model")
    return {"default": entry} if isinstance(entry, str) else dict(entry) if isinstance(entry, dict) else {}


def _model(entry: Any, hider: Hider) -> dict[str, Any] | None:
    hidden = hider.value(entry.get("api_key"), "api_key") if isinstance(entry, dict) else None
    return models.from_entry(entry, hidden)


def file(name: str, path: str, data: bytes | Unknown, mode: int, hider: Hider, owner: str) -> Observed:
    """A file with its text, our block in it, and its mode."""
    if isinstance(data, Unknown):
        return Observed(Kind.FILE, name, path, dict.fromkeys(("text", "block", "mode"), data), name=path)
    fields: dict[str, Json | Unknown] = {"mode": f"0{mode & 0o777:03o}"}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        fields["text"] = fields["block"] = Unknown(f"{path}: not a text (byte {error.start})")
    else:
        fields["text"] = hider.value(text)
        try:
            ours = block.find(text, path, owner)
            if ours is not None:
                fields["block"] = hider.value(ours)
        except block.Torn as error:
            fields["block"] = Unknown(str(error))
    fingerprint = ops_files.digest_of(data, mode, hider.key)
    return Observed(Kind.FILE, name, path, fields, name=path, fingerprint=fingerprint)


def express(thing: Observed) -> dict[str, Json]:
    """A thing as a setup's fields: defaults left out, nothing hidden, nothing that the language has no word for."""
    match thing.kind:
        case Kind.JOB:
            return jobwords.express(thing)
        case Kind.INFERENCE:
            return _express_inference(thing)
        case Kind.SETTING:
            value = thing.get("value")
            said = None if isinstance(value, Unknown) or is_hidden(value) or _native(value) else value
            return {} if said is None else {"value": _named(said, ops_config.split(thing.id)[-1])}
        case Kind.FILE:
            return _express_file(thing)
    text = thing.get("description")
    return {"description": text} if isinstance(text, str) else {}


def _native(value: Any) -> bool:
    if isinstance(value, dict):
        return "$native" in value or any(map(_native, value.values()))
    return isinstance(value, list) and any(map(_native, value))


def _named(value: Json, under: str) -> Json:
    """A reference under a credential's key as the setup language writes it."""
    if isinstance(value, dict):
        return {key: _named(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, under) for item in value]
    match = re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value) if isinstance(value, str) else None
    return {"secret": match[1]} if match and secret_key(under) else value


def _express_file(thing: Observed) -> dict[str, Json]:
    out: dict[str, Json] = {}
    ours, text, mode = thing.get("block"), thing.get("text"), thing.get("mode")
    if isinstance(ours, str):
        out["block"] = ours
    elif isinstance(text, str):
        out["text"] = text
    if out and isinstance(mode, str) and mode != f"0{ops_files.usual(thing.id):03o}":
        out["mode"] = mode
    return out


def _express_inference(thing: Observed) -> dict[str, Json]:
    """Each distinct model under a name of its own."""
    named: dict[str, Json] = {}

    def name_of(model: Mapping[str, Json]) -> str:
        for known, definition in named.items():
            if definition == model:
                return known
        letters = (c if c.isalnum() else "-" for c in str(model["model"]).rpartition("/")[2].lower())
        base = name = ("".join(letters).strip("-") or "model")[:40]
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
    if isinstance(fallbacks, list) and fallbacks and all(map(usable, fallbacks)):
        out["fallbacks"] = [name_of(item) for item in fallbacks]
    if isinstance(auxiliary, dict):
        tasks = {task: name_of(model) for task, model in auxiliary.items() if usable(model)}
        out |= {"auxiliary": tasks} if tasks else {}
    return {"models": named, **out} if named else {}
