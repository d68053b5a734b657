"""A connection to an OpenClaw gateway on this machine's loopback: requests and answers in JSON over one WebSocket.

The only module that knows `websockets`. Protocol 4, the same in 2026.7.1 and 2026.9.6.
"""

from __future__ import annotations

import json
import math
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import Note

PROTOCOL = 4
SECONDS = 30.0  # for one answer
PATIENCE = 300.0  # seconds that one call may wait for the gateway's own limits: 30 writes of a kind in 60 s
MOMENT = 30.0  # seconds that a question may be asked again for which the gateway fails; 0.1-1 on an idle machine
OPENING = 10.0  # seconds for the handshake of an idle gateway
_LONGEST = 26_214_400  # bytes of one message: the gateway's own `policy.maxPayload`
_PAUSE = 0.25  # seconds between two attempts to connect, where the gateway names none
_SILENT = 2.0  # seconds of a wait that nobody is told of
_SCOPES = ("operator.admin", "operator.read", "operator.write")
# The code of a handler that threw, before or after its work. While 9.6 loads its plugins anew, as after many an edit of
# the config, whatever asks one of them fails so, and is not called retryable.
FAILED = "UNAVAILABLE"
# The methods of ours that change nothing, so that asking twice is asking once.
READS = frozenset(
    {"agents.files.get", "agents.list", "config.get", "cron.get", "cron.list", "cron.status", "models.list"}
)

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Credential:
    """What opens the gateway; never shown."""

    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def params(self) -> dict[str, str]:
        return {name: value for name, value in (("token", self.token), ("password", self.password)) if value}


class Refusal(Exception):
    """The gateway's own no. `code` is the request's, `reason` the one in `details`, the more exact of the two;
    `details` is the whole of them and `str()` the gateway's words."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message") or error.get("code") or "refused without a word"))
        found = error.get("details")
        self.details: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        self.code = str(error.get("code") or "")
        self.reason = str(self.details.get("code") or self.details.get("reason") or "")
        self.retryable = error.get("retryable") is True
        after = error.get("retryAfterMs")
        number = isinstance(after, int | float) and not isinstance(after, bool)
        self.after = max(after, 0) / 1000 if number and isinstance(after, int | float) else None

    @property
    def unsure(self) -> bool:
        """Whether a write so refused may have been done all the same: only looking tells, and nothing sends it anew."""
        return self.code == FAILED and not self.retryable


class NotSent(ProviderError):
    """The request never left: nothing has happened."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a gateway says of itself. `boot` names one start of it, "" in 7.1, which does not tell."""

    version: str
    boot: str
    state_dir: str
    config_path: str
    methods: frozenset[str]


class Connection:
    """One open connection. A call has one of three ends: its payload, `Refusal` (it said no), or `DoorLost` (it was
    sent, and what became of it is not known); `NotSent` where it could not even be sent.

    `note` is told of each wait, and none goes on beyond `until`; `stack` holds the connection open.
    """

    def __init__(
        self, line: ClientConnection, hello: Hello, note: Note, stack: ExitStack, until: float = math.inf
    ) -> None:
        self._line, self.hello, self._note, self._stack, self._until = line, hello, note, stack, until
        self._count = 0

    def call(self, method: str, params: Mapping[str, Any] | None = None, seconds: float = SECONDS) -> Any:
        """A method's payload."""
        return patiently(lambda: self._ask(method, params or {}, seconds), method, self)

    def waits(self, words: str) -> None:
        self._note(words)

    @property
    def until(self) -> float:
        return self._until

    def close(self) -> None:
        self._stack.close()

    def _ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        self._count += 1
        name = str(self._count)
        text = json.dumps({"type": "req", "id": name, "method": method, "params": params})
        if len(text) > _LONGEST:  # JSON in ASCII: characters are bytes
            raise NotSent(f"{method}: {len(text) >> 20} MiB are more than the gateway takes")
        try:
            self._line.send(text)
        except (WebSocketException, OSError) as error:
            # A message that did not go out whole is none: the gateway acts on whole ones only.
            raise NotSent(f"{method}: the gateway has closed the connection") from error
        return _answer(self._line, name, method, time.monotonic() + seconds)

    def idle(self, seconds: float) -> None:
        """Lets time pass and takes what the gateway sends meanwhile, so that it need not hold it for us. Raises NotSent
        when the gateway closes the connection."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                self._line.recv(timeout=left)
            except TimeoutError:
                return
            except (WebSocketException, OSError) as error:
                raise NotSent("the gateway closed the connection while it was waited for") from error


class Waiting(Protocol):
    """Who waits: `until` is the end of all its waits, and `waits` is told of each."""

    @property
    def until(self) -> float: ...

    def waits(self, words: str) -> None: ...

    def idle(self, seconds: float) -> None: ...


def patiently(ask: Callable[[], Any], method: str, who: Waiting) -> Any:
    """An answer. What the gateway calls retryable is asked again when it says, for up to PATIENCE; a question at which
    it fails, for up to MOMENT. A write at which it fails is never sent again: it may have been done."""
    began = time.monotonic()
    told = False
    while True:
        try:
            return ask()
        except Refusal as refusal:
            again = PATIENCE if refusal.retryable else MOMENT if refusal.unsure and method in READS else 0.0
            wait = refusal.after if refusal.after is not None else _PAUSE
            now = time.monotonic()
            if not again or now + wait > min(began + again, who.until):
                raise
            if refusal.retryable and wait >= 1:
                limit = refusal.details.get("limit")
                why = f"its limit is {limit}" if isinstance(limit, str) else "it asks for time"
                who.waits(f"{method}: the gateway is waited for, {wait:.0f} s ({why})")
            elif not told and now - began > _SILENT:
                told = True
                who.waits(f"{method}: the gateway cannot answer yet, and is asked again")
            who.idle(wait)


def _answer(line: ClientConnection, name: str, what: str, until: float) -> Any:
    """The payload of the answer with this id; events and late answers are passed over. Raises Refusal, DoorLost."""
    while True:
        frame = _frame(line, what, until - time.monotonic())
        if frame.get("type") != "res" or frame.get("id") != name:
            continue
        if frame.get("ok") is True:
            return frame.get("payload")
        error = frame.get("error")
        if frame.get("ok") is not False or not isinstance(error, Mapping):
            raise DoorLost(f"{what}: the gateway's answer has another form")
        raise Refusal(error)


def _frame(line: ClientConnection, what: str, seconds: float) -> Raw:
    try:
        data = line.recv(timeout=max(seconds, 0))
    except TimeoutError as error:
        raise DoorLost(f"{what}: the gateway did not answer in time") from error
    except (WebSocketException, OSError) as error:
        closed = error.rcvd.code if isinstance(error, ConnectionClosed) and error.rcvd else None
        code = f" (code {closed})" if closed else ""
        raise DoorLost(f"{what}: the gateway closed the connection{code} before it answered") from error
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DoorLost(f"{what}: the gateway sent what is no JSON") from error
    if not isinstance(found, dict):
        raise DoorLost(f"{what}: the gateway sent something of another form")
    return found


def open_at(
    port: int,
    credential: Credential,
    note: Note,
    seconds: float = OPENING,
    starting: Callable[[], bool] = lambda: False,
    end: float = math.inf,
) -> Connection:
    """A connection to the gateway at this port, once it is ready, within so many seconds.

    One that says it is starting is asked again; one that does not listen too, as long as `starting()` says that it may
    come. `end` is that of all waits, of its later calls' too. Raises ProviderError: nothing has been asked of it yet,
    so that nothing is uncertain.
    """
    began, told = time.monotonic(), False
    until = min(began + seconds, end)
    while True:
        try:
            return _open(port, credential, note, until, end)
        except Refusal as refusal:
            wait = refusal.after or _PAUSE
            if not refusal.retryable or time.monotonic() + wait > until:
                raise ProviderError(f"the gateway at 127.0.0.1:{port} refuses us: {_why(refusal)}") from refusal
        except OSError as error:
            wait = _PAUSE
            if not starting() or time.monotonic() + wait > until:
                why = error.strerror or "no answer in time"
                raise ProviderError(f"the gateway at 127.0.0.1:{port} cannot be reached: {why}") from error
        except (WebSocketException, DoorLost) as error:
            wait = _PAUSE
            if not starting() or time.monotonic() + wait > until:
                said = f": {error}" if isinstance(error, DoorLost) else ""
                what = f"what listens at 127.0.0.1:{port} is no gateway that we can speak to"
                raise ProviderError(f"{what}{said}") from error
        if not told and time.monotonic() - began > _SILENT:
            told = True
            note(f"the gateway at 127.0.0.1:{port} is starting, and is waited for")
        time.sleep(wait)


def listens(port: int) -> bool:
    """Whether anything takes connections at this port of the loopback."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=OPENING):
            return True
    except OSError:
        return False


def free_port() -> int:
    """A port of the loopback that nobody has at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _why(refusal: Refusal) -> str:
    """Its words; for a wrong token ours, since its own may tell of the token."""
    if refusal.reason.startswith("AUTH_"):
        return f"{refusal.reason} (the token of its config is not the one it was started with)"
    return str(refusal)


def _open(port: int, credential: Credential, note: Note, until: float, end: float) -> Connection:
    left = min(max(until - time.monotonic(), 0.1), OPENING)
    connecting = connect(
        f"ws://127.0.0.1:{port}",
        compression=None,
        proxy=None,
        open_timeout=left,
        close_timeout=2,
        # The gateway answers nobody while it writes; each call has a deadline of its own.
        ping_interval=None,
        max_size=_LONGEST,
    )
    with ExitStack() as stack:
        line = stack.enter_context(connecting)
        greeting = _frame(line, "connect", left)
        if greeting.get("event") != "connect.challenge":
            raise DoorLost("it greets in another way")
        client = {"id": "gateway-client", "version": "1", "platform": sys.platform, "mode": "backend"}
        params = {
            "minProtocol": PROTOCOL,
            "maxProtocol": PROTOCOL,
            "client": client,
            "role": "operator",
            "scopes": list(_SCOPES),
            "caps": [],
            "auth": credential.params(),
        }
        line.send(json.dumps({"type": "req", "id": "hello", "method": "connect", "params": params}))
        payload = _answer(line, "hello", "connect", time.monotonic() + left)
        return Connection(line, _hello(payload), note, stack.pop_all(), end)


def _hello(payload: Any) -> Hello:
    def part(name: str) -> Mapping[str, Any]:
        found = payload.get(name) if isinstance(payload, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    missing = set(_SCOPES) - set(part("auth").get("scopes") or ())
    if missing:
        raise Refusal({"code": "FORBIDDEN", "message": f"it does not give us {', '.join(sorted(missing))}"})
    methods = part("features").get("methods")
    return Hello(
        str(part("server").get("version") or ""),
        str(part("server").get("bootId") or ""),
        str(part("snapshot").get("stateDir") or ""),
        str(part("snapshot").get("configPath") or ""),
        frozenset(m for m in methods if isinstance(m, str)) if isinstance(methods, list) else frozenset(),
    )
