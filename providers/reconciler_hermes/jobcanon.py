"""A declared job in Hermes's terms, with what this version refuses and what the row has to wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.provider import Canon, Resolve
from reconciler_shape import models as shape
from reconciler_shape.jobcanon import JobCanon
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import SCALAR, Json

from . import models, schedule, versions


@dataclass(frozen=True, slots=True)
class Around:
    """What the profile around a job holds: from the observation's facts and from what else is declared."""

    version: str | None
    zone: str = ""
    env: Sequence[str] = ()
    home_channels: Sequence[str] = ()
    scripts: Sequence[str] = ()
    declared_files: Sequence[str] = ()
    skills: Sequence[str] = ()
    user_home: str = ""
    inference: Mapping[str, Json] = field(default_factory=dict)  # the declared default Model, {} if none
    ids: frozenset[str] = frozenset()


def canon(resource: Resource, around: Around, resolve: Resolve, now: datetime) -> Canon:
    """Pure but for `now`, which decides whether a one-shot is over."""
    job = _Job(resource, around, resolve)
    for name, value in resource.fields.items():
        reason = versions.missing(name, around.version)
        if reason:
            job.refused[name] = reason
        else:
            job.take(name, value)
    job.follow()
    expired = ""
    if schedule.is_past(job.fields.get("schedule"), now):
        expired = f"its only time, {job.fields['schedule']['at']}, has passed"
    return Canon(
        job.fields,
        shapes=job.shapes,
        refused=job.refused,
        held="; ".join(job.held),
        notes=tuple(job.notes),
        needs=tuple(job.needs),
        expired=expired,
    )


class _Job(JobCanon[Around]):
    """Collects one job's canonical fields."""

    def take(self, name: str, value: Json) -> None:
        match name:
            case "schedule":
                self.fields[name], why = schedule.canonical(value, self.around.zone)
                if why:
                    self.refused[name] = why
            case "deliver":
                self._deliver(value)
            case "model":
                self._model(value)
            case "before" | "run":
                self.fields[name] = self.script(name, str(value))
            case "context_from":
                self.fields[name] = self.context(value)
            case "session":
                if value not in ("main", "isolated"):
                    self.refused[name] = f"{value}: Hermes has `main` (the chat that the job reports to) and `isolated`"
                self.fields[name] = value
            case "workdir":
                self.fields[name] = self._path(str(value))
            case "skills":
                self._skills([str(item).strip() for item in value])
            case "toolsets":
                members = value.get("only", []) if isinstance(value, dict) else value
                if not members:
                    self.refused[name] = "an empty set means all toolsets to Hermes: leave `toolsets` out"
                self.fields[name] = value
            case "repeat":
                if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                    self.refused[name] = f"{value}: Hermes counts from 1 (leave it out for ever)"
                self.fields[name] = value
            case "prompt":
                self.fields[name] = value
            case _:
                self.fields[name] = value

    def _deliver(self, value: Json) -> None:
        if value == "owner_chat":
            places = list(self.around.home_channels)
            if len(places) == 1:
                self.fields["deliver"] = {"to": places[0]}
                self.notes.append(f"owner_chat is {places[0]}'s home channel")
                return
            self.fields["deliver"] = value
            self.held.append(
                f"owner_chat: {', '.join(places)} each have a home channel; say deliver: {{to: …}}"
                if places
                else "owner_chat: no channel of this profile has a home channel (TELEGRAM_HOME_CHANNEL and the like)"
            )
            return
        if value == "local" or not isinstance(value, dict):
            self.fields["deliver"] = value
            return
        text = schedule.deliver_text({**value, "to": str(value["to"]).lower()})
        form = schedule.target(text)
        wanted = {k: str(v) for k, v in value.items() if v not in (None, "")} | {"to": str(value["to"]).lower()}
        self.fields["deliver"] = wanted
        if form != wanted:
            self.refused["deliver"] = f"Hermes would read {text!r} as {form}: a chat and thread cannot be told apart"
        elif "chat" not in wanted and wanted["to"] not in self.around.home_channels:
            self.notes.append(f"{wanted['to']} has no home channel that we can see; Hermes may have nowhere to send")

    def _model(self, value: Mapping[str, Json]) -> None:
        model = models.canonical(value)
        secret = shape.key_name(value)
        if secret and secret not in self.around.env:
            self.held.append(f"the home's .env has no {secret}")
        if "key" in model:
            # Hermes keeps a key with its provider; a job names the provider only.
            if not str(model["provider"]).lower().startswith("custom"):
                self.refused["model"] = (
                    f"Hermes keeps a key per provider, not per job: {secret} is not what {model['provider']} uses"
                )
            del model["key"]
        if model.pop("api_mode", None):
            self.refused["model"] = "Hermes has no api_mode per job"
        self.fields["model"] = model

    def _skills(self, names: list[str]) -> None:
        self.fields["skills"] = list(dict.fromkeys(names))
        known = {skill.rpartition("/")[2] for skill in self.around.skills} | set(self.around.skills)
        for name in names:
            if name not in known and name.rpartition("/")[2] not in known:
                self.notes.append(f"the profile has no skill {name}; Hermes runs the job without it")

    def _path(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            # The worker's HOME is the home's own, so that nothing beside it is touched.
            return self.around.user_home + path[1:]
        return path.rstrip("/") or "/"

    def follow(self) -> None:
        """An unpinned agent job is held to the declared model, so that it is re-based in the same plan."""
        default = self.around.inference
        if not default or not versions.snapshots(self.around.version) or "run" in self.fields:
            return
        self.needs.append(Address(self.resource.address.home, self.resource.address.profile, Kind.INFERENCE))
        if "model" in self.resource.fields:
            return
        snapshot = {
            "provider": models.resolved_provider(str(default.get("provider", ""))),
            "model": str(default.get("model", "")),
        }
        self.fields["follows"] = snapshot
        self.shapes["follows"] = SCALAR
