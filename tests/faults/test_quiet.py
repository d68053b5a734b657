"""Nothing to do is nothing done: no byte, no time of change, no process (L7); and no consent is no write (L8)."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from faults.rig import FIRST, SECOND, Rig, snapshot
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.event import Outcome
from reconciler.plan import Options

pytestmark = pytest.mark.hermes

_MINE = """
import json, cron.jobs as c
from hermes_cli.profiles import create_profile
create_profile("own", no_alias=True)
print(json.dumps(c.create_job(name="mine", prompt="For me.", schedule="every 9h", deliver="local")["id"]))
"""


def test_a_hundred_applies_of_an_unchanged_setup(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7, E52, F17: no byte of home or state, no time of change, no process, no next run; what is the person's own
    (a job, a skill, a profile) is still there."""
    mine = rig.hermes(_MINE)
    before = snapshot(rig.home, rig.state)
    for _ in range(2):
        done = rig.cli("apply", "--yes")
        assert (done.code, "Nothing to do." in done.out) == (0, True), done.text
    assert rig.cli("apply", "main", "--yes", "--json", "--events", str(rig.root / "events")).code == 0

    def no_process(*_args: Any, **_more: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", no_process)
    for _ in range(100):
        assert not [e for e in rig.apply() if e.what == "outcome"]
    assert snapshot(rig.home, rig.state) == before
    assert rig.job("mine")["id"] == mine
    assert (rig.home / "profiles" / "own").is_dir()
    assert (rig.home / "skills" / "mine" / "SKILL.md").is_file()


def test_a_persons_own_things_survive_changes(rig: Rig) -> None:
    """L2, L16, F17: rounds of create, update and delete, and nobody else's record, skill or profile has changed."""
    rig.hermes(_MINE)
    mine = rig.job("mine")
    others = [rig.home / "profiles", rig.home / "skills", rig.home / ".env"]
    before = snapshot(*others)
    for body in (SECOND, FIRST, SECOND):
        rig.setup(body)
        rig.apply()
    assert rig.job("mine") == mine
    assert snapshot(*others) == before


@pytest.mark.parametrize("consent", [Consent(), Consent(reviewed=True, terminal=True)], ids=["none", "reviewed only"])
def test_apply_without_consent_writes_nothing(bare: Rig, consent: Consent) -> None:
    """“Gate and consent”: `apply()` itself asks; neither home nor state has changed, the lock's note included. That it
    asked is recorded, once."""
    before = snapshot(bare.home)
    events = bare.apply(consent)
    assert {e.outcome for e in events if e.what == "outcome"} == {Outcome.WAITS, Outcome.SKIPPED} - (
        set() if any(e.outcome is Outcome.SKIPPED for e in events) else {Outcome.SKIPPED}
    )
    assert snapshot(bare.home) == before
    files = {p: p.read_bytes() for p in bare.state.rglob("*") if p.is_file()}
    assert [p.parent.name for p in files] == ["decisions"]
    bare.apply(consent)
    assert {p: p.read_bytes() for p in bare.state.rglob("*") if p.is_file()} == files


def test_a_generator_that_nobody_iterates_does_nothing(bare: Rig) -> None:
    """L8: calling is not carrying out, and letting go of it half-way releases the home."""
    space = bare.space()
    plan = space.plan(Options())
    consent = Consent(yes=True, approved=frozenset(plan.homes[0].digests.values()))
    before = snapshot(bare.home)
    apply(plan, consent, space, Options())
    assert snapshot(bare.home) == before and not bare.state.exists()
    events = apply(plan, consent, space, Options())
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert {str(e.outcome) for e in bare.apply() if e.outcome} == {"applied"}
