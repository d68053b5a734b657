"""L9-L12: every way in which a door, or the way to it, fails; the next run settles, and makes no twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.consent import Consent
from reconciler.event import EXIT, exit_code
from reconciler.plan import Options
from reconciler.testing.faulty import Crash, Fault, FaultyProvider
from reconciler_state.errors import StateError
from reconciler_state.files import Files
from world import World, outcomes

SETUP = """version: 1
name: solo
homes:
  main:
    harness: hermes
    path: HOME/main
    first_contact: adopt
    profiles:
      default:
        settings: {agent.max_turns: 120}
        files: {SOUL.md: {text: hello}}
        jobs:
          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}
          digest: {schedule: {every: 1d}, prompt: Sum up., deliver: local, context_from: [brief]}
      coder: {description: Codes.}
"""
EVERYTHING = ["main/coder", "main/default/files/SOUL.md", "main/default/jobs/brief", "main/default/jobs/digest"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.home()
    world.setup(SETUP)
    return world


def jobs(world: World) -> list[str]:
    return sorted(j["name"] for j in world.home().jobs().values())


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("kind", ["profile", "files", "settings", "jobs"])
def test_crash_at_each_step_is_settled_by_the_next_run(world: World, fault: Fault, kind: str) -> None:
    world.provider = FaultyProvider(world.memory, fault, lambda a: a.address.kind == kind)
    with pytest.raises(Crash):
        world.apply()
    world.provider = world.memory
    done = outcomes(world.apply())
    assert set(done.values()) <= {"applied"}, done
    assert jobs(world) == ["brief", "digest"]
    state = world.store.read(world.store.list()[0])
    assert state is not None
    assert {t.origin for p, t in state.owned("solo").items() if "settings" not in p} == {"created"}
    assert world.rows() == {}
    assert world.space().plan_home("main", Options()).intents == ()


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "gone"])
def test_what_was_made_again_before_a_crash_is_found(world: World, declared: bool) -> None:
    """State has the id of the one that was lost; the new one is known by its marker, declared or not (L11)."""
    world.apply()
    [lost] = [i for i, job in world.home().jobs().items() if job["name"] == "brief"]
    del world.home().jobs()[lost]
    world.provider = FaultyProvider(world.memory, Fault.CRASH_AFTER, lambda a: a.address.kind == "jobs")
    with pytest.raises(Crash):
        world.apply()
    world.provider = world.memory
    if not declared:
        lines = [line for line in SETUP.splitlines() if "brief: {" not in line]
        world.setup("\n".join(lines).replace(", context_from: [brief]", ""))
    assert set(outcomes(world.apply()).values()) <= {"applied"}
    assert jobs(world) == (["brief", "digest"] if declared else ["digest"])
    assert world.rows() == {}


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_a_lost_answer_is_uncertain_or_found_by_looking(world: World, fault: Fault) -> None:
    world.provider = FaultyProvider(world.memory, fault, lambda a: a.address.kind == "jobs")
    done = outcomes(world.apply())
    expected = "applied" if fault is Fault.LOST_AFTER else "uncertain"
    assert done["main/default/jobs/brief"] == expected
    world.provider = world.memory
    assert set(outcomes(world.apply()).values()) <= {"applied"}
    assert jobs(world) == ["brief", "digest"]
    assert world.rows() == {}


def test_a_door_that_lies_is_not_believed(world: World) -> None:
    world.provider = FaultyProvider(world.memory, Fault.LIES, lambda a: a.address.key == "brief")
    done = outcomes(world.apply())
    assert done["main/default/jobs/brief"] == "not-applied"
    assert "main/default/jobs/brief" in world.rows()


def test_a_refusal_stops_what_depends_on_it_and_nothing_else(world: World) -> None:
    world.provider = FaultyProvider(world.memory, Fault.REFUSES, lambda a: a.address.kind == "files")
    events = world.apply()
    done = outcomes(events)
    assert done["main/default/files/SOUL.md"] == "refused"
    assert done["main/default/jobs/brief"] == "applied"
    words = [e.reason for e in events if e.outcome == "refused"]
    assert words == ["no, says the harness"]


def test_a_harmed_neighbour_stops_the_home(world: World) -> None:
    world.provider = FaultyProvider(world.memory, Fault.HARMS, lambda a: a.address.kind == "files")
    events = world.apply()
    done = outcomes(events)
    assert done["main/default/jobs/brief"] == "skipped"
    # Told, though the read-back shows the row as it should be, and it may be the only one.
    assert done["main/default/files/SOUL.md"] == "uncertain"
    assert [e.reason for e in events if e.outcome == "uncertain"] == ["a neighbour changed"]


def test_without_consent_nothing_is_written(world: World) -> None:
    before = world.home().writes
    done = outcomes(world.apply(Consent()))
    assert set(done.values()) == {"waits for consent", "skipped"} or set(done.values()) == {"waits for consent"}
    assert world.home().writes == before
    assert not (world.root / "state" / "homes").exists()
    assert not (world.root / "state" / "journal").exists()


def test_apply_that_is_not_iterated_does_nothing(world: World) -> None:
    from reconciler.apply import apply

    space = world.space()
    plan = space.plan(Options())
    apply(plan, Consent(yes=True, approved=frozenset(plan.homes[0].digests.values())), space, Options())
    assert world.home().writes == 0


def test_converged_means_no_write_at_all(world: World) -> None:
    world.apply()
    writes, files = world.home().writes, world.store.files
    counts = (files.writes, files.fsyncs, files.bytes)
    tree = {p: p.read_bytes() for p in sorted(world.root.rglob("*")) if p.is_file()}
    for _ in range(100):
        assert world.apply() == []
    assert world.home().writes == writes
    assert (files.writes, files.fsyncs, files.bytes) == counts
    assert {p: p.read_bytes() for p in sorted(world.root.rglob("*")) if p.is_file()} == tree


def test_what_changed_between_plan_and_apply_is_refused_not_overwritten(world: World) -> None:
    from reconciler.apply import apply

    world.apply()
    world.setup(SETUP.replace("Write.", "Write more."))
    space = world.space()
    plan = space.plan(Options())
    world.edit([{"set": "default/jobs/brief", "prompt": "Mine."}])
    rows = frozenset(plan.homes[0].digests.values())
    events = list(apply(plan, Consent(yes=True, approved=rows, terminal=True), space, Options()))
    assert outcomes(events)["main/default/jobs/brief"] == "refused"
    assert "Mine." in [j["prompt"] for j in world.home().jobs().values()]


def test_interrupted_between_steps_leaves_the_rest_for_later(world: World) -> None:
    from reconciler.apply import apply

    space = world.space()
    plan = space.plan(Options())
    consent = Consent(yes=True, approved=frozenset(plan.homes[0].digests.values()), terminal=True)
    asked = iter([False, False, True, True, True, True, True])
    done = outcomes(list(apply(plan, consent, space, Options(), stop=lambda: next(asked))))
    assert "skipped" in done.values()
    assert "applied" in done.values()
    assert set(outcomes(world.apply()).values()) == {"applied"}
    assert world.rows() == {}


def test_what_was_written_and_could_not_be_recorded_is_uncertain(world: World) -> None:
    """L10: the door has been used, so nothing was skipped; the next run looks, and no job is made twice."""

    class Full(Files):
        def write(self, path: Path, data: bytes) -> None:
            if path.parent.name == "homes" and world.home().jobs("default"):
                raise StateError(f"{path}: no space left on the device")
            super().write(path, data)

    sound, world.store.files = world.store.files, Full()
    events = world.apply()
    done = outcomes(events)
    made = [a for a, o in done.items() if o == "uncertain"]
    assert made and all("/jobs/" in a for a in made), done
    assert exit_code({EXIT[e.outcome] for e in events if e.outcome is not None}) == 6
    world.store.files = sound
    jobs = dict(world.home().jobs("default"))
    assert set(outcomes(world.apply()).values()) <= {"applied"}
    assert jobs.keys() <= world.home().jobs("default").keys() and len(world.home().jobs("default")) == 2
    assert world.rows() == {}
