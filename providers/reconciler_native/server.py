"""The daemon: it holds the lease and answers the operator's lines on the home's socket, one per connection."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import lease, wire
from .disk import Disk
from .errors import HomeHeld, NativeError, Refused
from .home import Home
from .operator import BATCH, RESTART, Line, apply_lines
from .shown import encoded

_IDLE = 30.0  # seconds that a caller has for sending its line, or for taking its answer
_MANY = 64  # connections at a time
_PATIENCE = 3.0  # seconds for the write lock: a daemon that is told to stop is gone within 5
_LINES = 1000  # of one batch, for the same reason
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Server:
    """Serves one home. The files are the truth: each line is carried out on them as they stand, under the lock."""

    def __init__(self, home: Home, tell: Callable[[dict[str, Any]], None] = lambda event: None) -> None:
        """`home.serving` is our lease. `tell` gets one event per line, without arguments or results."""
        self._home = home
        self._tell = tell
        self._selector = selectors.DefaultSelector()
        self._calls: dict[socket.socket, _Call] = {}
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stopping = False
        self.again = False  # whether somebody has asked for a restart; the caller of `run` carries it out
        self._restarter: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._socket: os.stat_result | None = None

    def stop(self, *_: object) -> None:
        """From a signal handler or another thread: what is under way is finished, then `run` returns."""
        self._stopping = True
        with contextlib.suppress(OSError):
            os.write(self._woken, b"x")

    def listen(self) -> None:
        """Opens the socket, 0600. Raises HomeHeld if it cannot be opened."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # Our lease says that no daemon is there: what stands at the path was left by one that died.
            (self._home.root / lease.SOCKET).unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                with wire.address(self._home.root) as where:
                    listener.bind(where)
            finally:
                os.umask(before)
            listener.listen(_MANY)
            self._socket = (self._home.root / lease.SOCKET).stat(follow_symlinks=False)
        except OSError as error:
            listener.close()
            raise HomeHeld(f"{self._home.root / lease.SOCKET}: {error.strerror or error}") from error
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def run(self) -> None:
        """Until `stop`. A caller that goes away, sends nothing or sends nonsense costs nobody else anything."""
        try:
            while not self._stopping:
                for key, _ in self._selector.select(self._patience()):
                    if self._stopping:
                        break  # each of many lines may wait for the write lock
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.fileobj, socket.socket):
                        self._serve(key.fileobj)
                self._drop_the_idle()
                if self.again and self._restarter not in self._calls:
                    break  # whoever asked for it has the answer, or has gone
        finally:
            self._close()

    def _patience(self) -> float | None:
        if not self._calls:
            return None
        return max(0.0, min(call.deadline for call in self._calls.values()) - time.monotonic())

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # it went away again
        connection.setblocking(False)
        if len(self._calls) >= _MANY or not _is_owner(connection):
            connection.close()
            return
        self._calls[connection] = _Call(time.monotonic() + _IDLE)
        self._selector.register(connection, selectors.EVENT_READ)

    def _serve(self, connection: socket.socket) -> None:
        call = self._calls[connection]
        try:
            if call.answer is None:
                chunk = connection.recv(1 << 16)
                call.data += chunk
                line, mark, _ = call.data.partition(b"\n")
                if not mark and chunk and len(call.data) <= wire.LONGEST:
                    return
                if not mark:
                    self._end(connection)  # without its end it is no line, and nothing is done
                    return
                call.answer = encoded(self._answer(bytes(line))) + b"\n"
                self._restarter = connection if self.again and self._restarter is None else self._restarter
                call.deadline = time.monotonic() + _IDLE
                self._selector.modify(connection, selectors.EVENT_WRITE)
            while call.answer:
                call.answer = call.answer[connection.send(call.answer) :]
        except BlockingIOError:
            return
        except OSError:
            pass  # the caller is gone; what it asked for is done, and on the disk
        self._end(connection)

    def _answer(self, data: bytes) -> dict[str, Any]:
        try:
            raw = json.loads(data)
            if isinstance(raw, dict) and raw.get("op") == BATCH:
                lines = [Line.read(item) for item in _listed(raw)]
                answers = apply_lines(self._home, lines)
                self._tell({"event": "operator", "op": BATCH, "lines": len(lines)})
                return {"ok": True, "result": {"ran": f"{len(lines)} lines", "answers": answers}}
            line = Line.read(raw)
            if line.op == RESTART:
                return self._restart()
        except RecursionError:
            return {"ok": False, "error": "the line is nested too deeply"}
        except (ValueError, Refused) as error:
            return {"ok": False, "error": str(error)}
        answer = apply_lines(self._home, [line])[0]
        self._tell({"event": "operator", "op": line.op, "profile": line.profile, "ok": answer["ok"]})
        return answer

    def _restart(self) -> dict[str, Any]:
        """What is under way is finished first. A home that does not load keeps the daemon that it has: none would
        begin on it."""
        try:
            self._home.load().check()
        except NativeError as error:
            return {"ok": False, "error": f"{error}; no daemon would start on that, and this one goes on"}
        self.again = True
        self._tell({"event": "operator", "op": RESTART, "ok": True})
        return {"ok": True, "result": {"ran": f"restart of pid {os.getpid()}"}}

    def _drop_the_idle(self) -> None:
        now = time.monotonic()
        for connection in [c for c, call in self._calls.items() if call.deadline <= now]:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        if self._calls.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()

    def _close(self) -> None:
        for connection in list(self._calls):
            self._end(connection)
        if self._listener is not None:
            self._listener.close()
            path = self._home.root / lease.SOCKET
            with contextlib.suppress(FileNotFoundError):
                if self._socket is not None and os.path.samestat(path.stat(follow_symlinks=False), self._socket):
                    path.unlink()
        self._selector.close()
        os.close(self._wake)
        os.close(self._woken)


class _Call:
    """One connection: what has come in, and what of the answer has not gone out yet."""

    __slots__ = ("answer", "data", "deadline")

    def __init__(self, deadline: float) -> None:
        self.data = bytearray()
        self.answer: bytes | None = None
        self.deadline = deadline


def _listed(raw: dict[str, Any]) -> list[Any]:
    args = raw.get("args")
    lines = args.get("lines") if isinstance(args, dict) else None
    if not isinstance(lines, list):
        raise Refused("batch: lines is a list of {op, args, profile}")
    if len(lines) > _LINES:
        raise Refused(f"batch: at most {_LINES} lines at a time")
    return lines


def _is_owner(connection: socket.socket) -> bool:
    """Whether the caller is the home's owner (or root): the folder's permissions say so too."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return uid in (0, os.geteuid())


@contextlib.contextmanager
def holding(root: Path, disk: Disk | None = None) -> Iterator[tuple[Home, lease.Found]]:
    """The home with our lease on it, for the block's time, and the lease of a daemon that died, if one did.

    Raises HomeHeld, LoadFailed (also for a home that is not in proper form: a daemon does not begin on one).
    """
    cold = Home(root, disk)
    with cold.locked():
        cold.load().check()
        held, before = lease.acquire(root, cold.disk)
    try:
        yield Home(root, cold.disk, serving=held, wait=_PATIENCE), before
    finally:
        held.release()


def serve(root: Path, tell: Callable[[dict[str, Any]], None]) -> bool:
    """Serves the home until SIGTERM, SIGINT or an asked restart; then ends what is under way, and takes away its socket
    and lease. True iff it is to be started again.

    Raises what `holding` raises. Only from the main thread.
    """
    servers: list[Server] = []
    asked: list[int] = []

    def stop(number: int, _frame: object) -> None:
        asked.append(number)
        for server in servers:
            server.stop()

    # Before anything is taken: whoever stops us while we begin finds nothing left behind.
    handlers = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with holding(root) as (home, before):
            server = Server(home, tell)
            servers.append(server)
            server.listen()
            if asked:
                server.stop()
            if before.state is not lease.State.NONE:
                tell({"event": "restart", "after": before.words})
            tell({"event": "ready", "root": str(root), "pid": os.getpid(), "socket": str(root / lease.SOCKET)})
            server.run()
        again = servers[0].again and not asked
        tell({"event": "restarting" if again else "stopped", "root": str(root)})
        return again
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
