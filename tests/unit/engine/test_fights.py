"""A field that we restore and somebody changes back, over and over, is reported and left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.action import FieldRow
from reconciler.fights import OFTEN
from reconciler.plan import Options
from world import HEAD, World, home_text

POLICY = "policy: {on_drift: restore, unattended: [restore jobs]}\n"


def restoring(prompt: str = "Write.") -> str:
    job = f"          brief: {{schedule: {{every: 30m}}, prompt: {prompt}, deliver: local}}\n"
    return HEAD + POLICY + home_text("        jobs:\n" + job)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.home()
    world.setup(restoring())
    world.apply()
    for turn in range(OFTEN):
        change(world, f"Mine {turn}.")
        assert row(world) is FieldRow.RESTORE
        world.apply()
    return world


def change(world: World, prompt: str) -> None:
    world.edit([{"set": "default/jobs/brief", "prompt": prompt}])


def row(world: World, options: Options | None = None) -> FieldRow | None:
    actions = [a for h in world.plan(options).homes for a in h.actions]
    return next((c.row for a in actions for c in a.changes if c.field == "prompt"), None)


def test_the_fourth_time_it_is_held_and_says_why(world: World) -> None:
    assert row(world) is None  # in sync: no fight while nobody changes it
    change(world, "Mine again.")
    [action] = [a for h in world.plan().homes for a in h.actions]
    [field] = action.held_fields
    assert field.row is FieldRow.DRIFT and "a fight: restored 3 times" in field.note
    assert not action.writes and action.tier == "auto"
    assert not [e for e in world.apply() if e.what == "outcome"]


def test_a_person_may_go_on(world: World) -> None:
    change(world, "Mine again.")
    options = Options(restore=("main/default/jobs/brief",))
    assert row(world, options) is FieldRow.RESTORE
    world.apply(options=options)
    assert row(world) is None


def test_another_value_in_the_setup_ends_it(world: World) -> None:
    world.setup(restoring("Something new."))
    world.apply()
    change(world, "Mine again.")
    assert row(world) is FieldRow.RESTORE


def test_another_field_is_no_part_of_it(world: World) -> None:
    world.edit([{"set": "default/jobs/brief", "prompt": "Mine again.", "schedule": {"every": "45m"}}])
    [action] = [a for h in world.plan().homes for a in h.actions]
    assert {c.field: c.row for c in action.changes if c.writes} == {"schedule": FieldRow.RESTORE}
    assert [c.field for c in action.held_fields] == ["prompt"]


def test_a_fight_that_was_stopped_restarts_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.home().gateways["default"] = "s1"
    channel = "        channels:\n          telegram: {enabled: true, fields: {enabled: restore}}\n"
    world.setup(HEAD + home_text(channel).replace("adopt\n", "adopt\n    restart: when_needed\n", 1))
    for _ in range(OFTEN + 1):
        world.apply()
        world.edit([{"set": "default/channels/telegram", "enabled": False}])
    assert [r.row for r in world.rows().values()] == ["update"] and not any(r.writes for r in world.rows().values())


def test_another_value_in_the_setup_over_a_drift_ends_it_too(world: World) -> None:
    change(world, "Mine again.")
    world.setup(restoring("Something new."))
    world.apply(options=Options(restore=("main/default/jobs/brief",)))
    change(world, "Mine, once more.")
    assert row(world) is FieldRow.RESTORE
