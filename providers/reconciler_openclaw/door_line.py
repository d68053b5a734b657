"""The one line to a home for a whole run: its own gateway if one serves it, else a quiet one when it is needed."""

from __future__ import annotations

import contextlib
import math
import posixpath
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

from reconciler.action import Action
from reconciler.errors import ProviderError
from reconciler.observe import Wanted
from reconciler.provider import HomeRef, Note

from . import cli, gateway, home, quiet, reading, rpc, slow
from .door_look import Look
from .view import look_up

_APPLIED = 60.0  # seconds until a gateway has taken a written config in: 0.1-1.0 on an idle machine
_RESTART = 240.0  # seconds for a restart by itself: 4.3 on an idle machine
_GONE = 60.0  # seconds until somebody (systemd, a person) has started one again that has ended
_LEAVING = 60.0  # seconds until it closes our connection for that
_POLL = 0.2


class Line:
    """`hider` knows the home's secrets. `name` says what the calls go through, for events and reports."""

    def __init__(self, ref: HomeRef, lock_fd: int | None, note: Note, until: float = math.inf) -> None:
        self.ref, self.lock_fd, self._note, self._until = ref, lock_fd, note, until
        self.here = home.locate(ref.place, ref.path)
        self.hider = reading.Reading(ref, Wanted(), cli.program(ref)).hidden
        self._quiet = contextlib.ExitStack()  # ends a gateway of our own
        self._connection: rpc.Connection | slow.Slow | None = None
        self._ours = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    @property
    def name(self) -> str:
        if self._ours:
            return "openclaw quiet gateway"
        if not self.ref.place.local:
            return "openclaw slow door"
        return "openclaw gateway" if self._connection is not None else "openclaw command line"

    @property
    def by_rpc(self) -> bool:
        """Whether the config is written through a gateway: where one runs, unless the setup says `mode`."""
        mode = self.ref.options.get("mode", "auto")
        return mode == "rpc" or (mode == "auto" and (self._connection is not None or self.attached()))

    @property
    def hello(self) -> rpc.Hello:
        return self._open().hello

    def look(self, actions: Iterable[Action]) -> Look:
        """The home as it is now, for these rows."""
        return Look(self.ref, actions)

    def attached(self) -> bool:
        """Whether the home's own gateway runs; then we are connected to it. Raises ProviderError if it keeps us out."""
        if self._connection is None:
            # The loopback behind a prefix is not ours: at the same port another home's gateway may listen here.
            way = gateway.attach if self.ref.place.local else slow.attach
            self._connection = way(self.ref, self._note, self._until)
        return self._connection is not None

    def call(self, method: str, params: Mapping[str, Any] | None = None, seconds: float = rpc.SECONDS) -> Any:
        """A method's payload; what could not be sent is sent once more on a new connection.

        Raises rpc.Refusal, DoorLost (sent, and no answer) and ProviderError (not sent).
        """
        try:
            return self._open().call(method, params, seconds)
        except rpc.NotSent:
            self._hang_up()
            return self._open().call(method, params, seconds)

    def idle(self, seconds: float) -> None:
        self._open().idle(seconds)

    def until(self, seconds: float) -> float:
        """The end of a wait that may take so long, and no longer than the run."""
        return min(time.monotonic() + seconds, self._until)

    def settle(self) -> str:
        """Waits until the gateway runs on the config as it is written; why it does not, in words, "" if it does."""
        return self.settled(_APPLIED)[0]

    def settled(self, seconds: float) -> tuple[str, Mapping[str, Any]]:
        """As `settle`, for so many seconds at most; and what the gateway says of its config then.

        7.1 has no mark for it: it answers a write when it has taken it in.
        """
        began = time.monotonic()
        until = self.until(seconds)
        while True:
            found = self.call("config.get")
            written, applied = found.get("configRevisionHash"), found.get("appliedConfigHash")
            if written is None or written == applied:
                return "", found
            if time.monotonic() > until:
                return f"the gateway has not taken the new config in within {time.monotonic() - began:.0f} s", found
            self.idle(_POLL)

    def restarted(self) -> str:
        """Waits for a gateway that restarts itself for a new config; why it is not back, in words, "" if it is."""
        if self._ours:
            return self.back()  # not worth waiting for
        before = self.hello.boot
        self._note("the gateway restarts to take the new config in, and is waited for")
        if not self.ref.place.local:
            return self.back()  # no connection tells when it leaves
        with contextlib.suppress(rpc.NotSent):
            self.idle(self.until(_LEAVING) - time.monotonic())
        return self.back(before)

    def back(self, before: str = "") -> str:
        """Waits until the home's own gateway takes calls again, as another boot than `before` where that is told; why
        it does not, in words, "" if it does. In place of a quiet one another is started when it is needed."""
        if self._ours:
            self._hang_up()
            return ""
        alive = gateway.alive(self.here)
        began = time.monotonic()
        until, gone = self.until(_RESTART), began + _GONE
        while True:
            self._hang_up()
            try:
                if self.attached() and (not before or self.hello.boot != before):
                    return ""
                why = "it has not restarted"
            except ProviderError as error:
                why = str(error)
            now = time.monotonic()
            gone = now + _GONE if alive() or not self.ref.place.local else gone
            if now > gone:
                return f"the gateway ended, and was not started again within {_GONE:.0f} s"
            if now > until:
                return f"the gateway did not come back within {now - began:.0f} s: {why}"
            time.sleep(_POLL)

    def _open(self) -> rpc.Connection | slow.Slow:
        if not self.attached():
            if not self.ref.place.local:
                raise ProviderError(f"{self.ref.path} is stopped; start its gateway there: none of our own is started")
            if self.ref.options.get("quiet_gateway", True) is False:
                raise ProviderError(f"{self.ref.path} is stopped, and the setup forbids a gateway of our own")
            boots = self._boots()
            if boots:
                raise ProviderError(
                    f"{self.ref.path} is stopped, and a gateway of our own would carry out {boots} (hooks.internal); "
                    "start the home's own gateway first"
                )
            began = quiet.started(self.ref, self.lock_fd, self.hider, self._note, self._until)
            self._connection = self._quiet.enter_context(began)
            self._ours = True
        assert self._connection is not None
        return self._connection

    def _boots(self) -> str:
        """The file that the hook `boot-md` has an agent carry out whenever a gateway starts, "" if there is none."""
        config = self.look(()).config
        hooks = look_up(config.authored.tree, ("hooks", "internal"))
        entry = look_up(hooks, ("entries", "boot-md"))
        if not isinstance(hooks, Mapping) or hooks.get("enabled") is False or not isinstance(entry, Mapping):
            return ""
        files = (posixpath.join(view.workspace, "BOOT.md") for view in config.views.values())
        there = (file for file in files if self.here.place.stat(file) is not None)
        return "" if entry.get("enabled") is False else next(there, "")

    def _hang_up(self) -> None:
        """Lets the connection go, and ends a gateway of our own with it."""
        if self._connection is not None:
            self._connection.close()
        self._quiet.close()
        self._connection, self._ours = None, False
