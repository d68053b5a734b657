"""The native provider: the engine's protocol, each verb one call into the module that does it."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.action import Action, Fact, Row
from reconciler.errors import ProviderError
from reconciler.observe import Observation, Observed, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Behind, Canon, Door, HomeRef, KindTraits, Note, Resolve, silent
from reconciler_shape import models, places, reach, reachcanon, worker
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import canon as canons
from . import lease, observed, reading, review, tools
from .folder import DEFAULT
from .ops_reach import DIALECT

_MODES = ("auto", "live", "cold")


class NativeProvider:
    """Homes of our own. `clock` is for tests."""

    harness = "native"
    config = "Hermes's config.yaml"
    traits: Mapping[Kind, KindTraits] = {
        Kind.PROFILE: KindTraits(by_place=True, permanent=frozenset({DEFAULT})),
        Kind.JOB: KindTraits(),
        Kind.INFERENCE: KindTraits(by_place=True, always=True),
        Kind.SETTING: KindTraits(by_place=True, always=True),
        Kind.FILE: KindTraits(by_place=True, parts=frozenset({"block"})),
        Kind.SECRET: KindTraits(by_place=True, always=True),
        **dict.fromkeys(reach.KINDS, KindTraits(by_place=True)),
        **tools.TRAITS,
        Kind.KIT: KindTraits(by_place=True),
    }

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._last: tuple[Observation | None, dict[str, canons.Around]] = (None, {})

    def options(self, door: Mapping[str, Json]) -> list[str]:
        wrong = [f"door: {key} is not known (only `mode`)" for key in sorted(door) if key != "mode"]
        if "mode" in door and door["mode"] not in _MODES:
            wrong.append(f"door.mode: one of {', '.join(_MODES)}")
        return wrong

    def home_path(self, path: str, place: Place) -> str:
        return place.resolve(path)

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        return reading.observe(home, wanted)

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        return reading.blank(home, profiles)

    def supported(self, version: str | None) -> str:
        return "" if version == reading.VERSION else f"a folder of form {version} is not known here"

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        """The observation with what `canon`, which sees one resource, has to know of the others."""
        declared: dict[str, Any] = {
            "files": {},
            "zones": {},
            "keys": {},
            "skills": {},
            "workers": [r.address.profile for r in resources.values() if worker.FIELD in r.fields],
            "reach": reach.declared(resources.values()),
        }
        for resource in resources.values():
            profile, key = resource.address.profile, resource.address.key
            if resource.address.kind is Kind.FILE:
                declared["files"].setdefault(profile, []).append(key)
            elif resource.address.kind is Kind.SETTING and key == "timezone":
                declared["zones"][profile] = resource.fields.get("value")
            elif resource.address.kind is Kind.SKILL and "content" in resource.fields:
                declared["skills"].setdefault(profile, []).append(key)
            elif resource.address.kind is Kind.INFERENCE:
                used = [model for _, model in models.each(resource.fields)]
                declared["keys"][profile] = {str(m.get("provider")): models.key_name(m) for m in used}
        return reading.prepared(observation, declared, resources)

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        near = reachcanon.around("a native home", DIALECT, observation, resource.address.profile)
        if resource.address.kind in reach.KINDS:
            return reachcanon.canon(resource, near)
        if resource.address.kind is Kind.SETTING and (why := reachcanon.clashes(resource.address.key, near)):
            return Canon({}, refused={"value": why})
        if resource.address.kind is Kind.SETTING and self._in_worker(resource.address, observation):
            return Canon({}, refused={"value": "worker belongs to the profile's `worker:`, which is declared"})
        if resource.address.kind in tools.KINDS:
            return tools.canon(resource, observation)
        return canons.thing(resource, self._around(resource.address.profile, observation), resolve, self._clock())

    @staticmethod
    def _in_worker(address: Address, observation: Observation) -> bool:
        declared = observation.facts.get("declared", {}).get("workers", ())
        return address.profile in declared and address.key.split(".")[0] == worker.FIELD

    def _around(self, profile: str, observation: Observation) -> canons.Around:
        """What surrounds a profile's things, made once for all of them."""
        # Taken once: homes are planned side by side, and each thread must keep to its own observation.
        known, made = self._last
        if known is not observation:
            made = {}
            self._last = (observation, made)
        if profile not in made:
            made[profile] = _around(profile, observation)
        return made[profile]

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        return review.facts(action, desired, observation)

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        return review.review(actions, observation)

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        return tools.express(thing) if thing.kind in tools.KINDS else observed.express(thing)

    def batch(self, action: Action) -> str:
        if action.row is Row.PROVISION or action.address.kind is Kind.PROFILE:
            return str(action.address)
        return f"{action.address.profile}/{action.address.kind}"

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        place, root = home.place, home.path
        if not place.local:
            raise ProviderError(f"{root}: a native home is written where it is; run the reconciler there")
        if places.check_writable(place, root):
            self._ask_for_the_door(Path(root), str(home.options.get("mode") or "auto"))

    def _ask_for_the_door(self, root: Path, mode: str) -> None:
        from . import wire

        if mode != "live" and lease.inspect(root).state is not lease.State.LIVE:
            lease.check_cold(root)
            return
        if mode == "cold":
            lease.check_cold(root)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, wire.address(root) as where:
                client.settimeout(wire.TIMEOUT)
                client.connect(where)
        except OSError as error:
            raise ProviderError(
                f"{root}: no daemon answers on {lease.SOCKET} ({error.strerror or error}); the home is held until one "
                "does, or until it is stopped"
            ) from error

    def open(
        self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf
    ) -> AbstractContextManager[Door]:
        from . import door  # what only writes is not loaded for a plan

        return door.opened(home)

    def limits(self) -> Sequence[str]:
        return (
            "a native home is written on this machine only (no `at:`)",
            "inference unattended: in no version; give each job its `model:`",
            "jobs session: `main` and `isolated` only",
            "jobs model: provider, model and base_url; keys belong to the profile's inference",
            "nothing fires the jobs yet: the folder can be opened with Hermes, which does",
        )

    def examine(self, home: HomeRef) -> Sequence[str]:
        return reading.trash(home)

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        kind, schedule = resource.address.kind, resource.fields.get("schedule")
        if kind is Kind.SETTING and resource.address.key.split(".")[0] == "worker":
            return {"who reads it": "the worker of a native home"}
        if kind is Kind.INFERENCE:
            return models.keys(resource.fields, lambda provider: "")
        if kind is not Kind.JOB or not isinstance(schedule, dict) or "cron" not in schedule:
            return {}
        around = self._around(resource.address.profile, observation)
        return {"time zone": str(schedule.get("tz") or around.zone or around.meant or "UTC")}

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        return reading.behind(home)

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        """A process below the daemon that serves the home. Pids are of this machine, other places have none."""
        if not home.place.local:
            return ""
        found = lease.inspect(Path(home.path))
        if found.state is lease.State.LIVE and found.lease is not None and found.lease.pid in ancestors:
            return f"it runs below the daemon of {home.path} (pid {found.lease.pid})"
        return ""


def _around(profile: str, observation: Observation) -> canons.Around:
    here = observation.facts.get("profiles", {}).get(profile, {})
    declared = observation.facts.get("declared", {})
    things = observation.things.get((profile, Kind.JOB), {})
    zone = declared.get("zones", {}).get(profile)
    return canons.Around(
        zone=str(zone or here.get("zone", "")),
        meant=str(here.get("meant", "")),
        zone_declared=bool(zone),
        env=here.get("env", ()),
        env_known=bool(here.get("env_known", False)),
        scripts=here.get("scripts", ()),
        declared_files=declared.get("files", {}).get(profile, ()),
        skills=[*here.get("skills", ()), *declared.get("skills", {}).get(profile, ())],
        channels=here.get("channels", ()),
        config=here.get("config", {}),
        ids=frozenset() if isinstance(things, Unknown) else frozenset(things),
        keys=declared.get("keys", {}).get(profile, {}),
    )
