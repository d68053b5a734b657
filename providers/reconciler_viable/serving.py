"""The sandbox on a port of this machine. Knows uvicorn, which is installed with the extra `sandbox`."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator

import uvicorn

from .sandbox import Sandbox


def _server(app: Sandbox) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # a trick of the hostile mood is no fault to tell
    return uvicorn.Server(config)


def bound(port: int) -> tuple[socket.socket, str]:
    """A socket that listens on loopback, and its URL; `port` 0 is any free one. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
    except OSError:
        sock.close()
        raise
    return sock, f"http://127.0.0.1:{sock.getsockname()[1]}"


def serve(app: Sandbox, sock: socket.socket) -> None:
    """Until Ctrl-C or SIGTERM."""
    with sock:
        _server(app).run(sockets=[sock])


@contextlib.contextmanager
def running(app: Sandbox) -> Iterator[str]:
    """The URL of the app, served in a thread as long as the context lasts."""
    sock, url = bound(0)
    server = _server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(10)
        sock.close()
