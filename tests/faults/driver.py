"""`reconciler` as a program of its own that ends, or is interrupted, at a chosen point of the engine.

    python driver.py POINT:N:WHAT … -- ARGS

POINT is a call such as `journal.begin`, with `>` before it for “on entry” and `<` for “on return”; N is which call of
it; WHAT is `kill`, `int`, `term`, or `fail` (what a full disk is to the engine). $FAULT_WAIT is how long it waits for
a lock. Behind an `@` may stand an argument of the call: only calls with it count. The door's points are those of each
harness whose tests use them; `openclaw.answer@METHOD` is the wait for a gateway's answer, so that its entry is the
moment at which the call has been sent.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from reconciler.cli import main
from reconciler.workspace import Workspace
from reconciler_hermes.door import HermesDoor
from reconciler_native.disk import Disk
from reconciler_native.door import NativeDoor
from reconciler_openclaw import rpc
from reconciler_openclaw.door import OpenClawDoor
from reconciler_state.errors import StateError
from reconciler_state.files import Files
from reconciler_state.journal import Journal
from reconciler_state.local import LocalStore

_CALLS: dict[str, tuple[Any, str]] = {
    "journal.begin": (Journal, "begin"),
    "journal.done": (Journal, "done"),
    "journal.end": (Journal, "end"),
    "store.write": (LocalStore, "write"),
    "files.put": (Files, "put"),
    "door.perform": (HermesDoor, "perform"),
    "native.perform": (NativeDoor, "perform"),
    "native.put": (Disk, "put"),
    "openclaw.perform": (OpenClawDoor, "perform"),
    "openclaw.answer": (rpc, "_answer"),
    "observe": (Workspace, "observe"),
}


def _do(what: str) -> None:
    match what:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "int":
            os.kill(os.getpid(), signal.SIGINT)
        case "term":
            os.kill(os.getpid(), signal.SIGTERM)
        case "fail":
            raise StateError(f"/state: {os.strerror(errno.ENOSPC)}")
        case _:
            raise ValueError(what)


def _arm(point: str, number: int, what: str) -> None:
    where, _, only = point[1:].partition("@")
    owner, name = _CALLS[where]
    real: Callable[..., Any] = getattr(owner, name)
    count = 0

    def call(*args: Any, **more: Any) -> Any:
        nonlocal count
        if only and only not in args:
            return real(*args, **more)
        count += 1
        now = count == number
        if now and point[0] == ">":
            _do(what)
        result = real(*args, **more)
        if now and point[0] == "<":
            _do(what)
        return result

    setattr(owner, name, call)


if __name__ == "__main__":
    split = sys.argv.index("--")
    for text in sys.argv[1:split]:
        where, which, action = text.split(":")
        _arm(where, int(which), action)
    Workspace.lock_wait = float(os.environ.get("FAULT_WAIT", "10"))
    main(sys.argv[split + 1 :])
