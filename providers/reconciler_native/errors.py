"""What can go wrong with a native home, each in words for a person.

NativeError
├── LoadFailed    a file of the home is not in proper form; nothing is written
├── WriteFailed   the disk did not take it; the old files are intact
├── HomeHeld      somebody else has the home (a lease, a guard, the write lock)
└── Refused       a verb says no; nothing was changed
"""

from __future__ import annotations

from reconciler.errors import ProviderError


class NativeError(ProviderError):
    """A native home, or a verb on it, cannot go on."""


class LoadFailed(NativeError):
    """A file of the home cannot be used. `file` and `key` say where; the message names both."""

    def __init__(self, file: str, message: str, key: str = "") -> None:
        super().__init__(f"{file}{f' [{key}]' if key else ''}: {message}")
        self.file = file
        self.key = key


class WriteFailed(NativeError):
    """A write that the disk refused; what was there before is still there."""


class HomeHeld(NativeError):
    """The home may not be written from here now."""


class Refused(NativeError):
    """A verb's own sentence. `stale`: the thing is not the one that the caller has seen."""

    def __init__(self, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale
