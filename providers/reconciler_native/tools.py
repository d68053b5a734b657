"""MCP servers, toolsets, plugins and skills of a profile: read and planned as the shape tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.action import CLEAR, Action, Row
from reconciler.observe import Observation, Observed, Things, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Canon, KindTraits
from reconciler_shape import mcp_servers, plugins, shaped, skills, toolsets
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from .errors import LoadFailed
from .folder import Profile

SHAPED: Mapping[Kind, shaped.Shaped] = {
    Kind.MCP_SERVER: mcp_servers.servers(),
    Kind.TOOLSET: toolsets.TOOLSETS,
    Kind.PLUGIN: plugins.PLUGINS,
}
KINDS = (*SHAPED, Kind.SKILL)
TRAITS = {kind: KindTraits(by_place=True) for kind in KINDS}
SKILLS = ("skills", ".agents/skills")


def read(place: Place, profile: Profile, wanted: Wanted, hider: Hider) -> dict[Kind, Things | Unknown]:
    """The wanted things of these kinds; with `everything`, all."""
    name = profile.name
    try:
        raw: Mapping[str, Any] = profile.config.raw
    except LoadFailed as error:
        return dict.fromkeys(KINDS, Unknown(str(error)))
    found: dict[Kind, Things | Unknown] = {
        kind: shaped.read(each, name, raw, wanted.keys(name, kind), wanted.everything, hider)
        for kind, each in SHAPED.items()
    }
    keys = wanted.keys(name, Kind.SKILL)
    found[Kind.SKILL] = skills.read(place, str(profile.folder), SKILLS, name, raw, keys, wanted.everything, hider)
    return found


def canon(resource: Resource, observation: Observation) -> Canon:
    """A declared thing as the home keeps it."""
    if resource.address.kind is Kind.SKILL:
        return skills.canon(resource, observation)
    around = observation.facts.get("profiles", {}).get(resource.address.profile, {})
    notes = toolsets.off_everywhere(resource.fields, around.get("config", {}))
    each = SHAPED[resource.address.kind]
    return shaped.canon(each, resource, around.get("env", ()), around.get("env_known", False), notes)


def express(thing: Observed) -> dict[str, Json]:
    return skills.express(thing) if thing.kind is Kind.SKILL else shaped.express(SHAPED[thing.kind], thing)


def line(action: Action) -> tuple[str, dict[str, Any]]:
    """The operator's verb and its arguments for an action."""
    kind, args = action.address.kind, {"id": action.address.key}
    if action.row is Row.DELETE:
        return f"{kind}.delete", args
    if kind is Kind.SKILL:
        return f"{kind}.set", args | {k: v for k, v in skills.written(action).items() if v is not None}
    rows = [c for c in action.changes if action.row is not Row.UPDATE or c.writes]
    return f"{kind}.set", args | {"fields": {c.field: None if c.write is CLEAR else c.write for c in rows}}
