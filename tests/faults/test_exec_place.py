"""A home behind a command prefix gives the results of a local one; a prefix that fails takes only its home with it."""

from __future__ import annotations

import shutil

import pytest

from faults.rig import FIRST, SECOND, Rig, settled, snapshot, trouble

pytestmark = pytest.mark.hermes

_WAY = """exec: [env, -i, "PATH=/usr/bin:/bin", sh, -c, 'exec "$@"', sh]"""


def _box(rig: Rig, body: str, way: str = _WAY) -> None:
    rig.setup(body, head=f"places:\n  box: {{{way}}}\n", home="    at: box\n")


@pytest.fixture
def box(bare: Rig) -> Rig:
    _box(bare, FIRST)
    assert {str(e.outcome) for e in bare.apply() if e.outcome} == {"applied"}
    return bare


def test_the_whole_life_behind_a_prefix(box: Rig) -> None:
    """5. of “What must work”: plan, apply, drift, restore, delete and quiet, by the command line."""
    settled(box)
    _box(box, SECOND)
    done = box.full()
    assert (done.code, trouble(done)) == (0, []), done.text
    settled(box)
    assert [j["name"] for j in box.jobs()] == ["brief", "plants"]
    before = snapshot(box.home, box.state)
    assert box.cli("apply", "--yes").code == 0
    assert snapshot(box.home, box.state) == before
    box.edit_jobs(lambda jobs: jobs[0].update(prompt="By hand."))
    done = box.cli("plan", "--detailed-exitcode")
    assert (done.code, "changed in the home" in done.out) == (3, True), done.text
    assert box.cli("apply", "--restore", "main/default/jobs/brief").code == 0
    settled(box)


def test_a_home_is_made_behind_a_prefix(bare: Rig) -> None:
    """L4: `provision` needs nothing of ours at the place."""
    shutil.rmtree(bare.home)
    _box(bare, FIRST)
    done = bare.cli("provision", "main", "--yes")
    assert (done.code, trouble(done)) == (0, []), done.text
    settled(bare)


@pytest.mark.parametrize("point", ["before-jobs", "after-jobs"])
def test_a_worker_behind_a_prefix_is_lost(box: Rig, point: str) -> None:
    """L11 at a place: the batch was written or not; the next run finds out."""
    _box(box, SECOND)
    box.arm(point, "die")
    done = box.full()
    box.reached(point)
    assert (done.code in (0, 6), trouble(done)) == (True, []), done.text
    box.apply()
    settled(box)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ('exec: ["false"]', "does not answer"),
        ("exec: [/no/such/program]", "does not answer"),
        ("""exec: [sh, -c, 'echo no such container >&2; exit 125', sh]""", "no such container"),
        ("""exec: [sh, -c, 'echo Welcome; exec "$@"', sh]""", "printed something else"),
        ("""exec: [sh, -c, 'printf "\\033[31m\\377\\n" >&2; exit 1', sh]""", "does not answer"),
    ],
    ids=["fails", "is not there", "says why", "prints first", "prints rubbish"],
)
def test_a_prefix_that_does_not_lead_there(bare: Rig, way: str, words: str) -> None:
    """L10, L12: that home fails with a clear sentence (exit 4), and the local home beside it is applied."""
    _box(bare, FIRST.replace("agent.max_turns: 120", "display.compact: true"), way)
    other = bare.make_home(home=bare.root / "second")
    text = bare.file.read_text()
    block = text[text.index("  main:") :].replace("  main:", "  other:").replace(str(bare.home), str(other))
    bare.file.write_text(text + block.replace("    at: box\n", ""))
    before = snapshot(bare.home)
    done = bare.cli("apply", "main", "other", "--yes")
    assert (done.code, trouble(done)) == (4, []), done.text
    assert words in done.text, done.text
    assert snapshot(bare.home) == before
    assert (other / "cron" / "jobs.json").exists()


def test_a_prefix_that_hangs(bare: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """L10: no answer in time is a home that failed (in this process, so that the time may be short)."""
    from reconciler import place_exec

    monkeypatch.setattr(place_exec, "_FIRST_ANSWER", 0.5)
    _box(bare, FIRST, "exec: [sleep, '1000', '#']")
    monkeypatch.setattr(place_exec.ExecPlace, "argv", lambda self, words: ["sleep", "1000"])
    [plan] = bare.plan().homes
    assert "no answer" in plan.failed, plan
