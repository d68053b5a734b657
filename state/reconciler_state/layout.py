"""What lies where in a state folder and on a branch: `homes/KEY.json`, `journal/KEY.jsonl` and its earlier parts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from .branch import Entry

FOLDERS: Final = ("homes", "journal")
_HOME: Final = re.compile(r"homes/([a-z0-9-]+)\.json")
_JOURNAL: Final = re.compile(r"journal/([a-z0-9-]+)(?:\.[0-9]{1,9})?\.jsonl")

FilesThere = Mapping[str, Entry]
"""One home's files on the branch, by name."""


def key_of(name: str) -> str:
    """The key of the home whose file this is, "" for what is none of ours."""
    found = _HOME.fullmatch(name) or _JOURNAL.fullmatch(name)
    return found[1] if found else ""


def home_file(key: str) -> str:
    return f"homes/{key}.json"


def journal_file(key: str) -> str:
    """The part of a home's journal that is added to."""
    return f"journal/{key}.jsonl"


def order(name: str) -> tuple[str, float]:
    """Sorts a journal's parts as they follow one another: KEY.1.jsonl, KEY.2.jsonl, …, KEY.jsonl."""
    parts = name.rsplit("/", 1)[-1].split(".")
    return parts[0], int(parts[1]) if len(parts) == 3 else float("inf")


def common(a: bytes, b: bytes) -> int:
    """How far two journals are the same, in whole lines."""
    length = 0
    for one, other in zip(a.splitlines(keepends=True), b.splitlines(keepends=True), strict=False):
        if one != other or not one.endswith(b"\n"):
            break
        length += len(one)
    return length


def holds(entry: Entry | None, data: bytes) -> bool:
    """Whether a file on the branch is these bytes. Told by git's own digest, without asking git."""
    if entry is None or entry.size != len(data):
        return False
    algorithm = hashlib.sha1 if len(entry.oid) == 40 else hashlib.sha256
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest() == entry.oid
