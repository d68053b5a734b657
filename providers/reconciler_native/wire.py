"""The operator's socket: its address, and the client's one line out and one line back."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler_shape import line
from reconciler_shape.line import LONGEST, TIMEOUT, address

from .errors import HomeHeld

__all__ = ["LONGEST", "TIMEOUT", "address", "call"]


def call(root: Path, sent: Mapping[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
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
        return line.exchange(client, root, sent, deadline)
