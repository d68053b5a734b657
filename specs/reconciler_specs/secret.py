"""A secret: a name under which the home keeps a credential, and where its value comes from. No value is ever here (L5).

`secrets:` of the setup, a template or a home says the sources; the nearest wins. A home has a row for each name that
its own `secrets:` says, and for each that the setup's says and something in the home names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .address import Address, Kind
from .document import Node, shown
from .reading import Field, Fields, Reasons, is_map, origins
from .resource import Mode, Resource
from .shape import SCALAR, Json
from .table import named_in
from .values import SECRET, Refusal, closed, described, filled, text

KEEP = "keep"
_WAYS = ("env", "file", "dotenv", "command")
FIELDS: Fields = {
    "value": Field(
        "Where it comes from: keep (it must be in the home), {env}, {file}, {dotenv: {file, key}} or {command: [...]}.",
        {
            "oneOf": [
                {"const": KEEP},
                {
                    "type": "object",
                    "properties": {
                        "env": {"type": "string"},
                        "file": {"type": "string"},
                        "dotenv": {
                            "type": "object",
                            "properties": {"file": {"type": "string"}, "key": {"type": "string"}},
                            "required": ["file", "key"],
                            "additionalProperties": False,
                        },
                        "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    },
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                },
            ]
        },
        SCALAR,
    ),
    "present": Field("Whether the home has it.", {"type": "boolean"}, SCALAR),
}
SOURCE = FIELDS["value"].schema
# Harnesses that keep the secrets of all profiles of a home in one store.
ONE_STORE = frozenset({"openclaw", "viable"})


def source(value: Any) -> Json:
    """A source in its one form: `keep`, or a map of the one way. Raises Refusal."""
    if value == KEEP:
        return KEEP
    if isinstance(value, str):
        raise Refusal(
            "a secret's value is never written here",
            "write keep, {env: NAME}, {file: PATH}, {dotenv: {file, key}} or {command: [...]}",
        )
    given = closed(value, _WAYS, "keep, {env}, {file}, {dotenv} or {command}")
    if len(given) != 1:
        raise Refusal(f"exactly one of {', '.join(_WAYS)} is expected, got {' and '.join(given) or 'none'}")
    [(way, said)] = given.items()
    try:
        return {way: _WORDS[way](said)}
    except Refusal as refusal:
        raise refusal.under(way) from refusal


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not SECRET.match(value):
        raise Refusal(f"the name of an environment variable is expected, got {described(value)}")
    return value


def _dotenv(value: Any) -> dict[str, str]:
    given = closed(value, ("file", "key"), "{file: PATH, key: NAME}")
    for key in ("file", "key"):
        if key not in given:
            raise Refusal(f"{key} is needed")
    return {key: filled(item) for key, item in given.items()}


def _command(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise Refusal("a command is a list of texts, never a shell line", "write [op, read, op://vault/item/field]")
    found = []
    for i, item in enumerate(value):
        try:
            found.append(filled(item) if i == 0 else text(item))
            if "\0" in found[-1]:
                raise Refusal("a NUL cannot be given to a program")
        except Refusal as refusal:
            raise refusal.under(i) from refusal
    return found


_WORDS: Mapping[str, Any] = {"env": _variable, "file": filled, "dotenv": _dotenv, "command": _command}


def read_sources(node: Node | None, what: str, reasons: Reasons) -> dict[str, tuple[Json, Node]]:
    """`secrets:` by name: each source, and its node."""
    found: dict[str, tuple[Json, Node]] = {}
    if node is None or not is_map(node, what, reasons):
        return found
    for name, child in node.items():
        if not SECRET.match(name):
            reasons.add(node.where_key(name), f"{what}: {shown(name)} is no secret's name", "letters, digits and _")
            continue
        if child.plain() == {"secret": "HIDDEN"}:
            continue  # a value that stood here, which is said already
        try:
            found[name] = source(child.plain()), child
        except Refusal as refusal:
            reasons.refused(child, (name,), what, refusal)
    return found


def rows(
    home: str,
    harness: str,
    own: Mapping[str, tuple[Json, Node]],
    inherited: Mapping[str, tuple[Json, Node]],
    resources: Mapping[Address, Resource],
    mode: Mode,
    around: Callable[[str], Path],
) -> dict[Address, Resource]:
    """The home's resources with those of its secrets, and with what names one after it.

    A name stands where it is kept: of the default profile, or where the harness has one store, at the home; of
    another profile, at that. `around` gives the folder that a file's paths are from, by the name nodes have for it.
    """
    said = {**inherited, **own}
    if not said:
        return dict(resources)
    places: dict[Address, None] = {Address(home, "", Kind.SECRET, name): None for name in own}
    leading: dict[Address, tuple[Address, ...]] = {}
    for address, resource in resources.items():
        profile = "" if address.profile == "default" or harness in ONE_STORE else address.profile
        needs = tuple(Address(home, profile, Kind.SECRET, name) for name in sorted(named_by(resource)) if name in said)
        leading[address] = needs
        places.update(dict.fromkeys(needs))
    made: dict[Address, Resource] = {}
    for place in places:
        value, node = said[place.key]
        made[place] = Resource(
            place,
            {"value": _beside(value, around(node.file))},
            {"value": SCALAR},
            needs=(Address(home, place.profile, Kind.PROFILE),) if place.profile else (),
            modes={"value": mode} if mode is not Mode.HOLD else {},
            origin=origins(Node("map", {"value": node}, node.mark, node.file), node.where),
        )
    rest = {a: replace(r, needs=(*r.needs, *leading[a])) if leading[a] else r for a, r in resources.items()}
    return {**made, **rest}


def _beside(value: Json, folder: Path) -> Json:
    """A source whose file is found from anywhere: a relative path is beside the file that says it."""
    if not isinstance(value, dict):
        return value
    if "file" in value:
        return {"file": _path(value["file"], folder)}
    if "dotenv" in value:
        return {"dotenv": {**value["dotenv"], "file": _path(value["dotenv"]["file"], folder)}}
    return value


def _path(name: str, folder: Path) -> str:
    return name if name.startswith(("/", "~")) else os.path.normpath(folder / name)


def named_by(resource: Resource) -> set[str]:
    """The names of the secrets that a thing names."""
    found = named_in(dict(resource.fields))
    if resource.address.kind is Kind.CHANNEL:
        found |= set(resource.fields.get("secrets", {}).values())
    return found
