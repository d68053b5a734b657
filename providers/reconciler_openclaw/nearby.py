"""The names that a gateway has for models, where one that was refused is close to them (“did you mean”)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from reconciler.action import Action
from reconciler.errors import DoorLost
from reconciler_specs.address import Kind

from . import jobwords, rpc
from .door_line import Line

_CLOSE = 0.7  # of 1: one letter of a short name may be wrong


def names(line: Line, rows: Sequence[Action]) -> str:
    """A sentence with the closest known names of the rows' unknown models, "" if there are none."""
    wanted = {ref for row in rows if row.address.kind is Kind.INFERENCE for ref in _refs(row)}
    try:
        answer = line.call("models.list", {"view": "all"})
    except (rpc.Refusal, DoorLost):
        return ""  # there is nothing to add to what has been said
    known = {f"{m['provider']}/{m['id']}" for m in answer.get("models", ()) if m.get("provider") and m.get("id")}
    close: dict[str, None] = {}
    for ref in sorted(wanted - known):
        close |= dict.fromkeys(get_close_matches(ref, sorted(known), 3, _CLOSE))
    return f" (this gateway knows {', '.join(close)})" if close else ""


def _refs(row: Action) -> Iterator[str]:
    """`provider/model` of every model that a row writes."""
    for change in row.changes:
        value: Any = change.write
        tasks = change.field == "auxiliary" and isinstance(value, dict)
        for model in value if isinstance(value, list) else value.values() if tasks else [value]:
            if isinstance(model, dict) and model.get("provider") and model.get("model"):
                yield jobwords.ref(model)
