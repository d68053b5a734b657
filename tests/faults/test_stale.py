"""What changes between plan and apply is refused with the new difference, and never overwritten (L8, E30, F03)."""

from __future__ import annotations

import pytest

from faults.rig import SECOND, Rig, trouble

pytestmark = pytest.mark.hermes

_UPDATE = 'import sys, json, cron.jobs as c\nc.update_job(sys.argv[1], {"prompt": "By hand."}); print(1)'
_RENAME = 'import sys, json, cron.jobs as c\nc.update_job(sys.argv[1], {"name": "Mine"}); print(1)'
_PAUSE = "import sys, cron.jobs as c\nc.pause_job(sys.argv[1], reason='by hand'); print(1)"
_DELETE = "import sys, cron.jobs as c\nc.remove_job(sys.argv[1]); print(1)"
_AGAIN = """
import sys, cron.jobs as c
c.remove_job(sys.argv[1])
c.create_job(name="brief", prompt="Write the brief.", schedule="0 8 * * *", deliver="local"); print(1)
"""
_DOUBLE = """
import cron.jobs as c
c.create_job(name="brief", prompt="Write the brief.", schedule="0 8 * * *", deliver="local"); print(1)
"""
_TWIN = """
import cron.jobs as c
c.create_job(name="plants", prompt="Mine.", schedule="every 9h", deliver="local"); print(1)
"""


@pytest.mark.parametrize(
    ("code", "row", "words"),
    [
        (_UPDATE, "update", "conflict"),
        (_RENAME, "update", "changed in the home"),
        (_PAUSE, "update", ""),
        (_DELETE, "missing", "make it again"),
        (_AGAIN, "replaced", "has its name"),
    ],
    ids=["edited", "renamed", "paused", "deleted", "made again"],
)
def test_a_job_changed_by_hand_after_the_plan(rig: Rig, code: str, row: str, words: str) -> None:
    """E1, E2, E4, E7, E30: the row is refused, the new difference is shown, the other rows go on."""
    rig.setup(SECOND)
    made = rig.elsewhere("plan", "--out", str(rig.root / "plan.json"))
    assert made.code == 0, made.text
    brief = rig.job("brief")
    rig.hermes(code, brief["id"])
    after = [j for j in rig.jobs() if j["name"] not in ("old", "plants")]
    done = rig.cli("apply", "--plan", str(rig.root / "plan.json"), "--reviewed")
    # Refused (4), also where the new row is held by itself: what was approved was not done.
    assert (done.code, trouble(done)) == (4, []), done.text
    assert str(rig.rows()["main/default/jobs/brief"].row) == row
    assert words in done.text
    assert [j for j in rig.jobs() if j["name"] not in ("old", "plants")] == after
    assert "✓ main/default/settings/agent.max_turns" in done.text
    assert [j["name"] for j in rig.jobs() if j["name"] == "plants"] == ["plants"]


def test_a_double_of_an_owned_job(rig: Rig) -> None:
    """E6, L1: a namesake made by hand is not ours: the owned one is changed by its id, the other stays."""
    rig.setup(SECOND)
    brief = rig.job("brief")["id"]
    rig.elsewhere("plan", "--out", str(rig.root / "plan.json"))
    rig.hermes(_DOUBLE)
    done = rig.cli("apply", "--plan", str(rig.root / "plan.json"), "--reviewed")
    assert done.code == 0, done.text
    prompts = {j["id"]: j["prompt"] for j in rig.jobs() if j["name"] == "brief"}
    assert prompts.pop(brief) == "Write the long brief."
    assert list(prompts.values()) == ["Write the brief."]


def test_a_twin_of_what_is_to_be_created(rig: Rig) -> None:
    """E5, presence table: between plan and apply a person makes the job: a twin is never created."""
    rig.setup(SECOND)
    rig.elsewhere("plan", "--out", str(rig.root / "plan.json"))
    rig.hermes(_TWIN)
    done = rig.cli("apply", "--plan", str(rig.root / "plan.json"), "--reviewed")
    assert (done.code, trouble(done)) == (4, []), done.text
    assert str(rig.rows()["main/default/jobs/plants"].row) == "unowned"
    assert [j["prompt"] for j in rig.jobs() if j["name"] == "plants"] == ["Mine."]


@pytest.mark.parametrize("point", ["before-jobs", "before-config", "before-files"])
def test_a_change_between_the_locked_plan_and_the_write(rig: Rig, point: str) -> None:
    """L9, L16, E30: even after the last plan, under the lock, the worker looks once more before it writes."""
    rig.setup(SECOND)
    rig.pipe()
    rig.arm(point, "wait")
    run = rig.start("apply", "--plan", str(rig.plan_file()), "--reviewed")
    rig.reached(point)
    if point == "before-jobs":
        rig.edit_jobs(lambda jobs: jobs[0].update(prompt="By hand."))
    elif point == "before-config":
        text = (rig.home / "config.yaml").read_text()
        (rig.home / "config.yaml").write_text(text.replace("120", "77"))
    else:
        (rig.home / "SOUL.md").write_text("All mine now.\n")
    rig.go()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 4, (out + err).decode()
    assert "has changed since it was looked at" in out.decode()
    text = (rig.home / "config.yaml").read_text()
    assert (rig.job("brief")["prompt"] == "By hand.") == (point == "before-jobs")
    assert ("77" in text) == (point == "before-config")
    assert ((rig.home / "SOUL.md").read_text() == "All mine now.\n") == (point == "before-files")
