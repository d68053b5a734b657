"""A door that fails on request, around any provider: each way in which a harness, or the way to it, lets us down."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ..action import Action
from ..errors import DoorLost
from ..place import Place, Stat
from ..provider import Answer, Code, Door, HomeRef, Note, Provider, Step, silent


class Fault(StrEnum):
    """What goes wrong, and when."""

    LOST_BEFORE = "the answer is lost and nothing was written"
    LOST_AFTER = "the answer is lost after the write"
    LIES = "says yes and writes nothing"
    REFUSES = "refuses in words"
    HARMS = "touches a neighbour"
    CRASH_BEFORE = "we die before the write"
    CRASH_AFTER = "we die after the write"


class Crash(BaseException):
    """Stands for kill -9 of our process: nothing after it runs."""


@dataclass
class FaultyProvider:
    """`inner` with a door that has `fault` in each action that `hits` says. Everything else is `inner`'s."""

    inner: Provider
    fault: Fault
    hits: Callable[[Action], bool] = lambda _action: True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def open(self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf) -> Iterator[Door]:
        with self.inner.open(home, lock_fd, note, until) as door:
            yield _FaultyDoor(door, self.fault, self.hits)


@dataclass
class _FaultyDoor:
    inner: Door
    fault: Fault
    hits: Callable[[Action], bool]
    name: str = "faulty"

    def deadline(self, step: Step) -> float:
        return self.inner.deadline(step)

    def perform(self, step: Step) -> Sequence[Answer]:
        hit = [a for a in step.actions if self.hits(a)]
        if not hit:
            return self.inner.perform(step)
        if self.fault is Fault.CRASH_BEFORE:
            raise Crash
        if self.fault is Fault.LOST_BEFORE:
            raise DoorLost("the door closed before it answered")
        if self.fault in (Fault.LIES, Fault.REFUSES):
            others = replace(step, actions=tuple(a for a in step.actions if a not in hit))
            answers = list(self.inner.perform(others)) if others.actions else []
            code = Code.OK if self.fault is Fault.LIES else Code.REFUSED
            return [*answers, *(Answer(a.address, code, words="no, says the harness") for a in hit)]
        answers = list(self.inner.perform(step))
        if self.fault is Fault.CRASH_AFTER:
            raise Crash
        if self.fault is Fault.LOST_AFTER:
            raise DoorLost("the door closed before it answered")
        return [replace(a, code=Code.HARMED, words="a neighbour changed") for a in answers]


class BlindPlace:
    """`inner`, but one look (a verb and a path) fails as on a failing disk. `looks` are those that were taken."""

    def __init__(self, inner: Place, blind: tuple[str, str] | None = None) -> None:
        self._inner, self._blind = inner, blind
        self.looks: dict[tuple[str, str], None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, path: str, limit: int) -> bytes:
        self._look("read", path)
        return self._inner.read(path, limit)

    def stat(self, path: str) -> Stat | None:
        self._look("stat", path)
        return self._inner.stat(path)

    def list(self, path: str) -> list[str]:
        self._look("list", path)
        return self._inner.list(path)

    def _look(self, verb: str, path: str) -> None:
        self.looks[verb, path] = None
        if (verb, path) == self._blind:
            raise OSError(errno.EIO, "Input/output error", path)
