"""Boards of Workboard: each row is one call. It has no revisions, so that a board is looked at just before; and it
deletes none with cards, so that what leaves the setup is archived."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.action import Action, Row
from reconciler.errors import DoorLost
from reconciler.observe import Absent, Unknown
from reconciler.provider import Answer, Code, Step

from . import boards, edits, rpc
from .door_line import Line


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
    if action.row is Row.DELETE:
        line.call("workboard.boards.archive", {"id": action.address.key, "archived": True})
    else:
        line.call("workboard.boards.upsert", boards.params(action))
    return Code.OK, ""
