"""YAML files of the home: the text and its value, and edits that keep every other byte."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler_shape.plain import same, to_json

from . import plainyaml
from .errors import LoadFailed, Refused

Path = Sequence[str]


def parse(data: bytes, path: str) -> dict[str, Any]:
    """The file's mapping as plain JSON, {} for an empty one. Raises LoadFailed naming line and column."""
    plain = plainyaml.read(data)
    if plain is not None:
        return plain
    from reconciler_shape import configfile  # with the YAML library, which is slow to load

    try:
        return configfile.parse(data, path)
    except configfile.NotReadable as error:
        raise LoadFailed(error.place, error.problem) from error


class YamlFile:
    """One YAML file with its text and its value. `encode()` gives its own bytes while nothing has changed."""

    def __init__(self, data: bytes | None, path: str) -> None:
        """Raises LoadFailed naming the file and the place."""
        self.path = path
        self.original = data
        self.raw = parse(data or b"", path)
        text = (data or b"").decode("utf-8")
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._text = text[len(self._mark) :]

    @property
    def changed(self) -> bool:
        return self.encode("") != (self.original or b"")

    def get(self, path: Path) -> Any:
        """The value at a path, None if there is none."""
        here: Any = self.raw
        for segment in path:
            if not isinstance(here, dict) or segment not in here:
                return None
            here = here[segment]
        return here

    def set(self, path: Path, value: Any) -> None:
        """Raises Refused if that cannot be done without touching something else."""
        if value is not None and same(self.get(path), value):
            return
        from reconciler_shape import yamledit

        wanted = to_json(self.raw)
        with self._words():
            yamledit.put(wanted, path, value)
            self._text = yamledit.edit(self._text, [(path, value)], [])
        self.raw = wanted

    def unset(self, path: Path) -> bool:
        """Takes a key away, and the mappings that it leaves empty. False iff it was not there."""
        from reconciler_shape import yamledit

        wanted = to_json(self.raw)
        if not yamledit.take(wanted, path):
            return False
        with self._words():
            self._text = yamledit.edit(self._text, [], [path])
        self.raw = wanted
        return True

    def snapshot(self) -> tuple[str, dict[str, Any]]:
        """What `restore` takes back to."""
        return self._text, self.raw

    def restore(self, snapshot: tuple[str, dict[str, Any]]) -> None:
        self._text, self.raw = snapshot

    @contextlib.contextmanager
    def _words(self) -> Iterator[None]:
        from reconciler_shape import yamledit

        try:
            yield
        except yamledit.CannotEdit as error:
            raise Refused(f"{self.path}: {error}") from error

    def settle(self, data: bytes) -> None:
        """`data`, what `encode` gave, is on the disk now."""
        self.original = data

    def encode(self, now: str) -> bytes:
        del now  # such a file bears no stamp
        if self.original is None and not self._text:
            return b""
        return (self._mark + self._text).encode("utf-8")
