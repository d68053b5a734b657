"""A 7.1 home that 9.6 takes over: held while the two differ, and the same home afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw.adopted import adopt, plan
from openclaw.lab import NEW, NODE, OLD, make, program
from openclaw.test_reading import JOBS
from reconciler.plan import HomePlan
from reconciler.testing.kit import tree
from reconciler_openclaw.provider import OpenClawProvider

pytestmark = pytest.mark.openclaw


def rows(found: HomePlan) -> list[tuple[str, str, str]]:
    return [(str(a.address), str(a.row), a.reason) for a in found.actions]


def test_a_home_that_a_newer_version_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path = Path(os.path.realpath(tmp_path))
    lab = make(tmp_path / "user", OLD)
    monkeypatch.setenv("HOME", str(lab.user))
    command = tmp_path / "bin" / "openclaw"
    command.parent.mkdir()
    command.symlink_to(program(OLD))
    monkeypatch.setenv("PATH", f"{command.parent}:{NODE.parent}:/usr/bin:/bin")
    try:
        lab.start()
        for name, job in JOBS.items():
            lab.add_job(name=name, **job)
        _, space = adopt(lab.root, tmp_path, OpenClawProvider(), {})
        assert rows(plan(space)) == []
        command.unlink()
        command.symlink_to(program(NEW))
        # The program is another one now, and the gateway still the old.
        running = plan(space)
        assert lab.gateway is not None
        assert any(f"(pid {lab.gateway.pid}, {OLD}) serves this home" in note for note in running.notes)
        assert_held(running)
    finally:
        lab.stop()
    before = tree(lab.root)
    assert_held(plan(space))
    assert tree(lab.root) == before

    lab.version = NEW
    try:
        lab.start()
        after = plan(space)
        assert after.hold is None and not after.failed
        assert after.observation.version == NEW
        assert rows(after) == []
        (brief,) = [job["id"] for job in lab.jobs().values() if job["name"] == "brief"]
        lab.rpc("cron.update", id=brief, patch={"payload": {"kind": "agentTurn", "message": "By hand."}})
        (row,) = plan(space).actions
        assert (str(row.address), [(c.field, str(c.row)) for c in row.changes]) == (
            "main/default/jobs/brief",
            [("prompt", "drift")],
        )
    finally:
        lab.stop()


def assert_held(found: HomePlan) -> None:
    """Both versions are told, and nothing would be written."""
    assert found.hold is not None and "start its gateway once" in found.hold.why
    assert found.observation.version == f"{NEW} over {OLD}"
    assert found.open == ()
