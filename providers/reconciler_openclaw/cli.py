"""OpenClaw's own program as a child: in a clean environment for exactly one home, its output read to the end."""

from __future__ import annotations

import json
import posixpath
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import HomeRef

from . import home, install, statedb

SECONDS = 180.0  # for one command: 3-5 s on an idle machine, and some commands ask npm, which may hang
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it printed; the home's secrets may be in it."""

    code: int
    out: str = field(repr=False)
    err: str = field(repr=False)

    @property
    def words(self) -> str:
        """Its own words for what went wrong: those of its `--json` form, else its last lines."""
        try:
            found: Any = json.loads(self.out)
        except ValueError:
            found = None
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict) and error.get("message"):
            return str(error["message"])
        lines = [line.strip() for line in (self.err.strip() or self.out.strip()).splitlines() if line.strip()]
        return " / ".join(lines[-4:]) or f"it ended with {self.code} and said nothing"


def program(ref: HomeRef) -> install.Install:
    """The home's OpenClaw. Raises ProviderError if there is none, or if somebody else could change it (L17)."""
    found = install.find(ref.place, ref.options)
    why = found.why or install.unsafe(ref.place, found)
    if why:
        raise ProviderError(why)
    return found


def environment(ref: HomeRef, node: str) -> dict[str, str]:
    """Exactly one home, and nothing of the caller's `OPENCLAW_*`. HOME is the user's own: 7.1 has its workspace
    there."""
    here, around = home.locate(ref.place, ref.path), ref.place.environ()
    name = statedb.named(here, statedb.read(here))  # a link's, where OpenClaw has its jobs under that
    return {
        "HOME": ref.place.resolve("~"),
        "PATH": f"{posixpath.dirname(node)}:{around.get('PATH', _PATH)}",
        "LANG": around.get("LANG", "C.UTF-8"),
        **({"TZ": around["TZ"]} if "TZ" in around else {}),
        "OPENCLAW_STATE_DIR": name,
        "OPENCLAW_CONFIG_PATH": posixpath.join(name, home.CONFIG),
        "OPENCLAW_NO_RESPAWN": "1",  # one process, so that its pid is all there is to end
        "OPENCLAW_NO_AUTO_UPDATE": "1",
        "npm_config_offline": "true",  # a model of OpenAI's makes each command look for a plugin's newest version
        "NO_COLOR": "1",
    }


def openclaw(ref: HomeRef, words: Sequence[str], stdin: str = "", lock_fd: int | None = None) -> Done:
    """One command of OpenClaw's. Raises DoorLost where it did not end in time: what it did is not known."""
    found = program(ref)
    return run(ref, [*found.argv, *words], environment(ref, found.node), stdin, lock_fd)


def run(
    ref: HomeRef,
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: str = "",
    lock_fd: int | None = None,
    seconds: float = SECONDS,
) -> Done:
    """A child that holds the home's lock as long as it lives. Raises ProviderError if it does not start, DoorLost."""
    fds = () if lock_fd is None or not ref.place.local else (lock_fd,)
    try:
        process = ref.place.start(argv, env, fds)
    except OSError as error:
        raise ProviderError(f"{argv[0]} does not start: {error.strerror or error}") from error
    with process:
        try:
            out, err = process.communicate(stdin.encode(), timeout=seconds)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise DoorLost(f"{' '.join(argv[1:4])}: it did not end within {seconds:.0f} s, and was stopped") from error
    if process.returncode < 0:  # not its own answer: it may have written before
        raise DoorLost(f"{' '.join(argv[2:4])}: it was ended by signal {-process.returncode}")
    return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
