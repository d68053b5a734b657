"""What is told of runs where not all of their journal is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.render.history import history_text
from reconciler.past import past
from world import HEAD, JOBS, World, home_text


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home with two runs, each in a part of its own."""
    monkeypatch.setattr("reconciler_state.journal.PART", 1)
    world = World(tmp_path)
    world.home()
    for text in (JOBS, JOBS.replace("30m", "31m")):
        world.setup(HEAD + home_text(text))
        world.apply()
    return world


def journals(world: World) -> list[Path]:
    return sorted((p for p in world.root.rglob("*.jsonl") if p.parent.name == "journal"), key=lambda p: len(p.name))


def test_whole_journals_are_told_without_a_word(world: World) -> None:
    found = past(world.space())
    assert len(found.commands) == 2 and not found.unread


def test_a_part_that_is_gone_is_said_beside_what_is_left(world: World) -> None:
    _, earlier = journals(world)
    earlier.unlink()
    found = past(world.space())
    assert len(found.commands) == 1
    assert next(iter(history_text(found, "", 20))) == (
        f"✗ main: {earlier.name} of its journal is gone: what was done before is told in part"
    )


def test_a_journal_that_cannot_be_read_is_said(world: World) -> None:
    now, _ = journals(world)
    now.write_bytes(b"rubbish\n" + now.read_bytes())
    found = past(world.space())
    assert not found.commands
    assert next(iter(history_text(found, "", 20))).startswith("✗ main: its journal cannot be read: ")
