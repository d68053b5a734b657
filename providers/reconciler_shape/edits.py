"""What a change writes into config.yaml: paths and members, only what differs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .dotted import join
from .hiding import HIDDEN
from .plain import NATIVE


class CannotWrite(ValueError):
    """A value that was hidden, or that JSON cannot say, would have to be written."""


@dataclass(slots=True)
class Edits:
    """`sets` are `[path, value]`, `unsets` paths; `adds` and `removes` are `[path, member]` of lists."""

    sets: list[Any] = field(default_factory=list)
    unsets: list[list[str]] = field(default_factory=list)
    adds: list[Any] = field(default_factory=list)
    removes: list[Any] = field(default_factory=list)

    def set(self, path: Sequence[str], value: Any) -> None:
        """Raises CannotWrite."""
        if holds_marks(value):
            raise CannotWrite(f"{join(path)}: it holds a value that cannot be written back as it was read")
        self.sets.append([list(path), value])

    def unset(self, *paths: Sequence[str]) -> None:
        self.unsets += [list(path) for path in paths]

    def differ(self, path: Sequence[str], old: Any, new: Any) -> None:
        """Only what differs is written, so that comments and hidden values beside it stay; a hidden value stands for
        what is there. Raises CannotWrite."""
        if isinstance(new, dict) and HIDDEN in new and old is not None:
            return
        if isinstance(old, dict) and isinstance(new, dict) and new and not _is_mark(old) and not _is_mark(new):
            self.unset(*([*path, key] for key in old if key not in new))
            for key, value in new.items():
                if key not in old:
                    self.set([*path, key], value)
                elif old[key] != value or type(old[key]) is not type(value):
                    self.differ([*path, key], old[key], value)
            return
        self.set(path, new)


def _is_mark(value: Mapping[str, Any]) -> bool:
    return NATIVE in value or HIDDEN in value


def holds_marks(value: Any) -> bool:
    """Whether a mark of what was not read as it stands is anywhere in `value`."""
    if isinstance(value, dict):
        return _is_mark(value) or any(map(holds_marks, value.values()))
    return isinstance(value, list) and any(map(holds_marks, value))
