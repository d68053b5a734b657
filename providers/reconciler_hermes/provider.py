"""The Hermes provider: the engine's protocol, each verb one call into the module that does it."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from reconciler.action import Action, Fact, Row
from reconciler.errors import ProviderError
from reconciler.observe import Observation, Observed, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Behind, Canon, Door, HomeRef, KindTraits, Note, Resolve, silent
from reconciler_shape import boards as kits
from reconciler_shape import dotted, models, places, reach, reachcanon
from reconciler_shape import files as file_words
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import MAP_OF_SCALARS, Json, shape_of

from . import (
    boards,
    files,
    home,
    inference,
    insiders,
    interpreter,
    jobcanon,
    jobs,
    profiles,
    reaching,
    reading,
    settings,
    tools,
    versions,
)
from . import review as reviews
from .models import usual_key


class HermesProvider:
    """Homes of Hermes Agent. `clock` is for tests."""

    harness = "hermes"
    config = "Hermes's config.yaml"
    traits: Mapping[Kind, KindTraits] = {
        Kind.PROFILE: KindTraits(by_place=True, permanent=frozenset({home.DEFAULT})),
        # Hermes resolves links in a workdir.
        Kind.JOB: KindTraits(settling=frozenset({"workdir"})),
        Kind.INFERENCE: KindTraits(by_place=True, always=True),
        Kind.SETTING: KindTraits(by_place=True, always=True),
        Kind.FILE: KindTraits(by_place=True, parts=frozenset({"block"})),
        Kind.SECRET: KindTraits(by_place=True, always=True),
        **dict.fromkeys(reach.KINDS, KindTraits(by_place=True)),
        **tools.TRAITS,
        Kind.KIT: KindTraits(by_place=True),
    }

    def __init__(self, clock: Any = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._last: tuple[Observation | None, dict[str, jobcanon.Around]] = (None, {})

    def options(self, door: Mapping[str, Json]) -> list[str]:
        wrong = [f"door: {key} is not known (only `python`)" for key in sorted(door) if key not in ("python",)]
        python = door.get("python")
        if python is not None and not (isinstance(python, str) and python.startswith(("/", "~/"))):
            wrong.append("door.python: an absolute path of the interpreter that has hermes-agent")
        return wrong

    def home_path(self, path: str, place: Place) -> str:
        return place.resolve(path)

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        return reading.observe(home, wanted)

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        return reading.blank(home, profiles)

    def supported(self, version: str | None) -> str:
        return versions.supported(version)

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        """The observation with what `canon`, which sees one resource, has to know of the others."""
        declared: dict[str, Any] = {"inference": {}, "files": {}, "zones": {}, "skills": {}, "home_channels": {}}
        declared["reach"] = reach.declared(resources.values())
        for resource in resources.values():
            profile, key = resource.address.profile, resource.address.key
            match resource.address.kind:
                case Kind.INFERENCE if "default" in resource.fields:
                    declared["inference"][profile] = resource.fields["default"]
                case Kind.FILE:
                    declared["files"].setdefault(profile, []).append(key)
                case Kind.SKILL if "content" in resource.fields:
                    declared["skills"].setdefault(profile, []).append(key)
                case Kind.CHANNEL if "owner_chat" in resource.fields:
                    declared["home_channels"].setdefault(profile, []).append(key)
                case Kind.SETTING if key == "timezone":
                    declared["zones"][profile] = resource.fields.get("value")
        return reading.prepared(observation, declared, resources)

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        address = resource.address
        if address.kind is Kind.JOB:
            return jobcanon.canon(resource, self._around(resource, observation), resolve, self._clock())
        if address.kind in reach.KINDS:
            too_old = versions.routes(observation.version) if address.kind is Kind.ROUTE else ""
            found = reachcanon.canon(resource, self._near(observation, address.profile))
            return Canon({}, refused={"": too_old}) if too_old else found
        if address.kind in tools.KINDS:
            return tools.canon(resource, observation)
        around = observation.facts.get("profiles", {}).get(address.profile, {})
        match address.kind:
            case Kind.INFERENCE:
                known = around.get("env_known", False)
                found = inference.canon(resource.fields, around.get("env", ()), known, observation.version)
                shapes = {"auxiliary": MAP_OF_SCALARS} if "auxiliary" in found.fields else {}
                return Canon(found.fields, shapes, found.refused, found.held, found.notes)
            case Kind.SETTING:
                pinned = observation.facts.get("pinned", ())
                declared = resource.fields.get("value")
                why = settings.refusal(address.key, declared, around.get("config", {}), pinned)
                why = why or reachcanon.clashes(address.key, self._near(observation, address.profile))
                value, names = dotted.referenced(declared)
                missing = sorted(names - set(around.get("env", ()))) if around.get("env_known") else []
                held = f"the home's .env has no {', '.join(missing)}" if missing else ""
                shapes = {"value": shape_of(value)}
                return Canon({"value": value}, shapes, refused={"value": why} if why else {}, held=held)
            case Kind.FILE:
                fields, refused = file_words.canon(resource.fields)
                why = files.refusal(address.key)
                return Canon(fields, refused={**refused, **(dict.fromkeys(fields, why) if why else {})})
            case Kind.KIT:
                return boards.BOARDS.canon(resource)
            case Kind.PROFILE:
                why = profiles.refusal(address.profile) if address.profile != home.DEFAULT else ""
                fields = {k: v.strip() if isinstance(v, str) else v for k, v in resource.fields.items()}
                refused = {"": why} if why else {}
                if "worker" in fields:
                    refused["worker"] = "Hermes works by itself, and has no other program to do it"
                return Canon(fields, refused=refused)
        return Canon({}, refused={"": f"{address.kind} cannot be declared for a home of this harness yet"})

    @staticmethod
    def _near(observation: Observation, profile: str) -> reachcanon.Around:
        return reachcanon.around("Hermes", reaching.DIALECT, observation, profile)

    def _around(self, resource: Resource, observation: Observation) -> jobcanon.Around:
        """What surrounds a profile's jobs, made once for all of them."""
        profile = resource.address.profile
        # Taken once: homes are planned side by side, and each thread must keep to its own observation.
        known, made = self._last
        if known is not observation:
            made = {}
            self._last = (observation, made)
        if profile not in made:
            made[profile] = _around(profile, observation)
        return made[profile]

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        return reviews.facts(action, desired, observation)

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        return reviews.review(actions, observation, list(resources.values()))

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        if thing.kind in reach.KINDS:
            return reach.express(thing, reaching.DIALECT)
        if thing.kind in tools.KINDS:
            return tools.express(thing)
        match thing.kind:
            case Kind.JOB:
                return jobs.express(thing)
            case Kind.INFERENCE:
                return models.express(thing.fields)
            case Kind.SETTING:
                value = settings.express(thing)
                return {} if value is None else {"value": value}
            case Kind.FILE:
                return file_words.express(thing, ("0644", "0600"))
        if thing.kind is Kind.KIT:
            return kits.express(thing)
        text = thing.get("description")
        return {"description": text} if isinstance(text, str) else {}

    def batch(self, action: Action) -> str:
        if action.row is Row.PROVISION or action.address.kind is Kind.PROFILE:
            return str(action.address)
        return f"{action.address.profile}/{action.address.kind}"

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        place, root = home.place, home.path
        found = interpreter.find(place, home.options)
        why = found.why or interpreter.unsafe(place, found)
        if why:
            raise ProviderError(why)
        if not places.check_writable(place, root):
            return
        cron = posixpath.join(root, "cron")
        jobs_here = any(action.address.kind is Kind.JOB for action in actions) and place.stat(cron) is not None
        if jobs_here and not place.writable(cron):
            raise ProviderError(f"{cron} cannot be written")
        if place.stat(posixpath.join(root, ".managed")):
            raise ProviderError(f"{root} is managed by another system (.managed)")

    def open(
        self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf
    ) -> AbstractContextManager[Door]:
        from . import door  # what only writes is not loaded for a plan

        return door.opened(home, lock_fd)

    def limits(self) -> Sequence[str]:
        return versions.limits()

    def examine(self, home: HomeRef) -> Sequence[str]:
        return profiles.trash(home.path, home.place)

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        kind, schedule = resource.address.kind, resource.fields.get("schedule")
        if kind is Kind.INFERENCE:
            return models.keys(resource.fields, usual_key)
        if kind is not Kind.JOB or not isinstance(schedule, dict) or "cron" not in schedule:
            return {}
        zone = self._around(resource, observation).zone
        return {"time zone": str(schedule.get("tz") or zone or "the machine's own")}

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        return profiles.behind(home.place, home.path)

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        return insiders.insider(home, ancestors)


def _around(profile: str, observation: Observation) -> jobcanon.Around:
    here = observation.facts.get("profiles", {}).get(profile, {})
    declared = observation.facts.get("declared", {})
    things = observation.things.get((profile, Kind.JOB), {})
    return jobcanon.Around(
        version=observation.version,
        zone=str(declared.get("zones", {}).get(profile) or here.get("zone", "")),
        env=here.get("env", ()),
        home_channels=sorted({*here.get("home_channels", ()), *declared.get("home_channels", {}).get(profile, ())}),
        scripts=here.get("scripts", ()),
        declared_files=declared.get("files", {}).get(profile, ()),
        skills=[*here.get("skills", ()), *declared.get("skills", {}).get(profile, ())],
        user_home=str(observation.facts.get("user_home", "")),
        inference=declared.get("inference", {}).get(profile, {}),
        ids=frozenset() if isinstance(things, Unknown) else frozenset(things),
    )
