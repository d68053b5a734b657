"""The pipeline files of examples/09-gitops, each played on this machine: from a pull request to a changed home."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from pipelines.forge import EXAMPLE, FILES, TOKEN, Forge, real

SETUP = (EXAMPLE / "setup.yaml").read_text()
CHANGED = SETUP.replace("Write the brief.", "Write the brief in ten lines.")
GONE = SETUP[: SETUP.index("          review:")]  # the last job left the setup


@pytest.fixture(params=sorted(FILES))
def forge(request: pytest.FixtureRequest, tmp_path: Path) -> Forge:
    """A forge whose main branch has the example's setup, which its pipeline has applied."""
    made = Forge(real(tmp_path), request.param)
    made.propose(SETUP)
    first = made.job("apply", made.merge())
    assert not first.failed, first.output
    assert made.jobs() == {"brief": "Write the brief.", "review": "Sum up the week."}
    return made


def test_from_a_pull_request_to_the_home(forge: Forge) -> None:
    plan = forge.job("plan", forge.propose(CHANGED))
    assert not plan.failed, plan.output
    [sent] = forge.sent()
    assert "default/jobs/brief" in "".join(sent["bodies"])
    assert TOKEN not in str(sent["argv"]) and TOKEN not in plan.output
    assert forge.jobs()["brief"] == "Write the brief."  # a plan writes nothing

    done = forge.job("apply", forge.merge())
    assert (done.code, done.failed) == (0, False), done.output
    assert forge.jobs()["brief"] == "Write the brief in ten lines."
    assert forge.job("drift", forge.git("rev-parse", "main")).code == 0
    # The same pipeline started again by hand has nothing to do.
    again = forge.job("apply", forge.git("rev-parse", "main"))
    assert again.code == 0 and "Nothing to do." in again.output


def test_a_plan_that_went_stale_overwrites_nothing(forge: Forge) -> None:
    plan = forge.job("plan", forge.propose(CHANGED))
    forge.edit("Write the brief.", "Write it my way.")
    done = forge.job("apply", forge.merge())
    assert not done.failed and "conflict" in done.output
    assert forge.jobs()["brief"] == "Write it my way."
    assert forge.job("drift", forge.git("rev-parse", "main")).code == 3
    # Nor does the plan itself, which a person may still have.
    late = forge.shell(f"reconciler apply --plan {plan.folder}/plan.json --reviewed")
    assert late.returncode == 4 and forge.jobs()["brief"] == "Write it my way."


def test_a_delete_without_a_review_waits_for_an_approval(forge: Forge) -> None:
    forge.propose(GONE)
    commit = forge.merge()
    done = forge.job("apply", commit)
    assert (done.code, done.failed) == (5, True), done.output
    assert "review" in forge.jobs()

    given = forge.shell("reconciler plan --out plan.json && reconciler approve plan.json")
    assert given.returncode == 0, given.stdout + given.stderr
    done = forge.job("apply", commit)
    assert done.code == 0, done.output
    assert list(forge.jobs()) == ["brief"]


def test_a_delete_that_the_merge_has_reviewed(forge: Forge) -> None:
    plan = forge.job("plan", forge.propose(GONE))
    digest = json.loads((plan.folder / "plan.json").read_text())["digest"]
    assert digest in "".join(forge.sent()[-1]["bodies"])  # who reviews finds it in the comment
    done = forge.job("apply", forge.merge(message=f"Take the review away\n\nReviewed-plan: {digest}"))
    assert done.code == 0, done.output
    assert list(forge.jobs()) == ["brief"]


def test_a_review_of_another_plan_is_none(forge: Forge) -> None:
    plan = forge.job("plan", forge.propose(CHANGED))
    digest = json.loads((plan.folder / "plan.json").read_text())["digest"]
    forge.propose(GONE)
    done = forge.job("apply", forge.merge(message=f"Something else\n\nReviewed-plan: {digest}"))
    assert done.code == 5 and "review" in forge.jobs()


def test_two_runners_at_once(forge: Forge) -> None:
    noon = "          noon: {schedule: {every: 1h}, prompt: Noon., deliver: local}\n"
    new = CHANGED.replace("          review:", f"{noon}          review:")
    forge.propose(new)
    commit = forge.merge()
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: forge.job("apply", commit), range(2)))
    assert not any(job.failed and job.code != 4 for job in done), [job.output for job in done]
    assert any(job.code == 0 for job in done)
    text = (forge.home / "cron" / "jobs.json").read_text()
    assert text.count('"Noon."') == 1 and forge.jobs()["brief"] == "Write the brief in ten lines."
    last = forge.job("apply", commit)
    assert last.code == 0 and "Nothing to do." in last.output


@pytest.mark.parametrize("system", ["github", "forgejo"])
def test_only_checkout_is_used_and_pinned(system: str) -> None:
    document = yaml.safe_load((EXAMPLE / FILES[system]).read_text())
    uses = [s["uses"] for job in document["jobs"].values() for s in job["steps"] if "uses" in s]
    assert uses and all(u.startswith("actions/checkout@") and len(u.partition("@")[2]) == 40 for u in uses)
    for step in (s for job in document["jobs"].values() for s in job["steps"] if "uses" in s):
        assert step["with"] == {"persist-credentials": False}
    for job in document["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "what others can name goes in by the environment"


@pytest.mark.parametrize("system", sorted(FILES))
def test_a_setup_from_elsewhere_is_not_planned_beside_the_homes(system: str) -> None:
    text = (EXAMPLE / FILES[system]).read_text()
    document = yaml.safe_load(text)
    if system == "gitlab":
        assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in document["plan"]["rules"][0]["if"]
    else:
        assert "head.repo.full_name == github.repository" in document["jobs"]["plan"]["if"]
    assert "pull_request_target" not in text
