"""Leftovers: former and current values of secrets in backups, rejected files and the trash, found by digest (L5).

`doctor --secrets` names paths and secrets; no value is shown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .place import Place
from .redact import HIDDEN, hide

MOST = 20_000  # files and folders of a home that are looked at
LARGEST = 2 * 1024 * 1024  # bytes of a file that is looked into
# What harnesses, editors and we leave beside a file, or keep below a folder of copies.
_COPY = re.compile(
    r"(?:\.(?:bak|backup|old|orig|save|swp|tmp|rej|rejected|clobbered|corrupt|last-good|prev)\b|~$|\bbackup|\bsnapshot)",
    re.IGNORECASE,
)
_TRASH = re.compile(r"(?:^|/)(?:\.reconciler-trash|\.trash|backups?|snapshots?|state-snapshots)(?:/|$)", re.IGNORECASE)
_AFTER = re.compile(r"^[^=:\n]*[=:][ \t]*(.*?)[ \t]*,?[ \t]*$", re.MULTILINE)
_QUOTED = re.compile(r"\"([^\"\n]{4,})\"|'([^'\n]{4,})'")
_WORD = re.compile(r"[^\s\"',;(){}\[\]<>]{4,}")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that holds a value of the secret `name`; `former` iff the home keeps another value now."""

    path: str
    name: str
    former: bool


def leftovers(
    place: Place, root: str, key: bytes, now: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[Leftover]:
    """Copies below `root` that hold a value of which the digest under `key` is known: digest → name, of the values that
    are in the home `now`, and of those that were `before`. Links are not followed; what cannot be read is passed over,
    and so is what is beyond MOST and LARGEST."""
    known = {**before, **now}
    for path in _copies(place, root):
        try:
            data = place.read(path, LARGEST)
        except OSError:
            continue  # a file that we may not read, or that is too large for a copy of a config
        found = {hide(text, key)[HIDDEN] for text in _candidates(data.decode("utf-8", "replace"))} & known.keys()
        for name in sorted({known[digest] for digest in found}):
            digests = {digest for digest in found if known[digest] == name}
            yield Leftover(path, name, former=not digests & now.keys())


def _copies(place: Place, root: str) -> Iterator[str]:
    waiting, looked = [""], 0
    while waiting and looked < MOST:
        folder = waiting.pop()
        try:
            names = place.list(posixpath.join(root, folder))
        except OSError:
            continue
        for name in names:
            looked += 1
            inner = posixpath.join(folder, name)
            whole = posixpath.join(root, inner)
            try:
                found = place.stat(whole)
            except OSError:
                continue
            if found is None:
                continue
            if found.kind == "dir":
                waiting.append(inner)
            elif found.kind == "file" and (_COPY.search(name) or _TRASH.search(folder)):
                yield whole


def _candidates(text: str) -> set[str]:
    """What a value could be in a text: words, quoted texts, and all that stands after `=` or `:` in a line."""
    found = {match[1].strip("\"'") for match in _AFTER.finditer(text)}
    found |= {match[1] or match[2] for match in _QUOTED.finditer(text)}
    found |= set(_WORD.findall(text))
    return {piece for piece in found if piece}
