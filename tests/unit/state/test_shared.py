"""Several runners on one state branch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.errors import ProviderError
from reconciler.event import Event, Outcome
from reconciler.observe import Observation, Wanted
from reconciler.past import past
from reconciler.plan import Options
from reconciler.provider import Door, HomeRef, Note, silent
from reconciler.run import HomeRun
from reconciler.testing.memory import MemoryProvider
from reconciler_state.branch import Branch
from reconciler_state.errors import StateError
from reconciler_state.repository import Repository
from runners import Runner, ended, jobs, two_of
from world import HEAD, JOBS, home_text, outcomes

MORE = JOBS + "          other: {schedule: {every: 60m}, prompt: Sweep., deliver: local}\n"
KEEP = "        jobs:\n          keep: {schedule: {every: 1h}, prompt: k, deliver: local}\n"
BRIEF = "main/default/jobs/brief"
OTHER = "main/default/jobs/other"


# -- two commits -------------------------------------------------------------------------------------------------


def test_a_run_is_two_commits_and_another_runner_sees_it(one: Runner) -> None:
    assert outcomes(one.apply())[BRIEF] == "applied"
    assert one.subjects() == ["apply main: 2 applied", "apply main: begins 1 adopt, 1 create"]
    two = two_of(one)
    assert two.rows() == {}
    assert two.state() == one.state()


def test_a_run_that_writes_nothing_pushes_nothing_and_changes_nothing_here(one: Runner) -> None:
    one.apply()
    two = two_of(one)
    two.plan()

    def everything() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(one.root.rglob("*")) if p.is_file()}

    before = everything()
    for runner in (one, two):
        assert runner.apply() == [] and not runner.rows()
    assert everything() == before


def test_a_plan_on_an_empty_branch_makes_nothing(one: Runner) -> None:
    assert set(one.rows()) == {"main", BRIEF}
    assert not (one.root / "one").exists() and not (one.remote / "refs/heads/reconciler-state").exists()


def test_the_message_says_what_and_who(one: Runner) -> None:
    one.apply()
    body = Repository(one.remote).run("log", "-1", "--format=%an <%ae>%n%B", "reconciler-state")
    assert body.splitlines()[1:6] == [
        "apply main: 2 applied",
        "",
        "applied  adopt  (the home)",
        "applied  create  default/jobs/brief",
        "",
    ]
    about = dict(line.split(": ", 1) for line in body.splitlines()[6:] if line)
    assert about.keys() == {"Setup", "Actor", "Run"} and about["Setup"] == "solo, in no commit"


def test_each_goes_on_from_the_other(one: Runner) -> None:
    one.apply()
    two = two_of(one)
    two.setup(HEAD + home_text(MORE))
    assert outcomes(two.apply()) == {OTHER: "applied"}
    one.setup(HEAD + home_text(MORE))
    assert one.rows() == {}
    one.setup(HEAD + home_text())
    assert outcomes(one.apply()) == {OTHER: "applied"}
    two.setup(HEAD + home_text())
    assert two.rows() == {} and jobs(one) == ["brief"]
    assert one.subjects()[:2] == ["apply main: 1 applied", "apply main: begins 1 delete"]


def test_what_was_announced_and_not_begun_is_told(one: Runner) -> None:
    """A stop between two steps: the intents of the second are on the branch, and closed as skipped."""
    one.setup(HEAD + home_text(MORE.replace("jobs:", "settings: {a.b: 1}\n        jobs:")))
    space = one.space()
    plan = space.plan(Options())
    rows = frozenset(d for h in plan.homes for d in h.asked)
    done: list[Event] = []

    def stop() -> bool:
        return any(e.what == "outcome" for e in done)

    for event in apply(plan, Consent(yes=True, approved=rows, terminal=True), space, Options(), stop=stop):
        done.append(event)
    skipped = [a for a, o in outcomes(done).items() if o == "skipped"]
    assert skipped
    journal = [json.loads(line) for line in one.show("journal/").splitlines()]
    assert journal[-1]["what"] == "run-end" and journal[-1]["open"] == 0
    assert sum(r.get("outcome") == "skipped" for r in journal) == len(skipped)
    two = two_of(one)
    assert outcomes(two.apply()) and two.rows() == {}


def test_what_was_announced_is_closed_where_no_door_opens(one: Runner) -> None:
    """Nothing of it was begun: what somebody makes by hand later is not taken for ours."""
    one.apply()
    one.setup(HEAD + home_text(MORE))
    good = one.provider

    class Shut(MemoryProvider):
        @contextmanager
        def open(self, home: HomeRef, lock_fd: int | None, note: Note = silent, until: float = inf) -> Iterator[Door]:
            raise ProviderError("no door today")
            yield

    one.provider = Shut(good.homes)
    assert ended(one.apply()).outcome is Outcome.FAILED
    one.provider = good
    journal = [json.loads(line) for line in one.show("journal/").splitlines()]
    assert journal[-1]["outcome"] == "skipped" and one.subjects()[0] == "apply main: 1 skipped"
    one.edit([{"add": "other"}])
    assert two_of(one).rows()[OTHER].row == "unowned"


def test_an_undo_stands_on_texts_that_this_runner_knows(tmp_path: Path) -> None:
    def brief(every: str) -> str:
        job = f"          brief: {{schedule: {{every: {every}}}, prompt: {'w' * 400}, deliver: local}}\n"
        return HEAD + home_text(KEEP + job)

    one = Runner(tmp_path, "one", texts=False)
    one.home()
    for every in ("30m", "45m"):
        one.setup(brief(every))
        one.apply()
    two = Runner(tmp_path, "two", one, texts=False)
    two.setup(HEAD + home_text(KEEP))
    options = Options(undo=past(two.space()).commands[0].run)
    assert {c.field for a in two.rows(options).values() for c in a.changes} == {"schedule"}
    one.edit([{"set": "default/jobs/brief", "prompt": "x" * 400}])
    [home] = two.plan(options).homes
    assert not home.actions and any("known to this runner" in note for note in home.notes)


# -- races -------------------------------------------------------------------------------------------------------


def test_the_second_of_two_on_one_home_stops_before_it_writes(one: Runner) -> None:
    """Both have planned; the second one's push is not on what it has seen."""
    one.apply()
    two = two_of(one)
    for runner in (one, two):
        runner.setup(HEAD + home_text(MORE))
    space = one.space()
    space.plan(Options())
    store = one.store
    home = space.ref("main")
    with space.lock(home) as guard:
        fresh = space.plan_home("main", Options())
        two.setup(HEAD + home_text(MORE.replace("Write.", "Write more.")))
        # The lock keeps runners of one machine apart; this one is on another.
        space_two = two.space()
        plan_two = space_two.plan_home("main", Options())
        assert all(
            e.outcome in (None, Outcome.APPLIED)
            for e in HomeRun(plan_two, space_two, guard).carry_out(plan_two.open, lambda: False)
        )
        writes = one.home().writes
        events = list(HomeRun(fresh, space, guard).carry_out(fresh.open, lambda: False))
    assert store.shared and one.home().writes == writes
    assert ended(events).outcome is Outcome.FAILED
    assert "another runner has written" in ended(events).reason and "apply main: 2 applied" in ended(events).reason
    assert set(outcomes(events).values()) == {"skipped"}
    assert jobs(one) == ["brief", "other"]
    one.setup(two.text)
    assert one.rows() == {} and one.state() == two.state()


def test_a_rejected_push_is_tried_again_and_other_homes_merge(one: Runner) -> None:
    """Another runner's commit for another home comes between our look and our push, each time once."""
    one.home("second")
    both = HEAD + home_text() + home_text().replace("homes:\n", "").replace("main", "second")
    one.setup(both)
    two = two_of(one)
    pushed: list[int] = []
    real = Branch.push

    def push(self: Branch, commit: str, parent: str) -> bool:
        if not pushed and "/one/" in str(self.cache):
            pushed.append(1)
            assert set(outcomes(two.apply(options=Options(targets=("second",)))).values()) == {"applied"}
        return real(self, commit, parent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Branch, "push", push)
        done = outcomes(one.apply(options=Options(targets=("main",))))
    assert set(done.values()) == {"applied"} and one.pauses == 1
    assert [s.split(":")[0] for s in one.subjects()] == ["apply main", "apply main", "apply second", "apply second"]
    assert one.rows() == {} and two.rows() == {}


def test_a_push_whose_answer_was_lost_is_found_to_have_arrived(one: Runner) -> None:
    real = Repository.ask

    def ask(self: Repository, *words: str, **more: object) -> object:
        answer = real(self, *words, **more)  # type: ignore[arg-type]
        return replace(answer, status=128, error="connection reset") if words[0] == "push" else answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "ask", ask)
        assert set(outcomes(one.apply()).values()) == {"applied"}
    assert len(one.subjects()) == 2 and two_of(one).rows() == {}


# -- a network that is not there -----------------------------------------------------------------------------------


def test_a_branch_that_cannot_be_read_fails_the_plan(one: Runner) -> None:
    """Unknown is never Absent: no plan is made on what we knew last."""
    one.apply()
    one.remote.rename(one.root / "away")
    with pytest.raises(StateError, match="cannot be read") as caught:
        one.space().plan(Options())
    assert "git ls-remote" in (caught.value.hint or "")


def test_outcomes_that_could_not_be_pushed_are_pushed_first_by_the_next_run(one: Runner) -> None:
    away = one.root / "away"

    def gone() -> None:
        if one.remote.exists():
            one.remote.rename(away)

    real = MemoryProvider.observe

    def observe(self: MemoryProvider, home: HomeRef, wanted: Wanted) -> Observation:
        if one.home().writes:
            gone()
        return real(self, home, wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryProvider, "observe", observe)
        events = one.apply()
    assert set(outcomes(events).values()) == {"applied"}
    assert ended(events).outcome is Outcome.UNCERTAIN and "not there yet" in ended(events).reason
    away.rename(one.remote)
    assert one.subjects() == ["apply main: begins 1 adopt, 1 create"]
    assert one.rows() == {}
    assert one.apply() == []
    assert one.subjects() == ["apply main: 2 applied", "apply main: begins 1 adopt, 1 create"]
    assert two_of(one).rows() == {}


def test_intents_that_could_not_be_pushed_write_nothing(one: Runner) -> None:
    real = Repository.ask

    def ask(self: Repository, *words: str, **more: object) -> object:
        if words[0] == "push":
            one.remote.rename(one.root / "away")
        return real(self, *words, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "ask", ask)
        events = one.apply()
    assert ended(events).outcome is Outcome.FAILED and one.home().writes == 0
    (one.root / "away").rename(one.remote)
    assert set(outcomes(one.apply()).values()) == {"applied"} and jobs(one) == ["brief"]
