"""The installer of real harnesses, without installing any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import harness


def test_what_is_complete_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[tuple[str, str | None]] = []
    monkeypatch.setattr(harness, "_install", lambda _h, version, borrow: made.append((version, borrow)))
    whole = harness.python("hermes", "0.18.2")
    whole.parent.mkdir(parents=True)
    whole.touch()
    (harness.folder("hermes", "0.18.2") / harness.MARK).touch()
    (harness.folder("hermes", "0.16.0") / "bin").mkdir(parents=True)  # was interrupted
    harness.install("hermes", ["0.19.0", "0.18.2", "0.16.0"], say=False)
    assert made == [("0.19.0", None), ("0.16.0", "0.19.0")]


def test_a_python_that_hermes_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer(tuple[int, ...]):
        major, minor = 3, 14

    monkeypatch.setattr(sys, "version_info", Newer())
    monkeypatch.setattr("shutil.which", lambda name: "/x/python3.12" if name == "python3.12" else None)

    def run(argv: Any, **_: Any) -> Any:
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr("subprocess.run", run)
    assert harness._find_python() == "/x/python3.12"
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(SystemExit, match=r"3\.14.*no python3\.11"):
        harness._find_python()
