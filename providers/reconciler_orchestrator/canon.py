"""Declared things in the home's terms, and what the orchestrator's door cannot reach, refused by name. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from reconciler.action import Action, Row
from reconciler.observe import Observed
from reconciler.provider import Canon, Resolve
from reconciler_shape import schedule, worker
from reconciler_shape.jobcanon import JobCanon
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, shape_of

from . import words

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
METADATA = 16384 - 1024
"""UTF-16 units of a job's metadata that are the setup's own; the door takes 16 KiB, and our mark is among them."""
EXACT = (1 << 53) - 1
"""The largest whole number that JavaScript keeps as it is."""
CHANGEABLE = frozenset({"prompt", "schedule", "deliver", "failure_deliver", "workdir", "model", "name", "paused"})
"""What `jobs.update`, `jobs.pause` and `jobs.resume` reach of a job that is there."""
CLEARABLE = frozenset({"failure_deliver", "workdir", "model", "paused"})
"""Of these, what the door can take away."""

_NO_DOOR = {
    Kind.INFERENCE: "models belong to the profile's worker, and the orchestrator's door has no verb for them",
    Kind.SETTING: "the orchestrator's door has no verb for settings",
    Kind.FILE: "the orchestrator's door has no verb for files; keep them by other means",
}
_NOT_A_JOBS = {
    "before": "the door makes prompt jobs without a script",
    "run": "the door makes prompt jobs only",
    "toolsets": "the door keeps no tools of a job; they are the worker's",
    "session": "the door does not choose a job's session",
    "monitor": "the door makes no monitors",
}


@dataclass(frozen=True, slots=True)
class Around:
    """What the profile around a thing holds."""

    zone: str = ""
    skills: Sequence[str] = ()
    ids: frozenset[str] = frozenset()
    scripts: ClassVar[Sequence[str]] = ()
    declared_files: ClassVar[Sequence[str]] = ()


def thing(resource: Resource, around: Around, seen: Observed | None, resolve: Resolve, now: datetime) -> Canon:
    """Any kind. `seen` is the job that the resource is bound to, as it was read; `now` only decides whether a
    one-shot is over."""
    kind = resource.address.kind
    if kind is Kind.JOB:
        return _Job(resource, around, seen, resolve).canon(now)
    fields = dict(resource.fields)
    if kind is Kind.PROFILE:
        why = "the orchestrator keeps no description of a profile"
        refused = {"description": why} if "description" in fields else {}
        if worker.FIELD in fields:
            fields[worker.FIELD], _ = worker.canonical(fields[worker.FIELD])
        shapes = {worker.FIELD: shape_of(fields[worker.FIELD])} if worker.FIELD in fields else {}
        return Canon(fields, shapes, refused=refused)
    return Canon(fields, refused={"": _NO_DOOR.get(kind, "the orchestrator's door has no verb for it")})


def no_worker(action: Action) -> str:
    """Why a profile's worker cannot be written as its row has it, "" if it can."""
    for change in action.changes:
        if change.field != worker.FIELD or not change.writes:
            continue
        if action.row is Row.UPDATE:
            return "worker: the door says a worker when the profile is made, and has no verb that changes one"
        kept = change.write.keys() & {"env", "permission"} if isinstance(change.write, dict) else ()
        if kept:
            return f"worker.{min(kept)}: the door drops it when the profile is made"
    return ""


class _Job(JobCanon[Around]):
    """Adds what the door reaches of a job."""

    def __init__(self, resource: Resource, around: Around, seen: Observed | None, resolve: Resolve) -> None:
        super().__init__(resource, around, resolve)
        self.seen = seen

    def canon(self, now: datetime) -> Canon:
        for name, value in self.resource.fields.items():
            self.fields[name], why = self._take(name, value)
            # What an adopted job has already is not refused for being declared too.
            if why and (self.seen is None or self.seen.get(name) != self.fields[name]):
                self.refused[name] = why
        when = self.fields.get("schedule")
        moment = schedule.instant(when["at"], "UTC") if isinstance(when, dict) and "at" in when else None
        over = moment is not None and moment <= now
        return Canon(
            self.fields,
            refused=self.refused,
            held="; ".join(self.held),
            notes=tuple(self.notes),
            expired=f"its only time, {when['at']}, has passed" if over and isinstance(when, dict) else "",
        )

    def _take(self, name: str, value: Json) -> tuple[Json, str]:
        """The field in the home's terms, and why the door cannot make it so."""
        match name:
            case "schedule":
                return self._schedule(value)
            case "deliver" | "failure_deliver":
                form = (
                    {k: str(v) for k, v in value.items() if v not in (None, "")} if isinstance(value, dict) else value
                )
                if value == "owner_chat":
                    self.notes.append(f"{name}: the chat that is set as home; a local file while none is")
                return form, words.unfit(form)
            case "model":
                model = {key: item for key, item in value.items() if item not in (None, "", {})}
                word = model.get("provider") == "auto" and set(model) == {"provider", "model"}
                why = "the door keeps a model's name and nothing else of it; write {provider: auto, model: NAME}"
                return model, "" if word else f"{why}, which the profile's worker takes"
            case "skills":
                names = list(dict.fromkeys(str(item).strip() for item in value))
                known = {skill.rpartition("/")[2] for skill in self.around.skills}
                self.notes += [f"the profile has no skill {n}" for n in names if n.rpartition("/")[2] not in known]
                return names, ""
            case "context_from":
                return self.context(value), ""
            case "workdir":
                return str(value).rstrip("/") or "/", ""
            case "id":
                fit = ID.fullmatch(str(value))
                return value, "" if fit else f"{value}: letters, digits, '.', '_' and '-' only, at most 64"
            case "metadata":
                whole = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in value.items()}
                return whole, _metadata(whole)
            case "repeat":
                return value, "" if abs(value) <= EXACT else f"{value}: the door cannot count so far"
        return value, _NOT_A_JOBS.get(name, "")

    def _schedule(self, value: Mapping[str, Json]) -> tuple[Json, str]:
        form, why = words.canonical(value, self.around.zone)
        if "cron" in form and "tz" not in form and "tz" not in value:
            self.notes.append("schedule: in UTC; the orchestrator has no zone of its own")
        return form, why


def _metadata(value: Mapping[str, Json]) -> str:
    if words.OURS in value:
        return f"the key {words.OURS} is ours: it says who made the job"
    inexact = [key for key, item in value.items() if isinstance(item, int) and abs(item) > EXACT]
    if inexact:
        return f"{inexact[0]}: the door would round so large a number; quote it"
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-16-le", "surrogatepass")) // 2
    return "more than 15 KiB" if size > METADATA else ""


def unreachable(address: Address, fields: Sequence[str], cleared: Sequence[str]) -> str:
    """Why the door cannot change these fields of a job that is there, "" if it can."""
    why = [f"{name}: the door cannot change it of a job that is there" for name in fields if name not in CHANGEABLE]
    why += [f"{name}: the door cannot take it away" for name in cleared if name in CHANGEABLE - CLEARABLE]
    if not why:
        return ""
    return f"{'; '.join(why)} (give the job another key to have it made anew, or leave {address.key} as it is)"
