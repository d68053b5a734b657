"""The engine's write door: one action is one or two lines of the operator, by the socket or by cold verbs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.action import CLEAR, Action, Clear, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.observe import Observed, Unknown
from reconciler.provider import Answer, Code, HomeRef, Step
from reconciler_shape import lease, schedule
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import holds_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import access, cold, reading, wire, words
from .reading import DEFAULT
from .ways import find

Raw = dict[str, Any]


class _Refused(Exception):
    """The action is not tried, or goes no further: why, for a person."""

    def __init__(self, why: str, code: Code = Code.REFUSED) -> None:
        super().__init__(why)
        self.code = code


class OrchestratorDoor:
    """Which way leads in is looked at anew for every line. A refusal is final; a lost answer is `DoorLost`, and the
    next run looks, by our id and mark."""

    name = "orchestrator operator"

    def __init__(self, ref: HomeRef, lock_fd: int | None) -> None:
        self._ref, self._lock_fd = ref, lock_fd
        self._root = Path(ref.path)
        self._hider = reading.hider(ref, reading.profiles(ref.place, ref.path))
        self._ids: dict[str, str] = {}

    def deadline(self, step: Step) -> float:
        """The folder is written when the operator answers."""
        return 0.0

    def perform(self, step: Step) -> Sequence[Answer]:
        """One answer per action, in order. Raises DoorLost."""
        return [self._one(action, step) for action in step.actions]

    def _one(self, action: Action, step: Step) -> Answer:
        made = action.id
        try:
            if action.address.kind is Kind.PROFILE:
                result = self._profile(action)
            elif action.address.kind is Kind.CHANNEL:
                result = self._access(action)
            elif action.row in (Row.CREATE, Row.MISSING):
                made = _new_id(action, step.intents.get(action.address, ""))
                result = self._send("jobs.create", self._created(action, made, step), action.address.profile)
                self._ids[action.address.path] = made
            else:
                result = self._change(action)
        except _Refused as error:
            return Answer(action.address, error.code, words=self._hider.text(str(error)))
        return Answer(action.address, Code.OK, id=made, inert=_inert(result, action))

    # -- profiles

    def _profile(self, action: Action) -> Raw:
        name = action.address.profile
        if action.row is not Row.DELETE:
            values = {c.field: c.write for c in action.changes if c.writes and c.write is not CLEAR}
            return self._send("profiles.create", {"name": name, **values}, DEFAULT)
        if self._jobs(name):
            raise _Refused(f"profile {name} has jobs again since the plan", Code.STALE)
        return self._send("profiles.delete", {"name": name}, DEFAULT)

    # -- jobs

    def _created(self, action: Action, job_id: str, step: Step) -> Raw:
        values = {change.field: change.write for change in action.changes if change.write is not CLEAR}
        args = self._arguments(values, action, job_id)
        if values.get("paused"):
            args["enabled"] = False
        mark = {
            "owner": str(self._ref.options.get("$owner") or ""),
            "address": action.address.path,
            "intent": step.intents.get(action.address, ""),
        }
        return {**args, "id": job_id, "metadata": {**(args.get("metadata") or {}), words.OURS: mark}}

    def _change(self, action: Action) -> Raw:
        profile, job_id = action.address.profile, action.id
        thing = self._jobs(profile).get(job_id)
        if thing is None or thing.fingerprint != action.fingerprint:
            raise _Refused(f"job {job_id} changed between plan and write", Code.STALE)
        if action.row is Row.DELETE:
            return self._send("jobs.delete", {"id": job_id}, profile)
        values = {change.field: change.write for change in action.changes if change.writes}
        args = self._arguments(values, action, job_id)
        lines: list[tuple[str, Raw]] = []
        paused = values.get("paused")
        if paused is True:  # first, so that the job does not run in between
            lines.append(("jobs.pause", {"id": job_id}))
        resumed = "paused" in values and paused is not True
        missed = thing.about.get("next_run_at")
        if resumed and "schedule" not in args and missed and _past(missed):
            # The door resumes with the run that was missed meanwhile; its own schedule, sent again, arms it anew.
            args |= self._arguments({"schedule": thing.fields["schedule"]}, action, job_id)
        if args:
            lines.append(("jobs.update", {**args, "id": job_id}))
        if resumed:
            lines.append(("jobs.resume", {"id": job_id}))
        return self._in_order(lines, profile)

    def _arguments(self, values: Mapping[str, Json | Clear], action: Action, own: str) -> Raw:
        for name, value in values.items():
            if value is not CLEAR and (is_hidden(value) or holds_native(value)):
                raise _Refused(f"{name}: the value cannot be written back as it was read")
        args = words.arguments(values)
        args.pop("id", None)
        if args.get("context_from"):
            args["context_from"] = [self._resolved(ref, action, own) for ref in args["context_from"]]
        return args

    def _resolved(self, ref: Any, action: Action, own: str) -> str:
        if not isinstance(ref, dict):
            return str(ref)
        path = str(ref.get("$ref"))
        if path == action.address.path:
            return own
        if path not in self._ids:
            raise _Refused(f"it needs {path}, which is not there")
        return self._ids[path]

    def _jobs(self, profile: str) -> Mapping[str, Observed]:
        """A profile's jobs as they stand now; raises _Refused if they cannot be seen."""
        live = lease.inspect(self._root).state is lease.State.LIVE
        try:
            things, _ = reading.jobs(self._ref, profile, live, self._hider, [])
        except ProviderError as error:
            raise _Refused(str(error)) from error
        if isinstance(things, Unknown):
            raise _Refused(things.reason)
        return things

    # -- access

    def _access(self, action: Action) -> Raw:
        """Each id by itself; where one is refused or lost, what was done before it is said."""
        profile, name = action.address.profile, action.address.key
        here = reading.folder(self._ref.path, profile)
        things = access.read(self._ref.place, here, profile, self._hider, [name], False)
        if isinstance(things, Unknown):
            raise _Refused(things.reason)
        if (things[name].fingerprint if name in things else "") != action.fingerprint:
            raise _Refused(f"the channel {name} changed between plan and write", Code.STALE)
        done: list[str] = []
        for verb, one in access.lines(action):
            way = find(self._root, reading.mode(self._ref))
            if way.held or way.live:
                raise _Refused(way.held or "a daemon serves the home by now, and its socket has no verb for access")
            try:
                cold.access(self._ref, verb, (name, one), profile, self._lock_fd)
            except DoorLost as error:
                raise DoorLost(_after(done, verb, error)) from error
            except ProviderError as error:
                raise _Refused(_after(done, verb, error)) from error
            done.append(f"{verb} {one}")
        return {}

    # -- the lines

    def _in_order(self, lines: Sequence[tuple[str, Raw]], profile: str) -> Raw:
        """The last one's result. Where one is refused or lost, what was done before it is said."""
        result: Raw = {}
        done: list[str] = []
        for op, args in lines:
            try:
                result = self._send(op, args, profile)
            except _Refused as error:
                raise _Refused(_after(done, op, error), error.code) from error
            except DoorLost as error:
                raise DoorLost(_after(done, op, error)) from error
            done.append(op)
        return result

    def _send(self, op: str, args: Raw, profile: str) -> Raw:
        """Its result. Raises _Refused (nothing was sent, or it said no) and DoorLost."""
        way = find(self._root, reading.mode(self._ref))
        if way.held:
            raise _Refused(way.held)
        line: Raw = {"op": op, "args": args, "profile": profile}
        try:
            answer = wire.call(self._root, line) if way.live else cold.call(self._ref, line, self._lock_fd)
        except DoorLost:
            raise
        except ProviderError as error:
            raise _Refused(str(error)) from error
        if not answer["ok"]:
            raise _Refused(str(answer.get("error") or "refused without a word"))
        if not way.live and lease.inspect(self._root).state is lease.State.LIVE:
            # It may have read the folder before our write, and will save what it read: the read-back asks it.
            raise DoorLost(f"{op}: a daemon started while the cold verb wrote; what it holds is not known")
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


def _after(done: Sequence[str], op: str, error: Exception) -> str:
    return f"{error} (that is {op}; done before it: {', '.join(done)})" if done else str(error)


def _new_id(action: Action, intent: str) -> str:
    """The author's, or one of our own."""
    for change in action.changes:
        if change.field == "id" and isinstance(change.write, str):
            return change.write
    return words.new_id(datetime.now(UTC), intent)


def _past(moment: Json) -> bool:
    found = schedule.instant(moment, "UTC")
    return found is not None and found <= datetime.now(UTC)


def _inert(result: Raw, action: Action) -> str:
    """The door stores a schedule that it finds no run for, and says nothing of it."""
    job = result.get("job")
    if not isinstance(job, dict) or not job.get("enabled") or job.get("next_run_at") is not None:
        return ""
    if not any(change.writes and change.field in ("schedule", "paused") for change in action.changes):
        return ""
    return "stored, but the orchestrator finds no run of its schedule (it looks one year ahead)"


@contextlib.contextmanager
def opened(ref: HomeRef, lock_fd: int | None) -> Iterator[OrchestratorDoor]:
    """Raises ProviderError for a home that is not on this machine."""
    if not ref.place.local:
        raise ProviderError(f"{ref.path}: it is written where it is; run the reconciler there")
    yield OrchestratorDoor(ref, lock_fd)
