"""Boards of Workboard: each row is one call. It has no revisions, so that a board is looked at just before; and it
deletes none with cards, so that what leaves the setup is archived."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from reconciler.action import Action, Row
from reconciler.errors import DoorLost
from reconciler.observe import Absent, Unknown
from reconciler.provider import Answer, Code, Step

from . import boards, edits, rpc
from .door_line import Line

_UPSERT, _ARCHIVE = "workboard.boards.upsert", "workboard.boards.archive"
_LOADED = 60.0  # seconds until a plugin that was just switched on has its methods: at once in 9.6, a restart in 7.1
_POLL = 0.5


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One answer per row."""
    return [_one(line, action) for action in step.actions]


def _one(line: Line, action: Action) -> Answer:
    try:
        code, words = _written(line, action)
    except DoorLost as error:
        code, words = Code.LOST, str(error)
    except (rpc.Refusal, edits.Refused) as error:
        code, words = Code.REFUSED, str(error)
    return Answer(action.address, code, words=words)


def _written(line: Line, action: Action) -> tuple[Code, str]:
    look = line.look([action])
    thing = look.thing(action)
    if isinstance(thing, Unknown):
        return Code.REFUSED, thing.reason
    if action.row in (Row.CREATE, Row.MISSING):
        # Making one that is there would rename it.
        why = "" if isinstance(thing, Absent) else f"there is a board {action.address.key} already"
    else:
        why = look.stale(action)
    if why:
        return Code.STALE, why
    edits.written(action)
    late = _loaded(line)
    if late:
        return Code.REFUSED, late
    if action.row is Row.DELETE:
        line.call(_ARCHIVE, {"id": action.address.key, "archived": True})
    else:
        line.call(_UPSERT, boards.params(action))
    return Code.OK, ""


def _loaded(line: Line) -> str:
    """Waits until the gateway has the plugin's methods; why it has not, in words, "" if it has. A connection tells of
    those that there were when it was made; the slow door tells of none."""
    began = time.monotonic()
    until = line.until(_LOADED)
    while line.hello.methods and _UPSERT not in line.hello.methods:
        if time.monotonic() > until:
            return f"the gateway has not loaded Workboard within {time.monotonic() - began:.0f} s"
        with contextlib.suppress(rpc.NotSent):
            line.idle(_POLL)
        late = line.back()
        if late:
            return late
    return ""
