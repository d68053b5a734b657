"""How a home is reached now: through its daemon's socket, by cold verbs, or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reconciler_shape import lease
from reconciler_shape.lease import State

from . import wire

MODES = ("auto", "live", "cold")


@dataclass(frozen=True, slots=True)
class Way:
    """`held` says why nothing may be written now, "" if something may; `silent` that a daemon lives and does not
    answer, so that what it holds is not known."""

    live: bool = False
    held: str = ""
    note: str = ""
    silent: bool = False


def find(root: Path, mode: str) -> Way:
    """The way into a home on this machine, looked for anew each time: a daemon may come or go.

    A cold verb beside a daemon would be lost at its next save, so whatever may be a daemon holds the home.
    """
    guard = _guarded(root)
    found = lease.inspect(root)
    silence = wire.answers(root)
    if found.state is State.LIVE:
        if silence:
            words = f"{found.words}, and {silence}; the home is held until that answers, or the daemon is stopped"
            return Way(held=f"{words} (is that pid another program by now, remove {lease.LOCK})", silent=True)
        if guard:
            return Way(live=True, held=guard)
        if mode == "cold":
            return Way(live=True, held=f"{found.words}; door: {{mode: cold}} would write beside it, and be lost")
        return Way(live=True, note=f"{found.words}; it is read and written through its socket")
    if guard:
        return Way(held=guard)
    if not silence:
        words = f"somebody answers on {root / lease.SOCKET}, and {lease.LOCK} names no process that lives here"
        return Way(held=f"{words}; stop it, or let it take its lease", silent=True)
    if mode == "live":
        return Way(held="no daemon serves this home, and door: {mode: live} never falls back: start it")
    match found.state:
        case State.UNREADABLE:
            return Way(held=f"{found.words}: nothing is written until that is looked at")
        case State.FOREIGN if mode != "cold":
            words = f"{found.words}; it may still run there"
            return Way(held=f"{words}: stop it and remove {lease.LOCK}, or say door: {{mode: cold}}")
    return Way(note=found.words)


def _guarded(root: Path) -> str:
    guard = root / lease.GUARD
    return lease.guard_words(guard) if os.path.lexists(guard) else ""
