"""What a home shows once it was written to decides what is recorded; what it does not show is not known (L9, L10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.adopt import adopt_home
from reconciler.errors import ProviderError
from reconciler.event import Event
from reconciler.observe import Observation, Observed, Unknown, Wanted
from reconciler.provider import Door, HomeRef, KindTraits
from reconciler.testing.faulty import Crash, Fault, FaultyProvider
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Kind
from reconciler_state.record import Owned
from world import HEAD, World, home_text, outcomes

BRIEF = "main/default/jobs/brief"
STORE = ("default", Kind.JOB)
JOB = "          brief: {schedule: {every: 30m}, prompt: %s, deliver: local}\n"
OTHER = "          other: {schedule: {every: 30m}, prompt: x, deliver: local}\n"
Sight = Callable[[Observation], Observation]


class Glass:
    """The provider, whose home is seen through `sight` from the `nth` look on after something was written."""

    def __init__(self, inner: MemoryProvider, sight: Sight, nth: int = 1) -> None:
        self._inner, self._sight, self._nth = inner, sight, nth
        self._looks, self._written = 0, False
        self.traits = inner.traits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def open(self, *args: Any) -> Iterator[Door]:
        with self._inner.open(*args) as door:
            self._written = True
            yield door

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        seen = self._inner.observe(home, wanted)
        self._looks += self._written
        return self._sight(seen) if self._looks >= self._nth else seen


def unreadable(seen: Observation) -> Observation:
    return replace(seen, things={**seen.things, STORE: Unknown("the store cannot be read")})


def unread(seen: Observation) -> Observation:
    return replace(seen, things={key: found for key, found in seen.things.items() if key != STORE})


def gone(_: Observation) -> Observation:
    raise ProviderError("the home cannot be read")


def showing(name: str, value: Any) -> Sight:
    """Each job with another value in one field."""

    def sight(seen: Observation) -> Observation:
        jobs = seen.things[STORE]
        assert not isinstance(jobs, Unknown)
        shown = {i: replace(t, fields={**t.fields, name: value}) for i, t in jobs.items()}
        return replace(seen, things={**seen.things, STORE: shown})

    return sight


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One job of ours, `brief`."""
    world = World(tmp_path)
    world.home()
    says(world, JOB % "old")
    world.apply()
    return world


def says(world: World, jobs: str) -> None:
    world.setup(HEAD + home_text(f"        jobs:\n{jobs}" if jobs else "        {}\n"))


def through(world: World, sight: Sight, nth: int = 1) -> list[Event]:
    """What comes of an apply whose read-back is seen so."""
    world.provider = Glass(world.memory, sight, nth)
    try:
        return world.apply()
    finally:
        world.provider = world.memory


def owned(world: World) -> dict[str, Owned]:
    [state] = [world.store.read(p) for p in world.store.list()]
    assert state is not None
    return dict(state.owned("solo"))


def prompt(world: World) -> Any:
    return owned(world)["default/jobs/brief"].fields["prompt"].declared


@pytest.mark.parametrize("sight", [unreadable, unread, gone])
@pytest.mark.parametrize(
    ("jobs", "address"),
    [(JOB % "new", BRIEF), ("", BRIEF), (JOB % "old" + OTHER, "main/default/jobs/other")],
    ids=["update", "delete", "create"],
)
def test_what_the_read_back_cannot_see_is_uncertain(world: World, sight: Sight, jobs: str, address: str) -> None:
    says(world, jobs)
    assert outcomes(through(world, sight)) == {address: "uncertain"}
    assert set(owned(world)) == {"default/jobs/brief"} and prompt(world) == "old", "nothing is recorded of it"
    world.apply()
    assert world.rows() == {}
    assert len(world.home().jobs()) == jobs.count("schedule"), "and the next run finds what was written"


@pytest.mark.parametrize("shown", [Unknown("it is behind a curtain"), "another one", "old"], ids=str)
def test_a_field_is_recorded_only_as_it_was_to_be_written(world: World, shown: Any) -> None:
    says(world, JOB % "new")
    [event] = [e for e in through(world, showing("prompt", shown)) if e.address is not None]
    assert (str(event.outcome), event.fields) == ("not-applied", ("prompt",))
    assert prompt(world) == "old"


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        (Unknown("it is behind a curtain"), "not-applied"),
        ("old", "not-applied"),
        ("NEW", "applied"),
        ("new", "applied"),
    ],
    ids=str,
)
def test_what_the_harness_settles_is_recorded_once_it_has_changed(
    world: World, shown: Any, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traits = {**world.memory.traits, Kind.JOB: KindTraits(settling=frozenset({"prompt"}))}
    monkeypatch.setattr(world.memory, "traits", traits)
    says(world, JOB % "new")
    assert outcomes(through(world, showing("prompt", shown))) == {BRIEF: outcome}
    assert prompt(world) == ("new" if outcome == "applied" else "old")


def test_what_no_longer_holds_at_the_end_of_the_run_is_told(world: World) -> None:
    """L9: everything written is looked at once more."""
    says(world, JOB % "new")
    events: Sequence[Event] = through(world, showing("prompt", "changed back"), nth=2)
    told = [(str(e.outcome), e.fields) for e in events if e.address is not None]
    assert told == [("applied", ()), ("not-applied", ("prompt",))]


def test_what_cannot_be_seen_is_not_adopted(tmp_path: Path) -> None:
    """E47: a base for each field that the home satisfies, and nobody knows of this one."""
    world = World(tmp_path)
    world.home().add_job("brief", schedule={"every": "30m"}, prompt=Unknown("it is behind a curtain"), deliver="local")
    world.setup(
        (HEAD + home_text(f"        jobs:\n{JOB % 'old'}")).replace("first_contact: adopt", "first_contact: ask")
    )
    adopt_home(world.space(), "main")
    assert "prompt" not in owned(world)["default/jobs/brief"].fields
    [row] = world.rows().values()
    assert [(c.field, str(c.row)) for c in row.held_fields] == [("prompt", "blocked")]
    assert not row.writes


def test_a_store_that_was_not_looked_at_is_unknown() -> None:
    assert isinstance(Observation().at("default", Kind.JOB, "id1"), Unknown)
    seen = Observation(things={STORE: {"id1": Observed(Kind.JOB, "default", "id1")}})
    assert isinstance(seen.at("coder", Kind.JOB, "id1"), Unknown)


@pytest.mark.parametrize("kind", ["jobs", "files"])
def test_what_a_cut_off_run_made_is_its_adopters(world: World, kind: str) -> None:
    """L3, L11: made by us, and taken by another setup before we have looked: it is owned once."""
    path, brief = (
        {"jobs": "default/jobs/other", "files": "default/files/AGENTS.md"}[kind],
        f"        jobs:\n{JOB % 'old'}",
    )
    ours = HEAD + home_text(brief + (OTHER if kind == "jobs" else "        files: {AGENTS.md: {text: x}}\n"))
    world.setup(ours)
    world.provider = FaultyProvider(world.memory, Fault.CRASH_AFTER, lambda a: a.address.path == path)
    with pytest.raises(Crash):
        world.apply()
    world.provider = world.memory
    theirs = f"        jobs:\n{OTHER}" if kind == "jobs" else "        files: {AGENTS.md: {text: x}}\n"
    world.setup(HEAD.replace("solo", "two") + home_text(theirs))
    adopt_home(world.space(), "main")
    world.setup(ours)
    assert str(world.rows()[f"main/{path}"].row) == "foreign"
    world.apply()
    assert path not in owned(world)
