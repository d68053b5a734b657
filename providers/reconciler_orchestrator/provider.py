"""The orchestrator provider: the engine's protocol, each verb one call into the module that does it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from reconciler.action import CLEAR, WRITING_FIELDS, Action, Fact, Hold, Row
from reconciler.errors import ProviderError
from reconciler.observe import Observation, Observed, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Behind, Canon, Door, HomeRef, KindTraits, Note, Resolve, silent
from reconciler_shape import jobs as shape
from reconciler_shape import lease, places, worker
from reconciler_shape.review import Rules
from reconciler_shape.review import facts as facts_of
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import access, cold, reading, ways
from . import canon as canons

TESTED = ("0.1.2",)
_RULES = Rules(code=frozenset(), in_clear=lambda _key, _value: False)


class OrchestratorProvider:
    """Homes of the orchestrator. `clock` is for tests."""

    harness = "orchestrator"
    config = "none"
    traits: Mapping[Kind, KindTraits] = {
        Kind.PROFILE: KindTraits(by_place=True, permanent=frozenset({reading.DEFAULT})),
        Kind.JOB: KindTraits(),
        Kind.CHANNEL: KindTraits(by_place=True, always=True),
    }

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock

    def options(self, door: Mapping[str, Json]) -> list[str]:
        """`{command: [words…], mode: auto | live | cold}`, both optional."""
        wrong = [f"door: {key} is not known (only `command` and `mode`)" for key in sorted(door.keys() - _OPTIONS)]
        command = door.get("command", ["-"])
        if not isinstance(command, list) or not command or not all(isinstance(w, str) and w for w in command):
            wrong.append("door.command: a list of words, such as [node, /opt/orchestrator/bin/orchestrator.mjs]")
        elif any("\0" in word for word in command):
            wrong.append("door.command: a word with a NUL in it")
        if "mode" in door and door["mode"] not in ways.MODES:
            wrong.append(f"door.mode: one of {', '.join(ways.MODES)}")
        return wrong

    def home_path(self, path: str, place: Place) -> str:
        return place.resolve(path)

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        return reading.observe(home, wanted)

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        return reading.blank(home, profiles)

    def supported(self, version: str | None) -> str:
        if version in TESTED:
            return ""
        if version is None:
            return "the orchestrator's version cannot be told: say where its program is, in door.command"
        return f"orchestrator {version} is not tested; tested: {', '.join(TESTED)}"

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        return observation

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        profile = resource.address.profile
        if resource.address.kind is Kind.CHANNEL:
            seen = observation.at(profile, Kind.CHANNEL, resource.address.key)
            return access.canon(resource, seen)
        things = observation.things.get((profile, Kind.JOB), {})
        known = {} if isinstance(things, Unknown) else things
        around = canons.Around(
            zone=str(observation.facts.get("zone", "")),
            skills=observation.facts.get("skills", {}).get(profile, ()),
            ids=frozenset(known),
        )
        bound = resolve(resource.address.path) if resource.address.kind is Kind.JOB else None
        return canons.thing(resource, around, known.get(bound) if bound else None, resolve, self._clock())

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        return facts_of(action, desired, observation, _RULES)

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        """A job's row that no verb carries is refused here, by the field's name, and so not sent in part."""
        cold_way = bool(observation.facts.get("cold"))
        return [self._reviewed(action, cold_way) for action in actions]

    def _reviewed(self, action: Action, cold_way: bool) -> Action:
        if action.address.kind is Kind.CHANNEL and action.writes and not cold_way:
            why = "the running daemon's socket has no verb for access: stop the daemon, apply, and start it again"
            return replace(action, hold=Hold(why))
        if action.hold is not None:
            return action
        if action.address.kind is Kind.PROFILE:
            why = canons.no_worker(action)
            return replace(action, row=Row.REFUSED, reason=why, hold=Hold(why)) if why else action
        if action.address.kind is not Kind.JOB:
            return action
        why = ""
        if action.row is Row.UPDATE:
            changes = [change for change in action.changes if change.row in WRITING_FIELDS]
            cleared = [change.field for change in changes if change.write is CLEAR]
            why = canons.unreachable(action.address, [change.field for change in changes], cleared)
        if not why and cold_way and action.row in (Row.CREATE, Row.MISSING, Row.UPDATE):
            written = {c.field: c.write for c in action.changes if c.writes and c.write is not CLEAR}
            why = cold.too_long(written)
        return replace(action, row=Row.REFUSED, reason=why, hold=Hold(why)) if why else action

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        if thing.kind is Kind.CHANNEL:
            return access.express(thing)
        if thing.kind is Kind.PROFILE:
            block = worker.express(thing.get(worker.FIELD))
            return {} if block is None else {worker.FIELD: block}
        if thing.kind is not Kind.JOB:
            return {}
        out = shape.express(thing)
        if "context_from" in out:
            out["context_from"] = ["self" if ref == thing.id else ref for ref in out["context_from"]]
        return out

    def batch(self, action: Action) -> str:
        """Each action by itself: the door takes one line at a time, and one that is lost must not take others along."""
        return str(action.address)

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        if not home.place.local:
            raise ProviderError(f"{home.path}: it is written where it is; run the reconciler there")
        places.check_writable(home.place, home.path)
        way = ways.find(Path(home.path), reading.mode(home))
        if way.held:
            raise ProviderError(way.held)
        if not way.live:
            cold.check(home)

    def open(
        self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf
    ) -> AbstractContextManager[Door]:
        from . import door  # what only writes is not loaded for a plan

        return door.opened(home, lock_fd)

    def limits(self) -> Sequence[str]:
        return (
            "profiles, jobs and access only: no verb for inference, settings, files, routes and webhooks",
            "channels: `allow` and `admins`, by cold verbs only; `enabled` has to be what it is in the home",
            "profiles worker: harness, model, preset and cwd, when the profile is made; no verb changes one",
            "a home cannot be provisioned: the orchestrator makes it",
            "a job's skills, context_from, repeat, metadata and id are chosen when it is made, and cannot be changed",
            "jobs before, run, toolsets, session, monitor: in no version",
            "jobs model: a name for the profile's worker, as {provider: auto, model: NAME}",
            "jobs schedule: cron lines of *, a, a-b, /n and lists; in UTC where no zone is said",
            "a home is written on this machine only (no `at:`)",
        )

    def examine(self, home: HomeRef) -> Sequence[str]:
        found = reading.trash(home)
        if home.place.local:
            way = ways.find(Path(home.path), reading.mode(home))
            found += [words for words in (way.held, way.note) if words]
        return found

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        schedule = resource.fields.get("schedule")
        if resource.address.kind is not Kind.JOB or not isinstance(schedule, dict) or "cron" not in schedule:
            return {}
        return {"time zone": str(schedule.get("tz") or observation.facts.get("zone") or "UTC")}

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        return reading.behind(home)

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        """A process below the daemon that serves the home, such as a worker of one of its jobs."""
        if not home.place.local:
            return ""
        found = lease.inspect(Path(home.path))
        if found.state is lease.State.LIVE and found.pid in ancestors:
            return f"it runs below the daemon of {home.path} (pid {found.pid})"
        return ""


_OPTIONS = frozenset({"command", "mode"})
