"""kill -9 at each step: the next run settles it, with at most one thing per address and nothing orphaned (L9, L11)."""

from __future__ import annotations

import os
import select
import shutil
import signal

import pytest

from faults.rig import SECOND, Rig, contents, settled, trouble

pytestmark = pytest.mark.hermes

# The steps of SECOND, in order: 1 file, 2 setting, 3 jobs.
ENGINE = [
    "<journal.begin:1:kill",
    "<journal.begin:3:kill",
    "<door.perform:2:kill",
    "<door.perform:3:kill",
    ">store.write:3:kill",
    "<store.write:3:kill",
    ">journal.end:1:kill",
]
WORKER = [
    ("start", "die"),
    ("before-jobs", "die"),
    ("after-jobs", "die"),
    ("after-config", "die"),
    ("start", "kill-us"),
    ("before-jobs", "kill-us"),
    ("after-jobs", "kill-us"),
    ("before-jobs", "kill-us die"),
    ("after-jobs", "kill-us die"),
]


@pytest.mark.parametrize("point", ENGINE)
def test_we_are_killed_at_each_step_of_the_engine(rig: Rig, point: str) -> None:
    """E23, L9: between journal, door, state and outcome there is no moment that the next run cannot settle."""
    rig.setup(SECOND)
    assert rig.full([point]).code == -signal.SIGKILL
    rig.apply()
    settled(rig)
    assert [j["name"] for j in rig.jobs()] == ["brief", "plants"]


@pytest.mark.parametrize(("point", "words"), WORKER, ids=lambda v: v.replace(" ", "+"))
def test_the_worker_or_both_are_killed(rig: Rig, point: str, words: str) -> None:
    """E23, L11: whoever dies, before, during or after a batch, the next run finds out by looking."""
    rig.setup(SECOND)
    rig.arm(point, words)
    first = rig.full()
    _gone(rig.reached(point))
    assert not trouble(first), first.text
    if "kill-us" in words:
        assert first.code == -signal.SIGKILL
    else:
        assert first.code in (0, 4, 6), first.text
    rig.apply()
    settled(rig)
    assert [j["name"] for j in rig.jobs()] == ["brief", "plants"]


def test_a_worker_that_outlives_its_run_keeps_the_home(rig: Rig) -> None:
    """L13: the lock is handed to the worker; who comes next is told of it, and changes nothing."""
    rig.setup(SECOND)
    rig.pipe()
    rig.arm("before-jobs", "kill-us wait")
    assert rig.full().code == -signal.SIGKILL
    worker = rig.reached("before-jobs")
    before = contents(rig.home, rig.state / "homes", rig.state / "journal")
    second = rig.full(FAULT_WAIT="0.3", faults=[">journal.end:9:kill"])
    assert second.code == 4, second.text
    assert "locked by a worker that is still finishing" in second.text
    assert "since" in second.text and "pid" in second.text
    assert contents(rig.home, rig.state / "homes", rig.state / "journal") == before
    rig.go()
    _gone(worker)
    assert rig.full().code == 0
    settled(rig)


def _gone(pid: int) -> None:
    """Waits for a process that is not our child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], 30)[0], f"{pid} lives on"
    finally:
        os.close(fd)


def _to_be_made(rig: Rig) -> None:
    """No home yet, and a setup that makes one."""
    shutil.rmtree(rig.home)
    rig.file.write_text(rig.file.read_text().replace("first_contact: adopt", "first_contact: provision"))


@pytest.mark.parametrize("point", ["after-profiles", "after-config", "after-jobs"])
def test_killed_while_a_home_is_made(bare: Rig, point: str) -> None:
    """L11: a `provision` that was cut off, whatever it had made, is finished by the next run and done once."""
    _to_be_made(bare)
    bare.arm(point, "kill-us die")
    assert bare.full().code == -signal.SIGKILL
    done = bare.full()
    assert (done.code, trouble(done)) == (0, []), done.text
    settled(bare)
    assert [j["name"] for j in bare.jobs()] == ["brief", "old"]


def test_one_writer_while_a_home_is_made(bare: Rig) -> None:
    """L13, E42: a home that a run has just made is that run's until it ends, for who comes next too."""
    _to_be_made(bare)
    bare.pipe()
    bare.arm("before-jobs", "wait")
    first = bare.start("apply", "main", "--yes")
    bare.reached("before-jobs")
    second = bare.cli("apply", "main", "--yes", faults=[">journal.end:9:kill"], FAULT_WAIT="0.5")
    bare.go()
    out, err = first.communicate(timeout=30)
    names = [j["name"] for j in bare.jobs()]
    assert len(names) == len(set(names)), f"two jobs for one address: {names}"
    assert (first.returncode, second.code) == (0, 4), (out + err, second.text)
    settled(bare)


def test_what_a_person_makes_after_a_cut_off_create_stays_theirs(rig: Rig) -> None:
    """E24, L11: only what matches the lost create is taken for it. A job that a person made meanwhile under the
    same name, with another prompt, is `unowned`: never taken as made by us."""
    rig.setup(SECOND)
    rig.arm("before-jobs", "kill-us die")
    assert rig.full().code == -signal.SIGKILL
    rig.hermes(
        "import cron.jobs as c, json\n"
        "j = c.create_job(name='plants', prompt='My own words.', schedule='every 9h', deliver='local')\n"
        "print(json.dumps(j['id']))"
    )
    assert str(rig.rows()["main/default/jobs/plants"].row) == "unowned"


def test_a_file_that_a_person_writes_after_a_cut_off_create_stays_theirs(rig: Rig) -> None:
    """L11, E24 for kinds matched by place: another text at the path is not what the lost run would have made."""
    rig.setup('files:\n  memories/USER.md: {text: "Likes tea.\\n"}\n' + "jobs: {}\n")
    rig.arm("before-files", "kill-us die")
    assert rig.full().code == -signal.SIGKILL
    (rig.home / "memories").mkdir(exist_ok=True)
    (rig.home / "memories" / "USER.md").write_text("My own diary.\n")
    row = rig.rows()["main/default/files/memories/USER.md"]
    assert (str(row.row), row.writes and str(row.tier)) in (("unowned", False), ("update", "confirm")), row
    owned = rig.plan().homes[0].state.owned("solo").get("default/files/memories/USER.md")
    assert owned is None or owned.origin != "created"
