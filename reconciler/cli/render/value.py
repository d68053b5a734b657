"""Values for people: one line each, long texts as a small diff, secrets as what they are: hidden."""

from __future__ import annotations

import json
from difflib import unified_diff

from ...action import CLEAR
from ...observe import ABSENT, Seen, Unknown
from ...redact import is_hidden
from .style import safe

# A text longer than this is shown as a diff (when it changed) or by its beginning (when it is new).
LONG = 60
DIFF_LINES = 12


def show(value: Seen, limit: int = LONG) -> str:
    """A value on one line of at most about `limit` characters."""
    if value is ABSENT or value == {"$absent": True}:
        return "(not set)"
    if value is CLEAR:
        return "(harness default)"
    if isinstance(value, Unknown):
        return "? unknown"
    if is_hidden(value):
        return "(hidden)"
    text = _plain(value)
    if len(text) > limit:
        text = f"{text[: limit - 1]}… ({len(text)} characters)"
    return text


def _plain(value: Seen) -> str:
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return f"→ {safe(str(value['$ref']))}"
        if set(value) == {"$native"}:
            return f"{safe(str(value['$native']))} (as the harness says it)"
        if set(value) == {"secret"}:
            return f"secret {safe(str(value['secret']))}"
        if set(value) == {"only"}:
            return f"only {_plain(value['only'])}"
        if len(value) == 1:
            (key, inner), *_ = value.items()
            return f"{safe(str(key))} {_plain(inner)}"
        return ", ".join(f"{safe(str(k))}={_plain(v)}" for k, v in value.items()) or "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(v) for v in value) + "]"
    if isinstance(value, str):
        text = safe(value.replace("\n", "⏎"))
        return text if text and text == text.strip() else json.dumps(text, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def is_long(*values: Seen) -> bool:
    """Whether a change of these reads better as a diff."""
    texts = [v for v in values if isinstance(v, str)]
    return len(texts) == len(values) and any("\n" in t or len(t) > LONG for t in texts)


def text_diff(before: str, after: str) -> list[str]:
    """A small line diff, cut after DIFF_LINES lines, each line safe to print."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]
    shown = [safe(line[:200]) for line in lines[:DIFF_LINES] if not line.startswith("@@")]
    if len(lines) > DIFF_LINES:
        shown.append(f"… {len(lines) - DIFF_LINES} more lines")
    return shown
