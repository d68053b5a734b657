"""Several runs and several homes: one writer each, and nobody else's home changes by a byte (L13, L17, E42)."""

from __future__ import annotations

import json
import os

import pytest

from faults.rig import FIRST, SECOND, Rig, contents, settled, snapshot, trouble

pytestmark = pytest.mark.hermes


def test_two_applies_at_once(rig: Rig) -> None:
    """E42: one works; the other says who holds the home, since when, exits 4, and has changed nothing."""
    rig.setup(SECOND)
    rig.pipe()
    rig.arm("before-jobs", "wait")
    first = rig.start("apply", "--plan", str(rig.plan_file()), "--reviewed")
    rig.reached("before-jobs")
    before = contents(rig.home, rig.state / "homes", rig.state / "journal")
    rig.env["FAULT_WAIT"] = "0.3"
    second = rig.cli("apply", "--plan", str(rig.root / "plan.json"), "--reviewed")
    assert contents(rig.home, rig.state / "homes", rig.state / "journal") == before
    assert (second.code, trouble(second)) == (4, []), second.text
    assert f"pid {first.pid}" in second.text and "since 20" in second.text, second.text
    assert rig.cli("plan").code == 0  # reading waits for nobody
    rig.go()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, (out + err).decode()
    settled(rig)


def test_who_waits_goes_on_when_the_first_is_done(rig: Rig) -> None:
    """L13: within the ten seconds the second run gets its turn, plans again, and finds nothing left to do."""
    rig.setup(SECOND)
    rig.pipe()
    rig.arm("before-jobs", "wait")
    plan = str(rig.plan_file())
    first = rig.start("apply", "--plan", plan, "--reviewed")
    rig.reached("before-jobs")
    second = rig.start("apply", "--plan", plan, "--reviewed")
    assert second.stdout is not None
    os.read(second.stdout.fileno(), 1)  # its plan is shown: it is about to wait
    rig.go()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, (out + err).decode()
    out, err = second.communicate(timeout=60)
    assert b"Traceback" not in err and second.returncode in (0, 4), (out + err).decode()
    settled(rig)


BODY = FIRST.replace("agent.max_turns: 120", "display.compact: true")


@pytest.fixture
def two(bare: Rig) -> Rig:
    other = bare.make_home(home=bare.root / "second")
    bare.setup(BODY, homes={"main": str(bare.home), "other": str(other)})
    return bare


def test_two_homes_side_by_side(two: Rig) -> None:
    """`--parallel`: both homes are worked on, events of both come, and both are quiet afterwards."""
    done = two.cli("apply", "main", "other", "--yes", "--parallel", "2", "--events", "events")
    assert (done.code, trouble(done)) == (0, []), done.text
    homes = {json.loads(line)["home"] for line in (two.root / "events").read_text().splitlines()}
    assert homes == {"main", "other"}
    assert two.cli("apply", "--yes", "--json").code == 0
    settled(two)


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_one_home_fails_and_the_other_goes_on(two: Rig, parallel: str) -> None:
    """L12: a worker that dies in one home stops that home alone; the other is applied, and the code is 4."""
    two.arm("after-hello", "die")
    done = two.cli("apply", "main", "other", "--yes", "--parallel", parallel)
    assert (done.code, trouble(done)) == (4, []), done.text
    finished = [h for h in (two.home, two.root / "second") if (h / "cron" / "jobs.json").exists()]
    assert len(finished) == 1
    assert two.cli("apply", "main", "other", "--yes").code == 0
    settled(two)


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_the_disk_of_the_state_fails_in_one_home(two: Rig, parallel: str) -> None:
    """L12, exit codes: state that cannot be written after the door wrote stops this home; the others go on, and the
    code does not say that nothing was started."""
    done = two.cli("apply", "main", "other", "--yes", "--parallel", parallel, faults=[">store.write:2:fail"])
    assert not trouble(done), done.text
    assert done.code in (4, 6), (done.code, done.text)
    both = [(h / "cron" / "jobs.json").exists() for h in (two.home, two.root / "second")]
    assert any(both), "no home was finished"
    two.apply()
    settled(two)


def test_a_decoy_home_stays_as_it_is(rig: Rig) -> None:
    """L17: whatever the caller's environment says, only the declared home is written; rubbish in it stops nothing."""
    (rig.root / "user").mkdir()
    decoy = rig.make_home(home=rig.root / "user" / ".hermes")
    (decoy / "profiles" / "work").mkdir(parents=True)
    before = snapshot(rig.root / "user")
    rubbish = rig.root / "rubbish.py"
    rubbish.write_text("raise SystemExit('startup')\n")
    rig.setup(SECOND)
    done = rig.full(
        HERMES_HOME=str(decoy),
        HERMES_PROFILE="work",
        HERMES_CONFIG=str(decoy / "config.yaml"),
        HERMES_CRON_DIR=str(decoy / "cron"),
        HERMES_MANAGED="nixos",
        HERMES_SESSION_PLATFORM="telegram",
        HERMES_SESSION_CHAT_ID="1",
        XDG_CONFIG_HOME=str(decoy),
        PYTHONSTARTUP=str(rubbish),
    )
    assert (done.code, trouble(done)) == (0, []), done.text
    assert snapshot(rig.root / "user") == before
    assert {j["origin"] is None for j in rig.jobs()} == {True}
    settled(rig)


def test_pythonhome_and_shadowing_modules_do_not_reach_the_worker(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """L17: in this process, since a wrong PYTHONHOME would already stop our own interpreter."""
    shadow = rig.root / "shadow"
    shadow.mkdir()
    for name in ("cron", "utils", "yaml", "hermes_cli", "tools", "json", "sitecustomize"):
        (shadow / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    monkeypatch.setenv("PYTHONPATH", str(shadow))
    monkeypatch.chdir(shadow)
    rig.setup(SECOND)
    assert {str(e.outcome) for e in rig.apply() if e.outcome} == {"applied"}


def test_a_sticky_profile_leads_nowhere(rig: Rig) -> None:
    """Findings 8: `active_profile` redirects Hermes's own commands; our writes go to the profile that is named."""
    (rig.home / "profiles" / "work").mkdir(parents=True)
    (rig.home / "active_profile").write_text("work\n")
    rig.setup(SECOND)
    before = snapshot(rig.home / "profiles")
    done = rig.full()
    assert (done.code, "active_profile is work" in done.text) == (0, True), done.text
    assert snapshot(rig.home / "profiles") == before
    settled(rig)


def test_one_physical_home_by_two_paths(rig: Rig) -> None:
    """E14, L3: a link to the home is the same home: the same state, the same lock, and no second owner."""
    (rig.root / "link").symlink_to(rig.home)
    rig.setup(FIRST, homes={"main": str(rig.root / "link")})
    assert rig.cli("plan", "--detailed-exitcode").code == 0
    rig.setup(FIRST, homes={"main": str(rig.home), "other": str(rig.root / "link")})
    before = snapshot(rig.home)
    done = rig.cli("apply", "--yes")
    assert (done.code, "one physical home" in done.text) == (4, True), done.text
    assert snapshot(rig.home) == before
