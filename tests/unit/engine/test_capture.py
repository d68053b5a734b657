"""Capture: what goes into the setup and what is recorded of it, and what must not, or cannot, stand in one (L5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.capture import capture
from reconciler.errors import UsageError
from reconciler.observe import Unknown
from reconciler.workspace import Workspace
from reconciler_specs.address import Address
from reconciler_state.local import LocalStore
from world import HEAD, World, home_text

HIDDEN = {"$hidden": "0" * 32}


@pytest.mark.parametrize("value", [HIDDEN, {"a": HIDDEN}, [1, {"b": [HIDDEN]}], {"$native": "x"}], ids=str)
def test_what_cannot_stand_in_a_setup_is_refused(value: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text("        settings: {a.b: 1}\n"))
    (tmp_path / "setup.yaml").write_text(world.text)
    world.apply()
    world.edit([{"set": "default/settings/a.b", "value": value}])
    before = (tmp_path / "setup.yaml").read_bytes()
    with pytest.raises(UsageError, match="cannot stand in a setup"):
        capture(world.space(), ["main/default/settings/a.b"], world.space)
    assert (tmp_path / "setup.yaml").read_bytes() == before


TWO = (
    "        jobs:\n          brief: {schedule: {every: 30m}, prompt: %s, deliver: local}\n"
    "          other: {schedule: {every: 30m}, prompt: %s, deliver: local}\n"
)


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two jobs of ours; the setup stands in its file."""
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path)
    world.home()
    says(world, "old", "old")
    world.apply()
    return world


def says(world: World, brief: str, other: str) -> None:
    world.setup(HEAD + home_text(TWO % (brief, other)))
    (world.root / "setup.yaml").write_text(world.text)


def taken(world: World, *targets: str) -> list[str]:
    """The fields that a capture took; the world's setup is what stands in the file afterwards."""

    def again() -> Workspace:
        world.text = (world.root / "setup.yaml").read_text()
        return world.space()

    try:
        return [f"{c.address.rpartition('/')[2]}#{c.field}" for c in capture(world.space(), targets, again)]
    finally:
        again()


def test_what_only_the_setup_has_changed_is_not_taken_back(applied: World) -> None:
    says(applied, "new", "old")
    assert taken(applied, "main") == []
    assert applied.rows()["main/default/jobs/brief"].writes


def test_a_capture_writes_to_no_home_and_leaves_what_it_did_not_take(applied: World) -> None:
    applied.edit([{"set": "default/jobs/brief", "prompt": "theirs"}])
    says(applied, "old", "new")
    writes, jobs = applied.home().writes, repr(applied.home().jobs())
    assert taken(applied, "main/default/jobs") == ["brief#prompt"]
    assert (applied.home().writes, repr(applied.home().jobs())) == (writes, jobs)
    rows = applied.rows()
    assert set(rows) == {"main/default/jobs/other"} and rows["main/default/jobs/other"].writes


def test_what_the_setup_has_changed_of_the_same_thing_is_still_to_be_written(applied: World) -> None:
    applied.edit([{"set": "default/jobs/brief", "schedule": {"every": "60m"}}])
    says(applied, "new", "old")
    writes = applied.home().writes
    assert taken(applied, "main/default/jobs/brief#schedule") == ["brief#schedule"]
    assert applied.home().writes == writes
    row = applied.rows()["main/default/jobs/brief"]
    assert {c.field: str(c.row) for c in row.changes if c.writes} == {"prompt": "set"}


def test_of_both_sides_of_a_conflict_the_named_one_is_kept(applied: World) -> None:
    applied.edit([{"set": "default/jobs/brief", "prompt": "theirs", "schedule": {"every": "60m"}}])
    says(applied, "ours", "old")
    assert taken(applied, "main/default/jobs/brief#prompt") == ["brief#prompt"]
    assert {c.field: str(c.row) for c in applied.rows()["main/default/jobs/brief"].changes} == {"schedule": "drift"}


def test_what_the_home_does_not_show_is_not_captured(applied: World) -> None:
    applied.edit([{"set": "default/jobs/brief", "prompt": Unknown("it is behind a curtain")}])
    before = applied.text
    assert taken(applied, "main/default/jobs/brief") == []
    applied.edit([{"set": "default/jobs/brief", "prompt": "theirs"}, {"delete": "default/jobs/other"}])
    del applied.home().jobs()[applied.id_of(Address.parse("main/default/jobs/brief"), applied.home())]["prompt"]
    with pytest.raises(UsageError, match="no value to capture"):
        taken(applied, "main/default/jobs/brief")
    assert applied.text == before


def test_a_capture_of_a_held_home_records_nothing(applied: World) -> None:
    applied.edit([{"set": "default/jobs/brief", "prompt": "theirs"}])
    applied.home().version = "9.9"
    [before] = [applied.store.read(p) for p in applied.store.list()]
    assert taken(applied, "main/default/jobs/brief") == ["brief#prompt"]
    assert [LocalStore(applied.root / "state").read(p) for p in applied.store.list()] == [before]
