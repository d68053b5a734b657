"""MCP servers, toolsets, plugins and skills of a profile: what the shape says of them, and what only Hermes does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.action import Action, Row
from reconciler.observe import Observation, Observed, Things, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Canon, KindTraits, Step
from reconciler_shape import mcp_servers, parts, plugins, shaped, skills, toolsets, trash
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import home

SHAPED: Mapping[Kind, shaped.Shaped] = {
    # No version starts a server in a folder of its own (`tools/mcp_tool.py`).
    Kind.MCP_SERVER: mcp_servers.servers(unread=frozenset({"cwd"})),
    Kind.TOOLSET: toolsets.TOOLSETS,
    Kind.PLUGIN: plugins.PLUGINS,
}
KINDS = (*SHAPED, Kind.SKILL)
TRAITS = {kind: KindTraits(by_place=True) for kind in KINDS}
SKILLS = ("skills",)
_EVERYWHERE = (
    "Hermes reads `toolsets` only for its kanban tools; what is on is said per channel (cli, telegram, cron …)"
)


def read(place: Place, profile: home.Profile, wanted: Wanted) -> dict[Kind, Things | Unknown]:
    """The wanted things of these kinds; with `everything`, all."""
    name, raw, hider = profile.name, profile.config.raw, profile.hider
    if profile.config.unknown:
        return dict.fromkeys(KINDS, profile.config.unknown)
    found: dict[Kind, Things | Unknown] = {
        kind: shaped.read(each, name, raw, wanted.keys(name, kind), wanted.everything, hider)
        for kind, each in SHAPED.items()
    }
    keys = wanted.keys(name, Kind.SKILL)
    found[Kind.SKILL] = skills.read(place, profile.folder, SKILLS, name, raw, keys, wanted.everything, hider)
    return found


def canon(resource: Resource, observation: Observation) -> Canon:
    """A declared thing as Hermes keeps it."""
    address = resource.address
    if address.kind is Kind.SKILL:
        return _unless_pinned(skills.canon(resource, observation), [skills.DISABLED], observation)
    around = observation.facts.get("profiles", {}).get(address.profile, {})
    notes: tuple[str, ...] = ()
    if address.kind is Kind.TOOLSET:
        notes = toolsets.off_everywhere(resource.fields, around.get("config", {}))
        notes += (_EVERYWHERE,) if address.key == toolsets.EVERYWHERE else ()
    each = SHAPED[address.kind]
    made = shaped.canon(each, resource, around.get("env", ()), around.get("env_known", False), notes)
    return _unless_pinned(made, [part["path"] for part in each.parts(address.key)], observation)


def _unless_pinned(made: Canon, paths: Sequence[Sequence[str]], observation: Observation) -> Canon:
    pins = observation.facts.get("pinned", ())
    for path in paths:
        name = ".".join(path)
        for pin in pins:
            if name == pin or name.startswith(f"{pin}.") or pin.startswith(f"{name}."):
                why = f"{pin} is pinned by this machine's administrator; Hermes ignores it in config.yaml"
                return Canon(made.fields, refused={"": why})
    return made


def express(thing: Observed) -> dict[str, Json]:
    return skills.express(thing) if thing.kind is Kind.SKILL else shaped.express(SHAPED[thing.kind], thing)


def op(action: Action, step: Step) -> dict[str, Any]:
    """The worker's operation for an action. Raises CannotWrite."""
    address = action.address
    found: dict[str, Any] = {"ref": address.path, "id": address.key, "fingerprint": action.fingerprint}
    if address.kind is Kind.SKILL:
        return found | _skill(action, step)
    each = SHAPED[address.kind]
    made = shaped.edits(each, action)
    found |= {"parts": each.parts(address.key), "set": made.sets, "unset": made.unsets}
    found |= {"add": made.adds, "remove": made.removes}
    return found | ({"server": address.key} if address.kind is Kind.MCP_SERVER and made.sets else {})


def _skill(action: Action, step: Step) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": action.address.key,
        "below": list(SKILLS),
        "trash": f"{step.home.path}/{trash.NAME}",
        "parts": [parts.member(skills.DISABLED, action.address.key)],
    }
    if action.row is Row.DELETE:
        return {**made, "op": "delete"}
    return {**made, "op": "write", **skills.written(action)}
