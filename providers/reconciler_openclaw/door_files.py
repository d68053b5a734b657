"""Files of a workspace: OpenClaw's own by its gateway where that runs and compares a hash, the others at the place."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Row
from reconciler.errors import DoorLost
from reconciler.observe import Unknown
from reconciler.provider import Answer, Code, Step
from reconciler_shape import block as blocks

from . import cli_files, edits, files, home, reading, roster, rpc
from .door_line import Line
from .door_look import Look

_CONFLICT = "agent_file_conflict"


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One answer per row."""
    look = line.look(step.actions)
    return [_one(line, look, action) for action in step.actions]


def _one(line: Line, look: Look, action: Action) -> Answer:
    try:
        code, words = _write(line, look, action)
    except edits.Refused as error:
        code, words = Code.REFUSED, str(error)
    except DoorLost as error:
        code, words = Code.LOST, str(error)
    return Answer(action.address, code, words=words)


def _write(line: Line, look: Look, action: Action) -> tuple[Code, str]:
    why = look.stale(action)
    if why:
        return Code.STALE, why
    root, name = look.workspace(action.address.profile), action.address.key
    data = home.text(line.here.place, posixpath.join(root, name), home.TEXT_LIMIT)
    if isinstance(data, Unknown):
        raise edits.Refused(data.reason)
    text, mode = _wanted(line, action, data)
    if text is None and data is None:
        return Code.OK, ""
    expected = "" if data is None else hashlib.sha256(data).hexdigest()
    if text is not None and data is not None and mode is None and _by_gateway(line, name):
        return _online(line, look, action, text, expected)
    what: dict[str, Any] = {"delete": True} if text is None else {"text": text}
    if mode is not None:
        what["mode"] = int(mode, 8)
    (answer,) = cli_files.perform(line.ref, [cli_files.write(root, name, expected, **what)], line.lock_fd)
    words = answer.get("words", "") if answer["code"] != "stale" else f"{name} changed between plan and write"
    return Code(answer["code"]), words


def _wanted(line: Line, action: Action, data: bytes | None) -> tuple[str | None, str | None]:
    """The text that the file is to have, None for no file; and its mode, None to leave it."""
    name, owner = action.address.key, reading.owner(line.ref)
    try:
        old = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise edits.Refused(f"{name}: not a text (byte {error.start})") from error
    if action.row is Row.DELETE:
        return _left(action, old, owner), None
    values = edits.written(action)
    text: str = old
    if "text" in values:
        text = "" if values["text"] is CLEAR else str(values["text"])
    if "block" in values:
        said = values["block"]
        text = _put(text, name, owner, None if said is CLEAR else str(said))
    mode = values.get("mode")
    return text, None if mode in (None, CLEAR) else str(mode)


def _left(action: Action, old: str, owner: str) -> str | None:
    """What a delete leaves of a file: all around our block; nothing, where the file is ours."""
    name = action.address.key
    left = _put(old, name, owner, None)
    if left != old:
        return left or None
    if action.origin != "created" and name in files.BOOTSTRAP:
        raise edits.Refused(f"{name} has none of our markers and was there before us; delete it by hand")
    return None


def _put(text: str, name: str, owner: str, said: str | None) -> str:
    try:
        return blocks.put(text, name, owner, said)
    except blocks.Torn as error:
        raise edits.Refused(str(error)) from error


def _by_gateway(line: Line, name: str) -> bool:
    """Whether OpenClaw itself writes this file, and compares (9.6): 7.1 would overwrite what came in between. Behind a
    command prefix the text would be an argument, which has an end."""
    if name not in files.BOOTSTRAP or not line.ref.place.local:
        return False
    return line.attached() and not roster.is_old(line.hello.version)


def _online(line: Line, look: Look, action: Action, text: str, expected: str) -> tuple[Code, str]:
    agent = str(look.observation.facts["profiles"][action.address.profile]["agent"])
    params = {"agentId": agent, "name": action.address.key, "content": text, "expectedHash": expected}
    try:
        line.call("agents.files.set", params)
    except rpc.Refusal as refusal:
        stale = refusal.details.get("type") == _CONFLICT
        return Code.STALE if stale else Code.REFUSED, str(refusal)
    return Code.OK, ""
