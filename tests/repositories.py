"""Small git repositories for tests."""

from __future__ import annotations

from pathlib import Path

from reconciler_state.repository import Repository

WHO = {
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def made(folder: Path) -> Repository:
    """A repository with one commit on `main`, whose one file is setup.yaml."""
    folder.mkdir(exist_ok=True)
    repository = Repository(folder)
    repository.run("init", "-q", "-b", "main")
    (folder / "setup.yaml").write_text("version: 1\n")
    repository.run("add", "setup.yaml")
    repository.run("commit", "-q", "-m", "first", env=WHO)
    return repository
