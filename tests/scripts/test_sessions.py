"""Every session here says what the program says. `UPDATE_SESSIONS=1 pytest tests/scripts` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.session import FOLDER, UPDATE, play, read

FILES = sorted(FOLDER.glob("*.txt"))


def _mark(path: Path) -> object:
    needs = read(path).needs.split(", ")
    marks = [pytest.mark.hermes] if "hermes" in needs else []
    if "openclaw" in needs:
        marks += [pytest.mark.openclaw, pytest.mark.timeout(600)]
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [_mark(path) for path in FILES])
def test_session(path: Path, tmp_path: Path) -> None:
    session = read(path)
    played = play(session, tmp_path)
    if os.environ.get(UPDATE):
        path.write_text(played.text(), encoding="utf-8")
        return
    assert played.text() == session.text()


def test_sessions_see_every_exit_code() -> None:
    seen = {command.code for path in FILES for command in read(path).commands}
    assert {0, 1, 2, 3, 4, 5} <= seen
