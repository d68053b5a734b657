"""Declared things in the home's terms, with what a native home refuses and what a row has to wait for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.provider import Canon, Resolve
from reconciler_shape import dotted, files, models, worker
from reconciler_shape.jobcanon import JobCanon
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import MAP_OF_SCALARS, Json, shape_of

from . import jobwords, ops_files, ops_jobs, ops_profiles, schedule, target
from .errors import Refused
from .folder import DEFAULT


@dataclass(frozen=True, slots=True)
class Around:
    """What the profile around a thing holds, from the observation's facts and from what else is declared."""

    zone: str = ""
    meant: str = ""
    zone_declared: bool = False
    env: Sequence[str] = ()
    env_known: bool = False
    scripts: Sequence[str] = ()
    declared_files: Sequence[str] = ()
    skills: Sequence[str] = ()
    channels: Sequence[str] = ()
    config: Mapping[str, Json] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)  # provider → the key that the profile's inference names


def thing(resource: Resource, around: Around, resolve: Resolve, now: datetime) -> Canon:
    """Any kind but a job's; a job's too. `now` only decides whether a one-shot is over."""
    match resource.address.kind:
        case Kind.JOB:
            return _Job(resource, around, resolve).canon(now)
        case Kind.INFERENCE:
            return _inference(resource.fields, around)
        case Kind.SETTING:
            return _setting(resource, around)
        case Kind.FILE:
            return _file(resource)
        case Kind.KIT:
            return _kit(resource.fields)
        case Kind.PROFILE:
            name = resource.address.profile
            why = ops_profiles.name_refusal(name) if name != DEFAULT else ""
            fields: dict[str, Json] = {k: v.strip() if isinstance(v, str) else v for k, v in resource.fields.items()}
            held = ""
            if worker.FIELD in fields:
                fields[worker.FIELD], names = worker.canonical(fields[worker.FIELD])
                held = _missing(sorted(names), around)
            shapes = {worker.FIELD: shape_of(fields[worker.FIELD])} if worker.FIELD in fields else {}
            return Canon(fields, shapes, refused={"": why} if why else {}, held=held)
    return Canon({}, refused={"": f"{resource.address.kind} cannot be declared for a home of this harness yet"})


def _missing(names: Sequence[str], around: Around) -> str:
    lacking = sorted({name for name in names if name and name not in around.env}) if around.env_known else []
    return f"the home's .env has no {', '.join(lacking)}" if lacking else ""


def _inference(fields: Mapping[str, Json], around: Around) -> Canon:
    out = models.canon(fields)
    keys = [models.key_name(model) for _, model in models.each(out)]
    why = "a native home has no model for unattended runs: give each job its `model:`"
    shapes = {"auxiliary": MAP_OF_SCALARS} if "auxiliary" in out else {}
    refused = {"unattended": why} if "unattended" in fields else {}
    return Canon(out, shapes, refused=refused, held=_missing(keys, around))


def _setting(resource: Resource, around: Around) -> Canon:
    value, names = dotted.referenced(resource.fields.get("value"))
    why = setting_refusal(resource.address.key, resource.fields.get("value"), around.config)
    return Canon(
        {"value": value},
        {"value": shape_of(value)},
        refused={"value": why} if why else {},
        held=_missing(sorted(names), around),
    )


def setting_refusal(key: str, value: Json, raw: Mapping[str, Json]) -> str:
    """Why `key` cannot be a setting with that value here, "" if it can."""
    try:
        path = dotted.split(key)
    except dotted.BadKey as error:
        return str(error)
    return dotted.owned(path, value) or dotted.through_a_value(path, raw)


def _file(resource: Resource) -> Canon:
    out, refused = files.canon(resource.fields)
    why = ops_files.refusal(resource.address.key)
    return Canon(out, refused={**refused, **(dict.fromkeys(out, why) if why else {})})


def _kit(fields: Mapping[str, Json]) -> Canon:
    source = str(fields.get("source", ""))
    notes = (f"{source}: kept by its name; nothing here knows what is in it",) if source else ()
    return Canon(dict(fields), notes=notes)


class _Job(JobCanon[Around]):
    """Collects one job's canonical fields."""

    def canon(self, now: datetime) -> Canon:
        for name, value in self.resource.fields.items():
            self._take(name, value)
        self._identity()
        when = self.fields.get("schedule")
        moment = schedule.instant(str(when["at"])) if isinstance(when, dict) and "at" in when else None
        over = moment is not None and moment <= now
        return Canon(
            self.fields,
            refused=self.refused,
            held="; ".join(self.held),
            notes=tuple(self.notes),
            needs=tuple(self.needs),
            expired=f"its only time, {when['at']}, has passed" if over and isinstance(when, dict) else "",
        )

    def _take(self, name: str, value: Json) -> None:
        match name:
            case "schedule":
                self._schedule(value)
            case "deliver" | "failure_deliver":
                self._deliver(name, value)
            case "model":
                self._model(value)
            case "before" | "run":
                self.fields[name] = self.script(name, str(value))
            case "monitor":
                script = isinstance(value, dict) and "script" in value
                self.fields[name] = {"script": self.script(name, str(value["script"]))} if script else value
            case "context_from":
                self.fields[name] = self.context(value)
            case "skills":
                self.fields[name] = names = list(dict.fromkeys(str(item).strip() for item in value))
                known = {skill.rpartition("/")[2] for skill in self.around.skills} | set(self.around.skills)
                self.notes += [f"the profile has no skill {n}" for n in names if n.rpartition("/")[2] not in known]
            case "workdir":
                self.fields[name] = str(value).rstrip("/") or "/"
            case _:
                self.fields[name] = value
                why = _limit(name, value)
                if why:
                    self.refused[name] = why

    def _identity(self) -> None:
        """A job keeps its id for life."""
        there, said = self.resolve(self.resource.address.path), self.resource.fields.get("id")
        if there not in self.around.ids:
            return
        how = "give the new one a key of its own, or say the id that it has"
        if said is not None and said != there:
            self.refused["id"] = f"{said}: the job is there as {there}, and a job's id cannot be changed; {how}"
        elif "id" in self.resource.unset:
            self.refused["id"] = "a job's id cannot be cleared"

    def _schedule(self, value: Mapping[str, Json]) -> None:
        self.fields["schedule"], why = jobwords.canonical(value, self.around.zone, self.around.meant)
        if why:
            self.refused["schedule"] = why
        if "cron" in value and self.around.zone_declared:
            address = self.resource.address
            self.needs.append(Address(address.home, address.profile, Kind.SETTING, "timezone"))

    def _deliver(self, name: str, value: Json) -> None:
        form = value
        if isinstance(value, dict):
            form = {key: str(item) for key, item in value.items() if item not in (None, "")}
        self.fields[name] = form
        try:
            word = target.accept(target.word_of(form), name)
        except Refused as error:
            self.refused[name] = str(error)
            return
        if target.declared(word) != form:
            self.refused[name] = f"{word!r} would be read as another target: a chat and thread cannot be told apart"
        elif value == "owner_chat":
            self.notes.append(f"{name}: the chat that is set as home; a local file while none is")
        elif isinstance(form, dict) and form["to"] not in self.around.channels:
            self.notes.append(f"{name}: the profile has no channel {form['to']}")

    def _model(self, value: Mapping[str, Json]) -> None:
        model = models.canonical(value)
        if models.key_name(model) and models.key_name(model) == self.around.keys.get(str(model.get("provider"))):
            del model["key"]  # the one that its provider is used with anyway
        for key in ("key", "api_mode"):
            if model.pop(key, None):
                self.refused["model"] = f"a job has no {key} of its own here: it belongs to the profile's inference"
        self.fields["model"] = model


def _limit(name: str, value: Any) -> str:
    """Why a plain field of a job cannot be kept, "" if it can."""
    if name == "session" and value not in ("main", "isolated"):
        return f"{value}: a native home has `main` (the chat that the job reports to) and `isolated`"
    if name == "toolsets" and not (value.get("only") if isinstance(value, dict) else value):
        return "an empty set means all toolsets: leave `toolsets` out"
    if name == "id" and not ops_jobs.ID.fullmatch(str(value)):
        return f"{value}: an id is a file name here (letters, digits, '.', '_' and '-', at most 64)"
    if name == "metadata" and len(json.dumps(value, separators=(",", ":"))) > ops_jobs.METADATA:
        return "more than 16 KiB"
    return ""
