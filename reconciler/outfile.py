"""Files that a command is told to write: whole, by rename, and never over what is not ours."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from .errors import UsageError

LIMIT = 64 * 1024 * 1024


def write(path: Path, text: str, ours: Callable[[bytes], bool], what: str, again: str) -> None:
    """Writes `text`, 0600. Only a new file, an empty one (mktemp's) and one that `ours` knows may be at `path`.

    `what` says for a person what that is (“plan file”), `again` which command to type. Raises UsageError.
    """
    _check_free(path, ours, what, again)
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def _check_free(path: Path, ours: Callable[[bytes], bool], what: str, again: str) -> None:
    try:
        there = path.stat(follow_symlinks=False)
        if stat.S_ISREG(there.st_mode):
            if there.st_size == 0:
                return
            if there.st_size <= LIMIT and ours(path.read_bytes()):
                return
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    raise UsageError(f"{path} is there, and is no {what}: it would be lost", hint=again)
