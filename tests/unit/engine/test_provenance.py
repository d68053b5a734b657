"""Which commit a setup is at, and who runs us."""

from __future__ import annotations

from pathlib import Path

from reconciler.provenance import Provenance, provenance
from repositories import made


def test_of_a_setup_in_a_repository(tmp_path: Path) -> None:
    repository = made(tmp_path)
    setup = tmp_path / "setup.yaml"
    found = provenance([setup], {})
    assert (found.commit, found.ref, found.author, found.subject) == (
        repository.run("rev-parse", "HEAD"),
        "main",
        "ann",
        "first",
    )
    assert not found.dirty and found.actor and found.run
    (tmp_path / "other.txt").write_text("no file of the setup")
    assert not provenance([setup], {}).dirty
    setup.write_text("version: 1\nname: x\n")
    assert provenance([setup], {}).dirty


def test_an_uncommitted_file_of_the_setup_is_dirty(tmp_path: Path) -> None:
    made(tmp_path)
    new = tmp_path / "homes.yaml"
    new.write_text("homes: {}\n")
    assert provenance([tmp_path / "setup.yaml", new], {}).dirty


def test_without_a_repository_nothing_is_claimed(tmp_path: Path) -> None:
    found = provenance([tmp_path / "setup.yaml"], {})
    assert (found.commit, found.ref, found.dirty) == ("", "", False)


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert provenance([tmp_path / "setup.yaml"], {}).commit == ""


def test_the_ci_system_says_who_and_which_run(tmp_path: Path) -> None:
    hub = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "ann",
        "GITHUB_RUN_ID": "17",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_SERVER_URL": "https://git.example.org",
        "GITHUB_REPOSITORY": "team/homes",
        "GITHUB_REF_NAME": "main",
    }
    found = provenance([tmp_path / "setup.yaml"], hub)
    assert (found.actor, found.run, found.ref) == ("ann", "ci 17.2", "main")
    assert found.pipeline == "https://git.example.org/team/homes/actions/runs/17"
    lab = {"GITLAB_CI": "true", "GITLAB_USER_LOGIN": "ann", "CI_PIPELINE_ID": "9", "CI_COMMIT_REF_NAME": "main"}
    assert provenance([tmp_path / "setup.yaml"], lab).run == "ci 9"


def test_json_has_what_is_known_only() -> None:
    assert Provenance(actor="ann").to_json() == {"actor": "ann"}
