"""The root of every error a person can meet, and the errors of the setup language.

ReconcilerError
├── SpecError            the setup text is wrong (exit 1)
├── StateError           reconciler_state.errors (the record of what was applied)
├── ProviderError        reconciler.errors (a home, place or door)
└── UsageError           reconciler.errors (the command line)
"""

from __future__ import annotations

from dataclasses import dataclass

from .error import ReconcilerError as ReconcilerError


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A place in a setup text. `line` and `column` count from 1; 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """One thing wrong with a setup: where, what, and how to put it right (`hint`, may be empty)."""

    where: Where
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" + (f"\n    hint: {self.hint}" if self.hint else "")


class SpecError(ReconcilerError):
    """Every reason why a setup cannot be used, in reading order. Never raised with none."""

    def __init__(self, reasons: list[Reason]) -> None:
        self.reasons = sorted(set(reasons))
        super().__init__("\n".join(str(r) for r in self.reasons))
