"""Routes of a Hermes-shaped home: `gateway.profile_routes` (or `profile_routes`), a list whose entries have names.
Entries of others, and unknown keys of ours, stay as they are. Pure; also sent to the worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .plain import native

Entry = dict[str, Any]

MATCH = {"channel": "platform", "guild": "guild_id", "chat": "chat_id", "thread": "thread_id"}
"""A route's words → the entry's."""


def place(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the list counts: at the top of config.yaml, if it is there at all, else below `gateway`."""
    return ("profile_routes",) if raw.get("profile_routes") is not None else ("gateway", "profile_routes")


def entries(raw: Mapping[str, Any]) -> list[Any]:
    """The list, [] where there is none. Raises ValueError if something else stands there."""
    here: Any = raw
    for part in place(raw):
        here = here.get(part) if isinstance(here, dict) else None
    if here is None:
        return []
    if not isinstance(here, list):
        raise ValueError(f"{'.'.join(place(raw))} is no list")
    return here


def named(found: list[Any], name: str) -> list[Entry]:
    """The entries of that name; more than one cannot be told apart."""
    return [entry for entry in found if isinstance(entry, dict) and entry.get("name") == name]


def names(found: list[Any]) -> list[str]:
    """The names in their order, each once."""
    given = (entry.get("name") for entry in found if isinstance(entry, dict))
    return list(dict.fromkeys(name for name in given if isinstance(name, str) and name))


def observed(found: list[Any], name: str, ours: Collection[str] | None = None) -> dict[str, Any]:
    """The fields of the one entry of that name. `order` is the names, of `ours` if given, that come ahead of it."""
    (entry,) = named(found, name)
    order = names(found)
    match: Any = {word: entry[key] for word, key in MATCH.items() if entry.get(key) not in (None, "")}
    # An entry that is off, and a number where Hermes compares texts, match nothing.
    if entry.get("enabled", True) is not True or any(not isinstance(value, str) for value in match.values()):
        match = native({word: entry.get(key) for word, key in (*MATCH.items(), ("enabled", "enabled")) if key in entry})
    ahead = [other for other in order[: order.index(name)] if ours is None or other in ours]
    return {"match": match, "profile": entry.get("profile"), "order": ahead}


def put(found: list[Any], name: str, fields: Mapping[str, Any]) -> list[Any]:
    """The list with the written fields in the entry of that name, a new one at the end; None takes a field away.

    `order` is `{after, before}`, the names that are to come ahead of it and behind it: it moves only as far as needed.
    """
    made = [dict(entry) if isinstance(entry, dict) else entry for entry in found]
    at = next((i for i, entry in enumerate(made) if isinstance(entry, dict) and entry.get("name") == name), None)
    if at is None:
        at = len(made)
        made.append({"name": name})
    entry = made[at]
    match = fields.get("match")
    if match is not None:
        for word, key in MATCH.items():
            if word in match:
                entry[key] = match[word]
            else:
                entry.pop(key, None)
        entry.pop("enabled", None)
    if fields.get("profile") is not None:
        entry["profile"] = fields["profile"]
    if fields.get("order") is not None:
        _move(made, at, fields["order"]["after"], fields["order"]["before"])
    return made


def _move(made: list[Any], at: int, after: Collection[str], before: Collection[str]) -> None:
    """Ahead of the first of `before`, and behind the last of `after`."""

    def is_one(entry: Any, of: Collection[str]) -> bool:
        return isinstance(entry, dict) and entry.get("name") in of

    entry = made[at]
    ahead = [i for i, other in enumerate(made[:at]) if is_one(other, before)]
    if ahead:
        made.insert(ahead[0], made.pop(at))
        at = ahead[0]
    behind = [i for i, other in enumerate(made) if i > at and is_one(other, after)]
    if behind:
        made.pop(at)
        made.insert(behind[-1], entry)


def without(found: list[Any], name: str) -> list[Any]:
    return [entry for entry in found if not (isinstance(entry, dict) and entry.get("name") == name)]
