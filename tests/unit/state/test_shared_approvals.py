"""Approvals on the state's branch: given by one runner, seen by another; a hostile file approves nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.consent import Consent
from reconciler_state.approvals import Approval
from reconciler_state.branch import Branch
from reconciler_state.errors import StateError
from reconciler_state.repository import Repository
from repositories import WHO
from runners import Runner
from world import HEAD, JOBS, home_text, outcomes

PLAN, ROW, OTHER = "0" * 32, "1" * 32, "2" * 32


def given(by: str = "ann", *rows: str) -> Approval:
    where = dict.fromkeys(rows or (ROW,), "main/default/jobs/brief")
    return Approval(where, by, "desk", f"session {by}", datetime(2031, 1, 1, tzinfo=UTC))


def add(runner: Runner, approval: Approval, setup: str = "solo") -> bool:
    return runner.shared().approvals().add(setup, PLAN, approval, lambda _: True)


def seen(runner: Runner) -> list[str]:
    [approved] = runner.shared().approvals().read("solo")[0]
    return [f"{a.by}: {' '.join(sorted(a.rows))}" for a in approved.approvals]


def test_what_one_runner_approves_another_sees(tmp_path: Path) -> None:
    a = Runner(tmp_path, "a")
    b = Runner(tmp_path, "b", of=a)
    assert b.shared().approvals().read("solo") == ([], [])
    assert add(a, given()) and seen(b) == seen(a) == [f"ann: {ROW}"]
    assert not add(b, given()), "the same again is nothing new"
    assert a.subjects() == [f"approve 1 row(s) of plan {PLAN}"]
    assert not (tmp_path / "a" / "approvals").exists()


def test_of_two_at_once_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = Runner(tmp_path, "a")
    b = Runner(tmp_path, "b", of=a)
    push = Branch.push
    turns: list[int] = []

    def slow(self: Branch, commit: str, parent: str) -> bool:
        if not turns:
            turns.append(1)
            assert add(b, given("bob", OTHER))
        return push(self, commit, parent)

    monkeypatch.setattr(Branch, "push", slow)
    assert add(a, given("ann"))
    assert seen(a) == [f"bob: {OTHER}", f"ann: {ROW}"]


def test_states_and_approvals_share_the_branch(tmp_path: Path) -> None:
    a = Runner(tmp_path, "a")
    b = Runner(tmp_path, "b", of=a)
    a.home()
    a.setup(HEAD + home_text())
    add(b, given())
    a.apply()
    add(b, given("bob", OTHER))
    assert seen(a) == [f"ann: {ROW}", f"bob: {OTHER}"] and a.state().serial > 0
    before = a.subjects()
    a.apply()
    assert a.subjects() == before, "an apply with nothing to do pushes nothing"


def test_a_file_of_another_setup_is_not_ours_to_add_to(tmp_path: Path) -> None:
    a = Runner(tmp_path, "a")
    add(a, given())
    with pytest.raises(StateError, match="is of the setup 'solo'"):
        add(a, given("bob"), setup="other")
    assert a.shared().approvals().read("other") == ([], [])


@pytest.mark.parametrize("what", ["link", "binary", "cut", "wrong plan", "huge", "folder"])
def test_a_hostile_file_approves_nothing_and_is_named(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = Runner(tmp_path, "a")
    add(a, given())
    clone = Repository(tmp_path / "clone")
    Repository(tmp_path).run("clone", "-q", "-b", "reconciler-state", str(a.remote), "clone")
    path = tmp_path / "clone" / "approvals" / f"{PLAN}.json"
    good = path.read_bytes()
    path.unlink()
    if what == "link":
        path.symlink_to("/etc/hostname")
    elif what == "folder":
        path.mkdir()
        (path / "x").write_text("x")
    else:
        if what == "huge":
            monkeypatch.setattr("reconciler_state.shared_approvals.LARGEST", 10)
        wrong = json.dumps({**json.loads(good), "plan": OTHER}).encode()
        path.write_bytes({"binary": b"\xff\x00", "cut": good[:40], "wrong plan": wrong, "huge": good + b"\n"}[what])
    clone.run("add", "-A")
    clone.run("commit", "-q", "-m", "hostile", env=WHO)
    clone.run("push", "-q")
    found, wrong_ = a.shared().approvals().read("solo")
    assert found == [] and (what == "folder" or "approves nothing" in wrong_[0])
    if what != "folder":
        with pytest.raises(StateError, match="approves nothing"):
            add(a, given("bob"))


def test_a_branch_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    a = Runner(tmp_path, "a")
    add(a, given())
    hooks = a.remote / "refs" / "heads"
    a.remote.rename(tmp_path / "away.git")
    with pytest.raises(StateError, match="cannot be read"):
        add(a, given("bob"))
    assert not hooks.exists()


@pytest.mark.parametrize("since", [{}, {"prompt": "Rewritten by hand."}, {"model": "other"}], ids=str)
def test_an_approved_delete_is_of_the_thing_as_it_was_seen(tmp_path: Path, since: dict[str, str]) -> None:
    """L8: what somebody made of it since, declared or not, is not what was approved, whichever runner asks."""
    a = Runner(tmp_path, "a")
    a.home()
    both = "          other: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"
    a.setup(HEAD + home_text(JOBS + both))
    a.apply()
    a.setup(HEAD + home_text(JOBS))
    [home] = a.plan().homes
    agreed = Consent(approved=frozenset(home.asked), only_approved=True, reviewed=True, elsewhere=frozenset(home.asked))
    a.edit([{"set": "default/jobs/other", **since}])
    done = outcomes(Runner(tmp_path, "b", of=a).apply(agreed))
    assert done == {"main/default/jobs/other": "refused" if since else "applied"}
