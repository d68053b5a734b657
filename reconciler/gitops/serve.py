"""`/healthz` and `/metrics` over HTTP, on a loopback address and nowhere else."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from ..errors import UsageError
from .metrics import CONTENT_TYPE, Standing, text, unhealthy

SECONDS = 10  # that a client may take to ask


def address(said: str) -> tuple[str, int]:
    """`HOST:PORT` as given with --http. Raises UsageError for what is no loopback address: there is no login."""
    host, colon, port = said.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    hint = "--http 127.0.0.1:9190"
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--http {said}: an address and a port are expected", hint=hint)
    try:
        loopback = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError(f"--http {said}: only a loopback address is served, as nobody has to log in", hint=hint)
    return ("127.0.0.1" if host == "localhost" else host), int(port)


@contextmanager
def served(
    where: tuple[str, int], standing: Callable[[], Standing], now: Callable[[], float], interval: float
) -> Iterator[int]:
    """Answers while the block runs; gives the port. Raises UsageError if the address cannot be taken."""

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS
        server_version = "reconciler"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE, text(standing()))
            elif path == "/healthz":
                why = unhealthy(standing(), now(), interval)
                self._answer(503 if why else 200, "text/plain; charset=utf-8", f"{why or 'ok'}\n")
            else:
                self._answer(404, "text/plain; charset=utf-8", "there are /healthz and /metrics\n")

        def _answer(self, status: int, kind: str, body: str) -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: stdout has one event a line, and who asked is of no interest."""

    class Server(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in where[0] else AF_INET
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Nothing: a client that went away is no fault of the loop."""

    try:
        server = Server(where, Handler)
    except OSError as error:
        raise UsageError(f"--http {where[0]}:{where[1]}: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
