"""Where the parts of a JSON text stand, so that one of them can be replaced and every other byte kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# strict=False: bare control characters, which Hermes reads too.
_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\n\r]*")


class Span(NamedTuple):
    """A value and where its text stands."""

    value: Any
    start: int
    end: int


class Scanner:
    """Walks a text. Every method raises json.JSONDecodeError with the place of what is wrong."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def space(self) -> str:
        """Skips white space; the next character, "" at the end."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def take(self, char: str) -> None:
        if self.space() != char:
            raise json.JSONDecodeError(f"Expecting {char!r}", self.text, self.at)
        self.at += 1

    def value(self) -> Span:
        self.space()
        start = self.at
        value, self.at = _DECODER.raw_decode(self.text, start)
        return Span(value, start, self.at)

    def items(self) -> Iterator[Span]:
        """A list's values; `at` stands behind its `[` before, behind its `]` afterwards."""
        if self.space() == "]":
            self.at += 1
            return
        while True:
            yield self.value()
            if self.space() != ",":
                break
            self.at += 1
        self.take("]")

    def names(self) -> Iterator[Span]:
        """An object's keys; who iterates takes each value before the next step."""
        self.take("{")
        if self.space() == "}":
            self.at += 1
            return
        while True:
            if self.space() != '"':
                raise json.JSONDecodeError("Expecting a key in double quotes", self.text, self.at)
            key = self.value()
            self.take(":")
            yield key
            if self.space() != ",":
                break
            self.at += 1
        self.take("}")

    def end(self) -> None:
        if self.space():
            raise json.JSONDecodeError("Extra data", self.text, self.at)


def encode(value: Any, depth: int, *, ascii_only: bool) -> str:
    """The value as Hermes writes it (two spaces), for a place `depth` levels deep."""
    text = json.dumps(value, indent=2, ensure_ascii=ascii_only)
    return text.replace("\n", "\n" + "  " * depth)


def decode_bytes(data: bytes, path: str) -> tuple[str, str]:
    """The text and its byte order mark ("" if it has none). Raises ValueError naming the file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 at byte {error.start}") from error
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return text[len(mark) :], mark
