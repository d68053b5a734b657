"""Channels: paths of config.yaml, lines of `.env` and pairings, as they stand under our lock, and read again after.

Access is taken away before anything else, and given after it: what is cut off half-way lets nobody in.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reconciler_shape import channels as shape
from reconciler_shape import channelwrites, envfile, yamledit
from reconciler_shape.plain import digest, to_json

from . import config as configs

_DIALECT = shape.Dialect()


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each operation by itself."""
    home = Path(request["home"])
    return [_one(op, home, bytes.fromhex(request["key"])) for op in request["ops"]]


def _one(op: dict[str, Any], home: Path, key: bytes) -> dict[str, Any]:
    try:
        code, words = _carried_out(op, home, key)
    except (envfile.CannotEdit, yamledit.CannotEdit) as error:
        code, words = "refused", str(error)
    except ValueError as error:
        code, words = "refused", f"the pairings of {op['name']} cannot be read: {error}"
    except OSError as error:
        code, words = "refused", f"{error.filename or home}: {error.strerror or error}"
    return {"ref": op["ref"], "code": code, "id": op["id"], "words": words, "inert": ""}


def _carried_out(op: dict[str, Any], home: Path, key: bytes) -> tuple[str, str]:
    config, env = real(home / "config.yaml"), real(home / ".env")
    text, lines = content(config), content(env)
    why = configs.unfit(text, config)
    if why:
        return "refused", why
    raw = to_json(yamledit.load((text or b"").decode()) or {})
    name = op["name"]
    store = shape.Store(raw, read_env(), {name: _paired(home, name)})
    standing = shape.standing(store, name)
    if ("" if standing is None else digest(standing, key)) != op["fingerprint"]:
        return "stale", f"the channel {name} has changed since it was looked at"
    if op["op"] == "delete":
        made = channelwrites.removal(store, name)
    else:
        made = channelwrites.changes(store, name, op["fields"], _DIALECT)
    after = yamledit.edit((text or b"").decode(), made.sets, made.unsets).encode()
    said = envfile.edit(lines or b"", made.env)
    first = pinned(made.env)
    if first:
        return "refused", f"{first} is pinned by this machine's administrator"
    for one in made.revoke:
        # By Hermes's own function, which takes its other spellings along, and the line in `.env` that it made.
        _pairings().revoke(name, one)
    if made.revoke:
        lines = content(env)
        said = envfile.edit(lines or b"", made.env)
    if content(config) != text or content(env) != lines:
        return "stale", "config.yaml or .env was changed while it was being worked on"
    narrows = op["op"] == "delete" or op["fields"].get("enabled") is False
    writes = [(env, lines, said), (config, text, after)]
    for path, old, new in reversed(writes) if narrows else writes:
        if new != (old or b""):
            configs.write(path, new)
    read = read_env()
    wrong = [variable for variable, value in made.env.items() if (read.get(variable) or None) != value]
    if wrong:
        return "refused", f"Hermes does not read what was written of {', '.join(wrong)} in .env"
    return "ok", ""


def pinned(names: Iterable[str]) -> str:
    """The first of these variables that the machine's administrator has set; Hermes has that from 0.18 on."""
    try:
        scope = importlib.import_module("hermes_cli.managed_scope")
    except ModuleNotFoundError:
        return ""
    return next((name for name in names if scope.is_env_managed(name)), "")


def read_env() -> dict[str, str]:
    """The profile's `.env` as Hermes reads it."""
    config: Any = importlib.import_module("hermes_cli.config")
    if hasattr(config, "invalidate_env_cache"):
        config.invalidate_env_cache()
    return dict(config.load_env())


def _paired(home: Path, name: str) -> list[str]:
    """Who was let in by pairing, of both folders that Hermes joins. To ask Hermes would make them."""
    found: set[str] = set()
    for below in ("platforms/pairing", "pairing"):
        path = home / below / f"{name}-approved.json"
        if path.is_file():
            found |= {str(one) for one in json.loads(path.read_bytes())}
    return sorted(found)


def _pairings() -> Any:
    # A store reads and writes below the home that this process was started for.
    return importlib.import_module("gateway.pairing").PairingStore()


def real(path: Path) -> Path:
    """A link stays where it is, and the file that it points to is written, as Hermes does."""
    return Path(os.path.realpath(path))


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
