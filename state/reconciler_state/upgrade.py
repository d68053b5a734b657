"""State formats: one function per version that lifts a file's content to the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from .errors import StateDamaged, StateTooNew

FORMAT: Final = 1
"""The format that this program writes. A change that older programs would misread raises it."""

UPGRADES: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""Format n → the function that makes n + 1 of it. Format 1 is the first."""


def upgrade(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """The content in format FORMAT. Raises StateTooNew, or StateDamaged for a format that never was."""
    version = data.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise StateDamaged(path, f"format {version!r} is none of ours (1 to {FORMAT})")
    if version > FORMAT:
        raise StateTooNew(
            f"{path}: format {version} is newer than this program's {FORMAT}", hint="update agent-home-reconciler"
        )
    for step in range(version, FORMAT):
        data = UPGRADES[step](data)
    return data
