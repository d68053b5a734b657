"""A 7.1 home that 9.6 takes over: held while the two differ, and the same home afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw.adopted import adopt, plan
from openclaw.lab import NEW, NODE, OLD, make, program
from openclaw.test_reading import JOBS
from reconciler.plan import HomePlan
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
    finally:
        lab.stop()
    _, space = adopt(lab.root, tmp_path, OpenClawProvider(), {})
    assert rows(plan(space)) == []

    command.unlink()
    command.symlink_to(program(NEW))
    held = plan(space)
    assert held.hold is not None and "start its gateway once" in held.hold.why
    assert held.observation.version == f"{NEW} over {OLD}"

    lab.version = NEW
    try:
        lab.start()
        after = plan(space)
        assert after.hold is None and not after.failed
        assert after.observation.version == NEW
        assert rows(after) == []
    finally:
        lab.stop()
