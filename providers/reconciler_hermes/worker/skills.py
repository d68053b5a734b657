"""Skills: a folder made what its source says, and a member of `skills.disabled`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from reconciler_shape import parts, skillfolder, yamledit
from reconciler_shape.plain import to_json

from . import config


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each operation by itself."""
    results = []
    for op in request["ops"]:
        try:
            code, words = _one(op, request)
        except (OSError, skillfolder.Odd) as error:
            code, words = "refused", f"{op['name']}: {getattr(error, 'strerror', None) or error}"
        results.append({"ref": op["ref"], "code": code, "id": op["id"], "words": words, "inert": ""})
    return results


def _one(op: dict[str, Any], request: dict[str, Any]) -> tuple[str, str]:
    home, key = Path(os.path.realpath(request["home"])), bytes.fromhex(request["key"])
    folder, files = skillfolder.seen(home, op["below"], op["name"])
    raw = _config(home)
    off = parts.seen(raw, op["parts"]) is not None
    path = folder.relative_to(home).as_posix() if folder else ""
    if skillfolder.fingerprint(path, files, off, key) != op["fingerprint"]:
        return "stale", "the skill has changed since it was looked at"
    member = [op["parts"][0]["path"], op["parts"][0]["member"]]
    if op["op"] == "delete":
        if isinstance(files, str):
            raise skillfolder.Odd(files)
        if folder is not None:
            skillfolder.discard(folder, Path(op["trash"]))
        return _switch(op, request, raw, [], [member])
    if op.get("files") is not None:
        if isinstance(files, str):
            raise skillfolder.Odd(files)
        if folder is not None and op["keep"]:
            skillfolder.keep(folder, Path(op["trash"]))
        skillfolder.sync(home, folder or home / op["below"][0] / op["name"], op["files"], files or ())
    if op.get("enabled") is None:
        return "ok", ""
    return _switch(op, request, raw, [] if op["enabled"] else [member], [member] if op["enabled"] else [])


def _config(home: Path) -> dict[str, Any]:
    path = home / "config.yaml"
    try:
        found = to_json(yamledit.load(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (UnicodeDecodeError, yamledit.yaml.YAMLError) as error:
        raise skillfolder.Odd(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    return found if isinstance(found, dict) else {}


def _switch(
    op: dict[str, Any], request: dict[str, Any], raw: dict[str, Any], add: list[Any], remove: list[Any]
) -> tuple[str, str]:
    seen = parts.fingerprint(raw, op["parts"], bytes.fromhex(request["key"]))
    if bool(seen) is bool(add):
        return "ok", ""  # it is as it is to be
    flag = {"ref": op["ref"], "parts": op["parts"], "fingerprint": seen, "set": [], "unset": []}
    result = config.perform({**request, "ops": [{**flag, "add": add, "remove": remove}]})[0]
    return result["code"], result["words"]
