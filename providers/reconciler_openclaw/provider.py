"""The OpenClaw provider: the engine's protocol, each verb one call into the module that does it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reconciler.action import Action, Fact, Row
from reconciler.observe import Observation, Observed, Wanted
from reconciler.place import Place
from reconciler.provider import Behind, Canon, Door, HomeRef, KindTraits, Note, Resolve, silent
from reconciler_shape import boards as kits
from reconciler_shape import files as file_words
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, shape_of

from . import (
    boards,
    files,
    home,
    inference,
    install,
    jobcanon,
    jobs,
    kinds,
    portable,
    profiles,
    reading,
    roster,
    routes,
    secretrefs,
    secrets,
    settings,
    terms,
    versions,
    webhooks,
)
from . import review as reviews

_OPTIONS = ("mode", "node", "openclaw", "quiet_gateway")
MODES = ("auto", "rpc", "cli")


class OpenClawProvider:
    """Homes of OpenClaw. `clock` is for tests."""

    harness = "openclaw"
    config = "openclaw.json"
    traits: Mapping[Kind, KindTraits] = {
        Kind.PROFILE: KindTraits(by_place=True, permanent=frozenset({home.DEFAULT})),
        # A `current` session becomes the one that OpenClaw takes it for.
        Kind.JOB: KindTraits(settling=frozenset({"session"})),
        Kind.INFERENCE: KindTraits(by_place=True, always=True),
        Kind.SETTING: KindTraits(by_place=True, always=True),
        Kind.FILE: KindTraits(by_place=True, parts=frozenset({"block"})),
        Kind.SECRET: KindTraits(by_place=True, always=True),
        **dict.fromkeys(kinds.PARTS, KindTraits(by_place=True)),
        Kind.KIT: KindTraits(by_place=True),
        Kind.ROUTE: KindTraits(),  # a binding is known by what it matches
    }

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock

    def options(self, door: Mapping[str, Json]) -> list[str]:
        """`{openclaw?, node?, mode?: auto | rpc | cli, quiet_gateway?: bool}`."""
        known = ", ".join(f"`{name}`" for name in _OPTIONS)
        wrong = [f"door: {key} is not known (only {known})" for key in sorted(door) if key not in _OPTIONS]
        wrong += install.wrong(door)
        if "mode" in door and door["mode"] not in MODES:
            wrong.append(f"door.mode: one of {', '.join(MODES)}")
        if not isinstance(door.get("quiet_gateway", True), bool):
            wrong.append("door.quiet_gateway: true or false")
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
        paths: dict[str, list[str]] = {}
        for resource in resources.values():
            if resource.address.kind is Kind.FILE:
                paths.setdefault(resource.address.profile, []).append(resource.address.key)
        found = reading.prepared(observation, {"files": paths, "things": dict(resources)})
        found = replace(found, facts=secrets.coming(found.facts, resources))
        return routes.suggested(found, resources)

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        address, facts = resource.address, observation.facts
        match address.kind:
            case Kind.JOB:
                return jobcanon.canon(resource, _around(address.profile, observation), self._clock())
            case Kind.INFERENCE:
                return inference.canon(resource.fields, _names(facts), frozenset(facts.get("keyed", ())))
            case Kind.SETTING:
                return _setting(address, resource.fields.get("value"), facts)
            case Kind.SECRET:
                return Canon(dict(resource.fields))
            case Kind.KIT:
                return boards.canon(resource, observation)
            case Kind.FILE:
                fields, refused = file_words.canon(resource.fields)
                why = files.refusal(address.key)
                return Canon(fields, refused={**refused, **(dict.fromkeys(fields, why) if why else {})})
            case Kind.PROFILE:
                why = profiles.refusal(address.profile) if address.profile != home.DEFAULT else ""
                fields = {k: v.strip() if isinstance(v, str) else v for k, v in resource.fields.items()}
                own = "OpenClaw's agents work by themselves, and have no other program to do it"
                refused = {"worker": own} if "worker" in fields else {}
                return Canon(fields, refused={**refused, **({"": why} if why else {})})
        if address.kind in kinds.PARTS:
            near = terms.near(address.profile, observation, _names(facts), resolve)
            return kinds.PARTS[address.kind].canon(resource, near)
        return Canon({}, refused={"": f"{address.kind} cannot be declared for a home of this harness yet"})

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        return reviews.facts(action, desired, observation)

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        return reviews.review(actions, observation)

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        match thing.kind:
            case Kind.JOB:
                return jobs.express(thing, str(_profile(thing.profile, observation).get("workspace", "")))
            case Kind.INFERENCE:
                return inference.express(thing.fields)
            case Kind.SETTING:
                value = settings.express(thing)
                return {} if value is None else {"value": value}
            case Kind.KIT:
                return kits.express(thing)
            case Kind.FILE:
                return file_words.express(thing, ("0644", "0600"))
        if thing.kind in kinds.PARTS:
            return kinds.PARTS[thing.kind].express(thing, frozenset(observation.facts.get("names", ())))
        text = thing.get("description")
        return {"description": text} if isinstance(text, str) else {}

    def batch(self, action: Action) -> str:
        """All of the config in one patch (with one base hash); jobs and files by their profile."""
        kind = action.address.kind
        if action.row is Row.PROVISION or kind is Kind.PROFILE:
            return str(action.address)
        in_config = kind in (Kind.INFERENCE, Kind.SETTING) or kind in kinds.PARTS
        return "config" if in_config else f"{action.address.profile}/{kind}"

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        from . import door

        door.check(home, actions)

    def open(
        self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf
    ) -> AbstractContextManager[Door]:
        from . import door  # what only writes is not loaded for a plan

        return door.opened(home, lock_fd, note, until)

    def limits(self) -> Sequence[str]:
        return versions.limits()

    def examine(self, home: HomeRef) -> Sequence[str]:
        return portable.leftovers(home.place, home.path)

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        return portable.implied(resource.address.kind, resource.fields, str(observation.facts.get("zone", "")))

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        return list(portable.behind(home.place, home.path))

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        """A process below the home's gateway, such as a tool of one of its agents."""
        found = reading.gateway(home) if home.place.local else None
        if found is not None and found.pid in ancestors:
            return f"it runs below the gateway of {home.path} (pid {found.pid})"
        return ""


def _profile(name: str, observation: Observation) -> Mapping[str, Any]:
    found = observation.facts.get("profiles", {}).get(name, {})
    return found if isinstance(found, Mapping) else {}


def _names(facts: Mapping[str, Json]) -> frozenset[str] | None:
    return frozenset(facts.get("names", ())) if facts.get("names_known") else None


def _around(profile: str, observation: Observation) -> jobcanon.Around:
    here, facts = _profile(profile, observation), observation.facts
    return jobcanon.Around(
        zone=str(facts.get("zone", "")),
        channels=facts.get("channels"),
        workspace=str(here.get("workspace", "")),
        scripts=here.get("scripts", ()),
        declared_files=facts.get("declared", {}).get("files", {}).get(profile, ()),
        default=profile == home.DEFAULT,
    )


def _setting(address: Address, value: Json, facts: Mapping[str, Json]) -> Canon:
    tree = facts.get("tree", {})
    why = settings.refusal(address.key, tree, roster.read(tree, facts.get("ran")), address.profile)
    if not why and webhooks.shares(address.key, facts.get("declared", {}).get("things", {})):
        why = "hooks.token is the secret of the webhooks: say it there"
    names = _names(facts)
    missing = sorted(secretrefs.wanted(value) - names) if names is not None else []
    held = f"the home has no secret {', '.join(missing)} (.env, env.vars or its secret store)" if missing else ""
    return Canon({"value": value}, {"value": shape_of(value)}, {"value": why} if why else {}, held)
