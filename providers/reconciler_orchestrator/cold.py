"""The cold door: one process of the package per verb, for a home that no daemon serves."""

from __future__ import annotations

import contextlib
import json
import posixpath
import pwd
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.errors import DoorLost, ProviderError
from reconciler.place import Place, Stat
from reconciler.provider import HomeRef
from reconciler_shape import places, trust

PACKAGE = "@volter-ai-dev/supercode-orchestrator"
PROGRAM = "supercode-orchestrator"
TIMEOUT = 60.0  # seconds for one verb; it starts in 0.2
ARGUMENT = 120_000
"""Bytes of what a row may write by a cold verb, as `argument` has it."""
_WORD = (128 << 10) - 1  # bytes; Linux takes no more in one word of a command line. Our mark needs some of it.
_LONE = re.compile(r"[\ud800-\udfff]")
_UNFIT = f"more than {ARGUMENT} bytes do not fit on a command line; start the daemon for it"
_NEVER_RAN = (126, 127)  # what a shell and `env` say when there is no such program
_USAGE = 2


def command(ref: HomeRef) -> list[str]:
    """The words that start the package: `door.command`, else what is on PATH under its own name; [] for none."""
    given = ref.options.get("command")
    if isinstance(given, list) and given:
        return [str(word) for word in given]
    found = ref.place.which(PROGRAM)
    return [found] if found else []


def version(ref: HomeRef) -> str | None:
    """The package's version by the `package.json` beside its program, without starting it; None if none is found."""
    return _package(ref)[1]


def _package(ref: HomeRef) -> tuple[str, str | None]:
    """The package's folder and version, ("", None) if none is found."""
    for word in reversed(command(ref)):
        path = ref.place.which(word) if "/" not in word else word
        if not path or not path.startswith("/"):
            continue
        script = ref.place.resolve(path)
        folder = posixpath.dirname(posixpath.dirname(script))
        try:
            found = json.loads(ref.place.read(posixpath.join(folder, "package.json"), 1 << 20))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and found.get("name") == PACKAGE:
            return folder, str(found.get("version"))
    return "", None


def check(ref: HomeRef, lock_fd: int | None = None) -> None:
    """Raises ProviderError if the package cannot be started, is not what it was taken for, or is others' to write."""
    words = command(ref)
    if not words:
        raise ProviderError(
            f"there is no {PROGRAM} on PATH, and no daemon serves {ref.path}",
            hint="say door: {command: [node, PATH/bin/orchestrator.mjs]}",
        )
    why = trust.unsafe(ref.place, _run_from(ref))
    if why:
        raise ProviderError(f"{why}; it is not started")
    code, out = _run(ref, ["--version"], lock_fd)
    told, known = _last(out), version(ref)
    if code or told.get("event") != "version" or (known is not None and told.get("version") != known):
        raise ProviderError(f"`{' '.join(words)} --version` does not answer as the orchestrator does (exit {code})")


def _run_from(ref: HomeRef) -> list[str]:
    """Whoever may write one of these changes what runs as us: the files that the words name, what they are links to,
    the folders of both, and the package's own up to its `node_modules`."""
    place = ref.place
    found: list[str] = []
    for word in (part for text in command(ref) for part in (text, text.partition("=")[2]) if part):
        # One without a slash is a program on PATH, or (what `node` is told) a file where we are.
        for path in (word if word.startswith("/") else place.which(word), place.resolve(word)):
            stat = places.lstat(place, place.resolve(path)) if path else None
            if path and isinstance(stat, Stat) and stat.kind == "file":
                found += trust.around(place, path)
    folder = _package(ref)[0]
    found.append(folder)
    while "/node_modules/" in folder:
        folder = posixpath.dirname(folder)
        found.append(folder)
    return found


def argument(args: Mapping[str, Any]) -> str:
    """What a verb is told, as one word of a command line. Half of a letter (a lone surrogate) stays an escape."""
    if sys.getfilesystemencoding() != "utf-8":
        return json.dumps(args)
    return _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(args, ensure_ascii=False))


def too_long(values: Mapping[str, Any]) -> str:
    """Why a row that writes these fields fits on no command line, "" if it does; it names the longest field. Pure."""
    if len(argument(values).encode()) <= ARGUMENT:
        return ""
    longest = max(values, key=lambda name: len(argument({name: values[name]}).encode()))
    return f"{longest}: {_UNFIT}"


def call(ref: HomeRef, line: Mapping[str, Any], lock_fd: int | None) -> dict[str, Any]:
    """Carries one line `{op, args, profile}` out and gives `{ok, result|error}`.

    Raises ProviderError if nothing was started, DoorLost if it cannot be told what the verb did.
    """
    args = argument(line["args"])
    if len(args.encode()) > _WORD:
        raise ProviderError(_UNFIT)
    op = str(line["op"])
    code, out = _run(ref, [op, "--root", ref.path, "--profile", str(line["profile"]), "--json", args], lock_fd)
    answer = _last(out)
    if isinstance(answer.get("ok"), bool) and answer["ok"] == (code == 0):
        return answer
    if code in _NEVER_RAN and not out.strip():
        raise ProviderError(f"{command(ref)[0]}: it could not be started (exit {code})")
    if code == _USAGE and answer.get("event") == "error":
        # Another shape: it did not know the verb, and did nothing.
        return {"ok": False, "error": str(answer.get("message"))}
    raise DoorLost(f"{op}: it ended with {code}, and what it printed is no answer; what it did is not known")


def access(ref: HomeRef, verb: str, words: Sequence[str], profile: str, lock_fd: int | None) -> None:
    """One `access` verb. Raises ProviderError if it said no or nothing was started, DoorLost if that cannot be told."""
    code, out = _run(ref, ["access", verb, *words, "--root", ref.path, "--profile", profile], lock_fd)
    said = _last(out)
    if code == 0 and said.get("event") == "access" and said.get("changed") is True:
        return
    if code in _NEVER_RAN and not out.strip():
        raise ProviderError(f"{command(ref)[0]}: it could not be started (exit {code})")
    if code and said.get("event") == "error":
        raise ProviderError(str(said.get("message") or "refused without a word"))
    raise DoorLost(f"access {verb}: it ended with {code}, and what it printed is no answer; what it did is not known")


def _run(ref: HomeRef, words: Sequence[str], lock_fd: int | None) -> tuple[int, bytes]:
    """Exit code and standard output. Raises ProviderError if nothing was started, DoorLost."""
    argv = [*command(ref), *words]
    try:
        # The lock goes along: a verb that outlives us still holds the home.
        process = ref.place.start(argv, environment(ref.place, ref.path), () if lock_fd is None else (lock_fd,))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "a word of it cannot stand on a command line"
        raise ProviderError(f"{argv[0]}: it could not be started ({why or error})") from error
    try:
        out, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise DoorLost(f"{words[0]}: no answer within {TIMEOUT:.0f} s; it was ended") from error
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return process.returncode, out


def environment(place: Place, root: str) -> dict[str, str]:
    """A clean one, for this home only."""
    here = {**place.environ(), "SUPERCODE_ORCHESTRATOR_HOME": root}
    with contextlib.suppress(KeyError):
        here["HOME"] = pwd.getpwuid(place.uid()).pw_dir
    return here


def _last(out: bytes) -> dict[str, Any]:
    """The last line as a mapping; {} if it is none."""
    # By bytes: a text may hold what only looks like the end of a line (U+2028).
    lines = out.rstrip(b"\n").split(b"\n")
    try:
        found = json.loads(lines[-1])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
