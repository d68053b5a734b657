"""What homes have captured, on a branch for a person to merge; no other branch and no other commit is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from following import Following, brief
from reconciler.gitops.proposal import BRANCH
from reconciler_specs.address import Kind
from reconciler_state.repository import Repository
from repositories import WHO
from world import HEAD, home_text

POLICY = HEAD + "policy: {on_drift: capture}\n"


@pytest.fixture
def following(tmp_path: Path) -> Following:
    made = Following(tmp_path.resolve())
    made.meet(brief("One.", POLICY))
    assert made.round() == 0
    return made


def edit(following: Following, prompt: str) -> None:
    [job] = following.world.home().jobs().values()
    job["prompt"] = prompt


def merge(following: Following, *words: str) -> None:
    """A person merges the branch, as a forge would."""
    following.work.run("fetch", "-q", "origin")
    following.work.run("merge", "-q", *words, f"origin/{BRANCH}", env=WHO)
    following.work.run("push", "-q", "origin", "HEAD:main")


def show(following: Following, what: str) -> str:
    return following.hub.run("show", what)


def test_from_a_change_in_the_home_to_quiet(following: Following) -> None:
    edit(following, "Mine.")
    assert following.round() == 3
    assert "prompt: Mine." in show(following, f"{BRANCH}:setup.yaml")
    assert "prompt: One." in show(following, "main:setup.yaml")
    message = following.hub.run("log", "-1", "--format=%B", BRANCH)
    assert message.startswith("Capture 1 value from main\n") and "main/default/jobs/brief#prompt" in message
    assert "Mine" not in message
    assert following.hub.run("rev-parse", f"{BRANCH}^") == following.head("main")
    merge(following)
    writes = following.world.home().writes
    assert following.round() == 0
    assert following.world.home().writes == writes and following.jobs() == ["Mine."]
    assert following.head(BRANCH) == ""  # merged, so it went
    before = len(following.told)
    assert following.round() == 0 and [e["event"] for e in following.told[before:]] == ["round"]


def test_it_is_pushed_once_for_the_same_values(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    first = following.head(BRANCH)
    for _ in range(3):
        following.time += 600
        assert following.round() == 3
    assert following.head(BRANCH) == first and len(following.events("captured")) == 1


def test_one_branch_refreshed_for_new_values_and_for_a_new_tip(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    edit(following, "Yours.")
    following.round()
    assert "prompt: Yours." in show(following, f"{BRANCH}:setup.yaml")
    assert following.hub.run("rev-list", "--count", f"main..{BRANCH}") == "1"
    tip = following.push("notes\n", file="notes.txt")
    following.round()
    assert following.hub.run("rev-parse", f"{BRANCH}^") == tip
    assert following.hub.run("for-each-ref", "--format=%(refname:short)").split() == ["main", BRANCH]


def test_a_branch_that_somebody_else_has_pushed_to_is_left_alone(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    following.work.run("fetch", "-q", "origin")
    following.work.run("checkout", "-q", "-b", "review", f"origin/{BRANCH}")
    following.work.run("commit", "-q", "--allow-empty", "-m", "reviewed", env=WHO)
    following.work.run("push", "-q", "origin", f"HEAD:{BRANCH}")
    theirs = following.head(BRANCH)
    following.work.run("checkout", "-q", "main")
    edit(following, "Yours.")
    assert following.round() == 3
    assert following.head(BRANCH) == theirs
    assert "somebody else has pushed" in following.events("held")[-1]["reason"]


def test_a_home_that_moved_on_before_the_merge_is_a_conflict(following: Following) -> None:
    """Both sides have moved by then: a person says which one goes, and nothing is proposed over what was merged."""
    edit(following, "Mine.")
    following.round()
    edit(following, "Yours.")
    merge(following)
    assert following.round() == 3
    assert [e["row"] for e in following.events("drift")] == ["drift", "conflict"]
    assert following.jobs() == ["Yours."] and len(following.events("captured")) == 1


def test_one_that_was_there_before_us_is_left_alone(following: Following) -> None:
    following.work.run("push", "-q", "origin", f"HEAD:{BRANCH}")
    before = following.head(BRANCH)
    edit(following, "Mine.")
    assert following.round() == 3
    assert following.head(BRANCH) == before and "somebody else" in following.events("held")[-1]["reason"]


def test_what_was_turned_down_is_not_proposed_again(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    following.work.run("push", "-q", "origin", f":{BRANCH}")
    following.push("notes\n", file="notes.txt")
    following.round()
    assert following.head(BRANCH) == "" and "was deleted" in following.events("held")[-1]["reason"]
    edit(following, "Better.")
    following.round()
    assert "prompt: Better." in show(following, f"{BRANCH}:setup.yaml")


def test_a_merge_that_squashes_is_quiet_too(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    merge_base = following.head("main")
    following.work.run("fetch", "-q", "origin")
    following.work.run("merge", "-q", "--squash", f"origin/{BRANCH}")
    following.work.run("commit", "-q", "-m", "squashed", env=WHO)
    following.work.run("push", "-q", "origin", "HEAD:main")
    assert following.head("main") != merge_base
    assert following.head(BRANCH) != ""
    assert following.round() == 0
    assert following.head(BRANCH) == ""  # git does not say that it is merged; nothing is left to propose


def test_a_change_that_went_away_takes_its_branch_along(following: Following) -> None:
    """Merged later, it would bring back what no home holds any more."""
    edit(following, "Mine.")
    following.round()
    edit(following, "One.")
    assert following.round() == 0 and following.head(BRANCH) == ""
    assert [e["branch"] for e in following.events("withdrawn")] == [BRANCH]
    assert following.round() == 0 and len(following.events("withdrawn")) == 1
    edit(following, "Three.")
    assert following.round() == 3
    assert "prompt: Three." in show(following, f"{BRANCH}:setup.yaml")


def test_nothing_is_pushed_without_a_capture(tmp_path: Path) -> None:
    made = Following(tmp_path.resolve())
    made.meet(brief("One."))
    made.round()
    edit(made, "Mine.")
    assert made.round() == 3
    assert made.head(BRANCH) == "" and not made.events("captured")


def test_a_hidden_value_is_never_captured(tmp_path: Path) -> None:
    made = Following(tmp_path.resolve())
    made.meet(POLICY + home_text("        settings: {a.b: 1, a.c: 1}\n"))
    made.round()
    settings = made.world.home().things["default", Kind.SETTING]
    settings["a.b"]["value"] = {"$hidden": "0123456789abcdef" * 2}
    settings["a.c"]["value"] = 2
    assert made.round() == 3
    text = made.hub.run("log", "-p", "--all")
    assert "a.c: 2" in text and "0123456789abcdef" not in text
    [passed] = made.events("not-captured")
    assert passed["address"] == "main/default/settings/a.b" and "cannot stand in a setup" in passed["reason"]
    assert "0123456789abcdef" not in str(made.told)


def test_a_value_that_looks_like_a_credential_is_not_committed(following: Following) -> None:
    """What a provider did not take for a secret is screened as a setup is: the branch is not pushed."""
    token = "ghp_" + "a1B2" * 9
    edit(following, f"Use {token} for it.")
    assert following.round() == 4
    assert following.head(BRANCH) == "" and token not in following.hub.run("log", "-p", "--all")
    assert token not in str(following.told)


def test_a_remote_that_takes_no_push_is_tried_again(following: Following) -> None:
    hook = following.hub.root / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    edit(following, "Mine.")
    assert [following.round(), following.round()] == [4, 4]
    assert following.events("error") and following.head(BRANCH) == ""
    hook.unlink()
    assert following.round() == 3 and following.head(BRANCH)


def test_each_machine_has_a_branch_of_its_own_with_here(tmp_path: Path) -> None:
    made = Following(tmp_path.resolve())
    text = brief("One.", POLICY) + "places: {ours: {host: NODE}}\n"
    import os

    text = text.replace("NODE", os.uname().nodename).replace("    first_contact", "    at: ours\n    first_contact")
    made.meet(text)
    here = os.uname().nodename
    assert made.round(here=here) == 0
    edit(made, "Mine.")
    assert made.round(here=here) == 3
    assert made.head(f"{BRANCH}-{here}") and not made.head(BRANCH)


def test_who_git_does_not_know_commits_as_the_reconciler(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.work.run("config", "--unset", "user.name")
    following.work.run("config", "--unset", "user.email")
    following.work.run("config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    edit(following, "Mine.")
    assert following.round() == 3
    assert following.hub.run("log", "-1", "--format=%an", BRANCH) == "reconciler"


def test_the_commit_outlives_git_gc(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    commit = following.head(BRANCH)
    Repository(following.work.root).run("gc", "-q", "--prune=now")
    following.source().tree.run("cat-file", "-e", commit)
    edit(following, "Yours.")
    assert following.round() == 3


def test_what_cannot_be_captured_any_more_is_no_longer_proposed(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    edit(following, "Use " + "sk-proj-" + "a1B2c3D4" * 5)
    for _ in range(2):
        assert following.round() == 4 and following.head(BRANCH) == ""
    edit(following, "Mine.")
    assert following.round() == 3 and "prompt: Mine." in show(following, f"{BRANCH}:setup.yaml")


def test_a_home_that_cannot_be_seen_keeps_what_is_proposed(following: Following) -> None:
    edit(following, "Mine.")
    following.round()
    there = following.head(BRANCH)
    following.world.home().unreadable[("default", Kind.JOB)] = "locked"
    following.round()
    assert following.head(BRANCH) == there
