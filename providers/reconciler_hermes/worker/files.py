"""Files of a profile: opened without following links, written whole or not at all."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
from typing import Any

from reconciler_shape import block as blocks
from reconciler_shape.plain import digest
from reconciler_shape.skillfolder import put

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIMIT = 1 << 20
_FOR_PROGRAMS = ("scripts", "hooks", "plugins", "skills", "skill-bundles", "skins")


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each operation by itself."""
    results = []
    for op in request["ops"]:
        code, words = "ok", ""
        try:
            code, words = _one(op, request["home"], bytes.fromhex(request["key"]), request["owner"])
        except blocks.Torn as error:
            code, words = "refused", str(error)
        except OSError as error:
            code, words = "refused", f"{op['path']}: {error.strerror or error}"
        except UnicodeDecodeError:
            code, words = "refused", f"{op['path']} is not a text"
        results.append({"ref": op["ref"], "code": code, "id": op["path"], "words": words, "inert": ""})
    return results


def _one(op: dict[str, Any], home: str, key: bytes, owner: str) -> tuple[str, str]:
    *above, name = op["path"].split("/")
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            folder = _step(folder, part, make=op["op"] != "delete")
        data, mode = _read(folder, name)
        seen = "" if data is None else digest([digest(data.hex(), key), f"0{mode:03o}"], key)
        if not op["fingerprint"] and data is not None and _is_hermes_own(op["path"], data):
            seen = ""
        if seen != op["fingerprint"]:
            return "stale", "the file has changed since it was looked at"
        if op["op"] == "delete":
            return _delete(op, folder, name, data, mode, owner)
        text = op["text"] if "text" in op else (data or b"").decode("utf-8")
        if "block" in op:
            text = blocks.put(text, op["path"], owner, op["block"])
        mode = int(op["mode"], 8) if op.get("mode") else mode if data is not None else _usual(op["path"])
        put(folder, name, text.encode("utf-8"), mode)
    finally:
        os.close(folder)
    return "ok", ""


def _is_hermes_own(path: str, data: bytes) -> bool:
    """Whether it is the SOUL.md that Hermes itself puts where there is none, perhaps a moment ago."""
    if path != "SOUL.md":
        return False
    soul = importlib.import_module("hermes_cli.default_soul").DEFAULT_SOUL_MD
    return data.decode("utf-8", errors="replace").strip() == str(soul).strip()


def _delete(op: dict[str, Any], folder: int, name: str, data: bytes | None, mode: int, owner: str) -> tuple[str, str]:
    """The whole file, or only our block in it; a file that began with our block goes with it."""
    if data is None:
        return "ok", ""
    left = "" if op["what"] == "whole" else blocks.put(data.decode("utf-8"), op["path"], owner, None)
    if left:
        put(folder, name, left.encode("utf-8"), mode)
    else:
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)
    return "ok", ""


def _usual(path: str) -> int:
    return 0o644 if path.split("/")[0] in _FOR_PROGRAMS else 0o600


def _step(folder: int, part: str, make: bool) -> int:
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
        return os.open(part, _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)


def _read(folder: int, name: str) -> tuple[bytes | None, int]:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None, 0
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "not a regular file")
        if info.st_size > _LIMIT:
            raise OSError(0, f"larger than {_LIMIT} bytes")
        return file.read(), stat.S_IMODE(info.st_mode) & 0o777
