"""Edits of a `.env` as Hermes reads it: the line that counts is changed, and every other one stays byte for byte.

Hermes's own writer changes the first of two lines with one name, and its reader goes by the last; it also trims and
splits lines that nobody asked it to touch. So the lines are edited here. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[^\s\"'#$\\`]*")


class CannotEdit(ValueError):
    """What the file cannot hold, or a line that cannot be told from its neighbour. Repeats no value."""


def edit(data: bytes, values: Mapping[str, str | None]) -> bytes:
    """`data` with each name set to its value, or (None) taken out. Raises CannotEdit."""
    text = data.decode("utf-8", "surrogateescape")
    for name, value in values.items():
        text = _without(text, name) if value is None else _with(text, name, value)
    return text.encode("utf-8", "surrogateescape")


def _with(text: str, name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        raise CannotEdit(f"{name}: not a name for .env (letters, digits and _)")
    if not _PLAIN.fullmatch(value):
        raise CannotEdit(f"{name}: a value with a space, a quote, #, $ or \\ is read in two ways from .env")
    lines, inside = _lines(text)
    found = _defining(lines, name)
    _check(found, inside, name)
    if found:
        # The last one is what Hermes goes by.
        at = found[-1]
        head = re.match(r"\ufeff?\s*(export\s+)?", lines[at])
        end = re.search(r"\r?\n?\Z", lines[at])
        lines[at] = f"{head[0] if head else ''}{name}={value}{end[0] if end else ''}"
        return "".join(lines)
    if any(inside) and inside[-1]:
        raise CannotEdit(f"{name}: the last value of .env has an open quote; close it first")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines) + f"{name}={value}\n"


def _without(text: str, name: str) -> str:
    lines, inside = _lines(text)
    found = _defining(lines, name)
    _check(found, inside, name)
    return "".join(line for at, line in enumerate(lines) if at not in found)


def _check(found: list[int], inside: list[bool], name: str) -> None:
    if any(inside[at] for at in found):
        raise CannotEdit(
            f"{name}: it stands inside a value of several lines, which Hermes's readers tell apart in two ways"
        )


def _defining(lines: list[str], name: str) -> list[int]:
    return [at for at, line in enumerate(lines) if _name(line) == name]


def _name(line: str) -> str:
    text = line.lstrip("\ufeff").strip()
    if text.startswith("#") or "=" not in text:
        return ""
    return text.removeprefix("export ").partition("=")[0].strip()


def _lines(text: str) -> tuple[list[str], list[bool]]:
    """The lines with their ends, and which of them lie inside a quoted value that began on an earlier one."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    inside: list[bool] = []
    quote = ""
    for at, line in enumerate(lines):
        inside.append(bool(quote))
        if quote:
            if quote in line:
                quote = ""
            continue
        value = line.partition("=")[2].strip() if _name(line) else ""
        opened = value[:1] if value[:1] in ("'", '"') and value.count(value[0]) % 2 else ""
        # One that is never closed is a line of its own to every reader.
        if opened and any(opened in later for later in lines[at + 1 :]):
            quote = opened
    return lines, inside
