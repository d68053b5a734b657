"""A channel: where people talk to an agent, who may, and where the home keeps its credentials.

Its key is the channel, or `CHANNEL/ACCOUNT` where the home has several accounts on it.
"""

from __future__ import annotations

import re
from typing import Any

from .address import Address, Kind
from .document import shown
from .reading import FLAG, TEXT, Field, Fields, Reasons, Schema
from .shape import FREE, MAP_OF_SCALARS, SCALAR, SET, Json
from .table import Around, Declared, Table, free_map
from .values import Refusal, closed, described, filled, flag, ident

_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")
_ACCOUNT = re.compile(r"[^\s/#]{1,128}\Z")
# In upper case, so that a credential that somebody pastes here is no name.
_SECRET_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,127}\Z")
_I_KNOW = "anyone"

_IDS: Schema = {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True}
ID_SET: Schema = {
    "oneOf": [
        _IDS,
        {"type": "object", "properties": {"only": _IDS}, "required": ["only"], "additionalProperties": False},
    ]
}
_CHAT: Schema = {
    "oneOf": [
        {"type": ["string", "integer"]},
        {
            "type": "object",
            "properties": {"chat": {"type": ["string", "integer"]}, "thread": {"type": ["string", "integer"]}},
            "required": ["chat"],
            "additionalProperties": False,
        },
    ]
}


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise Refusal(f"a list of ids is expected, got {described(value)}")
    found: list[str] = []
    for i, item in enumerate(value):
        try:
            one = ident(item)
        except Refusal as refusal:
            raise refusal.under(i) from refusal
        if one in found:
            raise Refusal(f"{shown(one)} stands here twice", path=(i,))
        if one == "*":
            raise Refusal("* would let anyone in", f"write open: {_I_KNOW} if that is what you want", (i,))
        found.append(one)
    return found


def id_set(value: Any) -> Json:
    """A set of user ids: a list, or `{only: [...]}` for exactly these (rule 12)."""
    if isinstance(value, dict):
        if set(value) != {"only"}:
            raise Refusal("a list or {only: [...]} is expected")
        try:
            return {"only": _ids(value["only"])}
        except Refusal as refusal:
            raise refusal.under("only") from refusal
    return _ids(value)


def secret_names(value: Any) -> dict[str, str]:
    """`{token: TELEGRAM_BOT_TOKEN}`: the channel's own key → the name under which the home keeps it (L5)."""
    if not isinstance(value, dict):
        raise Refusal(
            "a map from the channel's key to a secret's name is expected", "write {token: TELEGRAM_BOT_TOKEN}"
        )
    found = {}
    for key, item in value.items():
        name = item.get("secret") if isinstance(item, dict) and set(item) == {"secret"} else item
        if not isinstance(name, str) or not _SECRET_NAME.match(name):
            raise Refusal(
                "a secret is only named here, in upper case, never written",
                "write the name the home keeps it under, such as TELEGRAM_BOT_TOKEN",
                (key,),
            )
        found[key] = name
    return found


def _open(value: Any) -> bool:
    if value is False or value == _I_KNOW:
        return value is not False
    raise Refusal(
        "anyone who finds the channel could talk to the agent, which acts with your rights",
        f"write open: {_I_KNOW} if that is what you want, or open: false",
    )


def _owner_chat(value: Any) -> Json:
    if not isinstance(value, dict):
        return ident(value)
    given = closed(value, ("chat", "thread"), "{chat: …, thread?: …}")
    if "chat" not in given:
        raise Refusal("chat is needed")
    found = {}
    for key, item in given.items():
        try:
            found[key] = ident(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return found if "thread" in found else found["chat"]


FIELDS: Fields = {
    "enabled": Field("Whether the home answers there.", FLAG, SCALAR, check=flag, needed=True),
    "account": Field("The account, where the key does not say it.", TEXT, SCALAR, field=False, check=ident),
    "secrets": Field(
        "The channel's credentials: its own key → the name under which the home keeps it.",
        {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}},
        MAP_OF_SCALARS,
        check=secret_names,
    ),
    "allow": Field(
        "The ids of those who may talk to it; who was let in by pairing stays. {only: [...]} for exactly these.",
        ID_SET,
        SET,
        check=id_set,
    ),
    "admins": Field("The ids of those who may also approve and command.", ID_SET, SET, check=id_set),
    "open": Field(f"Whether anyone may talk to it: false, or `{_I_KNOW}`.", {"enum": [False, _I_KNOW]}, check=_open),
    "owner_chat": Field("The chat that `deliver: owner_chat` means there: an id, or {chat, thread}.", _CHAT, SCALAR,
                        check=_owner_chat),
    "adapter": Field("How the harness talks to the channel, as it names it.", TEXT, SCALAR, check=filled),
    "extra": Field("Other keys of the channel, as the harness has them.", {"type": "object"}, FREE,
                   check=free_map),
}  # fmt: skip


def split_key(key: str) -> tuple[str, str]:
    """`slack/T01` → (`slack`, `T01`); the account is "" where the key names none."""
    channel, _, account = key.partition("/")
    return channel, account


def _key_problem(key: str) -> str:
    channel, slash, account = key.partition("/")
    if not _CHANNEL.match(channel):
        return "a channel is named as the harness names it: letters, digits, _, . and -"
    return "" if not slash or _ACCOUNT.match(account) else "an account is a text without spaces, / and #"


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    account = declared.steering.get("account")
    if account is None:
        return
    channel, known = split_key(declared.address.key)
    at = declared.node.value["account"].where
    if known and known != account:
        reasons.add(at, f"{declared.what} account: the key says {shown(known)}", "keep one of the two")
    elif not _ACCOUNT.match(account):
        reasons.add(at, f"{declared.what} account: a text without spaces, / and # is expected")
    else:
        here = declared.address
        declared.address = Address(here.home, here.profile, Kind.CHANNEL, f"{channel}/{account}")


TABLE = Table(
    Kind.CHANNEL, "Channel", "Channels, by CHANNEL or CHANNEL/ACCOUNT.", FIELDS, key=_key_problem, finish=_finish
)
