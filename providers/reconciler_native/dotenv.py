"""The profile's `.env`: names for everybody, values only to hide them and to move a pasted secret in."""

from __future__ import annotations

import re

from reconciler_shape.dotenv import entry as entry_of
from reconciler_shape.dotenv import is_secret

from .errors import LoadFailed, Refused

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class EnvFile:
    """`KEY=value` lines; quotes around a value are stripped, `#` lines ignored, the last of two equal keys counts."""

    def __init__(self, data: bytes | None, path: str) -> None:
        """Raises LoadFailed naming the file."""
        self.path = path
        self.original = data
        self.changed = False
        try:
            self._lines = (data or b"").decode("utf-8").splitlines(keepends=True)
        except UnicodeDecodeError as error:
            raise LoadFailed(path, f"not UTF-8 at byte {error.start}") from error

    def values(self) -> dict[str, str]:
        """Never to be shown or stored."""
        found = {}
        for line in self._lines:
            entry = entry_of(line)
            if entry:
                found[entry[0]] = entry[1]
        return found

    def names(self) -> list[str]:
        """The names that have a value."""
        return [name for name, value in self.values().items() if value]

    def secrets(self) -> list[str]:
        """Values that must never be seen anywhere."""
        return [value for name, value in self.values().items() if is_secret(name, value)]

    def set(self, name: str, value: str) -> None:
        """Raises Refused for what such a file cannot hold. The value is not repeated."""
        if not _NAME.fullmatch(name):
            raise Refused(f"{name}: not a name for .env (letters, digits and _)")
        if "\0" in value or value.splitlines() not in ([], [value]):
            raise Refused(f"{name}: a value of several lines cannot be kept in .env")
        if self.values().get(name) == value:
            return
        shown = f'"{value}"' if value != value.strip() or (value and value[0] in "\"'") else value
        line = f"{name}={shown}\n"
        self.changed = True
        for index in reversed(range(len(self._lines))):
            entry = entry_of(self._lines[index])
            if entry and entry[0] == name:
                self._lines[index] = line
                return
        if self._lines and not self._lines[-1].endswith(("\n", "\r")):
            self._lines[-1] += "\n"
        self._lines.append(line)

    def remove(self, name: str) -> None:
        kept = [line for line in self._lines if (entry_of(line) or ("",))[0] != name]
        if len(kept) != len(self._lines):
            self._lines, self.changed = kept, True

    def snapshot(self) -> tuple[list[str], bool]:
        """What `restore` takes back to."""
        return list(self._lines), self.changed

    def restore(self, snapshot: tuple[list[str], bool]) -> None:
        self._lines, self.changed = list(snapshot[0]), snapshot[1]

    def settle(self, data: bytes) -> None:
        """`data`, what `encode` gave, is on the disk now."""
        self.original, self.changed = data, False

    def encode(self, now: str) -> bytes:
        """The file's bytes; lines that did not change are as they were."""
        del now  # such a file bears no stamp
        if not self.changed:
            return self.original or b""
        return "".join(self._lines).encode()
