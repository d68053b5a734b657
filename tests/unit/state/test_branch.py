"""A branch as a place for files: whose commits they are, where they lie, and how one gets there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler_state.branch import FALLBACK, Branch
from reconciler_state.errors import StateError
from reconciler_state.repository import Repository
from repositories import made
from runners import bare

GPG = """#!/bin/sh
cat > /dev/null
printf '\\n[GNUPG:] SIG_CREATED D 1 8 00 0 0\\n' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\nmade by a test\\n-----END PGP SIGNATURE-----\\n'
"""


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which git is set up for nobody."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def branch(root: Path, remote: str = "", path: str = "", name: str = "reconciler-state") -> Branch:
    (root / "here").mkdir(exist_ok=True)
    return Branch(root / "objects.git", remote or str(root / "state.git"), name, root / "here", path)


def pushed(at: Branch, parent: str = "", files: dict[str, bytes] | None = None) -> str:
    commit = at.commit(parent, files or {"homes/a.json": b"{}\n"}, "apply main: 1 applied\n")
    assert at.push(commit, parent)
    return commit


def test_without_an_identity_there_is_a_stated_one(tmp_path: Path) -> None:
    remote = bare(tmp_path / "state.git")
    pushed(branch(tmp_path))
    assert remote.run("log", "-1", "--format=%an <%ae> %cn <%ce>", "reconciler-state") == (
        f"{FALLBACK[0]} <{FALLBACK[1]}> {FALLBACK[0]} <{FALLBACK[1]}>"
    )


def test_the_setups_own_repository_says_who_signs_and_where_origin_is(tmp_path: Path) -> None:
    remote = bare(tmp_path / "state.git")
    here = made(tmp_path / "here")
    program = tmp_path / "gpg"
    program.write_text(GPG)
    program.chmod(0o755)
    for key, value in {
        "user.name": "bea",
        "user.email": "bea@example.org",
        "commit.gpgsign": "true",
        "gpg.program": str(program),
        "core.worktree": "/nowhere",  # not one that counts elsewhere
    }.items():
        here.run("config", key, value)
    here.run("config", "--unset", "core.worktree")
    here.run("remote", "add", "origin", "../state.git")
    pushed(branch(tmp_path, "origin"))
    commit = remote.run("cat-file", "commit", "reconciler-state")
    assert "author bea <bea@example.org>" in commit and "made by a test" in commit


def test_a_name_that_is_no_remote_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no git repository with a remote") as caught:
        branch(tmp_path, "origin").tip()
    assert "remote: URL" in (caught.value.hint or "")


def test_other_files_and_history_stay_and_a_folder_holds_ours(tmp_path: Path) -> None:
    remote = bare(tmp_path / "state.git")
    first = pushed(branch(tmp_path), files={"README.md": b"by hand\n", "homes/x.json": b"1\n"})
    at = branch(tmp_path, path="agents/state")
    second = pushed(at, first, {"homes/x.json": b"2\n", "journal/x.jsonl": b"3\n"})
    assert remote.run("ls-tree", "-r", "--name-only", second).splitlines() == [
        "README.md",
        "agents/state/homes/x.json",
        "agents/state/journal/x.jsonl",
        "homes/x.json",
    ]
    assert at.continues(first, second) and not at.continues(second, first)
    assert {name: at.read(entry) for name, entry in at.files(second, ("homes", "journal")).items()} == {
        "homes/x.json": b"2\n",
        "journal/x.jsonl": b"3\n",
    }


def test_a_push_is_a_compare_and_swap(tmp_path: Path) -> None:
    bare(tmp_path / "state.git")
    one, two = (
        branch(tmp_path),
        Branch(tmp_path / "other.git", str(tmp_path / "state.git"), "reconciler-state", tmp_path),
    )
    mine, theirs = one.commit("", {"homes/a.json": b"1"}, "a"), two.commit("", {"homes/a.json": b"2"}, "b")
    assert two.push(theirs, "") and not one.push(mine, "")
    assert one.tip() == theirs
    one.fetch(theirs, "")
    assert one.push(one.commit(theirs, {"homes/a.json": b"1"}, "a"), theirs)


def test_a_remote_that_does_not_let_us_is_no_race(tmp_path: Path) -> None:
    remote = bare(tmp_path / "state.git")
    remote.run("config", "receive.denyNonFastForwards", "true")
    remote.run("config", "transfer.hideRefs", "refs/heads")
    at = branch(tmp_path)
    with pytest.raises(StateError, match="cannot be written"):
        at.push(at.commit("", {"homes/a.json": b"1"}, "a"), "")


def test_what_gets_one_through_is_on_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline's checkout leaves its token in the repository's own configuration."""
    bare(tmp_path / "state.git")
    made(tmp_path / "here").run("config", "http.https://git.example/.extraheader", "AUTHORIZATION: basic canary-4711")
    lines: list[str] = []
    real = subprocess.Popen.__init__

    def popen(self: object, args: object, *rest: object, **more: object) -> None:
        lines.append(str(args))
        real(self, args, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess.Popen, "__init__", popen)
    at = branch(tmp_path)
    pushed(at)
    assert lines and not [line for line in lines if "canary" in line]
    assert "AUTHORIZATION: basic canary-4711" in at._config.values()


def test_the_work_tree_of_the_setup_is_not_touched(tmp_path: Path) -> None:
    bare(tmp_path / "state.git")
    here = made(tmp_path / "here")
    before = {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()}
    pushed(branch(tmp_path))
    assert {p: p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()} == before
    assert Repository(here.root).run("for-each-ref", "--format=%(refname)") == "refs/heads/main"
