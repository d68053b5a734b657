"""A declared job in OpenClaw's terms, with what it refuses and what the row has to wait for."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.provider import Canon
from reconciler_shape import schedule as times
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import jobwords, versions

_SESSIONS = (jobwords.MAIN, jobwords.ISOLATED, "current")


@dataclass(frozen=True, slots=True)
class Around:
    """What the profile around a job holds. `zone` is the setup's time zone, `channels` those that the config has (None
    where it cannot be read), `scripts` the files below `scripts/` of the workspace."""

    zone: str = ""
    channels: Sequence[str] | None = None
    workspace: str = ""
    scripts: Sequence[str] = ()
    declared_files: Sequence[str] = ()
    default: bool = True


def canon(resource: Resource, around: Around, now: datetime) -> Canon:
    """Pure but for `now`, which decides whether a one-shot is over."""
    job = _Job(resource, around)
    for name, value in resource.fields.items():
        why = versions.missing(name)
        if why:
            job.refused[name] = why
        job.take(name, value)
    expired, when = "", job.fields.get("schedule")
    moment = times.instant(when.get("at")) if isinstance(when, Mapping) else None
    if moment is not None and moment <= now and isinstance(when, Mapping):
        expired = f"its only time, {when['at']}, has passed"
    return Canon(
        job.fields,
        refused=job.refused,
        held="; ".join(job.held),
        notes=tuple(job.notes),
        needs=tuple(job.needs),
        expired=expired,
    )


class _Job:
    """Collects one job's canonical fields."""

    def __init__(self, resource: Resource, around: Around) -> None:
        self.resource, self.around = resource, around
        self.form = jobwords.turn_of(resource.fields)
        self.fields: dict[str, Json] = {}
        self.refused: dict[str, str] = {}
        self.held: list[str] = []
        self.notes: list[str] = []
        self.needs: list[Address] = []

    def take(self, name: str, value: Json) -> None:
        self.fields[name] = value
        match name:
            case "schedule":
                self._schedule(value)
            case "name" | "prompt":
                self.fields[name] = str(value).strip()
            case "run":
                self._script(str(value))
            case "deliver" | "failure_deliver":
                self._deliver(name, value)
            case "model":
                self._model(value)
            case "toolsets":
                if self.form.payload != jobwords.AGENT:
                    self.refused[name] = "only a job with a prompt and a session of its own has tools to choose"
            case "workdir":
                self.fields[name] = str(value).rstrip("/") or "/"
                if not self.form.script:
                    self.refused[name] = (
                        "an agent works in its workspace; only a script (`run`) has a folder of its own"
                    )
            case "session":
                self._session(str(value))
            case "repeat":
                del self.fields[name]  # a one-shot runs once, and nothing else counts its runs
                schedule = self.resource.fields.get("schedule")
                if value != 1 or not isinstance(schedule, Mapping) or "at" not in schedule:
                    self.refused[name] = f"{value}: OpenClaw counts no runs (a job with `at` runs once)"

    def _schedule(self, value: Mapping[str, Json]) -> None:
        if "every" in value:
            minutes = times.minutes(str(value["every"]))
            self.fields["schedule"] = {"every": f"{minutes}m"}
            if not minutes:
                self.refused["schedule"] = f"every: {value['every']} is no whole number of minutes, hours or days"
            return
        if "at" in value:
            moment = times.instant(value["at"], self.around.zone)
            if moment is None:
                self.refused["schedule"] = f"at: {value['at']} is no moment"
            else:
                self.fields["schedule"] = {"at": times.utc(moment)}
            return
        line = times.cron(str(value.get("cron", "")))
        zone = str(value.get("tz") or self.around.zone)
        self.fields["schedule"] = {"cron": line} | ({"tz": zone} if zone else {})
        if not zone:
            self.notes.append("schedule: by the clock of the gateway's machine; say tz to be sure")
        if line.split(" ")[0] == "0":
            self.notes.append("schedule: OpenClaw starts jobs of a full hour up to 5 minutes later, to spread them")

    def _script(self, said: str) -> None:
        """A script lies below `scripts/` of the agent's workspace; an absolute path is another program."""
        if said.startswith("/"):
            return
        path = f"scripts/{said.removeprefix('scripts/')}"
        if said.startswith("~") or ".." in path.split("/"):
            self.refused["run"] = f"{said}: scripts lie under scripts/ in the workspace, or have an absolute path"
            return
        self.fields["run"] = posixpath.join(self.around.workspace, path)
        address = self.resource.address
        declared = Address(address.home, address.profile, Kind.FILE, path)
        if declared in self.resource.needs or path in self.around.declared_files:
            self.needs.append(declared)
        elif path not in self.around.scripts:
            self.held.append(f"{path} is neither in the workspace nor declared")

    def _deliver(self, name: str, value: Json) -> None:
        if name == "failure_deliver" and value == "local":
            del self.fields[name]
            self.refused[name] = "leave it out: a failure is then kept with the job's runs"
            return
        if self.form.payload == jobwords.EVENT and value != "local":
            self.refused[name] = "a job of the main session answers in that session: say deliver: local"
            return
        if value == "owner_chat":
            self.notes.append(f"{name}: the chat that last spoke with the agent; while there is none, nothing is sent")
            return
        if not isinstance(value, Mapping):
            return
        wanted = {key: str(item) for key, item in value.items() if item not in (None, "")}
        self.fields[name] = wanted
        if name == "failure_deliver" and "thread" in wanted:
            self.refused[name] = "OpenClaw reports failures to a chat, not to a thread in it"
        channel = wanted["to"].partition("/")[0]
        if self.around.channels is not None and channel not in self.around.channels:
            self.notes.append(f"{name}: the config has no channel {channel}; OpenClaw would send nothing")

    def _model(self, value: Mapping[str, Json]) -> None:
        provider, name = str(value.get("provider") or "auto"), str(value.get("model", ""))
        self.fields["model"] = {"provider": provider, "model": name}
        if self.form.payload != jobwords.AGENT:
            self.refused["model"] = "only a job with a prompt and a session of its own has a model to choose"
        more = [word for word in ("base_url", "api_mode") if value.get(word)]
        if more:
            self.notes.append(f"model: its {' and '.join(more)} belongs to the provider; declare it in inference")

    def _session(self, value: str) -> None:
        named = value.startswith("session:") and len(value) > len("session:")
        if value not in _SESSIONS and not named:
            self.refused["session"] = f"{value}: OpenClaw has main, isolated, current and session:NAME"
        if value == jobwords.MAIN and not self.around.default:
            self.refused["session"] = "main: only the default agent has a main session for jobs"
        if value == jobwords.MAIN and self.form.script:
            self.refused["session"] = "main: a script (`run`) has no session; leave `session` out"
        if value == "current":
            self.notes.append("session: a declared job was started in no chat; OpenClaw may run it isolated")
