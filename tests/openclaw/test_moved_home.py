"""A home that was moved, one that was copied, and one that is new: OpenClaw leaves the jobs of the first two behind.

It keys them by the path with which it was started, and says nothing about it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from openclaw.life import House, Life, make, nothing_starts
from openclaw.test_life_at_rest import COMMON
from openclaw.test_writing import told
from reconciler.action import Row
from reconciler.plan import Options
from reconciler.testing.kit import outcomes

pytestmark = [pytest.mark.openclaw, pytest.mark.timeout(900)]


def other(life: Life, name: str) -> House:
    """A home of the same user, beside the shared one."""
    found = House(life.lab.user, life.lab.version, life.lab.port)
    found.name = name
    return found


def rows(life: Life, text: str) -> dict[str, tuple[Row, str, str]]:
    return {path: (a.row, a.guard, a.hold.why if a.hold else "") for path, a in life.rows(text).items()}


def test_a_moved_home_is_told_from_a_copy_and_a_new_one_and_its_jobs_are_made_once(life: Life) -> None:
    lab = life.lab
    lab.down()
    body = COMMON
    life.converge(life.setup(body))  # the jobs that are there, if another test has made them
    was = str(lab.root)
    copy, moved = other(life, "copy"), other(life, "moved")
    try:
        shutil.copytree(lab.root, copy.root, symlinks=True)
        life.lab = copy
        found = rows(life, life.setup(body))
        for name in ("brief", "plants"):
            row, guard, why = found[f"default/jobs/{name}"]
            assert (row, guard) == (Row.CREATE, "rebuild")
            assert f"are kept for {was}, and none for {copy.root}: this is a copy of that home" in why
        with nothing_starts():
            assert not [path for path, outcome in told(life.apply(life.setup(body))).items() if "jobs" in path]

        life.lab = moved
        lab.root.rename(moved.root)
        plan = life.plan(life.setup(body)).homes[0]
        held = [a for a in plan.actions if a.hold is not None]
        assert {a.address.key for a in held} == {"brief", "plants"}
        assert all("the home was moved from there" in a.hold.why for a in held if a.hold)
        assert all(a.hold.command.endswith("--allow rebuild") for a in held if a.hold)

        allowed = Options(allow=frozenset({"rebuild"}))
        done = outcomes(life.apply(life.setup(body), allowed))
        assert {done[f"default/jobs/{name}"] for name in ("brief", "plants")} == {"applied"}, done
        assert sorted(moved.stored().values()) == ["brief", "plants"]
        with nothing_starts():
            assert life.apply(life.setup(body), allowed) == []
            assert life.apply(life.setup(body)) == []
    finally:
        shutil.rmtree(copy.root, ignore_errors=True)
        if moved.root.exists():
            moved.root.rename(lab.root)
        life.lab = lab
    fresh = make(Path(os.path.realpath(life.root)), lab.version)
    life.lab = fresh
    assert rows(life, life.setup(body))["default/jobs/brief"] == (Row.CREATE, "", "")


def test_a_home_that_we_knew_and_that_lost_its_jobs_is_held_whole(life: Life) -> None:
    """L14: state knows this path; what lies there now is a copy of another home."""
    lab = life.lab
    lab.down()
    body = COMMON
    life.converge(life.setup(body))
    aside, elsewhere = lab.user / "aside", lab.user / "elsewhere"
    lab.root.rename(aside)
    try:
        shutil.copytree(aside, elsewhere)
        database = elsewhere / "state" / "openclaw.sqlite"
        _rekeyed(database, str(lab.root), str(elsewhere))
        elsewhere.rename(lab.root)
        plan = life.plan(life.setup(body)).homes[0]
        assert (plan.guard, plan.open) == ("rebuild", ())
        assert plan.hold is not None and plan.hold.command.endswith("--allow rebuild")
        assert any(f"are kept for {elsewhere}" in note for note in plan.notes)
    finally:
        shutil.rmtree(lab.root, ignore_errors=True)
        aside.rename(lab.root)


def _rekeyed(database: Path, old: str, new: str) -> None:
    """As if the home had always been started as `new`."""
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("UPDATE cron_jobs SET store_key = replace(store_key, ?, ?)", (old, new))
    connection.close()
