"""A lost store names what was lost with it: what nobody declared, and we saw when we last wrote."""

from __future__ import annotations

from pathlib import Path

from reconciler.losses import also_lost
from reconciler.observe import Observation, Observed, Unknown
from reconciler_specs.address import Kind
from reconciler_state.history import Run
from world import HEAD, World, home_text

TWO = (
    "        jobs:\n          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"
    "          look: {schedule: {every: 1h}, prompt: Look., deliver: local}\n"
)


def test_through_a_whole_life(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.home()
    world.home().add_job("mine", prompt="Water.")
    world.setup(HEAD + home_text(TWO))
    world.apply()
    assert not [n for h in world.plan().homes for n in h.notes if "also gone" in n]
    world.home().jobs().clear()
    [home] = world.plan().homes
    assert home.guard == "rebuild"
    [note] = [n for n in home.notes if "also gone" in n]
    assert "default/jobs" in note and "mine" in note and "brief" not in note


def test_what_we_deleted_ourselves_was_ours(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text(TWO))
    world.apply()
    world.setup(HEAD + home_text(TWO[: TWO.index("          look")]))
    world.apply()
    assert [dict(r.seen) for r in world.space().runs(world.space().ref("main"))] == [{}, {}]


def run(**seen: list[str]) -> Run:
    stores = {store.replace("_", "/"): names for store, names in seen.items()}
    return Run("r", "solo", "", "2026-01-02T00:00:00+00:00", "", "", {}, stores)


def test_what_is_there_or_could_not_be_seen_is_not_lost() -> None:
    there = {"a": Observed(Kind.JOB, "default", "a")}
    runs = [run(default_jobs=["a", "b name"], default_nonsense=["x"])]
    [note] = also_lost(runs, Observation(things={("default", Kind.JOB): there}))
    assert note.endswith("default/jobs: b name") and "2026-01-02" in note
    assert also_lost(runs, Observation(things={("default", Kind.JOB): Unknown("locked")})) == []
    assert also_lost([], Observation()) == []


def test_many_are_counted() -> None:
    [note] = also_lost([run(default_jobs=[f"id{n:02}" for n in range(40)])], Observation())
    assert note.endswith("and 30 more")
