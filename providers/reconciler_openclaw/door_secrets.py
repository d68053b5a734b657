"""Secrets into `.env` of the state directory, at the home's place; no value is in an argument, a log or an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reconciler.action import CLEAR
from reconciler.errors import DoorLost
from reconciler.observe import Unknown
from reconciler.provider import Answer, Code, Step
from reconciler_specs.address import Address

from . import cli_files, home, secrets
from .door_line import Line


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One write of the file for the step."""
    look = line.look(step.actions)
    stale = {action.address: why for action in step.actions if (why := look.stale(action))}
    rows = [action for action in step.actions if action.address not in stale]
    values: dict[str, str | None] = {}
    for action in rows:
        gone = any(change.write is CLEAR for change in action.changes if change.writes)
        secret = step.secrets.get(action.address)
        if secret is not None and not gone:
            values[action.address.key] = secret.reveal()
        elif gone:
            values[action.address.key] = None
    code, words = _write(line, values) if values else (Code.OK, "")
    answers: dict[Address, Answer] = {a.address: Answer(a.address, code, words=words) for a in rows}
    answers |= {address: Answer(address, Code.STALE, words=why) for address, why in stale.items()}
    return [answers[action.address] for action in step.actions]


def _write(line: Line, values: dict[str, str | None]) -> tuple[Code, str]:
    data = home.text(line.here.place, line.here.path(secrets.FILE), home.TEXT_LIMIT)
    if isinstance(data, Unknown):
        return Code.REFUSED, data.reason
    try:
        old = (data or b"").decode()
        text = secrets.put(old, values)
    except ValueError as error:
        return Code.REFUSED, ".env is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    if text == old:
        return Code.OK, ""
    expected = "" if data is None else hashlib.sha256(data).hexdigest()
    op = cli_files.write(line.here.root, secrets.FILE, expected, folder=0o700, made=0o600, text=text)
    try:
        (answer,) = cli_files.perform(line.ref, [op], line.lock_fd)
    except DoorLost as error:
        return Code.LOST, str(error)
    words = ".env changed while it was written" if answer["code"] == "stale" else answer.get("words", "")
    return Code(answer["code"]), words
