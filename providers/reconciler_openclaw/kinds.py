"""The kinds that are parts of openclaw.json besides settings and inference: what each module does of one, by kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from reconciler.action import Action, Fact, Row
from reconciler.observe import Observation, Observed, Things
from reconciler.provider import Canon
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import channels, mcp_servers, plugins, routes, skills, terms, toolsets, webhooks
from .edits import Config, Edit
from .view import Path, View


class Part(Protocol):
    """A kind's module. `agent` is where the entry of the profile's agent stands."""

    def owned(self, path: Path, agent: Path) -> str:
        """Why a path of the config is no setting but this kind's, "" if it may be a setting."""
        ...

    def paths(self, key: str, agent: Path) -> list[Path]:
        """The parts of the config that a row writes."""
        ...

    def read(self, view: View, wanted: Sequence[str], everything: bool) -> Things: ...

    def canon(self, resource: Resource, near: terms.Near) -> Canon: ...

    def edits(self, action: Action, config: Config) -> Iterable[Edit]:
        """What a row changes. Raises Refused."""
        ...

    def facts(self, action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
        """What a row that writes would do, deletes apart; `effective` are the fields as they will be."""
        ...

    def express(self, thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
        """`names` are the secrets that the home has."""
        ...


PARTS: Mapping[Kind, Part] = {
    Kind.SKILL: skills,
    Kind.PLUGIN: plugins,
    Kind.MCP_SERVER: mcp_servers,
    Kind.TOOLSET: toolsets,
    Kind.CHANNEL: channels,
    Kind.ROUTE: routes,
    Kind.WEBHOOK: webhooks,
}


def owned(path: Path, agent: Path) -> str:
    """Why a path of the config is no setting but one of these kinds', "" if it may be a setting."""
    return next((why for part in PARTS.values() if (why := part.owned(path, agent))), "")


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> set[Fact]:
    """What a row would do to the world; a delete takes away."""
    address = action.address
    if action.row not in (Row.CREATE, Row.MISSING, Row.UPDATE) or not action.writes:
        return set()
    seen = observation.at(address.profile, address.kind, action.id or address.key)
    observed = seen.fields if isinstance(seen, Observed) else {}
    return PARTS[address.kind].facts(action, observed, {**observed, **desired})


def made_id(action: Action) -> str:
    """The harness id of what a row makes, "" where it is its place."""
    return routes.made_id(action) if action.address.kind is Kind.ROUTE else ""
