"""The write door of an OpenClaw home: rows become calls of its gateway, or of its command line where it is stopped."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence

from reconciler.action import Action, Row
from reconciler.errors import ProviderError
from reconciler.provider import Answer, Code, HomeRef, Note, Step, silent
from reconciler_specs.address import Kind

from . import cli, door_agents, door_boards, door_config, door_files, door_jobs, door_secrets, gateway, home, kinds, rpc
from .door_line import Line

Part = Callable[[Line, Step], Sequence[Answer]]
_BY_GATEWAY = {Kind.JOB: "jobs", Kind.PROFILE: "profiles", Kind.KIT: "planning kits"}
# Seconds in which a write whose answer was lost may still show.
_LATE = 10.0


class OpenClawDoor:
    """One line to the home for the whole run. A lost answer is said of its row alone, and the read-back decides."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._lost = False
        self.name = line.name  # what the calls went through, as far as that is known

    def perform(self, step: Step) -> Sequence[Answer]:
        """One answer per action, in order. Raises ProviderError where the home cannot be reached any more."""
        try:
            answers = list(self._part(step.actions[0])(self._line, step))
        except rpc.Refusal as refusal:  # of a question that the whole step stands on
            answers = [Answer(action.address, Code.REFUSED, words=str(refusal)) for action in step.actions]
        self.name = self._line.name
        self._lost = any(answer.code is Code.LOST for answer in answers)
        return [
            Answer(a.address, a.code, a.id, self._line.hider.text(a.words), self._line.hider.text(a.inert))
            for a in answers
        ]

    def deadline(self, step: Step) -> float:
        """A gateway answers when it has written; only what was lost may come later."""
        return _LATE if self._lost else 0.0

    def _part(self, first: Action) -> Part:
        if first.row is Row.PROVISION:
            return door_config.provision
        return _PARTS[first.address.kind] if not _describes(first) else door_config.perform


def _describes(action: Action) -> bool:
    return action.address.kind is Kind.PROFILE and action.row is Row.UPDATE


_PARTS: dict[Kind, Part] = {
    Kind.PROFILE: door_agents.perform,
    Kind.SETTING: door_config.perform,
    Kind.INFERENCE: door_config.perform,
    Kind.SECRET: door_secrets.perform,
    **dict.fromkeys(kinds.PARTS, door_config.perform),
    Kind.JOB: door_jobs.perform,
    Kind.FILE: door_files.perform,
    Kind.KIT: door_boards.perform,
}


def check(ref: HomeRef, actions: Sequence[Action]) -> None:
    """Raises ProviderError if the home cannot be written now. Opens no connection and starts nothing."""
    cli.program(ref)
    if any(action.row is Row.PROVISION for action in actions):
        return
    here = home.locate(ref.place, ref.path)
    stopped = not gateway.alive(here)()
    asks = {a.address.kind for a in actions if a.writes and not _describes(a)} & _BY_GATEWAY.keys()
    forbidden = ref.options.get("quiet_gateway", True) is False
    if stopped and asks and (forbidden or not ref.place.local):
        kinds = " and ".join(word for kind, word in _BY_GATEWAY.items() if kind in asks)
        why = f"{ref.path} is stopped, and OpenClaw takes {kinds} only through a gateway: start it"
        if not ref.place.local:
            raise ProviderError(f"{why} there; behind a command prefix none of our own is started")
        raise ProviderError(f"{why}, or take quiet_gateway: false out of the setup's door")


@contextlib.contextmanager
def opened(ref: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf) -> Iterator[OpenClawDoor]:
    """A gateway of our own is started when the first step needs one. `note` is told of each wait; none of them goes on
    beyond `until`.

    Raises ProviderError if there is no OpenClaw that may be used.
    """
    check(ref, ())
    with Line(ref, lock_fd, note, until) as line:
        yield OpenClawDoor(line)
