"""Settings, inference, descriptions and the other parts of openclaw.json: what a step changes goes in one patch."""

from __future__ import annotations

import hashlib
import json
import posixpath
import secrets
from collections.abc import Sequence
from typing import Any

from reconciler.action import Action
from reconciler.errors import DoorLost
from reconciler.place import Stat
from reconciler.provider import Answer, Code, Step
from reconciler_shape import places
from reconciler_specs.address import Address, Kind

from . import cli, cli_files, comments, edits, home, nearby, roster, rpc, steps
from .door_line import Line
from .door_look import Look
from .kinds import made_id

TRASH = ".reconciler-trash"
_SECONDS = 120.0  # for one patch: the gateway answers when it has taken it in
_BEFORE = 10.0  # for somebody's edit to be taken in first
_TRIES = 4
_PATCH = ("config", "patch", "--stdin")
_ANOTHER = "openclaw.json changed while it was written"


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One patch for the step, where OpenClaw takes it."""
    answers = _written(line, step.actions)
    return [answers[action.address] for action in step.actions]


def _written(line: Line, actions: Sequence[Action]) -> dict[Address, Answer]:
    """One patch for the rows. If OpenClaw refuses it, one for each half of them, so that only the wrong row fails, and
    few patches find it: 7.1 takes three a minute. One that it refuses for being too small goes in halves too."""
    answers, rows = _sift(line.look(actions), actions)
    if not rows:
        return answers
    found = _patch(line, rows)
    if found.code is Code.REFUSED and len(rows) > 1:
        half = (len(rows) + 1) // 2
        return answers | _written(line, rows[:half]) | _written(line, rows[half:])
    return answers | {a.address: Answer(a.address, found.code, made_id(a), found.words) for a in rows}


def describe(line: Line, action: Action) -> tuple[Code, str]:
    """The fields of a profile that OpenClaw takes only in its config."""
    if not action.changes:
        return Code.OK, ""
    answer = _written(line, [action])[action.address]
    return answer.code, answer.words


def _sift(look: Look, actions: Sequence[Action]) -> tuple[dict[Address, Answer], list[Action]]:
    """Answers for what is not tried, and the rest."""
    answers: dict[Address, Answer] = {}
    rows: list[Action] = []
    config = look.config
    for action in actions:
        why = look.stale(action)
        if why:
            answers[action.address] = Answer(action.address, Code.STALE, words=why)
            continue
        try:
            steps.edits(action, config)
        except edits.Refused as error:
            answers[action.address] = Answer(action.address, Code.REFUSED, words=str(error))
            continue
        rows.append(action)
    return answers, rows


def _patch(line: Line, rows: Sequence[Action]) -> Answer:
    """One answer for all rows; its address is the first one's."""
    send = _online if line.by_rpc else _offline
    try:
        code, words = send(line, rows)
    except DoorLost as error:
        code, words = Code.LOST, str(error)
        # 7.1 closes every connection for its restart before it has answered: what comes next needs it back.
        late = line.back() if send is _online else ""
        words = f"{words}; {late}" if late else words
    return Answer(rows[0].address, code, words=words)


def _made(line: Line, rows: Sequence[Action]) -> tuple[edits.Patch, edits.Config] | None:
    """The patch for the config as it is now; None if the rows no longer stand for that."""
    look = line.look(rows)
    if any(look.stale(action) for action in rows):
        return None
    config = look.config
    return edits.patch(config, [edit for action in rows for edit in steps.edits(action, config)]), config


def _online(line: Line, rows: Sequence[Action]) -> tuple[Code, str]:
    """With the hash taken before we look: what comes in between is refused by the gateway itself, and looked at anew.

    A running 9.6 tells the hash of what it has taken in, which for a second after somebody's edit is an older one. A
    patch that undoes an edit which it is still taking in, it writes and never answers: so that is waited for.
    """
    for _ in range(_TRIES):
        base = line.settled(_BEFORE)[1].get("hash")
        made = _made(line, rows)
        if made is None:
            break
        patch, config = made
        if not patch.body:
            return Code.OK, ""
        why = _unknown_model(line, rows, patch) or keep(line, rows, config)
        if why:
            return Code.REFUSED, why
        params: dict[str, Any] = {"raw": json.dumps(patch.body), "baseHash": base}
        if patch.replace:
            params["replacePaths"] = list(patch.replace)
        try:
            return _taken(line, line.call("config.patch", params, _SECONDS))
        except rpc.Refusal as refusal:
            # Neither version has a code for another base: a hash that is not the one we named tells.
            if line.call("config.get").get("hash") == base:
                return Code.REFUSED, str(refusal)
    return Code.STALE, _ANOTHER


def _unknown_model(line: Line, rows: Sequence[Action], patch: edits.Patch) -> str:
    """Why OpenClaw knows no such model, in its words, "" if it does: a gateway takes any name, and from 9.6 on the
    command line checks. 7.1 checks nowhere.

    Of what else a dry run finds the gateway is the better judge: it has the environment that secrets come from.
    """
    inference = any(action.address.kind is Kind.INFERENCE for action in rows)
    if not inference or roster.is_old(line.hello.version):
        return ""
    done = cli.openclaw(line.ref, [*_PATCH, "--dry-run", "--json"], json.dumps(patch.body), line.lock_fd)
    try:
        found = json.loads(done.out)
    except ValueError:
        return ""
    errors = found.get("errors") if isinstance(found, dict) else None
    wrong = [e for e in errors if isinstance(e, dict) and e.get("kind") == "model"] if isinstance(errors, list) else []
    return f"{wrong[0].get('message')}{nearby.names(line, rows)}" if wrong else ""


def _taken(line: Line, result: Any) -> tuple[Code, str]:
    """Waits until what was written is what the gateway runs on."""
    late = (line.restarted() if restarts(result) else "") or line.settle()
    return (Code.LOST, late) if late else (Code.OK, "")


def restarts(result: Any) -> bool:
    """Whether the gateway restarts itself for what it has just written."""
    for name in ("sentinel", "payload", "stats"):
        result = result.get(name) if isinstance(result, dict) else None
    return isinstance(result, dict) and result.get("requiresRestart") is True


def _offline(line: Line, rows: Sequence[Action]) -> tuple[Code, str]:
    """OpenClaw checks the whole before it writes. It has no base to compare with here; the copy that it makes of what
    it replaces tells whether somebody else wrote in between."""
    made = _made(line, rows)
    if made is None:
        return Code.STALE, _ANOTHER
    patch, config = made
    if not patch.body:
        return Code.OK, ""
    why = keep(line, rows, config)
    if why:
        return Code.REFUSED, why
    # A value may stand in what the config includes, too.
    copies = {file: _copied(line, file) for file in config.authored.files}
    done = cli.openclaw(line.ref, _PATCH, json.dumps(patch.body), line.lock_fd)
    if done.code:
        return Code.REFUSED, done.words
    for file, copied in copies.items():
        # A write that changes nothing makes no copy.
        if _copied(line, file) != copied and _digest(line, f"{file}.bak") != config.authored.files[file]:
            changed = f"{posixpath.basename(file)} changed while it was written"
            return Code.HARMED, f"{changed}; what somebody else wrote is in {file}.bak"
    return Code.OK, ""


def _copied(line: Line, file: str) -> int:
    """When OpenClaw last made its copy of a file, 0 where there is none."""
    found = places.lstat(line.here.place, f"{file}.bak")
    return found.mtime_ns if isinstance(found, Stat) else 0


def _digest(line: Line, path: str) -> str:
    data = home.text(line.here.place, path, home.CONFIG_LIMIT)
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else ""


def keep(line: Line, rows: Sequence[Action], config: edits.Config) -> str:
    """Copies the files whose comments the rows are about to cost; why that cannot be, "" if it is done."""
    known, agents = config.authored, config.roster
    lost = [comments.losing(row, agents, line.here.config, known.includes, known.comments) for row in rows]
    files = sorted({file for found in lost for file in found})
    if not files:
        return ""
    ops = [_copy(line, file, known.files[file]) for file in files]
    answers = cli_files.perform(line.ref, ops, line.lock_fd)
    # `stale`: the same text has been kept before.
    wrong = next((answer for answer in answers if answer["code"] == "refused"), None)
    return f"no copy of {', '.join(files)} could be kept: {wrong.get('words')}" if wrong else ""


def _copy(line: Line, file: str, digest: str) -> cli_files.Op:
    name = posixpath.join(TRASH, f"{posixpath.basename(file)}.{digest[:12]}")
    return cli_files.write(line.here.root, name, "", folder=0o700, copy=file, mode=0o600)


def provision(line: Line, step: Step) -> Sequence[Answer]:
    """A new home: a config with the least that a gateway needs, its token drawn here and never shown."""
    token = secrets.token_urlsafe(32)
    config = {"gateway": {"mode": "local", "bind": "loopback", "auth": {"mode": "token", "token": token}}}
    text = json.dumps(config, indent=2) + "\n"
    op = cli_files.write(line.here.root, home.CONFIG, "", folder=0o700, text=text, mode=0o600)
    (answer,) = cli_files.perform(line.ref, [op], line.lock_fd)
    address = step.actions[0].address
    code = Code(answer["code"])
    words = "there is a config already" if code is Code.STALE else answer.get("words", "")
    return [Answer(address, code, words=words)]
