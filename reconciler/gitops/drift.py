"""Drift: what of a plan is a home that moved away from what was applied; each told once while it lasts. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from ..action import Action, FieldChange, FieldRow, Row
from ..observe import ABSENT, Seen, Unknown
from ..plan import HomePlan, Plan
from ..redact import BLOT, is_hidden, scrub

_MOVED = frozenset({FieldRow.DRIFT, FieldRow.RESTORE, FieldRow.CONFLICT})
_GONE = frozenset({Row.MISSING, Row.REPLACED})
LONGEST = 200  # characters of a value that are told


@dataclass(frozen=True, slots=True)
class Drift:
    """One field, or one whole thing (`field` is ""), that somebody else changed.

    `row` is the plan's word for it, `mode` what the setup says of such drift ("" for a whole thing). `was` and `now`
    are for people: short, and never a secret. `key` begins with the home and a colon, and is the same as long as
    address, field and the home's value are.
    """

    home: str
    address: str
    field: str
    row: str
    mode: str
    was: str
    now: str
    key: str


def drifts(plan: Plan) -> list[Drift]:
    """In the order of the plan. A home that is held, or could not be read, has none to tell."""
    return [drift for home in plan.homes if not home.failed for drift in _of(home)]


def _of(home: HomePlan) -> Iterator[Drift]:
    for action in home.actions:
        if action.row in _GONE:
            yield _made(home, action, None)
        elif action.row is Row.UPDATE:
            for change in action.changes:
                if change.row in _MOVED:
                    yield _made(home, action, change)


def _made(home: HomePlan, action: Action, change: FieldChange | None) -> Drift:
    field = change.field if change else ""
    observed = change.observed if change else ABSENT
    key = json.dumps(
        [str(action.address), field, str(action.row), as_json(observed)], sort_keys=True, ensure_ascii=True
    )
    return Drift(
        home.id,
        str(action.address),
        field,
        str(change.row if change else action.row),
        str(change.mode) if change else "",
        short(change.declared) if change else "there",
        short(observed) if change else str(action.row),
        f"{home.id}:{hashlib.sha256(key.encode()).hexdigest()[:32]}",
    )


def short(value: Seen) -> str:
    """A value on one line, as a person and a log may see it."""
    if value is ABSENT:
        return "absent"
    if isinstance(value, Unknown):
        return f"unknown: {value.reason}"
    text = value if isinstance(value, str) else json.dumps(_shown(value), ensure_ascii=False, sort_keys=True)
    text = scrub(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _shown(value: object) -> object:
    if is_hidden(value):
        return BLOT
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items()}
    return [_shown(v) for v in value] if isinstance(value, list) else value


def as_json(value: Seen) -> object:
    """A value as JSON that tells it from any other, for a digest."""
    if value is ABSENT:
        return {"$absent": True}
    return {"$unknown": True} if isinstance(value, Unknown) else value


def puts_back(action: Action) -> bool:
    """Whether all that a row would write is what somebody else took away."""
    restores = [c.row is FieldRow.RESTORE for c in action.changes if c.writes]
    return action.row is Row.MISSING or (bool(restores) and all(restores))
