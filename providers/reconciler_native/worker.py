"""The one block of config.yaml that is ours alone, `worker:`; an unknown key in it fails the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import LoadFailed

_PERMISSION = ("timeout_seconds", "default", "unattended")
_KEYS = ("harness", "model", "preset", "cwd", "env", "permission")
_WORDS = {"default": ("deny", "allow"), "unattended": ("deny", "approve")}


def check(raw: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    """The worker as the orchestrator has it, None if the file names none. Raises LoadFailed naming file and key."""
    block = raw.get("worker")
    if block is None:
        return None
    if not isinstance(block, dict):
        raise LoadFailed(path, "a mapping is expected (harness, model, …)", "worker")
    for key in block:
        if key not in _KEYS:
            raise LoadFailed(path, f"unknown key; a worker has {', '.join(_KEYS)}", f"worker.{key}")
    harness = block.get("harness")
    if not isinstance(harness, str) or not harness.strip():
        raise LoadFailed(path, "the name of a harness is needed", "worker.harness")
    for key in ("model", "preset", "cwd"):
        if block.get(key) is not None and not isinstance(block[key], str):
            raise LoadFailed(path, "a text is expected", f"worker.{key}")
    env = block.get("env") or {}
    if not isinstance(env, dict) or any(not isinstance(value, str | int | dict) for value in env.values()):
        raise LoadFailed(path, "a mapping of texts is expected", "worker.env")
    return {
        "harness": harness,
        "model": block.get("model"),
        "preset": block.get("preset"),
        "cwd": block.get("cwd") or ".",
        "env": env,
        "permission": _permission(block.get("permission"), path),
    }


def _permission(block: Any, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {"timeout_seconds": 300, "default": "deny"}
    if block is None:
        return found
    if not isinstance(block, dict):
        raise LoadFailed(path, "a mapping is expected", "worker.permission")
    for key, value in block.items():
        where = f"worker.permission.{key}"
        if key not in _PERMISSION:
            raise LoadFailed(path, f"unknown key; it has {', '.join(_PERMISSION)}", where)
        if key in _WORDS and value not in _WORDS[key]:
            raise LoadFailed(path, f"one of {', '.join(_WORDS[key])} is expected", where)
        if key == "timeout_seconds" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise LoadFailed(path, "a number of seconds is expected", where)
        found[key] = value
    return found
