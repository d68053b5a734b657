"""Comments that OpenClaw drops when it writes its config: which rows would cost them (guard `comment-loss`). Pure.

OpenClaw writes the file that a path stands in, the config itself or what it includes there, as plain JSON; the other
files keep every byte (measured, both versions).
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.action import Action, Hold, Row
from reconciler.observe import Observation
from reconciler_specs.address import Kind

from . import inference, kinds, roster, settings
from .view import Path

GUARD = "comment-loss"
_KINDS = frozenset({Kind.PROFILE, Kind.INFERENCE, Kind.SETTING, *kinds.PARTS})
_AGENTS: Path = ("agents",)


def held(actions: Sequence[Action], observation: Observation) -> list[Action]:
    """The rows, those held that would drop a comment: each of them alone would."""
    facts = observation.facts
    commented: Collection[str] = facts.get("comments", ())
    if not commented:
        return list(actions)
    found = roster.read(facts.get("tree", {}), facts.get("ran"))
    rows = []
    for action in actions:
        lost = losing(action, found, str(facts["config"]), facts["includes"], commented)
        rows.append(_held(action, lost) if lost and action.writes else action)
    return rows


def losing(
    action: Action, agents: roster.Roster, config: str, includes: Mapping[str, str], commented: Collection[str]
) -> list[str]:
    """The files whose comments a row would cost, of those that have any. `includes` maps a dotted path to its file."""
    if action.address.kind not in _KINDS or action.row is Row.PROVISION:
        return []
    files = {file for path in _paths(action, agents) for file in _files(path, config, includes)}
    return sorted(files & set(commented))


def _held(action: Action, files: Sequence[str]) -> Action:
    names = ", ".join(map(posixpath.basename, files))
    note = f"OpenClaw drops the comments of {names} when it writes it; a copy is kept in .reconciler-trash"
    hold = Hold(f"would drop the comments of {names}", f"reconciler apply --allow {GUARD}")
    return replace(action, hold=hold, guard=GUARD, notes=(*action.notes, note))


def _paths(action: Action, agents: roster.Roster) -> list[Path]:
    """The parts of the config that a row writes; of a roster the whole, which OpenClaw puts in order as it sees fit."""
    if action.address.kind is Kind.SETTING:
        return [settings.split(action.address.key, agents, action.address.profile)]
    if action.address.kind in kinds.PARTS:
        agent = agents.agent(action.address.profile).path
        return kinds.PARTS[action.address.kind].paths(action.address.key, agent)
    providers = any(change.field == "providers" for change in action.changes)
    return [_AGENTS, inference.PROVIDERS] if providers else [_AGENTS]


def _files(path: Path, config: str, includes: Mapping[str, str]) -> set[str]:
    """Where a path is kept: in the innermost file included above it, else in the config and in what is included
    below."""
    words = tuple(map(str, path))
    # What the whole config includes is no place of its own: OpenClaw writes through no such include.
    at = {tuple(dotted.split(".")): file for dotted, file in includes.items() if dotted}
    above = [place for place in at if words[: len(place)] == place]
    below = {file for place, file in at.items() if place[: len(words)] == words}
    return {at[max(above, key=len)] if above else config} | below
