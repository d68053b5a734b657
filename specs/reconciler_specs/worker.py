"""A profile's worker: the agent program that does the work of its turns."""

from __future__ import annotations

from typing import Any

from .environment import SCHEMA as ENVIRONMENT
from .environment import environment
from .reading import TEXT, Schema
from .shape import Json
from .values import Refusal, closed, described, filled, word

_PERMISSION = ("timeout_seconds", "default", "unattended")
_KEYS = ("harness", "model", "preset", "cwd", "env", "permission")
SCHEMA: Schema = {
    "oneOf": [
        TEXT,
        {
            "type": "object",
            "properties": {
                **dict.fromkeys(("harness", "model", "preset", "cwd"), TEXT),
                "env": ENVIRONMENT,
                "permission": {
                    "type": "object",
                    "properties": {
                        "timeout_seconds": {"type": "integer", "minimum": 0},
                        "default": {"enum": ["deny", "allow"]},
                        "unattended": {"enum": ["deny", "approve"]},
                    },
                    "additionalProperties": False,
                },
            },
            "required": ["harness"],
            "additionalProperties": False,
        },
    ]
}


def worker(value: Any) -> dict[str, Json]:
    """`{harness, model, preset, cwd, env, permission}`; a text alone is the harness."""
    if isinstance(value, str):
        return {"harness": filled(value)}
    value = closed(value, _KEYS, "a worker's harness, or {harness: …, model: …}")
    if "harness" not in value:
        raise Refusal("harness is needed", "the program that works: claude-code, codex, …")
    found: dict[str, Json] = {}
    for key, item in value.items():
        try:
            match key:
                case "env":
                    found[key] = environment(item)
                case "permission":
                    found[key] = _permission(item)
                case _:
                    found[key] = filled(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return found


def _permission(value: Any) -> dict[str, Json]:
    found = dict(closed(value, _PERMISSION, "{timeout_seconds: …, default: …, unattended: …}"))
    checks = {"default": word("deny", "allow"), "unattended": word("deny", "approve"), "timeout_seconds": _seconds}
    for key, item in found.items():
        try:
            found[key] = checks[key](item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return found


def _seconds(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal(f"a number of seconds is expected, got {described(value)}")
    return int(value)
