"""The operator: one implementation of every verb, called by the socket's server and by the cold door alike."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from reconciler_shape.hiding import Hider

from . import (
    ops_access,
    ops_config,
    ops_files,
    ops_jobs,
    ops_kits,
    ops_profiles,
    ops_reach,
    ops_secrets,
    ops_state,
    ops_tools,
    schedule,
)
from .context import Context, Expect, Verb
from .errors import LoadFailed, NativeError, Refused
from .folder import DEFAULT, Folder
from .home import Home
from .shown import hidden, unsaid

Answer = dict[str, Any]
"""`{"ok": true, "result": {"ran", …}}` or `{"ok": false, "error": SENTENCE}`, with `stale: true` where the thing is
not the one that the caller has seen."""

VERBS: Mapping[str, Verb] = {
    **ops_jobs.VERBS,
    **ops_profiles.VERBS,
    **ops_access.VERBS,
    **ops_config.VERBS,
    **ops_reach.VERBS,
    **ops_files.VERBS,
    **ops_tools.VERBS,
    **ops_kits.VERBS,
    **ops_secrets.VERBS,
    **ops_state.VERBS,
}
OPS = tuple(VERBS)
BATCH = "batch"
"""The operation that carries others: `{"lines": [{op, args, profile, expect?}, …]}`, one load and one save for all."""
RESTART = "restart"
"""The operation that starts the daemon anew. Both are the socket's own: cold, there is nothing to carry or restart."""


class Line(NamedTuple):
    """One verb as it is asked for."""

    op: str
    args: Mapping[str, Any]
    profile: str = DEFAULT
    expect: Expect | None = None

    @classmethod
    def read(cls, raw: Any) -> Line:
        """From a line's JSON. Raises Refused for another form."""
        if not isinstance(raw, dict):
            raise Refused("a line is a JSON object: {op, args, profile}")
        op, args, profile = raw.get("op"), raw.get("args"), raw.get("profile")
        if not isinstance(op, str) or not op:
            raise Refused("verb (a model tool) or op (an operator verb) is required")
        if args is not None and not isinstance(args, dict):
            raise Refused(f"{op}: args is an object")
        if profile is not None and not isinstance(profile, str):
            raise Refused(f"{op}: profile is a name")
        return cls(op, args or {}, profile or DEFAULT, _expect(raw.get("expect")))


def _expect(raw: Any) -> Expect | None:
    if raw is None:
        return None
    try:
        return Expect(bytes.fromhex(raw["key"]), str(raw["digest"]))
    except (TypeError, KeyError, ValueError):
        raise Refused("expect is {key, digest}, the key in hex") from None


def apply_operator(
    home: Home,
    op: str,
    args: Mapping[str, Any] | None = None,
    profile: str = DEFAULT,
    at: datetime | None = None,
    *,
    expect: Expect | None = None,
) -> Answer:
    """Carries out one verb. `at` is the caller's clock (aware), now if None.

    A refusal is an answer. What is answered with ok is on the disk. Raises nothing for a bad verb or home: that the
    home is held, cannot be read or cannot be written is an answer too.
    """
    return apply_lines(home, [Line(op, args or {}, profile, expect)], at)[0]


def apply_lines(home: Home, lines: Sequence[Line], at: datetime | None = None) -> list[Answer]:
    """Each line by itself, in order: one that is refused changes nothing and leaves the others alone."""
    now = (at or datetime.now(UTC)).astimezone(UTC)
    try:
        if all(line.op not in VERBS or VERBS[line.op].reads for line in lines):
            folder = home.load()
            folder.check()
            return _answers(home, folder, lines, now)
        with home.writing() as folder:
            answers = _answers(home, folder, lines, now)
            folder.save(home.disk, schedule.stored(now))
            return answers
    except NativeError as error:
        return [_refusal(str(error), held=not isinstance(error, LoadFailed | Refused)) for _ in lines]


def _answers(home: Home, folder: Folder, lines: Sequence[Line], now: datetime) -> list[Answer]:
    answers = [_one(home, folder, line, now) for line in lines]
    known = [secret for profile in folder.profiles.values() for secret in profile.env.secrets()]
    hider = Hider(os.urandom(32), known)
    shown: list[Answer] = []
    for answer in answers:
        if "error" in answer:
            shown.append({**answer, "error": hider.text(answer["error"])})
        else:
            shown.append({"ok": True, "result": hidden(answer["result"], hider, known)})
    return shown


def _refusal(words: str, *, stale: bool = False, held: bool = False) -> Answer:
    return {"ok": False, "error": words, **({"stale": True} if stale else {}), **({"held": True} if held else {})}


def _one(home: Home, folder: Folder, line: Line, now: datetime) -> Answer:
    verb = VERBS.get(line.op)
    if verb is None:
        return _refusal(unknown(line.op))
    profile = folder.profiles.get(line.profile)
    if profile is None:
        known = ", ".join(sorted(folder.profiles))
        return _refusal(f"unknown profile {json.dumps(line.profile)}; this home holds: {known}")
    before = {each: each.snapshot() for each in folder.profiles.values()}
    try:
        verb.check(line.op, line.args)
        json.dumps(line.args, ensure_ascii=False, allow_nan=False).encode()
        return {"ok": True, "result": verb.run(Context(home, folder, profile, now, line.expect), line.args)}
    except Refused as refused:
        error = _refusal(unsaid(str(refused), line.args), stale=refused.stale)
    except NativeError as failed:
        error = _refusal(unsaid(str(failed), line.args))
    except UnicodeEncodeError:
        error = _refusal(f"{line.op}: a text in it is cut off in the middle of a character")
    except (ValueError, RecursionError):
        error = _refusal(f"{line.op}: the arguments are no plain JSON")
    for each, snapshot in before.items():
        each.restore(snapshot)
    return error


def unknown(op: str) -> str:
    """The sentence for an operation that is none; it lists those that are, so that it serves as a probe."""
    return f"unknown operator op {json.dumps(op)}; the orchestrator answers: {', '.join(OPS)}"
