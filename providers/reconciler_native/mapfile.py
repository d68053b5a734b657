"""A JSON file that is one map of records (webhooks, pairings), each record with its own text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reconciler_shape.plain import same

from . import jsontext
from .errors import LoadFailed


class MapFile:
    """`encode()` gives the very bytes it was read from while nothing has changed."""

    def __init__(self, data: bytes | None, path: str) -> None:
        """Raises LoadFailed naming the file and the place."""
        self.path = path
        self.original = data
        self.changed = False
        self._entries: dict[str, tuple[Any, str]] = {}
        if not data or not data.strip():
            return
        try:
            text, _ = jsontext.decode_bytes(data, path)
            scanner = jsontext.Scanner(text)
            for key in scanner.names():
                value = scanner.value()
                if key.value in self._entries:
                    raise LoadFailed(path, f"{key.value!r} stands there twice")
                self._entries[key.value] = (value.value, text[key.start : value.end])
            scanner.end()
        except json.JSONDecodeError as error:
            raise LoadFailed(f"{path}:{error.lineno}:{error.colno}", error.msg) from error
        except LoadFailed:
            raise
        except (ValueError, RecursionError) as error:
            raise LoadFailed(path, str(error).removeprefix(f"{path}: ") or "nested too deeply") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def get(self, key: str) -> Any:
        """The record, None if there is none. Not to be changed in place."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, value) for key, (value, _) in self._entries.items()]

    def put(self, key: str, value: Any) -> None:
        if key in self._entries and same(self._entries[key][0], value):
            return
        encoded = f"{json.dumps(key, ensure_ascii=False)}: {jsontext.encode(value, 1, ascii_only=False)}"
        self._entries[key] = (value, encoded)
        self.changed = True

    def remove(self, key: str) -> None:
        del self._entries[key]
        self.changed = True

    def settle(self, data: bytes) -> None:
        """`data`, what `encode` gave, is on the disk now."""
        self.original, self.changed = data, False

    def encode(self, now: str) -> bytes:
        """The file's bytes; the records that did not change keep their own text."""
        del now  # such a file bears no stamp
        if not self.changed:
            return self.original or b""
        if not self._entries:
            return b"{}"
        lines = ",\n  ".join(text for _, text in self._entries.values())
        return f"{{\n  {lines}\n}}".encode()
