"""Homes of our own: the embedded default, a Hermes-shaped folder with the orchestrator's operator door."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .provider import NativeProvider

    PROVIDER: NativeProvider


def __getattr__(name: str) -> object:
    """`PROVIDER`, made when it is first asked for: a cold verb needs the operator only, and starts twice as fast."""
    if name != "PROVIDER":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .provider import NativeProvider

    globals()[name] = found = NativeProvider()
    return found
