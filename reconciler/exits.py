"""The exit code of an apply, from what was planned and what was told (laws, “Exit codes”)."""

from __future__ import annotations

from collections.abc import Iterable

from .action import Row
from .event import EXIT, Event, exit_code
from .plan import Plan


def of_apply(made: Plan, told: Iterable[Event]) -> int:
    """What is held, refused or failed in the plan counts, whether or not a row was carried out."""
    codes = {0}
    codes.update(EXIT[e.outcome] for e in told if e.outcome is not None)
    for home in made.homes:
        if home.failed:
            codes.add(4)
        if home.hold or any((a.hold is not None or a.held_fields) and a.row is not Row.REFUSED for a in home.actions):
            codes.add(3)
        if any(a.row is Row.REFUSED for a in home.actions):
            codes.add(4)
    return exit_code(codes)
