"""What a place reads with: standard library only, since `ExecPlace` sends this very source to the other side."""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


def read(path: str, limit: int) -> bytes:
    """A regular file's bytes, its last part never followed as a link.

    Raises FileNotFoundError, and OSError for a link, a folder, a device, or more than `limit` bytes.
    """
    # O_NONBLOCK: opening a pipe must not wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if info.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    return data


def stats(path: str) -> Answer | None:
    """What `lstat` says, None iff nothing is there."""
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind, target = "other", ""
    if stat.S_ISREG(info.st_mode):
        kind = "file"
    elif stat.S_ISDIR(info.st_mode):
        kind = "dir"
    elif stat.S_ISLNK(info.st_mode):
        kind, target = "link", os.path.realpath(path)
    return {
        "kind": kind,
        "size": info.st_size,
        "mode": stat.S_IMODE(info.st_mode),
        "uid": info.st_uid,
        "mtime_ns": info.st_mtime_ns,
        "target": target,
    }


def names(path: str) -> list[str]:
    return sorted(os.listdir(path))  # noqa: PTH208


def resolve(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))  # noqa: PTH111


def which(program: str) -> str | None:
    return shutil.which(program)


def free(path: str) -> int:
    """Bytes that we may still write below `path`, or below the nearest parent that is there."""
    while not os.path.exists(path) and path != os.path.dirname(path):  # noqa: PTH110, PTH120
        path = os.path.dirname(path)  # noqa: PTH120
    info = os.statvfs(path)
    return info.f_bavail * info.f_frsize


def writable(path: str) -> bool:
    return os.access(path, os.W_OK | os.X_OK)


def environ() -> dict[str, str]:
    """The few variables that a program at this place is given."""
    return {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}


def _read64(path: str, limit: int) -> str:
    return base64.b64encode(read(path, limit)).decode()


VERBS: dict[str, Callable[..., Any]] = {
    "read": _read64,
    "stat": stats,
    "list": names,
    "resolve": resolve,
    "which": which,
    "free": free,
    "writable": writable,
    "environ": environ,
    "uid": os.geteuid,
}


def serve() -> None:
    """Answer one JSON line per JSON line until stdin ends."""
    for line in sys.stdin:
        verb, args = json.loads(line)
        try:
            answer: Answer = {"ok": VERBS[verb](*args)}
        except OSError as error:
            answer = {"errno": error.errno or errno.EIO, "words": error.strerror or str(error)}
        except ValueError as error:  # a NUL in a path
            answer = {"errno": errno.EINVAL, "words": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
