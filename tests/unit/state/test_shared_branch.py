"""A state branch that went back, was written by hand, or lies where programs of others might run."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.migrate import migrate
from reconciler.plan import Options
from reconciler.workspace import Workspace
from reconciler_specs.load import load_text
from reconciler_state import mirror
from reconciler_state.errors import StateMoved, StateTooNew
from reconciler_state.local import LocalStore
from reconciler_state.repository import Repository
from repositories import WHO
from runners import Runner, jobs, two_of
from world import HEAD, JOBS, home_text, outcomes

MORE = JOBS + "          other: {schedule: {every: 60m}, prompt: Sweep., deliver: local}\n"
KEEP = "        jobs:\n          keep: {schedule: {every: 1h}, prompt: k, deliver: local}\n"
BRIEF = "main/default/jobs/brief"
OTHER = "main/default/jobs/other"


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
