"""A route: which profile answers what comes from where. The order decides; the first match wins."""

from __future__ import annotations

from typing import Any

from .address import Address, Kind
from .document import shown
from .reading import NAMES, TEXT, Field, Fields, Reasons, Schema, did_you_mean
from .shape import SCALAR, Json
from .table import Around, Declared, Table
from .values import PROFILE, Refusal, closed, described, filled, ident, names

_ID: Schema = {"type": ["string", "integer"]}
_IDS = ("account", "chat", "thread", "guild", "team")
_CHAT_KINDS = ("direct", "group", "channel")
MATCH: Schema = {
    "type": "object",
    "properties": {
        "channel": TEXT, **dict.fromkeys(_IDS, _ID), "chat_kind": {"enum": list(_CHAT_KINDS)}, "roles": NAMES,
    },
    "required": ["channel"],
    "additionalProperties": False,
}  # fmt: skip


def match(value: Any) -> dict[str, Json]:
    """`{channel, account?, chat?, chat_kind?, thread?, guild?, team?, roles?}`."""
    keys = ("channel", *_IDS, "chat_kind", "roles")
    given = closed(value, keys, "{channel: …, account?, chat?, chat_kind?, thread?, guild?, team?, roles?}")
    if "channel" not in given:
        raise Refusal("channel is needed: what the route listens to")
    found: dict[str, Json] = {}
    for key, item in given.items():
        try:
            if key == "chat_kind" and item not in _CHAT_KINDS:
                raise Refusal(f"one of {', '.join(_CHAT_KINDS)} is expected, got {described(item)}")
            found[key] = (
                filled(item) if key in ("channel", "chat_kind") else names(item) if key == "roles" else ident(item)
            )
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return found


def _profile(value: Any) -> str:
    if isinstance(value, str) and PROFILE.match(value):
        return value
    raise Refusal(f"a profile's name is expected, got {described(value)}")


def _order(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refusal(f"a whole number is expected, got {described(value)}")
    return int(value)


FIELDS: Fields = {
    "match": Field(
        "What it takes: {channel, account?, chat?, chat_kind?, thread?, guild?, team?, roles?}.",
        MATCH,
        SCALAR,
        check=match,
        needed=True,
    ),
    "profile": Field("The profile that answers; the route's own if left out.", TEXT, SCALAR, check=_profile),
    "order": Field("Its place among this setup's routes: the smaller comes first.", {"type": "integer"}, SCALAR,
                   check=_order),
}  # fmt: skip


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    address = declared.address
    target = declared.fields.setdefault("profile", address.profile)
    if target != "default":
        declared.needs.append(Address(address.home, target, Kind.PROFILE))
    close = did_you_mean(target, around.profiles)
    if target not in around.profiles and close.startswith("did"):
        # Another name may be a profile of the home that nobody declares; a slip of the pen is told here.
        at = declared.node.value["profile"].where
        reasons.add(at, f"{declared.what} profile: there is no profile {shown(target)} here", close)


TABLE = Table(Kind.ROUTE, "Route", "Routes, by your own names.", FIELDS, finish=_finish)
