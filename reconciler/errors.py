"""The engine's errors; the root and its tree are in `reconciler_specs.errors`."""

from __future__ import annotations

from reconciler_specs.error import ReconcilerError


class UsageError(ReconcilerError):
    """The command line asks for something that cannot be (exit 1, nothing started)."""


class ProviderError(ReconcilerError):
    """A home, its place or its door cannot be used. It stops that home and no other (exit 4)."""


class DoorLost(ProviderError):
    """The door went away while a step was under way: what it did is not known (`uncertain`, L10)."""
