"""Things that are parts of a config file: a value at a path, a member of a list, or several of these. Pure.

Sent to a home's place with the worker: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .plain import digest

Part = dict[str, Any]
"""`{"path": [...]}`, the value there; with `"member": X`, whether X is in the list there."""


class NoList(ValueError):
    """Something else than a list stands where members are kept."""


def value(path: Sequence[str]) -> Part:
    return {"path": list(path)}


def member(path: Sequence[str], name: str) -> Part:
    return {"path": list(path), "member": name}


def at(raw: Mapping[str, Any] | None, path: Sequence[str]) -> Any:
    """The value at a path, None if nothing is there."""
    here: Any = raw
    for segment in path:
        here = here.get(segment) if isinstance(here, dict) else None
    return here


def members(raw: Mapping[str, Any] | None, path: Sequence[str]) -> list[str]:
    """The members of the list at a path, as texts (YAML may have read a number); none where no list is."""
    found = at(raw, path)
    return [str(item) for item in found] if isinstance(found, list) else []


def seen(raw: Mapping[str, Any] | None, parts: Iterable[Part]) -> list[Any] | None:
    """What stands at each part; None if nothing is at any of them."""
    found = [
        part["member"] in members(raw, part["path"]) if "member" in part else at(raw, part["path"]) for part in parts
    ]
    return None if all(item is None or item is False for item in found) else found


def fingerprint(raw: Mapping[str, Any] | None, parts: Iterable[Part], key: bytes) -> str:
    """A keyed digest of the thing that the parts make, "" if it is not there."""
    found = seen(raw, parts)
    return "" if found is None else digest(found, key)


def with_members(raw: Mapping[str, Any], add: Sequence[Any], remove: Sequence[Any]) -> list[list[Any]]:
    """Sets (`[path, list]`) that put members (`[path, name]`) into lists and take others out; the rest of each list
    stays as it is, in its order. Raises NoList."""
    lists: dict[tuple[str, ...], list[Any]] = {}

    def of(path: Sequence[str]) -> list[Any]:
        found = at(raw, path)
        if found is not None and not isinstance(found, list):
            raise NoList(f"{'.'.join(path)} is no list in config.yaml")
        return lists.setdefault(tuple(path), list(found or ()))

    for path, name in remove:
        here = of(path)
        here[:] = [item for item in here if str(item) != name]
    for path, name in add:
        here = of(path)
        if name not in map(str, here):
            here.append(name)
    return [[list(path), items] for path, items in lists.items() if items != (at(raw, path) or [])]
