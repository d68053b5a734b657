"""Actions as the worker's operations: the setup's words become Hermes's arguments and config paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.action import CLEAR, Action, Clear, FieldChange, Row
from reconciler.observe import Absent, Unknown
from reconciler.provider import Step
from reconciler_shape import dotted, reach
from reconciler_shape import models as shape
from reconciler_shape.edits import CannotWrite, Edits, holds_marks
from reconciler_shape.hiding import HIDDEN
from reconciler_shape.plain import NATIVE
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import boards, home, schedule, tools

Op = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """What one step asks of a worker. `refused` are actions that must not even be tried, with the reason."""

    module: str
    verb: str
    profile: str
    ops: list[Op]
    refused: Mapping[str, str] = field(default_factory=dict)


def build(step: Step) -> Call:
    """The call for a step; all its actions are of one profile and kind."""
    first = step.actions[0]
    if first.row is Row.PROVISION:
        return Call("profiles", "provision", home.DEFAULT, [{"ref": first.address.path}])
    ops: list[Op] = []
    refused: dict[str, str] = {}
    for action in step.actions:
        try:
            ops.append(_BY_KIND[action.address.kind](action, step))
        except CannotWrite as error:
            refused[action.address.path] = str(error)
    kind = first.address.kind
    # A profile's own rows are carried out from the root, which knows the others.
    profile = home.DEFAULT if kind is Kind.PROFILE else first.address.profile or home.DEFAULT
    return Call(_MODULES[kind], "perform", profile, ops, refused)


def _written(action: Action) -> dict[str, Json | Clear]:
    """Field → the value to write, or CLEAR."""
    changes = action.changes if action.row is not Row.UPDATE else [c for c in action.changes if c.writes]
    values = {}
    for change in changes:
        if isinstance(change.write, dict) and (HIDDEN in change.write or NATIVE in change.write):
            raise CannotWrite(f"{change.field}: the value cannot be written back as it was read")
        values[change.field] = change.write
    return values


def _job(action: Action, step: Step) -> Op:
    op: Op = {"ref": action.address.path, "id": action.id, "fingerprint": action.fingerprint}
    if action.row is Row.DELETE:
        return {**op, "op": "delete"}
    if action.row is Row.FOLLOW:
        return {**op, "op": "follow"}
    values = _written(action)
    follow = values.pop("follows", None) not in (None, CLEAR)
    paused = values.pop("paused", None)
    op["args"] = _job_args(values)
    op["paused"] = False if paused is CLEAR else paused
    if action.row in (Row.CREATE, Row.MISSING):
        return {**op, "op": "create", "id": "", "intent": step.intents.get(action.address, "")}
    return {**op, "op": "update", "follow": follow}


def _job_args(values: Mapping[str, Json | Clear]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for name, value in values.items():
        gone = value is CLEAR
        match name:
            case "run" | "before":
                continue
            case "model":
                for key in ("provider", "model", "base_url"):
                    args[key] = None if value is CLEAR else value.get(key)
            case "schedule":
                args["schedule"] = None if value is CLEAR else schedule.to_hermes(value)
            case "deliver":
                args["deliver"] = None if gone else schedule.deliver_text(value)
            case "session":
                args["attach_to_session"] = None if gone else value == "main"
            case "toolsets":
                members = value.get("only", []) if isinstance(value, dict) else value
                args["enabled_toolsets"] = None if gone else members
            case _:
                args[name] = None if gone else value
    # One slot in Hermes: a script that feeds the prompt, or is the job.
    for name, alone in (("before", False), ("run", True)):
        value = values.get(name, CLEAR)
        if name in values and value is not CLEAR:
            args["script"], args["no_agent"] = value, alone
    if "script" not in args and ("run" in values or "before" in values):
        args["script"], args["no_agent"] = None, False
    return args


def _setting(action: Action, _step: Step) -> Op:
    path = list(dotted.split(action.address.key))
    op: Op = {"ref": action.address.path, "id": action.address.key, "fingerprint": action.fingerprint, "path": path}
    if action.row is Row.DELETE:
        return {**op, "set": [], "unset": [path]}
    made = Edits()
    for change in action.changes:
        if action.row is Row.UPDATE and not change.writes:
            continue
        if change.write is CLEAR:
            made.unset(path)
        else:
            made.differ(path, _seen(change), change.write)
    return {**op, "set": made.sets, "unset": made.unsets}


def _seen(change: FieldChange) -> Json:
    return None if isinstance(change.observed, Absent | Unknown) else change.observed


def _inference(action: Action, _step: Step) -> Op:
    sets: list[Any] = []
    unsets: list[list[str]] = []
    for change in action.changes:
        if action.row is Row.UPDATE and not change.writes:
            continue
        value = change.write
        if holds_marks(None if value is CLEAR else value):
            raise CannotWrite(f"{change.field}: a key stands in config.yaml in the clear; move it to .env first")
        match change.field:
            case "default":
                _entry(["model"], "default", None if value is CLEAR else value, sets, unsets)
                unsets += [["provider"], ["base_url"], ["api_base"]]
            case "fallbacks":
                unsets.append(["fallback_model"])
                if value is CLEAR:
                    unsets.append(["fallback_providers"])
                else:
                    sets.append([["fallback_providers"], [shape.entry_of(item, "model") for item in value]])
            case "auxiliary":
                old, new = _seen(change) or {}, {} if value is CLEAR else value
                for task in sorted(old.keys() | new.keys()):
                    if old.get(task) != new.get(task):
                        _entry(["auxiliary", task], "model", new.get(task), sets, unsets)
    return {
        "ref": action.address.path,
        "id": "",
        "fingerprint": action.fingerprint,
        "path": [],
        "keys": list(shape.INFERENCE),
        "set": sets,
        "unset": unsets,
    }


def _entry(path: list[str], word: str, model: Json, sets: list[Any], unsets: list[list[str]]) -> None:
    """A Model's keys below `path`, and those of an older Model taken away; what else stands there stays."""
    entry = shape.entry_of(model, word) if model else {}
    for key, value in entry.items():
        sets.append([[*path, key], value])
    for key in shape.left_over(entry):
        unsets.append([*path, key])


def _file(action: Action, _step: Step) -> Op:
    key = action.address.key
    op: Op = {"ref": action.address.path, "path": key, "fingerprint": action.fingerprint, "op": "write"}
    if action.row is Row.DELETE:
        # A block is no thing of its own, and is taken out by an update: what is deleted is a whole file of ours.
        only_block = {change.field for change in action.changes} == {"block"}
        return {**op, "op": "delete", "what": "block" if only_block else "whole"}
    values = _written(action)
    if values.get("block") is CLEAR:
        return {**op, "op": "delete", "what": "block"}
    for name in ("text", "block", "mode"):
        if name in values and values[name] is not CLEAR:
            op[name] = values[name]
    return op


def _profile(action: Action, _step: Step) -> Op:
    op: Op = {"ref": action.address.path, "name": action.address.profile}
    if action.row is Row.DELETE:
        return {**op, "op": "delete"}
    text = _written(action).get("description", "")
    op["description"] = "" if text is CLEAR else text
    return {**op, "op": "describe" if action.row is Row.UPDATE else "create"}


def _secret(action: Action, step: Step) -> Op:
    address = action.address
    op: Op = {"ref": address.path, "id": address.key, "fingerprint": action.fingerprint, "name": address.key}
    if any(change.write is CLEAR for change in action.changes if change.writes):
        return {**op, "value": None}
    if address not in step.secrets:
        raise CannotWrite(f"{address.key}: there is no value to be written")
    return {**op, "value": step.secrets[address].reveal()}


def _reaching(action: Action, _step: Step) -> Op:
    """A channel, a route or a webhook: its fields as they are declared; what carries them is the worker's to say."""
    address = action.address
    op: Op = {"ref": address.path, "id": address.key, "fingerprint": action.fingerprint, "name": address.key}
    if action.row is Row.DELETE:
        return {**op, "op": "delete"}
    fields = {k: None if v is CLEAR else v for k, v in _written(action).items()}
    if address.kind is Kind.ROUTE:
        fields["order"] = reach.order(action)
    return {**op, "op": "set", "fields": fields}


def _board(action: Action, _step: Step) -> Op:
    op: Op = {"ref": action.address.path, "slug": action.address.key, "fingerprint": action.fingerprint}
    if action.row is Row.DELETE:
        return {**op, "op": "delete"}
    change = next((c for c in action.changes if c.field == "board" and c.writes), None)
    value = _written(action).get("board", CLEAR)
    update = action.row is Row.UPDATE
    seen = _seen(change) if change is not None and update else {}
    return {**op, "op": "update" if update else "create", "args": boards.words({} if value is CLEAR else value, seen)}


_BY_KIND = {
    Kind.JOB: _job,
    Kind.SETTING: _setting,
    Kind.INFERENCE: _inference,
    Kind.FILE: _file,
    Kind.PROFILE: _profile,
    **dict.fromkeys(reach.KINDS, _reaching),
    Kind.SECRET: _secret,
    **dict.fromkeys(tools.KINDS, tools.op),
    Kind.KIT: _board,
}
_MODULES = {
    Kind.JOB: "jobs",
    Kind.SETTING: "config",
    Kind.INFERENCE: "config",
    Kind.FILE: "files",
    Kind.PROFILE: "profiles",
    Kind.CHANNEL: "channels",
    Kind.ROUTE: "routes",
    Kind.WEBHOOK: "webhooks",
    Kind.SECRET: "secrets",
    **dict.fromkeys(tools.SHAPED, "config"),
    Kind.SKILL: "skills",
    Kind.KIT: "boards",
}
