"""A restart of the daemon, from outside: the line is sent, and another lease is waited for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reconciler.errors import DoorLost

from . import lease, wire
from .errors import NativeError
from .operator import RESTART

DEADLINE = 20.0
"""Seconds until the new daemon holds its lease: it is gone within 5 s, and begins in less than one."""
_LOOK = 0.05  # seconds between two looks


def ask(root: Path) -> dict[str, Any]:
    """Asks the daemon to start anew; its answer. Raises HomeHeld, DoorLost."""
    return wire.call(root, {"op": RESTART})


def restart(root: Path) -> dict[str, Any]:
    """Asks, and waits until the lease is another one; `uncertain` if that is not seen in time."""
    before = lease.inspect(root)
    if before.state is not lease.State.LIVE:
        return {"ok": False, "error": f"{root}: no daemon serves this home"}
    try:
        answer = ask(root)
    except DoorLost as error:
        return {"ok": False, "error": str(error), "uncertain": True}
    except NativeError as error:
        return {"ok": False, "error": str(error)}
    if not answer["ok"]:
        return answer
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        now = lease.inspect(root)
        if now.state is lease.State.LIVE and now.lease != before.lease:
            return {"ok": True, "result": {"ran": f"restart: {now.words}"}}
        time.sleep(_LOOK)
    return {"ok": False, "error": f"{root}: no daemon has taken the home again yet", "uncertain": True}
