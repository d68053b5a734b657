"""Git, called so that nothing in a repository is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler_state.repository import GitError, Repository
from repositories import WHO, made


def test_the_repository_around_a_folder(tmp_path: Path) -> None:
    made(tmp_path / "repo")
    (tmp_path / "repo" / "deep").mkdir()
    found = Repository.around(tmp_path / "repo" / "deep")
    assert found is not None and found.root == tmp_path / "repo"
    assert Repository.around(tmp_path) is None


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit", "post-checkout", "reference-transaction"])
def test_no_hook_runs(tmp_path: Path, hook: str) -> None:
    repository = made(tmp_path / "repo")
    script = repository.root / ".git" / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    repository.run("commit", "-q", "--allow-empty", "-m", "second", env=WHO)
    repository.run("checkout", "-q", "-b", "other")
    assert not (tmp_path / "ran").exists()


def test_no_monitor_and_no_transport_program_runs(tmp_path: Path) -> None:
    repository = made(tmp_path / "repo")
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monitor.chmod(0o755)
    repository.run("config", "core.fsmonitor", str(monitor))
    repository.run("config", "protocol.ext.allow", "always")
    repository.run("status", "--porcelain")
    with pytest.raises(GitError):
        repository.run("fetch", f"ext::sh -c 'touch {tmp_path}/ran'")
    assert not (tmp_path / "ran").exists()


def test_what_another_git_has_set_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = made(tmp_path / "repo")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert repository.run("log", "--format=%s") == "first"


def test_an_error_shows_no_credential_of_a_url(tmp_path: Path) -> None:
    repository = made(tmp_path / "repo")
    with pytest.raises(GitError) as caught:
        repository.run("fetch", "https://user:hunter2hunter2@127.0.0.1:1/x")
    assert "hunter2" not in str(caught.value) and caught.value.status != 0


def test_without_git_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = made(tmp_path / "repo")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(GitError, match="cannot be started"):
        repository.run("status")
