"""Delivery targets: Hermes's one word, the orchestrator's record, and the setup's `Target`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .errors import Refused

_PLATFORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)?")
_WORDS = ("origin", "local", "home")


def parse(word: Any) -> dict[str, Any] | None:
    """A word as the orchestrator's target; None for none. Total: what it cannot tell apart stays in `chat_id`."""
    if not isinstance(word, str) or not word:
        return None
    if word in _WORDS:
        return {"kind": word}
    platform, _, rest = word.partition(":")
    chat, thread = _split(platform, rest)
    return {
        "kind": "explicit",
        "platform": platform,
        **({"chat_id": chat} if chat else {}),
        **({"thread_id": thread} if thread else {}),
    }


def _split(platform: str, rest: str) -> tuple[str, str]:
    if platform.lower() == "matrix":  # rooms hold colons; a thread begins with `$`
        chat, mark, thread = rest.rpartition(":$")
        return (chat, "$" + thread) if mark else (rest, "")
    chat, _, thread = rest.partition(":")
    return chat, thread


def accept(word: Any, field: str) -> str | None:
    """A verb's argument as the word to store; None unsets. Raises Refused: nothing of it is dropped in silence."""
    if word is None:
        return None
    if isinstance(word, Mapping):
        word = render(word, field)
    if not isinstance(word, str) or not word.strip():
        raise Refused(f"{field}: expected a delivery word (origin, home, local or platform[:chat_id[:thread_id]])")
    return _accepted(word.strip(), field)


def _accepted(word: str, field: str) -> str:
    if word in _WORDS:
        return word
    platform, colon, rest = word.partition(":")
    if not _PLATFORM.fullmatch(platform):
        raise Refused(f"{field}: {platform!r} is not the name of a platform")
    chat, thread = _split(platform, rest)
    if colon and not chat:
        raise Refused(f"{field}: {word!r} has no chat behind its colon")
    if ":" in thread:
        raise Refused(f"{field}: {word!r} has more parts than platform:chat_id:thread_id")
    if thread == "" and rest.endswith(":"):
        raise Refused(f"{field}: {word!r} ends in a colon")
    return word


def render(target: Mapping[str, Any], field: str) -> str:
    """An orchestrator's target as Hermes's word. Raises Refused for one that the word cannot carry."""
    kind = target.get("kind")
    extra = sorted(set(target) - {"kind", "platform", "chat_id", "thread_id"})
    if extra:
        raise Refused(f"{field}: {', '.join(extra)} is not known in a target")
    if kind in _WORDS:
        return str(kind)
    if kind != "explicit" or not target.get("platform"):
        raise Refused(f"{field}: a target's kind is origin, home, local or explicit (with its platform)")
    parts = [str(target[key]) for key in ("platform", "chat_id", "thread_id") if target.get(key) not in (None, "")]
    word = ":".join(parts)
    if parse(word) != {k: str(v) for k, v in target.items() if v not in (None, "")}:
        raise Refused(f"{field}: {word!r} would be read as another target: a chat and thread cannot be told apart")
    return word


def declared(word: Any) -> Any:
    """A record's word in the setup's terms: `"local"`, `{"to", "chat"?, "thread"?}`, else `{"$native": word}`."""
    if word is None:
        return None
    found = parse(word) if isinstance(word, str) else None
    if found == {"kind": "local"}:
        return "local"
    if found is None or found["kind"] != "explicit" or "," in str(word) or word == "all":
        return "owner_chat" if word == "home" else {"$native": word}
    names = {"platform": "to", "chat_id": "chat", "thread_id": "thread"}
    return {names[key]: value for key, value in found.items() if key != "kind"}


def word_of(value: Any) -> str:
    """A setup's Target as the word. Pure; `accept` says whether the word can be kept."""
    if value == "local":
        return "local"
    if value == "owner_chat":
        return "home"
    return ":".join(str(value[key]) for key in ("to", "chat", "thread") if value.get(key) not in (None, ""))
