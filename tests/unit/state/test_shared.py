"""Several runners on one state branch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.errors import ProviderError
from reconciler.event import Event, Outcome
from reconciler.migrate import migrate
from reconciler.observe import Observation, Wanted
from reconciler.past import past
from reconciler.plan import Options
from reconciler.provider import Door, HomeRef, Note, silent
from reconciler.run import HomeRun
from reconciler.testing.memory import MemoryProvider
from reconciler.workspace import Workspace
from reconciler_specs.load import load_text
from reconciler_state import mirror
from reconciler_state.branch import Branch
from reconciler_state.errors import StateError, StateMoved, StateTooNew
from reconciler_state.local import LocalStore
from reconciler_state.repository import Repository
from repositories import WHO
from runners import Runner
from world import HEAD, JOBS, home_text, outcomes

MORE = JOBS + "          other: {schedule: {every: 60m}, prompt: Sweep., deliver: local}\n"
KEEP = "        jobs:\n          keep: {schedule: {every: 1h}, prompt: k, deliver: local}\n"
BRIEF = "main/default/jobs/brief"
OTHER = "main/default/jobs/other"


@pytest.fixture
def one(tmp_path: Path) -> Runner:
    made = Runner(tmp_path, "one")
    made.home()
    made.setup(HEAD + home_text())
    return made


def two_of(one: Runner, name: str = "two") -> Runner:
    return Runner(one.root, name, one)


def ended(events: list[Event]) -> Event:
    return next(e for e in reversed(events) if e.what == "home-end")


def jobs(one: Runner) -> list[str]:
    return sorted(job["name"] for job in one.home().jobs().values())


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


# -- a branch that went back, or was written by hand -----------------------------------------------------------------


def rewound(one: Runner, to: str) -> None:
    Repository(one.remote).run("update-ref", "refs/heads/reconciler-state", to)


@pytest.mark.parametrize("how", ["back", "gone", "rewritten"])
def test_a_branch_that_went_back_is_noticed(one: Runner, how: str) -> None:
    one.apply()
    remote = Repository(one.remote)
    if how == "back":
        rewound(one, "reconciler-state~1")
    elif how == "gone":
        remote.run("update-ref", "-d", "refs/heads/reconciler-state")
    else:
        tree = remote.run("rev-parse", "reconciler-state^{tree}")
        rewound(one, remote.run("commit-tree", tree, "-m", "squashed", env=WHO))
    writes = one.home().writes
    one.setup(HEAD + home_text(MORE))
    with pytest.raises(StateMoved, match=r"is gone|went back or was rewritten"):
        one.apply()
    assert one.home().writes == writes
    # Accepted by a person: what was here is kept beside it, and what is in the home is looked at.
    found = one.shared().repair(do=True)
    assert found.aside and any(one.folder.rglob("*.damaged-1"))
    assert "brief" in jobs(one)
    one.apply()
    one.plan()
    assert jobs(one).count("brief") == 1


def by_hand(one: Runner, name: str, data: bytes, mode: str = "100644", kind: str = "blob") -> None:
    """A commit on the branch as a person, or somebody worse, makes it."""
    remote = Repository(one.remote)
    oid = remote.run("hash-object", "-w", "--stdin", given=data) if kind == "blob" else "1" * 40
    folder, _, last = name.rpartition("/")
    listed = remote.run("ls-tree", "-z", f"reconciler-state:{folder}")
    entries = [e for e in listed.split("\0") if e and not e.endswith(f"\t{last}")]
    tree = remote.run(
        "mktree", "-z", "--missing", given="\0".join([*entries, f"{mode} {kind} {oid}\t{last}"]).encode() + b"\0"
    )
    top = [
        e for e in remote.run("ls-tree", "-z", "reconciler-state").split("\0") if e and not e.endswith(f"\t{folder}")
    ]
    root = remote.run("mktree", "-z", given="\0".join([*top, f"040000 tree {tree}\t{folder}"]).encode() + b"\0")
    commit = remote.run("commit-tree", root, "-p", "reconciler-state", "-m", "by hand", env=WHO)
    rewound(one, commit)


def file_of(one: Runner, folder: str = "homes") -> str:
    remote = Repository(one.remote)
    names = remote.run("ls-tree", "-r", "--name-only", "reconciler-state").splitlines()
    [name] = [n for n in names if n.startswith(folder)]
    return name


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str, str, str]] = {
    "conflict": (lambda data: b"<<<<<<< ours\n" + data, "100644", "blob", "line 1: a git conflict"),
    "cut": (lambda data: data[:40], "100644", "blob", "cut off"),
    "binary": (lambda data: bytes(range(256)) * 9, "100644", "blob", "is no text"),
    "empty": (lambda data: b"", "100644", "blob", "cut off"),
    "link": (lambda data: b"/etc/passwd", "120000", "blob", "is a link"),
    "module": (lambda data: b"", "160000", "commit", "is a link or another repository"),
    "huge": (lambda data: data + b" " * 5000, "100644", "blob", "is larger than"),
    "newer": (lambda data: data.replace(b'"format": 1', b'"format": 99'), "100644", "blob", "newer than this program"),
    "another": (lambda data: data.replace(b"/main", b"/else"), "100644", "blob", "is the state of another home"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_state_that_is_not_in_proper_form_stops_its_home(
    one: Runner, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.apply()
    change, mode, kind, said = HOSTILE[case]
    name = file_of(one)
    data = Repository(one.remote).content("cat-file", "blob", f"reconciler-state:{name}")
    good = Repository(one.remote).run("rev-parse", "reconciler-state")
    by_hand(one, name, change(data), mode, kind)
    monkeypatch.setattr(mirror, "LIMIT", 4000)
    two = two_of(one)
    for runner in (one, two, one):
        [home] = runner.plan().homes
        assert said in home.failed, home.failed
        if case != "newer":
            assert "by hand" in home.failed and "ann" in home.failed
        assert runner.apply() == []
        assert [str(e) for e in runner.store.broken()]
    assert len(one.home().jobs()) == 1
    rewound_to = Repository(one.remote).run(
        "commit-tree", f"{good}^{{tree}}", "-p", "reconciler-state", "-m", "put back", env=WHO
    )
    rewound(one, rewound_to)
    assert one.rows() == {} and two.rows() == {}


def test_a_journal_that_is_not_in_proper_form_stops_its_home(one: Runner) -> None:
    one.apply()
    by_hand(one, file_of(one, "journal"), b'{"what": "run"}\nnonsense\n{"what": "begin"}\n')
    [home] = one.plan().homes
    assert "line 2 is no record of ours" in home.failed


@pytest.mark.parametrize(
    "name", ["homes/../../evil.json", "homes/UPPER.json", "homes/a b.json", "journal/x.jsonl.sh", "homes/-.txt"]
)
def test_names_that_are_none_of_ours_are_left_alone(one: Runner, name: str) -> None:
    """A name is data: nothing is ever checked out, and what is not ours stays on the branch."""
    one.apply()
    folder, _, last = name.partition("/")
    remote = Repository(one.remote)
    oid = remote.run("hash-object", "-w", "--stdin", given=b"x")
    listed = remote.run("ls-tree", "-z", f"reconciler-state:{folder}")
    entry = f"100644 blob {oid}\t{last}" if "/" not in last else ""
    if not entry:  # git keeps such a tree only if it is written by hand
        inner = remote.run("mktree", "-z", given=f"100644 blob {oid}\tevil.json\0".encode())
        entry = f"040000 tree {inner}\t.."
    tree = remote.run("mktree", "-z", given=(listed + entry + "\0").encode())
    top = [
        e for e in remote.run("ls-tree", "-z", "reconciler-state").split("\0") if e and not e.endswith(f"\t{folder}")
    ]
    root = remote.run("mktree", "-z", given="\0".join([*top, f"040000 tree {tree}\t{folder}"]).encode() + b"\0")
    rewound(one, remote.run("commit-tree", root, "-p", "reconciler-state", "-m", "by hand", env=WHO))
    before = set(one.root.parent.rglob("evil*"))
    one.setup(HEAD + home_text(MORE))
    assert outcomes(one.apply()) == {OTHER: "applied"}
    assert set(one.root.parent.rglob("evil*")) == before
    assert two_of(one).rows() == {}
    assert last.split("/")[0] in remote.run("ls-tree", "--name-only", "-r", "-t", f"reconciler-state:{folder}")


def test_a_state_that_was_taken_from_the_branch_is_noticed(one: Runner) -> None:
    one.apply()
    remote = Repository(one.remote)
    tree = remote.run("mktree", "-z", given=b"")
    rewound(one, remote.run("commit-tree", tree, "-p", "reconciler-state", "-m", "cleaned up", env=WHO))
    [home] = one.plan().homes
    assert "were taken from the branch" in home.failed and "cleaned up" in home.failed


def test_a_newer_state_keeps_its_kind(one: Runner) -> None:
    one.apply()
    data = Repository(one.remote).content("cat-file", "blob", f"reconciler-state:{file_of(one)}")
    by_hand(one, file_of(one), data.replace(b'"format": 1', b'"format": 99'))
    assert [type(e) for e in one.shared().broken()] == [StateTooNew]


def locally(one: Runner) -> None:
    """One apply with the state in the local folder."""
    space = Workspace(load_text(one.text, "setup.yaml", one.root), LocalStore(one.root / "one"), {"hermes": one.memory})
    plan = space.plan(Options())
    rows = frozenset(d for h in plan.homes for d in h.asked)
    list(apply(plan, Consent(yes=True, approved=rows, terminal=True), space, Options()))


def test_state_in_the_local_folder_is_not_forgotten(one: Runner) -> None:
    """A setup that says `git` for the first time does not meet its homes anew."""
    locally(one)
    [home] = one.plan().homes
    assert "is on this machine" in home.failed


def test_migrate_copies_reads_back_and_leaves_the_source(one: Runner) -> None:
    locally(one)
    setup, local, shared = load_text(one.text, "setup.yaml", one.root), LocalStore(one.root / "one"), one.shared()
    before = {p: p.read_bytes() for p in (one.root / "one").rglob("*.json*")}
    [said] = migrate(setup, local, shared, do=False)
    assert not said.done and not (one.remote / "refs/heads/reconciler-state").exists()
    [copied] = migrate(setup, local, one.shared(), do=True)
    assert copied.done and {p: p.read_bytes() for p in before} == before
    assert one.rows() == {} and two_of(one).rows() == {}
    [again] = migrate(setup, local, one.shared(), do=True)
    assert not again.done and not again.refused
    # And back, after a run on the branch: what was here is older, and stays beside it.
    one.setup(HEAD + home_text(MORE))
    one.apply()
    [back] = migrate(setup, one.shared(), LocalStore(one.root / "one"), do=True)
    assert back.done and any((one.root / "one" / "homes").glob("*.damaged-1"))
    state = LocalStore(one.root / "one").read(LocalStore(one.root / "one").list()[0])
    assert state == one.state()


def test_migrate_refuses_what_is_another_state(one: Runner) -> None:
    one.apply()
    locally(one)
    setup = load_text(one.text, "setup.yaml", one.root)
    [refused] = migrate(setup, LocalStore(one.root / "one"), one.shared(), do=True)
    assert refused.refused and "lineage" in refused.what
    assert one.rows() == {}


# -- nothing of git's runs -----------------------------------------------------------------------------------------


def test_no_hook_runs_at_either_end(one: Runner) -> None:
    hooks = ["pre-receive", "update", "post-receive", "post-update", "reference-transaction", "pre-push", "post-commit"]
    for hook in hooks:
        script = one.remote / "hooks" / hook
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\ntouch {one.root}/ran-{hook}\n")
        script.chmod(0o755)
    one.apply()
    for hook in hooks:
        script = one.folder / "objects.git" / "hooks" / hook
        script.parent.mkdir(exist_ok=True)
        script.write_text((one.remote / "hooks" / hook).read_text())
        script.chmod(0o755)
    one.setup(HEAD + home_text(MORE))
    assert outcomes(one.apply()) == {OTHER: "applied"}
    two_of(one).plan()
    assert not list(one.root.glob("ran-*"))


def test_no_configuration_of_a_repository_here_starts_a_program(one: Runner) -> None:
    one.plan()
    (one.root / "more").mkdir()
    Repository(one.root / "more").run("init", "-q", "--bare")
    alternates = one.remote / "objects" / "info" / "alternates"
    alternates.write_text(f"{one.root}/more/objects\n")
    for key in ("core.alternateRefsCommand", "core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook"):
        Repository(one.remote).run("config", key, f"touch {one.root}/ran-{key} #")
    one.apply()
    assert not list(one.root.glob("ran-*"))


def test_a_branch_that_is_checked_out_is_not_written(one: Runner) -> None:
    shutil.rmtree(one.remote)
    one.remote.mkdir()
    Repository(one.remote).run("init", "-q", "-b", "reconciler-state")
    (one.remote / ".gitattributes").write_text("* filter=x\n")
    Repository(one.remote).run("add", ".")
    Repository(one.remote).run("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
    Repository(one.remote).run("config", "receive.denyCurrentBranch", "updateInstead")
    Repository(one.remote).run("config", "filter.x.smudge", f"touch {one.root}/ran; cat")
    assert set(outcomes(one.apply()).values()) <= {"skipped", "failed"}
    assert not (one.root / "ran").exists()


def test_the_cache_of_objects_may_go(one: Runner) -> None:
    one.apply()
    shutil.rmtree(one.folder / "objects.git")
    one.setup(HEAD + home_text(MORE))
    assert outcomes(one.apply()) == {OTHER: "applied"}
    shutil.rmtree(one.folder / "homes")
    assert one.rows() == {}
    assert one.state() == two_of(one).state()
