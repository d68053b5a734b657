"""MCP servers: `mcp.servers.NAME`, for all agents. OpenClaw fills `${NAME}` in from its environment."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, FieldChange, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json
from reconciler_specs.table import named_in

from . import secretrefs, terms
from .edits import GONE, Config, Edit, changes_of, differences, seen
from .view import Path, View

ROOT: Path = ("mcp", "servers")
_WORDS = {
    "command": "command", "args": "args", "env": "env", "cwd": "cwd", "url": "url", "transport": "transport",
    "headers": "headers", "timeout": "requestTimeoutMs", "enabled": "enabled",
}  # fmt: skip
_MAPS = ("env", "headers")
_PROGRAM = ("command", "args", "env", "cwd")
_SECOND = 1000
_WHAT = "an MCP server"
# Names under which a value is a credential more often than not, besides those that end like one.
_PROTECTED = re.compile(r"pass|pwd|auth|cred|cookie|session", re.IGNORECASE)
_IN_URL = re.compile(r"://[^/\s@:]*:[^/\s@]+@")


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    why = "mcp.servers belong to the MCP servers: declare them as mcp_servers: {NAME: …}"
    return why if terms.in_table(path, ROOT) else ""


def paths(key: str, agent: Path) -> list[Path]:
    return [(*ROOT, key)]


# -- reading


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    """The wanted servers that are there; with `everything`, all of the home for the default profile."""
    found = {}
    for key, entry in terms.table(view.tree, *map(str, ROOT)).items():
        if not isinstance(entry, Mapping) or not view.first or not (everything or key in wanted):
            continue
        fields: dict[str, Json] = {"enabled": entry.get("enabled") is not False}
        for word, native in _WORDS.items():
            value = entry.get(native)
            if value is None or word == "enabled":
                continue
            fields[word] = _read(word, value, view.named)
        extra = {native: value for native, value in entry.items() if native not in _WORDS.values()}
        if extra:
            fields["extra"] = terms.read(extra, view.hider)
        defaults = frozenset({"enabled"} if entry.get("enabled") is None else ())
        mark = digest(entry, view.hider.key)
        found[key] = Observed(Kind.MCP_SERVER, view.profile, key, fields, key, defaults, fingerprint=mark)
    return found


def _read(word: str, value: Any, hider: Hider) -> Json:
    if word == "timeout" and isinstance(value, int):
        return value // _SECOND if value % _SECOND == 0 else {"$native": value}
    if word in _MAPS and isinstance(value, Mapping):
        return {str(key): _one(str(key), item, hider) for key, item in value.items()}
    if word == "url" and isinstance(value, str) and _IN_URL.search(value):
        return hider.value(value, forced=True)
    return hider.value(value)


def _one(key: str, item: Any, hider: Hider) -> Json:
    """A variable or header: a reference, a text, or a secret that stands there itself."""
    name = secretrefs.name_of(item)
    if name:
        return {"secret": name}
    text = item if isinstance(item, str) else str(item).lower() if isinstance(item, bool) else str(item)
    protected = secret_key(key) or _PROTECTED.search(key) or _IN_URL.search(text)
    return hider.value(text, forced=bool(protected) and "${" not in text)


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    said: dict[str, Any] = {name: value for name, value in thing.fields.items() if name not in thing.defaults}
    for word in _MAPS:
        if isinstance(said.get(word), Mapping):
            said[word] = {key: _plain(key, item, names) for key, item in said[word].items()}
    return {name: value for name, found in said.items() if (value := terms.sayable(found)) is not None}


def _plain(key: str, item: Json, names: Collection[str]) -> Json:
    """A variable that is no secret of the home's is named as a text."""
    name = item.get("secret") if isinstance(item, Mapping) else None
    return item if name is None or name in names or secret_key(key) else secretrefs.variable(str(name))


# -- declared


def canon(resource: Resource, near: terms.Near) -> Canon:
    fields, refused = dict(resource.fields), {}
    wanted = named_in({word: fields[word] for word in _MAPS if word in fields})
    for word in _MAPS:
        if word not in fields:
            continue
        clear = [key for key, text in fields[word].items() if _in_clear(key, text)]
        if clear:
            refused[word] = f"{', '.join(clear)}: it would stand there in the clear; name it, as {{secret: NAME}}"
        fields[word] = {key: _canonical(item) for key, item in fields[word].items()}
    taken = sorted(set(fields.get("extra") or {}) & {*_WORDS.values()})
    if taken:
        refused["extra"] = f"{', '.join(taken)}: it has a field of its own"
    why = terms.of_home("MCP servers", resource.address.profile)
    if why:
        refused[""] = why
    held = near.missing(wanted, _WHAT) or near.missing(named_in(fields.get("extra")))
    return Canon(fields, refused=refused, held=held)


def _canonical(item: Json) -> Json:
    name = secretrefs.name_of(item)
    return {"secret": name} if name else item


def _in_clear(key: str, item: Json) -> bool:
    return isinstance(item, str) and "${" not in item and is_hidden(_one(key, item, Hider(b"")))


# -- writing


def edits(action: Action, config: Config) -> Iterator[Edit]:
    path: Path = (*ROOT, action.address.key)
    if action.row is Row.DELETE:
        yield path, GONE
        return
    for change in changes_of(action):
        if change.field == "extra":
            yield from _each(change, path, config)
            continue
        place: Path = (*path, _WORDS[change.field])
        if change.write is CLEAR:
            yield place, GONE
        elif change.field == "timeout":
            yield place, change.write * _SECOND
        elif change.field in _MAPS:
            yield from _variables(change, place)
        else:
            yield from differences(place, seen(change), change.write, config)


def _each(change: FieldChange, path: Path, config: Config) -> Iterator[Edit]:
    """The other keys, only those that differ."""
    old, new = seen(change) or {}, {} if change.write is CLEAR else change.write
    for key in old.keys() - new.keys():
        yield (*path, key), GONE
    for key, value in new.items():
        if key not in old or old[key] != value:
            yield from differences((*path, key), old.get(key), value, config)


def _variables(change: FieldChange, place: Path) -> Iterator[Edit]:
    old: dict[str, Any] = seen(change) or {}
    new: Any = change.write
    for key in old.keys() - new.keys():
        yield (*place, key), GONE
    for key, item in new.items():
        if old.get(key) != item:
            yield (*place, key), secretrefs.variable(item["secret"]) if isinstance(item, Mapping) else item
    if not new and not old:
        yield place, {}


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    rows = {change.field: change for change in changes_of(action)}
    starts = "enabled" in rows and rows["enabled"].write is not False
    found = set()
    if effective.get("command") and (starts or rows.keys() & set(_PROGRAM)):
        found.add(Fact.RUNS_CODE)
    if effective.get("url") and (starts or rows.keys() & {"url", "transport"}):
        found.add(Fact.NEW_ADDRESS)
    if any(named_in(_said(rows[word])) - named_in(seen(rows[word])) for word in _MAPS if word in rows):
        found.add(Fact.NEW_CREDENTIAL)
    if "extra" in rows or ("headers" in rows and action.row is Row.UPDATE):
        found.add(Fact.LOOSENS_SECURITY)  # which tools it offers, how it is trusted: the direction cannot be told
    return found


def _said(change: FieldChange) -> Json:
    return {} if change.write is CLEAR else change.write
