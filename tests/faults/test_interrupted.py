"""Ctrl-C and SIGTERM: once finishes the step, twice leaves an intent that the next run settles (E41)."""

from __future__ import annotations

import signal

import pytest

from faults.rig import SECOND, Rig, settled, trouble

pytestmark = pytest.mark.hermes


@pytest.mark.parametrize("name", ["int", "term"])
def test_interrupted_once_in_a_step(rig: Rig, name: str) -> None:
    """E41: the step under way is read back and recorded, the rest is skipped and said so; nothing stays open."""
    rig.setup(SECOND)
    done = rig.full([f">door.perform:2:{name}"])
    assert (done.code, trouble(done)) == (4, []), done.text
    assert "✓ main/default/settings/agent.max_turns" in done.out
    assert "stopped by the person" in done.out
    plan = rig.plan().homes[0]
    assert not plan.intents
    assert sorted(a.address.key for a in plan.open) == ["brief", "old", "plants"]
    rig.apply()
    settled(rig)


def test_interrupted_twice(rig: Rig) -> None:
    """E41: the second Ctrl-C stops at once (exit 6); what was begun is an open intent, which the next run settles."""
    rig.setup(SECOND)
    rig.pipe()
    rig.arm("before-jobs", "wait")
    run = rig.start("apply", "--plan", str(rig.plan_file()), "--reviewed")
    worker = rig.reached("before-jobs")
    assert run.stderr is not None
    run.send_signal(signal.SIGINT)
    while b"Stopping" not in run.stderr.readline():
        pass
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 6, (out + err).decode()
    assert b"Traceback" not in err and b"next run" in err
    assert worker and rig.plan().homes[0].intents
    rig.apply()
    settled(rig)


def test_a_reader_that_goes_away(rig: Rig) -> None:
    """`apply | head -1`: a closed pipe ends no write half-way: what was begun is finished or settled."""
    rig.setup(SECOND)
    run = rig.start("apply", "--plan", str(rig.plan_file()), "--reviewed")
    assert run.stdout is not None
    run.stdout.readline()
    run.stdout.close()
    run.wait(timeout=60)
    assert run.stderr is not None
    assert b"Traceback" not in run.stderr.read()
    run.stderr.close()
    rig.apply()
    settled(rig)
