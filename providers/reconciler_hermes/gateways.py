"""Running gateways of a home: what brings one back when it ends, and the signal by which Hermes restarts itself.

Hermes's own `gateway restart` and the `ExecReload` of its service unit send SIGUSR1: the gateway lets running turns
end, ends itself, and its supervisor starts it anew. Without one it would only end, and is never signalled.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping

from reconciler.observe import Gateway
from reconciler.place import Place
from reconciler.provider import HomeRef
from reconciler_specs.shape import Json

from . import home, insiders

PATIENCE = 90.0
"""Seconds for a gateway to begin anew beside the time that it gives running turns: its unit waits 5 s, Hermes loads."""
_DRAIN = 180.0  # seconds, the most that a tested version gives running turns by itself (0.16, 0.18)
_UNIT = "hermes-gateway"
_SUPERVISORS = ("s6-supervise", "runsv")


def running(ref: HomeRef, folders: Mapping[str, str]) -> dict[str, Gateway]:
    """The live gateways by profile; `folders` are the profiles' own."""
    found = {}
    for profile, folder in folders.items():
        pid, began = insiders.running(ref, folder)
        if not pid or (began is None and insiders.started(ref, os.getpid()) is not None):
            continue
        refused = "" if began is not None else "this system does not tell when a process began"
        found[profile] = Gateway(
            f"{pid} {began}",
            "the gateway" if profile == home.DEFAULT else f"the gateway of {profile}",
            _command(ref.place, folder),
            refused or _unsupervised(ref, pid),
        )
    return found


def serving(profile: str, gateways: Mapping[str, Gateway], config: Mapping[str, Json]) -> str:
    """The name of the gateway that serves a profile, "" if none does; `config` is the default profile's."""
    own = config.get("gateway")
    shared = isinstance(own, dict) and own.get("multiplex_profiles") is True
    return next((n for n in (profile, *((home.DEFAULT,) if shared else ())) if n in gateways), "")


def _command(place: Place, folder: str) -> str:
    usual = folder == place.resolve("~/.hermes")
    return ("" if usual else f"HERMES_HOME={shlex.quote(folder)} ") + "hermes gateway restart"


def _unsupervised(ref: HomeRef, pid: int) -> str:
    """Why nothing would start the gateway again when it ends, "" if Hermes's own service unit or s6 or runit does."""
    for line in insiders.lines(ref, f"/proc/{pid}/cgroup"):
        if any(part.startswith(_UNIT) and part.endswith(".service") for part in line.split("/")):
            return ""
    for line in insiders.lines(ref, f"/proc/{pid}/status"):
        name, _, value = line.partition(":")
        parent = f"/proc/{value.strip()}/comm"
        if name == "PPid" and "".join(insiders.lines(ref, parent)).strip() in _SUPERVISORS:
            return ""
    return f"it runs under no service of Hermes's (pid {pid}), so that nothing would start it again"


def restart(ref: HomeRef, folder: str, start: str) -> str:
    """Asks the gateway that began at `start` to restart; why it cannot be asked, "" if it was."""
    pid = int(start.partition(" ")[0])
    try:
        # The descriptor stays this process's, so that no other one is signalled that has the pid by now.
        handle = os.pidfd_open(pid)
    except OSError as error:
        return f"pid {pid}: {error.strerror or error}"
    try:
        now = insiders.running(ref, folder)
        if f"{now[0]} {now[1]}" != start:
            return "the gateway is another one by now"
        if why := _unsupervised(ref, pid):
            return why
        signal.pidfd_send_signal(handle, signal.SIGUSR1)
    except OSError as error:
        return f"pid {pid}: {error.strerror or error}"
    finally:
        os.close(handle)
    return ""


def patience(place: Place, folder: str) -> float:
    """Seconds until a gateway that was asked serves again: what it gives running turns, and its start."""
    agent = home.config(place, folder).raw.get("agent")
    given = agent.get("restart_drain_timeout") if isinstance(agent, dict) else None
    return PATIENCE + (float(given) if isinstance(given, int | float) and given >= 0 else _DRAIN)
