"""The other end of a webhook, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def webhook(*answers: int) -> Iterator[tuple[str, list[bytes]]]:
    """A webhook on loopback that answers as told, 200 after that; 302 leads to itself."""
    got: list[bytes] = []
    left = list(answers)

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            status = left.pop(0) if left else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    httpd = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/", got
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
