"""Values in words, on one line, secrets as what they are: hidden. For the screen, reports and plan files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from .action import CLEAR, Action, Clear, FieldChange, FieldRow, Row
from .observe import ABSENT, Seen, Unknown
from .redact import is_hidden, scrub

# A text longer than this is shown as a diff (when it changed) or by its beginning (when it is new).
LONG: Final = 60


def show(value: Seen | Clear, limit: int = LONG) -> str:
    """A value on one line of at most about `limit` characters."""
    if value is ABSENT or value == {"$absent": True}:
        return "(not set)"
    if value is CLEAR:
        return "(harness default)"
    if isinstance(value, Unknown):
        return "? unknown"
    text = _plain(value)
    if len(text) > limit:
        text = f"{text[: limit - 1]}… ({len(text)} characters)"
    return text


def _plain(value: Seen) -> str:
    if is_hidden(value):
        return "(hidden)"
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return f"→ {scrub(str(value['$ref']))}"
        if set(value) == {"$native"}:
            return f"{scrub(str(value['$native']))} (as the harness says it)"
        if set(value) == {"secret"}:
            return f"secret {scrub(str(value['secret']))}"
        if set(value) == {"only"}:
            return f"only {_plain(value['only'])}"
        if len(value) == 1:
            (key, inner), *_ = value.items()
            return f"{scrub(str(key))} {_plain(inner)}"
        return ", ".join(f"{scrub(str(k))}={_plain(v)}" for k, v in value.items()) or "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(v) for v in value) + "]"
    if isinstance(value, str):
        text = scrub(value.replace("\n", "⏎"))
        return text if text and text == text.strip() else json.dumps(text, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def sides(change: FieldChange) -> tuple[Seen | Clear, Seen | Clear]:
    """What a field's row leads from and to: a write from what is seen, drift from what we left there."""
    if change.row in (FieldRow.DRIFT, FieldRow.CONFLICT):
        return (change.base.observed if change.base else ABSENT), change.observed
    return change.observed, change.write if change.writes else change.declared


def between(before: Seen | Clear, after: Seen | Clear) -> str:
    """What a value was and becomes. Of two maps that have keys in common only what differs: the rest hides it."""
    if not (isinstance(before, dict) and isinstance(after, dict)) or not _alike_in_part(before, after):
        return f"{show(before)} → {show(after)}"
    keys = [key for key in {**before, **after} if before.get(key, ABSENT) != after.get(key, ABSENT)]
    return ", ".join(f"{scrub(str(k))} {show(before.get(k, ABSENT))} → {show(after.get(k, ABSENT))}" for k in keys)


def _alike_in_part(before: dict[str, Any], after: dict[str, Any]) -> bool:
    same = [key for key in before if key in after and before[key] == after[key]]
    return bool(same) and before != after and not any(key.startswith("$") for key in (*before, *after))


def would(action: Action) -> list[str]:
    """What carrying a row out would write, a line per field; of a secret where it comes from, and never what it is."""
    if action.source:
        return [f"value from {scrub(action.source)}"] if action.writes else []
    if action.row in (Row.CREATE, Row.MISSING):
        return [f"{c.field}: {show(c.write)}" for c in action.changes]
    return [f"{c.field}: {between(c.observed, c.write)}" for c in action.changes if c.writes]


def moment(at: str) -> str:
    """A recorded time for a person, to the second, with its zone; what is no time is shown as it is."""
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return scrub(at)
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S %Z}"
