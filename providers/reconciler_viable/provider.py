"""The viable provider: the engine's protocol, each verb one call into the module that does it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.action import Action, Fact
from reconciler.errors import ProviderError
from reconciler.observe import Observation, Observed, Wanted
from reconciler.place import Place
from reconciler.provider import Canon, Door, HomeRef, KindTraits, Note, Resolve, silent
from reconciler_shape.hiding import is_hidden
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import credential, review

_REACH = frozenset({"url", "key", "project", "target"})
_CEILING = 45
_LOCAL = (
    "target: local: a local project is written through the one connector that is attached to it, and opening another "
    "would throw that one out; use the stdio connector (@owlmeans/viable-mcp)"
)


class ViableProvider:
    """Projects on the viable platform."""

    harness = "viable"
    traits: Mapping[Kind, KindTraits] = {
        Kind.SETTING: KindTraits(by_place=True, always=True),
        Kind.KIT: KindTraits(by_place=True, write_only=True),
    }

    def options(self, door: Mapping[str, Json]) -> list[str]:
        """`{seconds: 1…45}`, besides what says where the project is."""
        wrong = [f"door: {key} is not known (only `seconds`)" for key in sorted(door.keys() - _REACH - {"seconds"})]
        seconds = door.get("seconds", _CEILING)
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= _CEILING:
            wrong.append(f"door.seconds: how long to wait for an answer, 1 to {_CEILING}")
        if door.get("target") == "local":
            wrong.append(_LOCAL)
        return wrong

    def home_path(self, path: str, place: Place) -> str:
        if not path.startswith(("https://", "http://")):
            raise ProviderError("a project on the platform is at a URL")
        return path

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        credential.token(home.options)
        from . import reading  # with it comes the client, which only a look at the platform needs

        return reading.observe(home)

    def blank(self, home: HomeRef, profiles: Collection[str] = ()) -> Observation:
        return Observation(things={("", Kind.SETTING): {}, ("", Kind.KIT): {}}, facts={"offer": {}})

    def supported(self, version: str | None) -> str:
        return ""  # the platform says no version; its answers are held to their form instead

    def prepare(self, resources: Mapping[Address, Resource], observation: Observation) -> Observation:
        return observation

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        kind, fields = resource.address.kind, dict(resource.fields)
        if kind is Kind.SETTING:
            return Canon(fields)
        if kind is not Kind.KIT:
            return Canon({}, refused={"": f"a project on the platform has settings and planning kits, and no {kind}"})
        refused = {}
        if (not review.kit_of(fields.get("source", "viable:")) and "source" in fields) or "kit" in fields:
            refused["source" if "source" in fields else "kit"] = (
                "the platform applies kits of its own only: write source: viable:<kit>"
            )
        if "board" in fields:
            refused["board"] = "a project on the platform has no boards"
        return Canon(fields, refused=refused)

    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        """Whatever is written, the platform rebuilds what is running; a person's yes is asked for each time."""
        return frozenset({Fact.RUNNING})

    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        offer = observation.facts.get("offer", {})
        return [review.reviewed(action, resources.get(action.address), offer) for action in actions]

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        value = thing.get("value")
        return {"value": value} if thing.kind is Kind.SETTING and not is_hidden(value) else {}

    def batch(self, action: Action) -> str:
        """All settings in one patch; kits one by one."""
        return "settings" if action.address.kind is Kind.SETTING else str(action.address)

    def preflight(self, home: HomeRef, actions: Sequence[Action]) -> None:
        credential.token(home.options)

    def limits(self) -> Sequence[str]:
        return (
            "settings: copyright, organizationName, termsUrl, privacyUrl, googleTag; only googleTag can be taken away",
            "planning_kits: source viable:<kit> and types only; a kit, or a type of one, is never taken out again",
            "which kits a project has, nothing tells: what our state says of them counts (decision 0019)",
            "target: local is refused: that needs the project's one session, which is never opened here",
            "every write rebuilds the project, and asks for consent",
            "the access token comes from the environment; proxies of the environment are not used",
        )

    def examine(self, home: HomeRef) -> Sequence[str]:
        return ()

    @contextlib.contextmanager
    def open(self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf) -> Iterator[Door]:
        from .door import ViableDoor  # what only writes is not loaded for a plan

        yield ViableDoor(home)

    def insider(self, home: HomeRef, ancestors: Sequence[int]) -> str:
        return ""  # nothing of the platform runs on this machine
