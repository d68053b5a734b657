"""Events: what apply tells while it works, as plain values; and the outcomes of the laws (L10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reconciler_specs.address import Address


class Outcome(StrEnum):
    """What became of a row. Success is what the read-back shows (L9)."""

    APPLIED = "applied"
    REFUSED = "refused"
    NOT_APPLIED = "not-applied"
    INERT = "inert"
    UNCERTAIN = "uncertain"
    SKIPPED = "skipped"
    HELD = "held"
    WAITS = "waits for consent"
    FAILED = "failed"  # the home as a whole


# Those after which what depends on the row cannot go on.
STOPPING = frozenset(
    {Outcome.REFUSED, Outcome.NOT_APPLIED, Outcome.UNCERTAIN, Outcome.SKIPPED, Outcome.WAITS, Outcome.FAILED}
)


@dataclass(frozen=True, slots=True)
class Event:
    """`what` is one of: home, step, outcome, note, home-end. Which other fields are filled follows from it. A
    `note` is a wait of the door; `reason` says for what."""

    what: str
    home: str
    address: Address | None = None
    row: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    command: str = ""
    fields: tuple[str, ...] = ()
    total: int = 0
    seconds: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The event as one line of `--events` (version 1: names are only added)."""
        data: dict[str, Any] = {"event": self.what, "home": self.home}
        if self.address is not None:
            data["address"] = str(self.address)
        for name in ("row", "outcome", "reason", "command", "total"):
            value = getattr(self, name)
            if value:
                data[name] = str(value) if name != "total" else value
        if self.fields:
            data["fields"] = list(self.fields)
        if self.seconds:
            data["seconds"] = round(self.seconds, 3)
        return {**data, **self.extra}


Tell = Callable[[Event], None]


def untold(event: Event) -> None:
    """For a caller who wants to hear of no waits."""


def exit_code(codes: set[int]) -> int:
    """The strongest code of a run (laws, “Exit codes”)."""
    return next((c for c in (6, 1, 4, 5, 3, 2) if c in codes), 0)


EXIT = {
    Outcome.APPLIED: 0,
    Outcome.REFUSED: 4,
    Outcome.NOT_APPLIED: 4,
    Outcome.INERT: 4,
    Outcome.SKIPPED: 4,
    Outcome.FAILED: 4,
    Outcome.UNCERTAIN: 6,
    Outcome.HELD: 3,
    Outcome.WAITS: 5,
}
