"""A gateway of our own for a home that is stopped: no channels, no schedule, on a free loopback port, for one run.

It ends with us, however we end: a shell waits beside it for the pipe that we hold to close. Its folder goes then, too.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reconciler.errors import ProviderError
from reconciler.provider import HomeRef, Note
from reconciler_shape.hiding import Hider

from . import cli, gateway, home, rpc

START = 240.0  # seconds until it is ready: 8-12 on an idle machine, 90 were measured on a busy one
STOP = 30.0  # seconds for its own way to end: 0.2-4 on an idle machine
_TAIL = 600  # characters of its log in an error
# What a gateway does by itself, and this one must not.
_QUIET = (
    "OPENCLAW_SKIP_CHANNELS", "OPENCLAW_SKIP_PROVIDERS", "OPENCLAW_SKIP_CRON", "OPENCLAW_SKIP_GMAIL_WATCHER",
    "OPENCLAW_SKIP_CANVAS_HOST", "OPENCLAW_SKIP_BROWSER_CONTROL_SERVER", "OPENCLAW_SKIP_STARTUP_MODEL_PREWARM",
    "OPENCLAW_DISABLE_BONJOUR",
)  # fmt: skip
# A child in the background has no stdin of its own in sh, hence the third descriptor.
_KEEPER = """
folder=$1; exec 3<&0 4>"$folder/log"; shift
"$@" </dev/null >&4 2>&4 3<&- & gateway=$!
{ cat <&3 >/dev/null; rm -rf "$folder"; kill "$gateway"; } 2>/dev/null & keeper=$!
wait "$gateway"; code=$?
kill "$keeper" 2>/dev/null
exit "$code"
"""


@contextlib.contextmanager
def started(
    ref: HomeRef, lock_fd: int | None, hider: Hider, note: Note, until: float = math.inf
) -> Iterator[rpc.Connection]:
    """A connection to a quiet gateway of the home; the gateway is gone when the block ends. No wait goes
    beyond `until`.

    The home must be stopped: a second gateway ends by itself at OpenClaw's own lock. Raises ProviderError.
    """
    found = cli.program(ref)
    note("the home is stopped: a quiet gateway of our own is started for this run")
    with tempfile.TemporaryDirectory(prefix="reconciler-openclaw-") as folder:
        # Whatever opens the home's own gateway, this one has a password that nobody else learns.
        password, log, port = secrets.token_urlsafe(32), Path(folder) / "log", rpc.free_port()
        file = Path(folder) / "password"
        file.touch(mode=0o600)
        file.write_text(password)
        words = ["gateway", "run", "--port", str(port), "--bind", "loopback", "--tailscale", "off"]
        words += ["--auth", "password", "--password-file", str(file)]
        env = cli.environment(ref, found.node) | dict.fromkeys(_QUIET, "1")
        argv = ["/bin/sh", "-c", _KEEPER, "sh", folder, *found.argv, *words]
        fds = () if lock_fd is None else (lock_fd,)
        process = ref.place.start(argv, env, fds)
        try:
            connection = _connected(ref, process, port, password, log, hider, note, until)
            try:
                yield connection
            finally:
                connection.close()
        finally:
            _stop(process)


def _connected(
    ref: HomeRef,
    process: subprocess.Popen[bytes],
    port: int,
    password: str,
    log: Path,
    hider: Hider,
    note: Note,
    until: float,
) -> rpc.Connection:
    credential = rpc.Credential(password=password)
    try:
        opened = rpc.open_at(port, credential, note, START, lambda: process.poll() is None, until)
        wrong = gateway.unproved(home.locate(ref.place, ref.path), opened.hello)
    except ProviderError as error:
        said = hider.text(log.read_text(errors="replace").replace(password, "‹hidden›").strip()) if log.exists() else ""
        code = process.poll()
        how = f"ended with {code}" if code is not None else "did not become ready"
        raise ProviderError(f"the quiet gateway for {ref.path} {how}: {said[-_TAIL:] or error}") from error
    if wrong:
        opened.close()
        raise ProviderError(wrong)
    return opened


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Closing the pipe asks it to end; one that does not is killed with its whole session, which is of our making."""
    with process:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=STOP)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
