"""One verb by its cold door, without the command line's parser: what scripts call often has to start fast.

`reconciler native OP --root DIR …` comes here first. What is not plainly that (`--help`, a wrong option, `serve`) is
left to `commands`, which has the words for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_OPTIONS = {"--root": "", "--profile": "default", "--at": "", "--json": "{}", "--door": "cold"}
"""The options and what they are where they are not given."""


def main(words: Sequence[str]) -> int | None:
    """The exit code, or None iff the words are not one verb with its options. Prints one line of JSON."""
    found = _options(words[1:])
    if found is None:
        return None
    from .operator import VERBS

    if words[0] not in VERBS:
        return None
    try:
        return operate(
            words[0], Path(found["--root"]), found["--profile"], found["--at"], found["--json"], found["--door"]
        )
    except KeyboardInterrupt:
        print("Interrupted; look with jobs.list, or status, what was done.", file=sys.stderr)
        return 6


def _options(words: Sequence[str]) -> dict[str, str] | None:
    found = dict(_OPTIONS)
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in found or not (equals or rest):
            return None
        found[name] = value if equals else rest.pop(0)
    return found if found["--root"] else None


def _silence() -> None:
    """Keeps Python from complaining again about its output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def operate(op: str, root: Path, profile: str, at: str, text: str, door: str) -> int:
    """One verb: 0 done, 1 refused, 2 a word of the command line that is none. Prints one line of JSON."""
    from . import lease
    from .operator import VERBS

    root = root.expanduser().resolve()
    try:
        args = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        say({"ok": False, "error": f"--json is not JSON: {error}"})
        return 1
    if not isinstance(args, dict):
        say({"ok": False, "error": "--json is not JSON: an object is expected"})
        return 1
    clock = _clock(at)
    if clock is None or door not in ("cold", "live", "auto"):
        said = "--door: cold, live or auto" if clock is not None else "--at: a time as 2031-02-03T09:00:00Z"
        say({"event": "error", "message": f"unknown argument of {said}"})
        return 2
    live = door == "live" or (door == "auto" and lease.inspect(root).state is lease.State.LIVE)
    answer = _live(root, op, args, profile) if live else _cold(root, op, args, profile, clock)
    code = 0 if answer["ok"] else 6 if answer.get("uncertain") else 1
    try:
        # What the door adds stands beside the result: a verb's own row is never changed by it.
        say({**answer, "root": str(root), "door": "live" if live else "cold", "context_profile": profile})
    except OSError as error:
        # The verb has run all the same: what nobody could be told is no success, and no refusal either.
        if not isinstance(error, BrokenPipeError):
            print(f"The output cannot be written ({error.strerror or error}).", file=sys.stderr)
        _silence()
        return code or (0 if VERBS[op].reads else 6)
    return code


def _cold(root: Path, op: str, args: dict[str, Any], profile: str, clock: datetime) -> dict[str, Any]:
    from .home import Home
    from .operator import apply_operator

    return apply_operator(Home(root), op, args, profile, clock)


def _live(root: Path, op: str, args: dict[str, Any], profile: str) -> dict[str, Any]:
    from reconciler.errors import DoorLost

    from . import wire
    from .errors import NativeError

    try:
        return wire.call(root, {"op": op, "args": args, "profile": profile})
    except DoorLost as error:
        return {"ok": False, "error": str(error), "uncertain": True}
    except NativeError as error:
        return {"ok": False, "error": str(error), "held": True}


def _clock(at: str) -> datetime | None:
    from . import schedule

    return schedule.instant(at) if at else datetime.now(UTC)


def say(event: dict[str, Any]) -> None:
    """One line of JSON on the standard output."""
    sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stdout.flush()
