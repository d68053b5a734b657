"""Jobs as they stand in `cron/jobs.json`: the store, its records in the setup's words, and back for adopt."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.observe import Observed, Store, Things, Unknown
from reconciler.place import Place
from reconciler_shape import jobs as shape
from reconciler_shape import places
from reconciler_shape import record as records
from reconciler_shape import schedule as words
from reconciler_shape.plain import native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, models, schedule, versions


@dataclass(frozen=True, slots=True)
class JobStore:
    """What `jobs.json` of one profile holds."""

    things: Things | Unknown
    store: Store
    notes: tuple[str, ...] = ()
    ended: Mapping[str, str] = field(default_factory=dict)


def read(place: Place, profile: home.Profile, version: str | None, current: Mapping[str, str]) -> JobStore:
    """The profile's jobs. `current` is the model that an unpinned job would run on now (provider, model)."""
    path = posixpath.join(profile.folder, "cron", "jobs.json")
    data = home.text(place, path, home.JOBS_LIMIT)
    if data is None:
        return JobStore({}, Store.MISSING, ended=places.ended(place, profile.folder, set()))
    if isinstance(data, Unknown):
        return JobStore(data, Store.IMPROPER)
    try:
        found, notes = load(data, path)
    except ValueError as error:
        return JobStore(Unknown(str(error)), Store.IMPROPER)
    things: dict[str, Observed] = {}
    twice: set[str] = set()
    for index, item in enumerate(found):
        name = item.get("id")
        if not isinstance(name, str) or not name:
            title = item.get("name") or f"number {index + 1}"
            notes.append(f"{path}: the job {profile.hider.text(str(title))!r} has no id; Hermes gives it one at a tick")
            continue
        if name in things:
            twice.add(name)
            continue
        things[name] = observed(item, profile, version, current)
    for name in sorted(twice):
        reason = Unknown(f"{path}: two jobs have the id {name}; Hermes would change or remove both")
        thing = things[name]
        things[name] = Observed(
            Kind.JOB, profile.name, name, dict.fromkeys(thing.fields, reason), thing.name, fingerprint=thing.fingerprint
        )
        notes.append(reason.reason)
    store = Store.PROPER if found or FRAME in data else Store.EMPTY
    return JobStore(things, store, tuple(notes), places.ended(place, profile.folder, set(things)))


FRAME = b'"jobs"'
"""What even a store without records holds: a person who removed the last job leaves it, a lost file does not."""


def load(data: bytes, path: str) -> tuple[list[records.Record], list[str]]:
    """The records as Hermes's `load_jobs` would give them, and what it would repair in the file by reading it.

    Raises ValueError, naming the file and line, for what Hermes fails on.
    """
    notes: list[str] = []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 at byte {error.start}") from error
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        try:
            found = json.loads(text, strict=False)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{error.lineno}:{error.colno}: {error.msg}; Hermes cannot read it") from error
        notes.append(f"{path}: bare control characters; Hermes rewrites the file when it reads it")
    except RecursionError as error:
        raise ValueError(f"{path}: nested too deeply") from error
    if isinstance(found, list):
        notes.append(f"{path}: a bare list; Hermes rewrites the file when it reads it")
    elif isinstance(found, dict):
        found = found.get("jobs", [])
    if not isinstance(found, list):
        raise ValueError(f"{path}: no list of jobs ({type(found).__name__}); Hermes cannot read it")
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            raise ValueError(f"{path}: job number {index + 1} is a {type(item).__name__}; Hermes cannot list them")
    return found, notes


def observed(item: records.Record, profile: home.Profile, version: str | None, current: Mapping[str, str]) -> Observed:
    """One record in the setup's words."""
    agent = not item.get("no_agent")
    prompt, script = _text(item.get("prompt")), _text(item.get("script"))
    skills = records.skills(item)
    label = (prompt or (skills[0] if skills else "") or (script if not agent else "") or "cron job")[:50].strip()
    name = _text(item.get("name")).strip() or (prompt or (skills or [""])[0] or script or str(item["id"]))[:50].strip()
    when = words.observed(item.get("schedule"), profile.zone)
    repeat = item.get("repeat")
    times = repeat.get("times") if isinstance(repeat, dict) else repeat
    context = item.get("context_from")
    fields: dict[str, Json] = {
        "name": name,
        "schedule": when,
        "prompt": prompt or None if agent else None,  # a script that is the job reads none
        "before" if agent else "run": script or None,
        "deliver": schedule.target(item.get("deliver", "local")),
        "model": _model(item),
        "skills": skills,
        "context_from": [context] if isinstance(context, str) else (context if isinstance(context, list) else []),
        "toolsets": item.get("enabled_toolsets") or None,
        "workdir": item.get("workdir") or None,
        "repeat": times if times != 0 else None,
        "paused": records.paused(item),
    }
    attach = item.get("attach_to_session")
    if isinstance(attach, bool):
        fields["session"] = "main" if attach else "isolated"
    follows = _follows(item, version, current)
    if follows:
        fields["follows"] = follows
    fields = {key: profile.hider.value(value) for key, value in fields.items() if value is not None}
    defaults = {"name"} if name == label else set()
    defaults |= shape.defaults(fields)
    marker = item.get(records.MARKER)
    return Observed(
        Kind.JOB,
        profile.name,
        str(item["id"]),
        fields,
        name=profile.hider.text(name),
        defaults=frozenset(defaults),
        marker=str(marker.get("intent", "")) if isinstance(marker, dict) else "",
        fingerprint=records.fingerprint(item, profile.hider.key),
        about=_about(item, profile),
    )


def _text(value: Json) -> str:
    return "" if value is None else str(value)


def _model(item: records.Record) -> Json:
    pinned = {key: item[key] for key in ("provider", "model", "base_url") if item.get(key)}
    if not pinned:
        return None
    if "provider" in pinned and "model" in pinned:
        return models.canonical(pinned)
    return native(pinned)  # half a pin: the setup's words have no such thing


def _follows(item: records.Record, version: str | None, current: Mapping[str, str]) -> Json:
    """The model that an unpinned agent job is held to. Where Hermes took no snapshot it follows the config as it is."""
    if not versions.snapshots(version) or item.get("no_agent") or item.get("model") or item.get("provider"):
        return None
    provider = item.get("provider_snapshot") or current.get("provider", "")
    model = item.get("model_snapshot") or current.get("model", "")
    return {"provider": str(provider).lower(), "model": str(model)} if model else None


def _about(item: records.Record, profile: home.Profile) -> dict[str, Json]:
    about = shape.about(item, profile.hider)
    if item.get("provider_snapshot") or item.get("model_snapshot"):
        about["held_to_model"] = True
    return about


def express(thing: Observed) -> dict[str, Json]:
    """A job in the grammar's form."""
    out = shape.express(thing)
    out.pop("follows", None)  # ours, not the author's
    return out
