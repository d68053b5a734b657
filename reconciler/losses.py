"""Losses: what nobody declared, was in a home when we last wrote there, and is gone with a lost store (L14). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler_specs.address import Kind
from reconciler_state.history import Run

from .observe import Observation, Unknown
from .words import moment

SHOWN = 10  # names a note has


def also_lost(runs: Sequence[Run], observation: Observation) -> list[str]:
    """A note for each store of which the last run of the home saw undeclared things that are not there now."""
    last = next((run for run in reversed(runs) if run.seen), None)
    if last is None:
        return []
    notes = []
    for store, names in last.seen.items():
        profile, _, word = store.partition("/")
        if word not in set(Kind):
            continue
        things = observation.things.get(("" if profile == "home" else profile, Kind(word)), {})
        if isinstance(things, Unknown):
            continue  # nobody knows what is gone
        gone = [name for name in names if name.split(" ", 1)[0] not in things and name not in things]
        if gone:
            more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
            when = moment(last.ended) if last.ended else "our last run"
            notes.append(f"also gone, not declared, there on {when}: {store}: {', '.join(gone[:SHOWN])}{more}")
    return notes
