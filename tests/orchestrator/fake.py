"""A daemon that is none: a socket and a lease in a home, and an answer for each line that the test chooses."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Answer = Callable[[dict[str, Any]], bytes | None]
NOTHING = json.dumps({"ok": True, "result": {"ran": "listed", "jobs": []}}).encode() + b"\n"


def lease(home: Path, **more: Any) -> None:
    """A lease of this very process, or of what `more` says."""
    words = {"pid": os.getpid(), "started_at": "2026-12-01T08:00:00Z", "root": str(home), **more}
    (home / "orchestrator.lock").write_text(json.dumps(words))


@contextmanager
def daemon(home: Path, answer: Answer, listed: Callable[[], bytes] = lambda: NOTHING) -> Iterator[list[dict[str, Any]]]:
    """The lines that were sent to it, lists aside, which `listed` answers. An answer of None closes the connection
    without a word."""
    lease(home)
    seen: list[dict[str, Any]] = []
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(home / "orchestrator.sock"))
    server.listen()

    def serve() -> None:
        while True:
            client, _ = server.accept()
            with client, client.makefile("rb") as lines:
                text = lines.readline()
                if text == b"stop\n":
                    return
                if not text:
                    continue  # somebody only asked whether we are there
                line = json.loads(text)
                if "op" in line:
                    seen.append(line)
                said = listed() if "verb" in line else answer(line)
                if said is not None:
                    with suppress(BrokenPipeError):  # who asked has gone
                        client.sendall(said)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield seen
    finally:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(home / "orchestrator.sock"))
            client.sendall(b"stop\n")
        thread.join()
        server.close()
        (home / "orchestrator.sock").unlink()
        (home / "orchestrator.lock").unlink()
