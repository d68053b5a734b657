"""The engine's write door: actions as the operator's lines, to the daemon's socket where one serves, else cold."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.action import CLEAR, Action, Clear, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import Answer, Code, HomeRef, Step
from reconciler.restart import BEFORE
from reconciler.values import members
from reconciler_shape import reach, webhooks
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, jobwords, kits, lease, reading, restart, tools, wire
from .errors import NativeError, Refused
from .folder import DEFAULT
from .operator import BATCH, Line, apply_lines

CHUNK = 200
"""Lines of one batch: what others wait for the write lock."""
_TIMEOUT = 60.0  # seconds for a batch
Raw = dict[str, Any]


class NativeDoor:
    """`mode`: auto, live (never falls back) or cold. Decided anew for every step: a daemon may come or go."""

    name = "native operator"

    def __init__(self, ref: HomeRef, mode: str) -> None:
        self._ref, self._mode = ref, mode
        self._root = Path(ref.path)
        self._ids: dict[str, str] = {}
        self._key = reading.hider(ref).key.hex()

    def deadline(self, step: Step) -> float:
        """The files are written when the operator answers; a daemon takes a moment to begin anew."""
        return restart.DEADLINE if step.actions[0].row is Row.RESTART else 0.0

    def perform(self, step: Step) -> Sequence[Answer]:
        """One answer per action of the step, in its order. Raises DoorLost."""
        if step.actions[0].row is Row.PROVISION:
            return [self._provision(action) for action in step.actions]
        if step.actions[0].row is Row.RESTART:
            return [self._restart(action) for action in step.actions]
        found: dict[str, Answer] = {}
        waiting: list[tuple[Action, Raw]] = []
        coming: set[str] = set()
        for action in step.actions:
            if self._refers(action) & coming or len(waiting) >= CHUNK:
                self._flush(waiting, found)
                waiting, coming = [], set()
            try:
                waiting.append((action, self._line(action, step)))
                coming.add(action.address.path)
            except Refused as error:
                found[action.address.path] = Answer(action.address, Code.REFUSED, words=str(error))
        self._flush(waiting, found)
        return [found[action.address.path] for action in step.actions]

    def _provision(self, action: Action) -> Answer:
        try:
            if home.init(self._root):
                return Answer(action.address, Code.OK)
        except NativeError as error:
            return Answer(action.address, Code.REFUSED, words=str(error))
        return Answer(action.address, Code.REFUSED, words=f"{self._root} is a home already: adopt it instead")

    def _restart(self, action: Action) -> Answer:
        """Only of the daemon that was seen: one that has begun since has taken everything in."""
        found = lease.inspect(self._root)
        if found.state is not lease.State.LIVE:
            return Answer(action.address, Code.REFUSED, words="no daemon serves the home any more")
        if lease.gateway(found, self._root).start not in action.carries[BEFORE].values():
            return Answer(action.address, Code.OK, said="another daemon serves the home by now")
        try:
            answer = restart.ask(self._root)
        except NativeError as error:
            return Answer(action.address, Code.REFUSED, words=str(error))
        return Answer(action.address, Code.OK if answer["ok"] else Code.REFUSED, words=str(answer.get("error", "")))

    def _flush(self, waiting: list[tuple[Action, Raw]], found: dict[str, Answer]) -> None:
        if not waiting:
            return
        answers = self._send([line for _, line in waiting])
        if len(answers) != len(waiting):
            raise DoorLost(f"{self._root}: {len(answers)} answers to {len(waiting)} lines")
        for (action, line), answer in zip(waiting, answers, strict=True):
            found[action.address.path] = self._answer(action, line, answer)

    def _send(self, lines: list[Raw]) -> list[Raw]:
        live = lease.inspect(self._root).state is lease.State.LIVE
        if self._mode == "live" or (live and self._mode != "cold"):
            answer = wire.call(self._root, {"op": BATCH, "args": {"lines": lines}}, _TIMEOUT)
            if not answer["ok"]:
                return [answer for _ in lines]
            answers = answer.get("result", {}).get("answers")
            if not isinstance(answers, list) or any(not isinstance(a, dict) or "ok" not in a for a in answers):
                raise DoorLost(f"{self._root / lease.SOCKET}: an answer of another form")
            return answers
        return apply_lines(home.Home(self._root), [Line.read(line) for line in lines])

    def _answer(self, action: Action, line: Raw, answer: Mapping[str, Any]) -> Answer:
        if not answer["ok"]:
            code = Code.STALE if answer.get("stale") else Code.REFUSED
            return Answer(action.address, code, words=str(answer.get("error", "")))
        made = line["args"].get("id", "") if action.address.kind is Kind.JOB else action.id
        if action.row in (Row.CREATE, Row.MISSING):
            self._ids[action.address.path] = made
        return Answer(action.address, Code.OK, id=str(made))

    def _refers(self, action: Action) -> set[str]:
        """The jobs that an action points at, by address path."""
        found: set[str] = set()
        for change in action.changes:
            if change.field == "context_from" and isinstance(change.write, list):
                found |= {str(ref["$ref"]) for ref in change.write if isinstance(ref, dict) and "$ref" in ref}
        return found - {action.address.path}

    def _line(self, action: Action, step: Step) -> Raw:
        """The operator's line for an action. Raises Refused for what must not even be tried."""
        op, args = _BY_KIND[action.address.kind](self, action, step)
        profile = DEFAULT if action.address.kind is Kind.PROFILE else action.address.profile or DEFAULT
        line: Raw = {"op": op, "args": args, "profile": profile}
        created = action.row in (Row.CREATE, Row.MISSING) and action.address.kind in (Kind.JOB, Kind.PROFILE)
        if not created:
            line["expect"] = {"key": self._key, "digest": action.fingerprint}
        return line

    def _job(self, action: Action, step: Step) -> tuple[str, Raw]:
        if action.row is Row.DELETE:
            return "jobs.delete", {"id": action.id}
        values = _written(action)
        job_id = action.id
        new = action.row in (Row.CREATE, Row.MISSING)
        if new:
            wanted = values.get("id")
            job_id = str(wanted) if isinstance(wanted, str) else _new_id()
        elif "id" in values:
            raise Refused("id: the id of a job that is there cannot be changed")
        args = jobwords.arguments(values)
        if "context_from" in args and args["context_from"] is not None:
            args["context_from"] = [self._resolved(ref, action, job_id) for ref in args["context_from"]]
        args["id"] = job_id
        if not new:
            return "jobs.update", args
        intent = step.intents.get(action.address, "")
        return "jobs.create", {**{k: v for k, v in args.items() if v is not None}, "intent": intent or None}

    def _resolved(self, ref: Any, action: Action, own: str) -> str:
        if not isinstance(ref, dict):
            return str(ref)
        path = str(ref.get("$ref"))
        if path == action.address.path:
            return own
        if path not in self._ids:
            raise Refused(f"it needs {path}, which is not there")
        return self._ids[path]

    def _setting(self, action: Action, _step: Step) -> tuple[str, Raw]:
        values = _written(action) if action.row is not Row.DELETE else {"value": CLEAR}
        if values.get("value", CLEAR) is CLEAR:
            return "settings.unset", {"path": action.address.key}
        return "settings.set", {"path": action.address.key, "value": values["value"]}

    def _inference(self, action: Action, _step: Step) -> tuple[str, Raw]:
        return "inference.set", {k: None if v is CLEAR else v for k, v in _written(action).items()}

    def _channel(self, action: Action, _step: Step) -> tuple[str, Raw]:
        platform = action.address.key
        if action.row is Row.DELETE:
            return "channels.unset", {"platform": platform, "everything": True}
        fields = {key: None if value is CLEAR else value for key, value in _written(action).items()}
        return "channels.set", {"platform": platform, "fields": fields}

    def _route(self, action: Action, _step: Step) -> tuple[str, Raw]:
        if action.row is Row.DELETE:
            return "routes.delete", {"name": action.address.key}
        values = {key: value for key, value in _written(action).items() if value is not CLEAR}
        return "routes.put", {"name": action.address.key, **values, "order": reach.order(action)}

    def _webhook(self, action: Action, _step: Step) -> tuple[str, Raw]:
        if action.row is Row.DELETE:
            return "webhooks.delete", {"name": action.address.key}
        args: Raw = {key: None if value is CLEAR else value for key, value in _written(action).items()}
        if "deliver" in args:
            args |= webhooks.delivery(args["deliver"])
        if "events" in args:
            args["events"] = [str(one) for one in members(args["events"])] if args["events"] else []
        return "webhooks.set", {"name": action.address.key, **args}

    def _file(self, action: Action, _step: Step) -> tuple[str, Raw]:
        args: Raw = {"path": action.address.key, "owner": reading.owner(self._ref)}
        if action.row is Row.DELETE:
            # A block is no thing of its own, and is taken out by an update: what is deleted is a whole file of ours.
            return "files.delete", {**args, "what": "whole"}
        values = _written(action)
        if values.get("block") is CLEAR:
            return "files.delete", {**args, "what": "block"}
        return "files.set", args | {k: v for k, v in values.items() if v is not CLEAR}

    def _secret(self, action: Action, step: Step) -> tuple[str, Raw]:
        name = action.address.key
        if any(value is CLEAR for value in _written(action).values()):
            return "secrets.unset", {"name": name}
        if action.address not in step.secrets:
            raise Refused(f"{name}: there is no value to be written")
        return "secrets.set", {"name": name, "value": step.secrets[action.address].reveal()}

    def _tool(self, action: Action, _step: Step) -> tuple[str, Raw]:
        return tools.line(action)

    def _kit(self, action: Action, _step: Step) -> tuple[str, Raw]:
        if action.row is Row.DELETE:
            return "kits.remove", {"name": action.address.key}
        return "kits.apply", {"name": action.address.key, **kits.arguments(_written(action))}

    def _profile(self, action: Action, _step: Step) -> tuple[str, Raw]:
        name = action.address.profile
        if action.row is Row.DELETE:
            return "profiles.delete", {"name": name}
        values = {key: None if value is CLEAR else value for key, value in _written(action).items()}
        return ("profiles.update" if action.row is Row.UPDATE else "profiles.create"), {"name": name, **values}


_BY_KIND = {
    Kind.JOB: NativeDoor._job,
    Kind.SETTING: NativeDoor._setting,
    Kind.INFERENCE: NativeDoor._inference,
    Kind.FILE: NativeDoor._file,
    Kind.PROFILE: NativeDoor._profile,
    Kind.SECRET: NativeDoor._secret,
    Kind.CHANNEL: NativeDoor._channel,
    Kind.ROUTE: NativeDoor._route,
    Kind.WEBHOOK: NativeDoor._webhook,
    **dict.fromkeys(tools.KINDS, NativeDoor._tool),
    Kind.KIT: NativeDoor._kit,
}


def _written(action: Action) -> dict[str, Json | Clear]:
    """Field → the value to write, or CLEAR."""
    changes = action.changes if action.row is not Row.UPDATE else [c for c in action.changes if c.writes]
    return {change.field: change.write for change in changes}


def _new_id() -> str:
    """An id of our own: known before the call, so that a lost answer can be looked up by it."""
    return f"job_{datetime.now(UTC).strftime('%Y%m%d_%H%M%S')}_{secrets.token_hex(3)}"


@contextlib.contextmanager
def opened(ref: HomeRef) -> Iterator[NativeDoor]:
    """Raises ProviderError for a home that is not on this machine."""
    if not ref.place.local:
        raise ProviderError(f"{ref.path}: a native home is written where it is; run the reconciler there")
    yield NativeDoor(ref, str(ref.options.get("mode") or "auto"))
