"""The home's trash: copies of what was deleted, or written over, for 14 days, readable by the owner only.

Sent to a home's place with the worker: standard library only.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

NAME = ".reconciler-trash"
STAMP = "%Y%m%dT%H%M%SZ"
_KEPT = 14 * 86400  # seconds


def prune(trash: Path) -> None:
    """Copies are kept for 14 days; their names begin with the time."""
    oldest = time.strftime(STAMP, time.gmtime(time.time() - _KEPT))
    for path in trash.iterdir() if trash.is_dir() else ():
        if re.match(r"\d{8}T\d{6}Z-", path.name) and path.name < oldest:
            shutil.rmtree(path, ignore_errors=True)


def place_for(trash: Path, name: str) -> Path:
    """A free path in the trash for a copy of `name`; the trash is made if need be. Raises OSError."""
    trash.mkdir(mode=0o700, exist_ok=True)
    trash.chmod(0o700)
    stem = f"{time.strftime(STAMP, time.gmtime())}-{name}"
    target, count = trash / stem, 2
    while target.exists():
        target, count = trash / f"{stem}-{count}", count + 1
    return target


def close(copy: Path) -> None:
    """Makes a copy the owner's alone; links in it stay what they are."""
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
