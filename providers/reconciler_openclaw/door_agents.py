"""Profiles are agents: made, and deleted with their files left where they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from reconciler.action import Action, Row
from reconciler.errors import DoorLost
from reconciler.observe import Absent
from reconciler.provider import Answer, Code, Step
from reconciler_specs.address import Kind

from . import door_config, edits, profiles, rpc
from .door_line import Line

_THERE = 60.0  # seconds until a new agent can be given jobs
_POLL = 0.2


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One answer per row."""
    return [_one(line, action) for action in step.actions]


def _one(line: Line, action: Action) -> Answer:
    try:
        code, words = _delete(line, action) if action.row is Row.DELETE else _create(line, action)
    except DoorLost as error:
        code, words = Code.LOST, str(error)
    except rpc.Refusal as refusal:
        code, words = Code.REFUSED, str(refusal)
    except edits.Refused as error:
        code, words = Code.REFUSED, str(error)
    return Answer(action.address, code, words=words)


def _create(line: Line, action: Action) -> tuple[Code, str]:
    name, look = action.address.profile, line.look([action])
    if not isinstance(look.thing(action), Absent):
        return Code.STALE, f"there is an agent {name} already"
    edits.written(action)
    unkept = door_config.keep(line, [action], look.config)
    if unkept:
        return Code.REFUSED, unkept
    # 7.1 asks for the workspace; named, it is the same in both, and no default of either decides it.
    try:
        made = line.call("agents.create", {"name": name, "workspace": look.workspace(name)})
    except rpc.Refusal as refusal:
        if not refusal.unsure or isinstance(line.look([action]).thing(action), Absent):
            raise
    else:
        agent = made.get("agentId") if isinstance(made, dict) else None
        if agent != name:
            return Code.REFUSED, f"OpenClaw made an agent {agent} of the name {name}"
    late = line.settle() or _there(line, name)
    if late:
        return Code.LOST, late
    return door_config.describe(line, action)


def _there(line: Line, name: str) -> str:
    """Waits until the running gateway knows the agent: it answers when the file is written, and takes it in later."""
    began = time.monotonic()
    until = line.until(_THERE)
    while not any(agent.get("id") == name for agent in line.call("agents.list").get("agents", ())):
        if time.monotonic() > until:
            return f"the gateway has not taken agent {name} in within {time.monotonic() - began:.0f} s"
        line.idle(_POLL)
    return ""


def _delete(line: Line, action: Action) -> tuple[Code, str]:
    name, look = action.address.profile, line.look([action])
    why = look.stale(action)
    if why:
        return Code.STALE, why
    if profiles.permanent(name, str(look.observation.facts.get("default", ""))):
        raise edits.Refused(f"agent {name} is never deleted")
    if look.observation.things.get((name, Kind.JOB)) != {}:  # OpenClaw's own are not among them
        return Code.STALE, f"agent {name} has jobs, which OpenClaw would delete with it"
    unkept = door_config.keep(line, [action], look.config)
    if unkept:
        return Code.REFUSED, unkept
    line.call("agents.delete", {"agentId": name, "deleteFiles": False})
    late = line.settle()
    return (Code.LOST, late) if late else (Code.OK, "")
