"""The daemon's socket, if it is the owner's own (docs: the package's `mcp/bridge.mjs`)."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.errors import ProviderError
from reconciler_shape import line
from reconciler_shape.lease import SOCKET

TIMEOUT = line.TIMEOUT


class NotHeard(ProviderError):
    """Nobody answers the call. Nothing was sent."""


@contextlib.contextmanager
def _connected(root: Path, timeout: float) -> Iterator[socket.socket]:
    """Raises NotHeard: nobody is there, or the socket is not the owner's own (L17)."""
    path = root / SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timeout)
        try:
            found = path.lstat()
            if not stat.S_ISSOCK(found.st_mode):
                raise NotHeard(f"{path} is no socket")
            if found.st_uid != os.getuid() or found.st_mode & 0o002:
                raise NotHeard(f"{path} belongs to another user, or may be used by everybody")
            with line.address(root) as where:
                client.connect(where)
        except OSError as error:
            raise NotHeard(f"{path} does not answer ({error.strerror or error})") from error
        yield client


def answers(root: Path, timeout: float = 5.0) -> str:
    """ "" if somebody listens on the socket, else why not. `timeout` in seconds. Nothing is sent."""
    try:
        with _connected(root, timeout):
            return ""
    except NotHeard as error:
        return str(error)


def call(root: Path, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Sends one line and gives its answer, a mapping with a boolean `ok`, within `TIMEOUT`.

    Raises NotHeard if nothing was sent, DoorLost if the answer is lost after something was.
    """
    deadline = time.monotonic() + TIMEOUT
    with _connected(root, TIMEOUT) as client:
        return line.exchange(client, root, sent, deadline)
