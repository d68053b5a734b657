"""Secrets: one line of the profile's `.env` each, as it stands under our lock, and read again by Hermes's own reader.

A value comes in on stdin and goes to the file; no answer holds one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler_shape import envfile
from reconciler_shape.plain import digest

from . import channels
from . import config as configs


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each operation by itself."""
    home = Path(request["home"])
    return [_one(op, home, bytes.fromhex(request["key"])) for op in request["ops"]]


def _one(op: dict[str, Any], home: Path, key: bytes) -> dict[str, Any]:
    try:
        code, words = _carried_out(op, home, key)
    except envfile.CannotEdit as error:
        code, words = "refused", str(error)
    except OSError as error:
        code, words = "refused", f"{error.filename or home}: {error.strerror or error}"
    return {"ref": op["ref"], "code": code, "id": op["id"], "words": words, "inert": ""}


def _carried_out(op: dict[str, Any], home: Path, key: bytes) -> tuple[str, str]:
    path = channels.real(home / ".env")
    before = channels.content(path)
    name, value = op["name"], op.get("value")
    standing = channels.read_env().get(name)
    if (digest(standing, key) if standing else "") != op["fingerprint"]:
        return "stale", f"{name} has changed since it was looked at"
    if channels.pinned([name]):
        return "refused", f"{name} is pinned by this machine's administrator"
    after = envfile.edit(before or b"", {name: value})
    if channels.content(path) != before:
        return "stale", ".env was changed while it was being worked on"
    if after != (before or b""):
        configs.write(path, after)
    if (channels.read_env().get(name) or None) != value:
        return "refused", f"Hermes does not read what was written of {name} in .env"
    return "ok", ""
