"""A home that is a project on a platform, at a URL: no folder and no profiles, but settings and planning kits."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, PlainValidator

from .address import Address, Kind
from .document import Node, shown
from .errors import Where
from .planning_kit import TABLE as KITS
from .reading import TEXT, Field, Fields, Marks, Reasons, check_keys, is_map, read, ref, resource
from .resource import Mode, Origin, Resource
from .shape import SCALAR, Json
from .sources import Sources
from .table import Around, read_things
from .values import Refusal, SecretRef, filled, text, word

HARNESS = "viable"
DEFAULT_URL = "https://api.owlmeans.com"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# The project's settings, and the one that can be taken away again.
SETTINGS = ("copyright", "organizationName", "termsUrl", "privacyUrl", "googleTag")
CLEARABLE = ("googleTag",)
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")

FIELDS: Fields = {
    "url": Field(
        f"For a {HARNESS} home: the platform's origin, without a path.", {**TEXT, "default": DEFAULT_URL}
    ),
    "key": Field(
        f"For a {HARNESS} home: the environment variable with its access token, as {{secret: NAME}}.", ref("SecretRef")
    ),
    "project": Field(f"For a {HARNESS} home: the project's id.", TEXT),
    "target": Field(
        f"For a {HARNESS} home: where the project is built.", {"enum": ["cloud", "local"], "default": "cloud"}
    ),
    "project_settings": Field(
        f"For a {HARNESS} home: {', '.join(SETTINGS)}; unset: [{', '.join(CLEARABLE)}].",
        {
            "type": "object",
            "properties": {
                **dict.fromkeys(SETTINGS, TEXT),
                "unset": {"type": "array", "items": {"enum": list(CLEARABLE)}, "uniqueItems": True},
            },
            "additionalProperties": False,
        },
    ),
    "planning_kits": Field(f"For a {HARNESS} home: {KITS.doc[0].lower()}{KITS.doc[1:]}", {"type": "object"}),
}  # fmt: skip
# What says where another home is, or what is in it.
NOT_HERE = ("path", "at", "profiles", "harness_version", "restart")


def origin(value: Any) -> str:
    """An origin, in one form. Raises Refusal for a path, and for a way on which a credential could be read."""
    given = text(value)
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError as error:
        raise Refusal(f"{shown(given)} is no address: {error}") from error
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise Refusal("an origin is expected", f"write {DEFAULT_URL}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise Refusal("the origin only, without a path", f"write {parts.scheme}://{host}")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise Refusal("the access token would be sent in the clear", f"write https://{host}")
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}" + (f":{port}" if port is not None else "")


def project_id(value: Any) -> str:
    """A project's id."""
    if not _PROJECT.match(filled(value)):
        raise Refusal("a project's id is letters, digits, _ and -", "it is in the project's address")
    return str(value)


class _Remote(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, PlainValidator(origin)] = DEFAULT_URL
    key: SecretRef
    project: Annotated[str, PlainValidator(project_id)]
    target: Annotated[str, PlainValidator(word("cloud", "local"))] = "cloud"


def read_remote(
    node: Node, home_id: str, where: Where, mode: Mode, sources: Sources, reasons: Reasons
) -> tuple[str, dict[str, Json], dict[Address, Resource]] | None:
    """Where the project is (`URL/PROJECT`, which identifies it), what its provider has to know to reach it, and what it
    is to hold. None with reasons added."""
    for key in NOT_HERE:
        if node.get(key) is not None:
            reasons.add(node.where_key(key), f"{home_id}: {key} does not go with harness: {HARNESS}", "take it out")
    own = read(_Remote, node, home_id, where, reasons)
    home = Address(home_id)
    found = _settings(node.get("project_settings"), home, mode, reasons)
    kits = node.get("planning_kits")
    if kits is not None and is_map(kits, f"{home_id}/{Kind.KIT}", reasons):
        found |= {made.address: made for made in read_things(KITS, kits, home, mode, Around(sources), reasons)}
    if own is None:
        return None
    reach = {"url": own.url, "key": own.key, "project": own.project, "target": own.target}
    return f"{own.url}/{own.project}", reach, found


def _settings(node: Node | None, home: Address, mode: Mode, reasons: Reasons) -> dict[Address, Resource]:
    what = f"{home} project_settings"
    if node is None or not is_map(node, what, reasons):
        return {}
    check_keys(node, (*SETTINGS, "unset"), what, reasons)
    found: dict[Address, Resource] = {}
    for name, child in node.items():
        if name not in SETTINGS:
            continue
        try:
            value = filled(child.plain())
        except Refusal as refusal:
            how = f"unset: [{name}] takes it away" if name in CLEARABLE else "the platform keeps one once it is set"
            reasons.add(child.where, f"{what} {name}: {refusal.message}", how)
            continue
        found |= _setting(home, name, child, {"value": value}, Marks(), mode)
    cleared = node.get("unset")
    if cleared is not None:
        items = cleared.value if cleared.kind == "seq" else [cleared]
        for item in items:
            if item.value not in CLEARABLE:
                said = f"{what} unset: only {', '.join(CLEARABLE)} can be taken away on the platform"
                reasons.add(item.where, said, f"write unset: [{CLEARABLE[0]}]")
            elif node.get(item.value) is not None:
                reasons.add(item.where, f"{what} unset: {item.value} is declared here too", "keep one of the two")
            else:
                found |= _setting(home, item.value, item, {}, Marks(unset=frozenset({"value"})), mode)
    return found


def _setting(
    home: Address, name: str, node: Node, fields: dict[str, Json], marks: Marks, mode: Mode
) -> dict[Address, Resource]:
    address = Address(home.home, "", Kind.SETTING, name)
    shapes = {"value": SCALAR}
    return {address: resource(address, fields, shapes, marks, mode, lambda _: Origin(node.where, node.via))}
