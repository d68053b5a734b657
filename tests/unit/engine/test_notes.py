"""What a door waits for is told while it waits: through the engine, and on the screen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.apply import apply
from reconciler.cli.render.outcome import Reporter
from reconciler.consent import Consent
from reconciler.event import Event
from reconciler.plan import Options
from reconciler.provider import Answer, Door, HomeRef, Note, Step, silent
from reconciler.testing.memory import MemoryDoor, MemoryProvider
from world import HEAD, World, home_text


class SlowDoor(MemoryDoor):
    note: Note

    def perform(self, step: Step) -> Sequence[Answer]:
        self.note("the gateway is waited for, 26 s")
        return super().perform(step)


class Slow(MemoryProvider):
    """Its door says that it waits; `ends` are the ends of the runs that it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    @contextmanager
    def open(self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = math.inf) -> Iterator[Door]:
        self.ends.append(until)
        door = SlowDoor(self.homes[home.path])
        door.note = note
        yield door


def told(world: World) -> list[str]:
    """What a run says, in order."""
    said: list[str] = []
    space = world.space()
    plan = space.plan(Options())
    rows = frozenset(h.digests[a.address] for h in plan.homes for a in h.open)
    consent = replace(Consent(yes=True, approved=rows, terminal=True), allow=frozenset())

    def tell(event: Event) -> None:
        said.append(f"{event.what} {event.home}: {event.reason}")

    for event in apply(plan, consent, space, Options(), tell=tell):
        if event.what in ("step", "outcome"):
            said.append(f"{event.what} {event.home}")
    return said


def slow(tmp_path: Path, *homes: str, policy: str = "") -> tuple[World, Slow]:
    world = World(tmp_path)
    world.memory = world.provider = provider = Slow()
    text = HEAD + policy + "homes:\n"
    for name in homes:
        world.home(name)
        text += home_text().replace("main", name).replace("homes:\n", "")
    world.setup(text)
    return world, provider


def test_a_wait_is_told_before_what_came_of_it(tmp_path: Path) -> None:
    world, _ = slow(tmp_path, "main")
    said = told(world)
    step = said.index("step main")
    assert said[step + 1 :] == ["note main: the gateway is waited for, 26 s", "outcome main", "outcome main"]


def test_a_wait_of_one_of_several_homes_is_told(tmp_path: Path) -> None:
    world, _ = slow(tmp_path, "a", "b")
    notes = [line for line in told(world) if line.startswith("note")]
    assert sorted(notes) == ["note a: the gateway is waited for, 26 s", "note b: the gateway is waited for, 26 s"]


@pytest.mark.parametrize(("policy", "seconds"), [("", math.inf), ("policy: {limits: {minutes: 2}}\n", 120)])
def test_the_door_knows_when_the_run_ends(tmp_path: Path, policy: str, seconds: float) -> None:
    world, provider = slow(tmp_path, "main", policy=policy)
    before = time.monotonic()
    told(world)
    (end,) = provider.ends
    assert before + seconds <= end <= time.monotonic() + seconds


def test_a_wait_is_shown_beside_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter(quiet=False).tell(Event("note", "main", reason="cron.add: the gateway is waited for"))
    Reporter(quiet=True).tell(Event("note", "main", reason="not said with --json"))
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "  … main: cron.add: the gateway is waited for\n")
