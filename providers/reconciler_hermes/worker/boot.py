"""The worker's loop: one JSON line in, one out, on descriptors that Hermes's own prints cannot reach."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_LOCK_WAIT = 10.0  # seconds


def serve(requests: Any, answers: Any) -> None:
    """Answers until `requests` ends. An error that is not an operation's own ends the worker, with its words."""
    for line in requests:
        request = json.loads(line)
        answers.write((json.dumps(_answer(request)) + "\n").encode())
        answers.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        _lock()
        module = importlib.import_module(f"{__package__}.{request['module']}")
        return {"ok": getattr(module, request["verb"])(request)}
    except Exception as error:  # noqa: BLE001 - the boundary: Hermes's code may raise anything
        return {"error": f"{type(error).__name__}: {error}"}


def hello(request: dict[str, Any]) -> dict[str, Any]:
    """Which Hermes this is and what it can do; takes the home's lock where the caller could not hand it over."""
    if request.get("lock"):
        _to_lock.append(request["root"])
        _lock()
    config: Any = importlib.import_module("hermes_cli.config")
    # Reading its config, Hermes would make ten folders and a SOUL.md in the home; nobody declared them.
    if hasattr(config, "ensure_hermes_home"):
        config.ensure_hermes_home = lambda *args, **more: None
    jobs = importlib.import_module("cron.jobs")
    return {
        "version": importlib.import_module("hermes_cli").__version__,
        "config_version": config.DEFAULT_CONFIG["_config_version"],
        "jobs_lock": hasattr(jobs, "_jobs_lock"),
        "managed": bool(config.is_managed()),
        "python": sys.version.split()[0],
        "pid": os.getpid(),
    }


_to_lock: list[str] = []


def _lock() -> None:
    """Takes the home's lock once there is a home: one that is about to be made is locked by the request after."""
    if not _to_lock or not Path(_to_lock[0]).is_dir():
        return
    root = _to_lock[0]
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + _LOCK_WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _to_lock.clear()
            return  # held until this process ends: nothing closes the descriptor
        except OSError:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{root} is locked by another writer") from None
            time.sleep(0.1)


def main() -> None:
    """Puts the protocol out of reach of what Hermes prints and reads."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    os.umask(0o077)
    serve(requests, answers)
    os._exit(0)  # all that was answered is on the disk, and to take Hermes's modules apart costs 100 ms
