"""The operator's socket from the client's side: its address, one line out, one line back."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.errors import DoorLost

from .lease import SOCKET

LONGEST = 64 << 20
"""Bytes of one line: a batch, or the answer with a whole home."""
TIMEOUT = 30.0
"""Seconds for one line, as the orchestrator's own client has it."""
_ADDRESS = 100  # bytes that an address of this family surely may have
_OPENED = Path("/proc/self/fd")


@contextlib.contextmanager
def address(root: Path) -> Iterator[str]:
    """The socket's address, short enough for its family however deep the home lies. Raises OSError."""
    whole = str(root / SOCKET)
    if len(os.fsencode(whole)) <= _ADDRESS:
        yield whole
        return
    if not _OPENED.is_dir():  # macOS
        import tempfile

        with tempfile.TemporaryDirectory(prefix="home-") as short:
            Path(short, "h").symlink_to(root)
            yield f"{short}/h/{SOCKET}"
        return
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_OPENED}/{fd}/{SOCKET}"
    finally:
        os.close(fd)


def exchange(client: socket.socket, root: Path, line: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Sends one line to who is connected and gives its answer, a mapping with a boolean `ok`. `deadline` is on the
    monotonic clock. Raises DoorLost if the answer is lost."""
    where = root / SOCKET
    try:
        client.sendall(json.dumps(line).encode() + b"\n")
        found = _line(client, deadline)
    except (OSError, ValueError) as error:
        raise DoorLost(f"{where}: the line was sent, and its answer is lost ({error})") from error
    try:
        answer = json.loads(found)
    except (ValueError, RecursionError) as error:
        raise DoorLost(f"{where}: the line was sent, and its answer is no JSON") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise DoorLost(f"{where}: the line was sent, and its answer has another form")
    return answer


def _line(client: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ValueError("none came in time")
        client.settimeout(left)
        chunk = client.recv(1 << 16)
        if not chunk:
            raise ValueError("it ended before the line did")
        head, mark, _ = chunk.partition(b"\n")
        parts.append(head)
        size += len(head)
        if size > LONGEST:
            raise ValueError("it is too long")
        if mark:
            return b"".join(parts)
