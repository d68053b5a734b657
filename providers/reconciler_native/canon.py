"""Declared things in the home's terms, with what a native home refuses and what a row has to wait for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.provider import Canon, Resolve
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import MAP_OF_SCALARS, Json, shape_of

from . import jobwords, models, ops_config, ops_files, ops_jobs, ops_profiles, schedule, target
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
        case Kind.PROFILE:
            name = resource.address.profile
            why = ops_profiles.name_refusal(name) if name != DEFAULT else ""
            fields = {k: v.strip() if isinstance(v, str) else v for k, v in resource.fields.items()}
            return Canon(fields, refused={"": why} if why else {})
    return Canon(dict(resource.fields))


def _missing(names: Sequence[str], around: Around) -> str:
    lacking = sorted({name for name in names if name not in around.env}) if around.env_known else []
    return f"the home's .env has no {', '.join(lacking)}" if lacking else ""


def _inference(fields: Mapping[str, Json], around: Around) -> Canon:
    out: dict[str, Json] = {}
    keys: list[str] = []
    for name, value in fields.items():
        if name == "default":
            out[name] = models.canonical(value)
        elif name == "fallbacks":
            out[name] = [models.canonical(item) for item in value]
        elif name == "auxiliary":
            out[name] = {task: models.canonical(item) for task, item in value.items()}
    for model in all_models(out):
        keys += [models.key_name(model)] if models.key_name(model) else []
    why = "a native home has no model for unattended runs: give each job its `model:`"
    shapes = {"auxiliary": MAP_OF_SCALARS} if "auxiliary" in out else {}
    refused = {"unattended": why} if "unattended" in fields else {}
    return Canon(out, shapes, refused=refused, held=_missing(keys, around))


def all_models(fields: Mapping[str, Any]) -> list[Mapping[str, Json]]:
    """Every model that inference's fields name."""
    found = [fields.get("default"), *(fields.get("fallbacks") or ()), *(fields.get("auxiliary") or {}).values()]
    return [model for model in found if isinstance(model, Mapping)]


def _setting(resource: Resource, around: Around) -> Canon:
    value, names = _referenced(resource.fields.get("value"))
    why = setting_refusal(resource.address.key, around.config)
    return Canon(
        {"value": value},
        {"value": shape_of(value)},
        refused={"value": why} if why else {},
        held=_missing(sorted(names), around),
    )


def setting_refusal(key: str, raw: Mapping[str, Json]) -> str:
    """Why `key` cannot be a setting here, "" if it can."""
    try:
        path = ops_config.split(key)
    except ValueError as error:
        return str(error)
    why = ops_config.owned(path)
    here: Json = raw
    for at, segment in enumerate(path[:-1]):
        here = here.get(segment) if isinstance(here, dict) else None
        if here is not None and not isinstance(here, dict):
            kind = "list" if isinstance(here, list) else "single value"
            why = why or f"{ops_config.join(path[: at + 1])} is a {kind} in config.yaml: declare it as a whole"
    return why


def _referenced(value: Json) -> tuple[Json, set[str]]:
    """A value as config.yaml holds it, and the secrets that it names: `{secret: NAME}` is `${NAME}` there."""
    if isinstance(value, dict):
        if set(value) == {"secret"}:
            return f"${{{value['secret']}}}", {str(value["secret"])}
        pairs = {key: _referenced(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, set().union(*(names for _, names in pairs.values()))
    if isinstance(value, list):
        items = [_referenced(item) for item in value]
        return [item for item, _ in items], set().union(*(names for _, names in items))
    return value, set()


def _file(resource: Resource) -> Canon:
    out: dict[str, Json] = {}
    refused: dict[str, str] = {}
    for name, value in resource.fields.items():
        out[name] = value
        if name == "mode":
            if ops_files.MODE.fullmatch(str(value)):
                out[name] = f"0{int(str(value), 8):03o}"
            else:
                refused[name] = f"{value}: not a mode such as 0644 or 0755"
        elif name == "block" and value and not str(value).endswith("\n"):
            out[name] = f"{value}\n"  # the closing marker needs a line of its own
    why = ops_files.refusal(resource.address.key)
    return Canon(out, refused={**refused, **(dict.fromkeys(out, why) if why else {})})


class _Job:
    """Collects one job's canonical fields."""

    def __init__(self, resource: Resource, around: Around, resolve: Resolve) -> None:
        self.resource, self.around, self.resolve = resource, around, resolve
        self.fields: dict[str, Json] = {}
        self.refused: dict[str, str] = {}
        self.held: list[str] = []
        self.notes: list[str] = []
        self.needs: list[Address] = []

    def canon(self, now: datetime) -> Canon:
        for name, value in self.resource.fields.items():
            self._take(name, value)
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
                self.fields[name] = self._script(name, str(value))
            case "monitor":
                script = isinstance(value, dict) and "script" in value
                self.fields[name] = {"script": self._script(name, str(value["script"]))} if script else value
            case "context_from":
                self.fields[name] = [ref for ref in map(self._reference, value) if ref is not None]
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
        for key in ("key", "api_mode"):
            if model.pop(key, None):
                self.refused["model"] = f"a job has no {key} of its own here: it belongs to the profile's inference"
        self.fields["model"] = model

    def _script(self, name: str, script: str) -> str:
        script = script.removeprefix("scripts/")
        if script.startswith(("/", "~")) or ".." in script.split("/"):
            self.refused[name] = f"{script}: scripts lie under scripts/ in the home"
            return script
        path = f"scripts/{script}"
        declared = Address(self.resource.address.home, self.resource.address.profile, Kind.FILE, path)
        if declared in self.resource.needs or path in self.around.declared_files:
            self.needs.append(declared)
        elif path not in self.around.scripts:
            self.held.append(f"{path} is neither in the home nor declared")
        return script

    def _reference(self, ref: str) -> Json:
        path = self.resource.address.path if ref == "self" else ref
        found = self.resolve(path)
        if found:
            return found
        if "/" in path:
            return {"$ref": path}
        if ref in self.around.ids:
            return ref  # a harness id, as adopt writes it for a job that no setup names
        self.held.append(f"context_from: there is no job {ref}")
        return None


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
