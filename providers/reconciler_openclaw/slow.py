"""The slow door: calls of a gateway that only a command prefix leads to, by OpenClaw's own command line there.

The loopback behind the prefix is not ours, so that no connection of ours can reach it. Each call is a process, which
takes seconds; its answers are the gateway's own. What a call says stands in the process list there: no secret is among
it, since none is in a plan (L5).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any

from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import HomeRef, Note

from . import cli, home, rpc, serving, statedb

_EXTRA = 60.0  # seconds that the program itself may take besides the call: 2-15 were measured


class Slow:
    """What `rpc.Connection` is, for a gateway behind a prefix."""

    def __init__(self, ref: HomeRef, port: int, hello: rpc.Hello, note: Note, until: float) -> None:
        self._ref, self._port, self.hello, self._note, self._until = ref, port, hello, note, until

    def call(self, method: str, params: Mapping[str, Any] | None = None, seconds: float = rpc.SECONDS) -> Any:
        """As `rpc.Connection.call`."""
        return rpc.patiently(lambda: self._ask(method, params or {}, seconds), method, self)

    def idle(self, seconds: float) -> None:
        time.sleep(max(seconds, 0))

    def waits(self, words: str) -> None:
        self._note(words)

    @property
    def until(self) -> float:
        return self._until

    def close(self) -> None:
        """Nothing is held open."""

    def _ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        words = ["gateway", "call", method, "--json", "--params", json.dumps(params)]
        words += ["--timeout", str(int(seconds * 1000))]
        program = cli.program(self._ref)
        env = cli.environment(self._ref, program.node)
        if self._port:  # it may have been started at another one than the config says
            env["OPENCLAW_GATEWAY_PORT"] = str(self._port)
        done = cli.run(self._ref, [*program.argv, *words], env, seconds=seconds + _EXTRA)
        try:
            found = json.loads(done.out)
        except ValueError as error:
            raise DoorLost(f"{method}: {done.words}") from error
        if done.code == 0:
            return found
        said = found.get("error") if isinstance(found, dict) else None
        said = said if isinstance(said, dict) else {}
        kind = said.get("type")
        if kind == "gateway_request_error":
            raise rpc.Refusal(said)
        if kind == "cli_error":  # it did not come to a call
            raise rpc.NotSent(f"{method}: {done.words}")
        raise DoorLost(f"{method}: {done.words}")


def attach(ref: HomeRef, note: Note, until: float = math.inf) -> Slow | None:
    """The home's running gateway, proved to be the home's by the database that it works on; None if the home is
    stopped. Raises ProviderError."""
    here = home.locate(ref.place, ref.path)
    found = serving.find(here)
    if found is None:
        return None
    if found.other:
        raise ProviderError(found.other)
    hello = rpc.Hello(statedb.read(here).ran or "", "", here.root, here.config, frozenset())
    line = Slow(ref, found.port, hello, note, until)
    try:
        status = line.call("cron.status")
    except rpc.Refusal as refusal:
        raise ProviderError(f"the gateway of {here.root} refuses us: {refusal}") from refusal
    except DoorLost as error:  # nothing was asked for that could be lost
        raise ProviderError(
            f"the gateway of {here.root} cannot be reached through {ref.place.name}: {error}"
        ) from error
    serves = status.get("sqlitePath") if isinstance(status, dict) else None
    if not isinstance(serves, str) or ref.place.resolve(serves) != ref.place.resolve(here.database):
        raise ProviderError(f"the gateway works on {serves or 'a home that it does not name'}, not {here.root}")
    return line
