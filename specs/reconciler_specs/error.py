"""The root of every error that is told to a person; apart from its tree, since what starts fast needs no more."""

from __future__ import annotations


class ReconcilerError(Exception):
    """Something a person has to know: what happened, and the next command.

    `str(error)` is the whole message, safe to print: it never holds a secret value (law L5).
    `hint` is the next step, or None where the message already names it.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
