"""A profile's files: which paths and modes are proper, and what a fingerprint is made of."""

from __future__ import annotations

import re

from .plain import digest

MODE = re.compile(r"0?[0-7]{3}")


def outside(path: str) -> bool:
    """Whether `path` is no path inside the home."""
    parts = path.split("/")
    return path.startswith("/") or "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts)


def executable(mode: str) -> bool:
    """Whether a mode such as 0755 lets somebody run the file."""
    return bool(MODE.fullmatch(mode)) and int(mode, 8) & 0o111 != 0


def content(data: bytes, mode: int, key: bytes) -> list[str]:
    """What a file's fingerprint is made of: its bytes and its mode."""
    return [digest(data.hex(), key), f"0{mode & 0o777:03o}"]
