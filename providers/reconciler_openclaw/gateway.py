"""The gateway that serves a home: what opens it, and the proof that it is this home's and no other's."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.errors import ProviderError
from reconciler.provider import HomeRef, Note
from reconciler_shape import dotenv

from . import authored, home, roster, rpc, serving, statedb
from .view import look_up

STARTING = 120.0  # seconds for a gateway that is there, and restarts or is still starting
GAP = 5.0  # seconds in which one that restarts may hold its home no more, and not again yet
_USUAL_PORT = 18789
_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")


def attach(ref: HomeRef, note: Note, until: float = math.inf) -> rpc.Connection | None:
    """A proved connection to the home's running gateway; None if the home is stopped. No wait goes beyond `until`.

    Raises ProviderError where a gateway holds the home and does not let us in, or cannot be proved to be the home's.
    """
    here = home.locate(ref.place, ref.path)
    found = serving.find(here)
    if found is not None and found.other:
        raise ProviderError(found.other)
    if found is None and not _may_hide(here):
        return None
    config = authored.read(here)
    port = (found.port if found else 0) or _port(config.tree)
    if found is None and not rpc.listens(port):
        return None
    environ = serving.environ(here, found.pid) if found else {}
    known = credential(here, config.tree, environ)
    try:
        opened = rpc.open_at(port, known, note, STARTING, alive(here, found is not None), until)
    except ProviderError:
        if found is None or serving.find(here) is not None:
            raise
        return None  # it was ending (one of our own, just stopped, takes a moment): the home is a stopped one by now
    wrong = unproved(here, opened.hello)
    if not wrong:
        return opened
    opened.close()
    if found is None:
        return None  # somebody else's, at the port that this home would take
    raise ProviderError(wrong)


def alive(here: home.Home, held: bool = False, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Whether a gateway holds the home, asked anew each time. One that restarts lets go of it for a moment: it counts
    for GAP seconds from when it was seen last (`held`: just now)."""
    seen = clock() if held else -math.inf

    def holds() -> bool:
        nonlocal seen
        if serving.find(here) is not None:
            seen = clock()
        return clock() - seen <= GAP

    return holds


def _may_hide(here: home.Home) -> bool:
    """7.1 keeps its lock in the temporary folder of its own process, which may be one that we do not know of."""
    return roster.is_old(statedb.read(here).ran or authored.read(here).written_by)


def _port(tree: Mapping[str, Any]) -> int:
    port = look_up(tree, ("gateway", "port"))
    return port if isinstance(port, int) and not isinstance(port, bool) and 0 < port < 65536 else _USUAL_PORT


def unproved(here: home.Home, hello: rpc.Hello) -> str:
    """Why this gateway is not the home's, "" if it is: it says which directory and config it serves."""
    place = here.place
    if not hello.state_dir or place.resolve(hello.state_dir) != here.root:
        return f"the gateway serves {hello.state_dir or 'a home that it does not name'}, not {here.root}"
    if hello.config_path and place.resolve(hello.config_path) != place.resolve(here.config):
        return f"the gateway of {here.root} runs with another config, {hello.config_path}"
    return ""


def credential(here: home.Home, tree: Mapping[str, Any], environ: Mapping[str, str]) -> rpc.Credential:
    """The token or password that the config names, else that of the environment (OpenClaw's own order, both versions).

    `environ` is the gateway's. Raises ProviderError for what only OpenClaw itself can look up.
    """
    auth = look_up(tree, ("gateway", "auth"))
    said = auth if isinstance(auth, Mapping) else {}
    known = {**_dotenv(here), **environ}
    mode = said.get("mode")
    token = _value(said.get("token"), "token", known) or known.get("OPENCLAW_GATEWAY_TOKEN", "")
    password = _value(said.get("password"), "password", known) or known.get("OPENCLAW_GATEWAY_PASSWORD", "")
    if mode == "password" or (mode is None and password):
        return rpc.Credential(password=password)
    if mode not in (None, "token", "none"):
        raise ProviderError(f"the gateway asks for {mode} (gateway.auth.mode); only token and password can be used")
    return rpc.Credential(token="" if mode == "none" else token)


def _value(said: Any, name: str, known: Mapping[str, str]) -> str:
    if said is None:
        return ""
    match = _VARIABLE.fullmatch(said) if isinstance(said, str) else None
    if match:
        return _named(match[1], name, known)
    if isinstance(said, str):
        return said.replace("$${", "${")
    if isinstance(said, Mapping) and said.get("source") == "env":
        return _named(str(said.get("id")), name, known)
    source = said.get("source") if isinstance(said, Mapping) else "another form"
    raise ProviderError(f"gateway.auth.{name} is kept in {source}, which only OpenClaw itself can look up")


def _named(variable: str, name: str, known: Mapping[str, str]) -> str:
    if variable not in known:
        raise ProviderError(
            f"gateway.auth.{name} is {variable}, which neither the gateway nor the home's .env shows us"
        )
    return known[variable]


def _dotenv(here: home.Home) -> dict[str, str]:
    data = home.text(here.place, here.path(".env"), home.TEXT_LIMIT)
    lines = data.decode("utf-8", "replace").splitlines() if isinstance(data, bytes) else []
    return {entry[0]: entry[1] for line in lines if (entry := dotenv.entry(line))}
