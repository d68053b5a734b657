"""Jobs in the setup's words: what both directions have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.observe import Observed, Unknown
from reconciler_specs.shape import Json

from . import schedule
from .hiding import Hider, is_hidden
from .plain import is_native

_ABOUT = (
    "next_run_at", "last_run_at", "last_status", "last_error", "last_delivery_error", "state", "created_at",
    "paused_reason",
)  # fmt: skip
_DEFAULTS: Mapping[str, Json] = {"deliver": "local", "skills": [], "context_from": [], "paused": False}


def defaults(fields: Mapping[str, Json | Unknown]) -> set[str]:
    """The fields of an observed job that say what a new one has anyway."""
    found = {key for key, plain in _DEFAULTS.items() if key in fields and fields[key] == plain}
    when = fields.get("schedule")
    if isinstance(when, dict) and "at" in when and fields.get("repeat") == 1:
        found.add("repeat")
    return found


def about(record: Mapping[str, Any], hider: Hider) -> dict[str, Json]:
    """What a record tells a person beside its fields."""
    found: dict[str, Json] = {key: hider.value(record[key]) for key in _ABOUT if record.get(key) is not None}
    repeat, origin = record.get("repeat"), record.get("origin")
    if isinstance(repeat, dict) and repeat.get("completed"):
        found["runs"] = repeat["completed"]
    if isinstance(origin, dict) and origin.get("platform"):
        found["changed_by"] = f"made in a {origin['platform']} session"
    if record.get("fire_claim") or record.get("run_claim"):
        found["running"] = True
    return found


def express(thing: Observed) -> dict[str, Any]:
    """A job in the setup's form: defaults left out, nothing hidden, nothing that the language has no word for."""
    out: dict[str, Any] = {}
    for name, value in thing.fields.items():
        if isinstance(value, Unknown) or is_hidden(value) or is_native(value):
            continue
        # A setup always says where to deliver, and a name that it leaves out would be the key.
        if name in thing.defaults and name not in ("deliver", "name"):
            continue
        out[name] = value
    when = out.get("schedule")
    if isinstance(when, dict) and "every" in when:
        out["schedule"] = {"every": schedule.shortest(str(when["every"]))}
    if "run" in out:
        out.pop("prompt", None)  # the grammar has either `prompt` (with `before`) or `run`
    return out
