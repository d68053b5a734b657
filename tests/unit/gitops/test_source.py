"""Where a loop's revisions come from: the checkout that the setup is in, and the branch that it follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import UsageError
from reconciler.gitops.source import Source
from reconciler_state.repository import Repository
from repositories import made


@pytest.fixture
def clone(tmp_path: Path) -> Repository:
    hub = made(tmp_path / "hub")
    hub.run("branch", "other")
    hub.run("clone", "-q", str(hub.root), str(tmp_path / "clone"))
    return Repository(tmp_path / "clone")


def of(clone: Repository, remote: str = "", branch: str = "") -> Source:
    return Source.of(clone.root / "setup.yaml", clone.root.parent / "state", remote, branch)


def test_the_upstream_of_what_is_checked_out(clone: Repository) -> None:
    assert (of(clone).remote, of(clone).branch) == ("origin", "main")
    clone.run("checkout", "-q", "-b", "mine", "origin/other")
    assert (of(clone).remote, of(clone).branch) == ("origin", "other")


def test_what_is_said_goes_before(clone: Repository) -> None:
    assert of(clone, branch="other").branch == "other"
    clone.run("checkout", "-q", "--detach")
    assert of(clone, branch="other").remote == "origin"  # the only one there is
    clone.run("remote", "add", "spare", str(clone.root))
    assert of(clone, "spare", "other").remote == "spare"
    with pytest.raises(UsageError, match="which remote") as caught:
        of(clone, branch="other")
    assert "origin or spare" in str(caught.value.hint)


def test_a_branch_of_the_checkout_itself(clone: Repository) -> None:
    clone.run("checkout", "-q", "-b", "mine", "--track", "main")
    source = of(clone)
    assert source.remote == "."
    source.prepare()
    assert source.fetch() == clone.run("rev-parse", "main")


@pytest.mark.parametrize(
    ("remote", "branch", "words"),
    [
        ("nosuch", "main", "no such remote"),
        ("--upload-pack=touch x", "main", "no such remote"),
        ("origin", "a..b", "no name of a branch"),
        ("origin", "-x", None),
        ("origin", "a b", "no name of a branch"),
    ],
)
def test_words_that_git_must_not_see(clone: Repository, remote: str, branch: str, words: str | None) -> None:
    if words is None:
        assert of(clone, remote, branch).branch == branch  # only ever a part of refs/heads/…
        return
    with pytest.raises(UsageError, match=words):
        of(clone, remote, branch)


def test_without_an_upstream_it_is_asked_for(clone: Repository, tmp_path: Path) -> None:
    clone.run("checkout", "-q", "-b", "alone")
    clone.run("branch", "-q", "--unset-upstream", "main")
    with pytest.raises(UsageError, match="the branch alone has no upstream"):
        of(clone)
    clone.run("checkout", "-q", "--detach")
    with pytest.raises(UsageError, match="no branch is checked out"):
        of(clone)
    (tmp_path / "plain").mkdir()
    with pytest.raises(UsageError, match="no git checkout"):
        Source.of(tmp_path / "plain" / "setup.yaml", tmp_path / "state")


def test_a_setup_below_the_top_and_through_a_link(clone: Repository, tmp_path: Path) -> None:
    (clone.root / "deep").mkdir()
    (clone.root / "deep" / "setup.yaml").write_text("version: 1\n")
    (tmp_path / "link").symlink_to(clone.root / "deep")
    source = Source.of(tmp_path / "link" / "setup.yaml", tmp_path / "state")
    assert source.inside == Path("deep/setup.yaml")
    assert source.stands == clone.root / "deep"
    assert source.said(f"{source.tree.root}/deep/setup.yaml") == "deep/setup.yaml"


def test_two_sources_have_two_folders(clone: Repository) -> None:
    assert of(clone).folder != of(clone, branch="other").folder
    assert of(clone).folder == of(clone).folder


def test_a_checkout_that_was_cloned_shallow(clone: Repository, tmp_path: Path) -> None:
    hub = Repository(tmp_path / "hub")
    hub.run("clone", "-q", "--depth", "1", f"file://{hub.root}", str(tmp_path / "shallow"))
    source = of(Repository(tmp_path / "shallow"))
    source.prepare()
    first = source.fetch()
    from repositories import WHO

    for _ in range(3):
        hub.run("commit", "-q", "--allow-empty", "-m", "more", env=WHO)
    second = source.fetch()
    assert second != first and source.forward(first, second) and not source.forward(second, first)


def test_a_remote_that_is_said_relative_to_the_checkout(clone: Repository) -> None:
    clone.run("remote", "set-url", "origin", "../hub")
    source = of(clone)
    source.prepare()
    tip = source.fetch()
    assert tip == clone.run("rev-parse", "HEAD")
    source.check_out(tip)
    (source.tree.root / "new.txt").write_text("new\n")
    source.push("mine", source.commit("More"), "")
    assert source.remote_head("mine") == source.tree.run("rev-parse", "HEAD")
