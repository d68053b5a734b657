"""`notify:`: who is told what came of a run: a URL of a webhook, by the author's name for it.

A message goes out without anybody agreeing to a row, so an edit of the setup must not be a way to post whatever the
machine knows: only credentials that were named for this, NOTIFY_…, can be sent along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .document import Node, shown
from .reading import NAMES, Field, Fields, Reasons, Schema, check_keys, is_map
from .shape import Json
from .values import NAME, SECRET, Refusal, closed, described, filled, names

PREFIX = "NOTIFY_"
SOURCE: Schema = {
    "type": "object",
    "properties": {"env": {"type": "string", "pattern": f"^{PREFIX}[A-Za-z0-9_]+$"}},
    "required": ["env"],
    "additionalProperties": False,
}
TOPICS = ("held", "drift", "failed", "applied")
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
FIELDS: Fields = {
    "url": Field(
        f"Where to post: https://…, or {{env: {PREFIX}…}} where the URL itself is a credential.",
        {"anyOf": [{"type": "string", "format": "uri"}, SOURCE]},
        needed=True,
    ),
    "bearer": Field(f"The credential to send along: {{env: {PREFIX}…}}.", SOURCE),
    "on": Field(
        f"What it is told: {', '.join(TOPICS)}; held, drift and failed if nothing is said.",
        {"type": "array", "items": {"enum": list(TOPICS)}},
    ),
    "only": Field("Addresses, prefixes or globs; everything if nothing is said.", NAMES),
}


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """One target. `url` is `{"url": TEXT}` or `{"env": NAME}`; `bearer` is `{"env": NAME}` or None."""

    name: str
    url: Mapping[str, Json]
    bearer: Mapping[str, Json] | None = None
    on: frozenset[str] = frozenset({"held", "drift", "failed"})
    only: tuple[str, ...] = ()


def url(value: str) -> str:
    """A URL that may be posted to: encrypted, or on this machine. Raises Refusal."""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        raise Refusal("no URL", "write https://…") from error
    if not host or any(c.isspace() or ord(c) < 0x20 for c in value):
        raise Refusal("no URL", "write https://…")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise Refusal("https:// is expected (http:// to this machine only)")
    if parts.username or parts.password:
        raise Refusal("a credential is never part of a URL here", f"write bearer: {{env: {PREFIX}…}}")
    return value


def _source(value: Any) -> Mapping[str, Json]:
    name = closed(value, ("env",), "{env: NAME}").get("env")
    if not isinstance(name, str) or not SECRET.match(name) or not name.startswith(PREFIX):
        raise Refusal(
            f"{described(name)} is no variable for a message", f"its credentials are in the environment as {PREFIX}…"
        )
    return {"env": name}


def _url(value: Any) -> Mapping[str, Json]:
    return _source(value) if isinstance(value, dict) else {"url": url(filled(value))}


def _topics(value: Any) -> frozenset[str]:
    found = names(value)
    for i, name in enumerate(found):
        if name not in TOPICS:
            raise Refusal(f"{shown(name)} is none of {', '.join(TOPICS)}", path=(i,))
    return frozenset(found)


_CHECKS: Mapping[str, Any] = {"url": _url, "bearer": _source, "on": _topics, "only": lambda v: tuple(names(v))}


def read_notify(node: Node | None, reasons: Reasons) -> dict[str, NotifyTarget]:
    """The targets by name; reasons are added for what is wrong."""
    found: dict[str, NotifyTarget] = {}
    if node is None or not is_map(node, "notify", reasons):
        return found
    for name, child in node.items():
        what = f"notify {name}"
        if not NAME.match(name):
            reasons.add(node.where_key(name), f"notify: {shown(name)} is no name", "a-z, 0-9, _, . and -, up to 63")
            continue
        if not is_map(child, what, reasons):
            continue
        check_keys(child, FIELDS, what, reasons)
        read: dict[str, Any] = {}
        for key, part in child.items():
            if key not in _CHECKS or part.is_null:
                continue
            try:
                read[key] = _CHECKS[key](part.plain())
            except Refusal as refusal:
                reasons.refused(part, (key,), what, refusal)
        if "url" in read:
            found[name] = NotifyTarget(name, **read)
        elif child.get("url") is None:
            reasons.add(node.where_key(name), f"{what}: url is needed", f"url: https://… or {{env: {PREFIX}…}}")
    return found
