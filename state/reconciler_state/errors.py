"""The errors of state; the root and its tree are in `reconciler_specs.errors`."""

from __future__ import annotations

from reconciler_specs.errors import ReconcilerError

REPAIR = "reconciler state repair"


class StateError(ReconcilerError):
    """The record of what was applied cannot be read or written. It stops its home and no other (exit 4).

    StateError
    ├── StateMoved     somebody else wrote it, or it was put back to an older one
    ├── StateLocked    another run works on the home
    ├── StateTooNew    written by a later version of this program
    └── StateDamaged   not what we wrote
    """


class StateMoved(StateError):
    """The state is not the one that this run read: another lineage, or another serial."""


class StateLocked(StateError):
    """Another process holds the home's lock (L13); the message says who."""


class StateTooNew(StateError):
    """The file's format is later than this program knows."""


class StateDamaged(StateError):
    """A file of ours is not in proper form. Names the file, the line where that helps, and the repair command."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{path}: {why}", hint=f"{REPAIR}  # puts the file aside; then adopt the home again")
