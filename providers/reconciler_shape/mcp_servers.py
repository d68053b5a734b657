"""MCP servers in a Hermes-shaped config.yaml: `mcp_servers.<name>`. Pure.

The keys are those that Hermes's loader reads (`tools/mcp_tool.py`, 0.16 to 0.19); every other key of a server is the
author's `extra`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from reconciler.action import CLEAR, Clear
from reconciler.observe import Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import dotted, parts
from .edits import Edits
from .shaped import REFERENCE, Found, Raw, Shaped, by_reference, write_map

SECTION = "mcp_servers"
_AUTH = frozenset({"authorization", "proxy-authorization", "cookie"})
_IN_URL = re.compile(r"://[^/\s@:]*:[^/\s@]+@")
_ON = ("true", "1", "yes", "on")
_OFF = ("false", "0", "no", "off")


def _text(value: Json) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _flag(value: Json) -> bool:
    return isinstance(value, bool) or str(value).strip().lower() in (*_ON, *_OFF)


OWN: Mapping[str, Callable[[Json], bool]] = {
    "command": _text,
    "args": _texts,
    "env": lambda value: isinstance(value, dict),
    "cwd": _text,
    "url": _text,
    "transport": _text,
    "headers": lambda value: isinstance(value, dict),
    "timeout": _number,
    "enabled": _flag,
}
"""Keys of a server that are fields of their own, each with whether a value is one of its form; one of another form is
left in `extra`, as it stands."""


def _ids(raw: Raw) -> Iterable[str]:
    section = raw.get(SECTION)
    return section if isinstance(section, dict) else ()


def _parts(key: str) -> list[parts.Part]:
    return [parts.value([SECTION, key])]


def _found(unread: frozenset[str], raw: Raw, key: str) -> Found | None:
    entry = parts.at(raw, [SECTION, key])
    if not isinstance(entry, dict):
        odd = Unknown(f"{SECTION}.{key} is no mapping")
        return None if entry is None else Found({"command": odd, "url": odd})
    own = {name: entry[name] for name in OWN.keys() - unread if name in entry and OWN[name](entry[name])}
    fields: dict[str, Json | Unknown] = {name: _canonical(name, value) for name, value in own.items()}
    extra = {name: value for name, value in entry.items() if name not in own}
    if extra:
        fields["extra"] = extra
    return Found({"enabled": True, **fields}, frozenset() if "enabled" in own else frozenset({"enabled"}))


def _canonical(name: str, value: Json) -> Json:
    if name == "enabled":
        return value if isinstance(value, bool) else str(value).strip().lower() in _ON
    if name in ("env", "headers") and isinstance(value, dict):
        # YAML reads `PORT: 3000` as a number; a process's environment is texts.
        return {k: str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for k, v in value.items()}
    return value


def _edit(key: str, values: Mapping[str, Json | Clear], old: Mapping[str, Json], made: Edits) -> None:
    path = [SECTION, key]
    for name, value in values.items():
        if name != "extra":
            write_map([*path, name], value, old.get(name), made)
            continue
        before = old.get("extra") or {}
        after = {} if value is CLEAR else value
        made.unset(*([*path, inner] for inner in before if inner not in after))
        for inner, item in after.items():
            if inner not in before or before[inner] != item:
                write_map([*path, inner], item, before.get(inner), made)


def _refused(unread: frozenset[str], fields: Mapping[str, Json]) -> dict[str, str]:
    refused = {name: f"the harness reads no {name} of a server" for name in sorted(unread & fields.keys())}
    for name, value in fields.items():
        clear = [key for key, item in value.items() if _secret(name, key, item)] if isinstance(value, dict) else []
        if clear or _secret(name, "", value):
            what = f"{', '.join(clear)}: " if clear else ""
            refused[name] = f"{what}a credential in the clear; name it, as {{secret: NAME}} or in a text as ${{NAME}}"
    extra = fields.get("extra") or {}
    taken = [name for name, value in extra.items() if name in OWN.keys() - unread and OWN[name](value)]
    return refused | ({"extra": f"{', '.join(taken)}: declare it as a field of the server"} if taken else {})


def _said(name: str, value: Json) -> Json:
    if name == "extra":
        return dotted.named(value, name)
    return by_reference(value) if name in ("env", "headers") else value


def _secret(name: str, key: str, text: Json) -> bool:
    if not isinstance(text, str) or REFERENCE.search(text):
        return False
    return bool(_IN_URL.search(text)) or (name == "headers" and key.lower() in _AUTH)


def servers(unread: frozenset[str] = frozenset()) -> Shaped:
    """The kind where the harness reads all of `OWN` but `unread`."""
    return Shaped(
        Kind.MCP_SERVER,
        _ids,
        _parts,
        partial(_found, unread),
        _edit,
        partial(_refused, unread),
        _said,
        _secret,
        needed=("command", "url"),
    )
