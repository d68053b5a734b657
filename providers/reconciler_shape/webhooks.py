"""Webhooks of a Hermes-shaped home: the records of `webhook_subscriptions.json`. What no field stands for stays: a
record's creation time, its secret while another field changes, keys that nobody here knows. Pure; also sent to the
worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .plain import native

FILE = "webhook_subscriptions.json"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
LOCAL = "log"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
Record = dict[str, Any]


class NotReadable(ValueError):
    """The file is not what Hermes writes; it is never taken for an empty one."""


def parse(data: bytes | None, path: str) -> dict[str, Record]:
    """The records by name; {} where there is no file, or an empty one. Raises NotReadable."""
    if data is None or not data.strip():
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"{path}: {error}") from error
    if not isinstance(found, dict) or any(not isinstance(item, dict) for item in found.values()):
        raise NotReadable(f"{path}: there is no map of webhooks in it")
    return found


def describes(name: str) -> str:
    """What Hermes writes where nobody says what a webhook is for."""
    return f"Agent-created subscription: {name}"


def observed(record: Record, name: str, env: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
    """The record's fields, and the secret if it has one that no name of `.env` stands for (to be hidden)."""
    fields: dict[str, Any] = {}
    events = record.get("events")
    fields["events"] = [str(one) for one in events] if isinstance(events, list) else []
    fields["skills"] = list(record["skills"]) if isinstance(record.get("skills"), list) else []
    fields["prompt"] = str(record.get("prompt") or "")
    fields["description"] = str(record.get("description") or "")
    fields["deliver"] = _target(record)
    fields["deliver_only"] = bool(record.get("deliver_only"))
    secret = record.get("secret")
    match = _REFERENCE.fullmatch(secret) if isinstance(secret, str) else None
    known = match[1] if match else named(secret, env)
    if known:
        fields["secret"] = {"secret": known}
    return {key: value for key, value in fields.items() if value not in ("", [])}, secret if not known else None


def named(secret: Any, env: Mapping[str, str]) -> str:
    """The name in `.env` that has this value, the first by the alphabet; "" if none has."""
    return next((name for name in sorted(env) if secret and env[name] == secret), "")


def defaults(fields: Mapping[str, Any], name: str) -> frozenset[str]:
    own = {"deliver": "local", "deliver_only": False, "description": describes(name)}
    return frozenset(key for key, value in own.items() if fields.get(key, value) == value)


def _target(record: Record) -> Any:
    word, more = record.get("deliver") or LOCAL, record.get("deliver_extra") or {}
    if word == LOCAL and not more:
        return "local"
    if not isinstance(word, str) or not isinstance(more, dict) or set(more) - {"chat_id", "thread_id"}:
        return native({"deliver": word, "deliver_extra": more})
    channel, _, rest = word.partition(":")
    chat, _, thread = rest.partition(":")
    chat, thread = str(more.get("chat_id") or chat), str(more.get("thread_id") or thread)
    if word == "home":
        return "owner_chat"
    return {"to": channel, **({"chat": chat} if chat else {}), **({"thread": thread} if thread else {})}


def record(old: Record | None, name: str, fields: Mapping[str, Any], secret: str | None, now: str) -> Record:
    """The record with the written fields; None takes one back to what it is by default. `secret` is written iff it is
    given; `now` is when a new one was made."""
    made: Record = dict(old) if old is not None else {"description": describes(name), "events": [], "secret": ""}
    if old is None:
        made |= {"prompt": "", "skills": [], "deliver": LOCAL, "created_at": now}
    for key, value in fields.items():
        match key:
            case "events" | "skills":
                made[key] = list(value["only"] if isinstance(value, dict) else value or [])
            case "prompt":
                made[key] = value or ""
            case "description":
                made[key] = value or describes(name)
            case "deliver_only":
                made.pop(key, None)
                if value:
                    made[key] = True
            case "deliver":
                made |= delivery(value)
                if not made["deliver_extra"]:
                    del made["deliver_extra"]
    if secret is not None:
        made["secret"] = secret
    return made


def delivery(target: Any) -> Record:
    """A target as Hermes's two keys."""
    if target in (None, "local"):
        return {"deliver": LOCAL, "deliver_extra": {}}
    if target == "owner_chat":
        return {"deliver": "home", "deliver_extra": {}}
    more = {key: target[word] for word, key in (("chat", "chat_id"), ("thread", "thread_id")) if target.get(word)}
    return {"deliver": target["to"], "deliver_extra": more}
