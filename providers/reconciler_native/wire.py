"""The operator's socket: its address, and the client's one line out and one line back."""

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

from .errors import HomeHeld
from .lease import SOCKET

LONGEST = 64 << 20
"""Bytes of one line: a batch, or the answer with a whole home."""
TIMEOUT = 30.0  # seconds
_ADDRESS = 100  # bytes that an address of this family surely may have


@contextlib.contextmanager
def address(root: Path) -> Iterator[str]:
    """The socket's address, short enough for its family however deep the home lies. Raises OSError."""
    whole = str(root / SOCKET)
    if len(os.fsencode(whole)) <= _ADDRESS:
        yield whole
        return
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET}"
    finally:
        os.close(fd)


def call(root: Path, line: Mapping[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
    """Sends one line to the daemon and gives its answer. `timeout` in seconds.

    Raises HomeHeld if nobody answers the call (nothing was sent), DoorLost if the answer is lost after something was.
    """
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timeout)
        try:
            with address(root) as where:
                client.connect(where)
        except OSError as error:
            raise HomeHeld(
                f"{root}: a daemon serves this home, and its socket does not answer ({error.strerror or error}); "
                "the home is held until it does, or is stopped"
            ) from error
        try:
            client.sendall(json.dumps(line).encode() + b"\n")
            found = _line(client, deadline)
        except (OSError, ValueError) as error:
            raise DoorLost(f"{root / SOCKET}: the answer is lost ({error})") from error
    try:
        answer = json.loads(found)
    except (ValueError, RecursionError) as error:
        raise DoorLost(f"{root / SOCKET}: an answer that is no JSON") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise DoorLost(f"{root / SOCKET}: an answer of another form")
    return answer


def _line(client: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ValueError("no answer in time")
        client.settimeout(left)
        chunk = client.recv(1 << 16)
        if not chunk:
            raise ValueError("it ended before the line did")
        head, mark, _ = chunk.partition(b"\n")
        parts.append(head)
        size += len(head)
        if size > LONGEST:
            raise ValueError("the line is too long")
        if mark:
            return b"".join(parts)
