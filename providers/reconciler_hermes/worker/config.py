"""Writes to config.yaml: parsed before, only the declared paths changed, read again and compared after."""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reconciler_shape import parts, yamledit
from reconciler_shape.plain import digest, to_json

_TRIES = 3
Raw = dict[str, Any]
Paths = Callable[[Raw, Raw], tuple[list[Any], list[Any]]]
Seen = Callable[[Raw, Raw, bytes], str]


def perform(request: Raw, paths: Paths | None = None, seen: Seen | None = None) -> list[Raw]:
    """All operations in one write; one that is refused or stale leaves the others alone. `paths` says what an operation
    sets and unsets in the file as it stands, and `seen` the fingerprint of what it is about."""
    # A link stays where it is, and the file that it points to is written, as Hermes itself does.
    path = Path(os.path.realpath(Path(request["home"]) / "config.yaml"))
    for _ in range(_TRIES):
        results = _attempt(path, request["ops"], bytes.fromhex(request["key"]), paths or _paths, seen or _seen)
        if results is not None:
            return results
    return [_result(op, "stale", f"{path} changes faster than it can be written") for op in request["ops"]]


def _attempt(path: Path, ops: list[Raw], key: bytes, paths: Paths, seen: Seen) -> list[Raw] | None:
    """None iff the file changed in between."""
    before = path.read_bytes() if path.exists() else None
    why = unfit(before, path)
    if why:
        return [_result(op, "refused", why) for op in ops]
    text = (before or b"").decode("utf-8")
    results = []
    for op in ops:
        raw = to_json(yamledit.load(text) or {})
        if seen(raw, op, key) != op["fingerprint"]:
            results.append(_result(op, "stale", "the value in config.yaml has changed since it was looked at"))
            continue
        try:
            new = yamledit.edit(text, *paths(raw, op))
        except (yamledit.CannotEdit, parts.NoList) as error:
            results.append(_result(op, "refused", f"config.yaml: {error}"))
            continue
        issues = _issues(to_json(yamledit.load(new) or {}), op)
        text = text if issues else new
        results.append(_result(op, "refused" if issues else "ok", issues))
    after = text.encode("utf-8")
    if after != (before or b"") or (before is None and any(r["code"] == "ok" for r in results)):
        if (path.read_bytes() if path.exists() else None) != before:
            return None
        try:
            write(path, after)
        except OSError as error:
            return [_result(op, "refused", f"{path}: {error.strerror or error}") for op in ops]
        if path.read_bytes() != after:
            return None
    return results


def _issues(raw: Raw, op: Raw) -> str:
    """What Hermes itself says against an MCP server, in its words: it would refuse to start it. 0.16 has no such
    check."""
    if "server" not in op or importlib.util.find_spec("hermes_cli.mcp_security") is None:
        return ""
    check = importlib.import_module("hermes_cli.mcp_security").validate_mcp_server_entry
    return "; ".join(check(op["server"], parts.at(raw, ["mcp_servers", op["server"]])))


def unfit(data: bytes | None, path: Path) -> str:
    """Why config.yaml must not be written, "" if it may."""
    if importlib.import_module("hermes_cli.config").is_managed():
        return "this home is managed by another system, which writes its config.yaml"
    if data is None:
        return ""
    try:
        found = yamledit.load(data.decode("utf-8"))
    except (UnicodeDecodeError, yamledit.yaml.YAMLError) as error:
        return f"{path} cannot be read, so it is not written: {str(error).splitlines()[0]}"
    return "" if found is None or isinstance(found, dict) else f"{path} is not a mapping, so it is not written"


def _paths(raw: Raw, op: Raw) -> tuple[list[Any], list[Any]]:
    members = parts.with_members(raw, op.get("add", ()), op.get("remove", ()))
    return _whole(raw, op["set"]) + members, op["unset"]


def _seen(raw: dict[str, Any], op: dict[str, Any], key: bytes) -> str:
    """The fingerprint of what the operation stands for, made as the plan's side makes it."""
    if "parts" in op:
        return parts.fingerprint(raw, op["parts"], key)
    if op.get("keys"):
        return digest({name: raw[name] for name in op["keys"] if name in raw}, key)
    here: Any = raw
    for segment in op["path"]:
        if not isinstance(here, dict) or segment not in here:
            return ""
        here = here[segment]
    return digest(here, key)


def _whole(raw: dict[str, Any], sets: list[Any]) -> list[Any]:
    """`model: some/name` becomes a mapping as a whole where the operation sets keys below it."""
    found: list[Any] = []
    for path, value in sets:
        top = raw.get(path[0])
        if len(path) == 2 and top is not None and isinstance(top, str) and path[0] == "model":
            if not found or found[-1][0] != ["model"]:
                found.append([["model"], {}])
            found[-1][1][path[1]] = value
        else:
            found.append([path, value])
    return found


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Whole or not at all; an existing file's mode is kept. Raises OSError."""
    existing = path.stat() if path.exists() else None
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=".reconciler_", suffix=".tmp")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(existing.st_mode) if existing else mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _result(op: dict[str, Any], code: str, words: str) -> dict[str, Any]:
    return {"ref": op["ref"], "code": code, "id": op.get("id", ""), "words": words, "inert": ""}
