"""Toolsets: `default` is `tools.allow` of the profile's agent; where it has none, that of all agents counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler.values import members
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import terms
from .edits import GONE, Config, Edit, changes_of, seen
from .view import Path, View, look_up

KEY = "default"
_ALLOW: Path = ("tools", "allow")


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    if path[: len(agent) + 2] == (*agent, *_ALLOW):
        return "tools.allow of an agent is its toolset: declare it as toolsets: {default: […]}"
    return ""


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    own = look_up(view.agent.entry, _ALLOW)
    shared = look_up(view.tree, _ALLOW)
    value = shared if own is None else own
    if not isinstance(value, list) or not (everything or KEY in wanted):
        return {}
    defaults = frozenset({"tools"} if own is None else ())
    fields: dict[str, Json] = {"tools": [str(one) for one in value]}
    mark = digest(value, view.hider.key)
    return {KEY: Observed(Kind.TOOLSET, view.profile, KEY, fields, KEY, defaults, fingerprint=mark)}


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    return {"tools": thing.fields["tools"]}


def canon(resource: Resource, near: terms.Near) -> Canon:
    if resource.address.key != KEY:
        why = "OpenClaw lets an agent use the same tools on all channels: only `default` can be declared"
        return Canon(dict(resource.fields), refused={"": why})
    shared = look_up(near.tree, _ALLOW)
    kept = sorted(set(map(str, members(resource.fields["tools"]))) - set(map(str, shared or ())))
    notes = (f"tools.allow of all agents lacks {', '.join(kept)}, and counts too",) if shared and kept else ()
    return Canon(dict(resource.fields), notes=notes)


def paths(key: str, agent: Path) -> list[Path]:
    return [(*agent, *_ALLOW)]


def edits(action: Action, config: Config) -> Iterator[Edit]:
    path: Path = (*config.roster.agent(action.address.profile).path, *_ALLOW)
    if action.row is Row.DELETE:
        yield path, GONE
    for change in changes_of(action):
        if action.row is not Row.DELETE:
            yield path, GONE if change.write is CLEAR else list(members(change.write))


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    for change in changes_of(action):
        now = seen(change)
        # Without a list OpenClaw's own choice counts, which may be any.
        if change.write is CLEAR or now is None or set(members(change.write)) - set(members(now)):
            return {Fact.LOOSENS_SECURITY}
    return set()
