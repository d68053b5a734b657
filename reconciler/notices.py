"""Notices: what of a plan and of what came of it somebody may want to be told. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from reconciler_specs.shape import Json

from .action import Action, FieldRow, Row
from .event import Event, Outcome
from .observe import ABSENT, Unknown
from .plan import HomePlan, Plan
from .redact import scrub

_FAILED = frozenset({Outcome.REFUSED, Outcome.NOT_APPLIED, Outcome.INERT, Outcome.UNCERTAIN, Outcome.FAILED})


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell: its topic (`held`, `drift`, `failed`, `applied`), where, and why, in words without a secret.

    `mark` stands for the value it is about: it is told once for each (topic, address, field, mark). `of_run` tells
    what apply did from what a plan shows.
    """

    topic: str
    home: str
    address: str
    field: str
    row: str
    why: str
    command: str
    mark: str
    of_run: bool = False

    @property
    def key(self) -> str:
        """What it is about, whatever its value is."""
        return "\n".join((self.home, self.topic, self.address, self.field, "run" if self.of_run else "plan"))

    def to_json(self) -> dict[str, str]:
        """As a target gets it; `mark` and what is empty stay here."""
        kept = asdict(self)
        del kept["mark"], kept["of_run"]
        return {name: value for name, value in kept.items() if value}


def of_plan(plan: Plan) -> list[Notice]:
    """What is held, has drifted or could not be read."""
    return [notice for home in plan.homes for notice in _of_home(home)]


def _of_home(home: HomePlan) -> Iterable[Notice]:
    if home.failed:
        yield _notice("failed", home, home.id, "", "", home.failed, "reconciler doctor", home.failed)
        return
    if home.hold is not None:
        yield _notice("held", home, home.id, "", "", home.hold.why, home.hold.command, home.hold.why)
        return
    for action in home.actions:
        yield from _of_row(home, action)


def _of_row(home: HomePlan, action: Action) -> Iterable[Notice]:
    address = str(action.address)
    for change in action.changes:
        if change.row is FieldRow.DRIFT or change.held:
            topic = "drift" if change.row is FieldRow.DRIFT else "held"
            why = f"{change.row}: the home's {change.field} is not what was applied last"
            if change.row is FieldRow.CONFLICT:
                why = f"{change.row}: {change.field} changed in the setup and in the home"
            elif isinstance(change.observed, Unknown):
                why = f"{change.row}: {change.observed.reason}"
            command = f"reconciler show {address}"
            seen = [str(change.row), _plain(change.observed)]
            yield _notice(topic, home, address, change.field, str(action.row), why, command, seen)
    if action.hold is not None:
        seen = [str(action.row), action.hold.why, action.fingerprint]
        topic = "failed" if action.row is Row.REFUSED else "held"
        yield _notice(topic, home, address, "", str(action.row), action.hold.why, action.hold.command, seen)


def _notice(
    topic: str, home: HomePlan, address: str, field: str, row: str, why: str, command: str, seen: Json
) -> Notice:
    return Notice(topic, home.id, address, field, row, scrub(why), scrub(command), _mark(seen))


def of_run(events: Sequence[Event]) -> list[Notice]:
    """What was applied, what failed, and what waits for consent; the last word on each row counts (L12)."""
    last: dict[tuple[str, str], Event] = {}
    for event in events:
        if event.outcome is not None:
            last[str(event.address or event.home), event.row] = event
    found = []
    for (address, row), event in last.items():
        assert event.outcome is not None
        topic = "applied" if event.outcome is Outcome.APPLIED else "failed" if event.outcome in _FAILED else "held"
        if event.outcome is Outcome.SKIPPED:
            continue  # the one that it waits for is told
        why = scrub(f"{event.outcome}: {event.reason}" if event.reason else str(event.outcome))
        mark = _mark([str(event.outcome), event.reason, list(event.fields)])
        found.append(Notice(topic, event.home, address, "", row, why, scrub(event.command), mark, of_run=True))
    return found


def _plain(value: object) -> Json:
    return {"$absent": True} if value is ABSENT else {"$unknown": True} if isinstance(value, Unknown) else value


def _mark(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
