"""Whose a program is, and who may write it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.place import LocalPlace, Stat
from reconciler_shape import trust


class Foreign(LocalPlace):
    """A place where what is called `theirs` belongs to somebody else, and `lost` cannot be looked at."""

    def stat(self, path: str) -> Stat | None:
        found = super().stat(path)
        if found and path.endswith("lost"):
            raise PermissionError(13, "Permission denied", path)
        return replace(found, uid=4711) if found and path.endswith("theirs") else found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A link in one folder to a program in another."""
    for name in ("bin", "real"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "real" / "tool").write_text("")
    (tmp_path / "bin" / "tool").symlink_to(tmp_path / "real" / "tool")
    return tmp_path / "bin" / "tool"


def why(program: Path, *more: Path) -> str:
    place = Foreign()
    return trust.unsafe(place, (*trust.around(place, str(program)), "", *map(str, more)))


def test_what_is_ours_alone_may_be_started(program: Path) -> None:
    assert why(program) == ""


@pytest.mark.parametrize("part", ["bin", "real", "real/tool"])
def test_what_everybody_may_write_may_not(program: Path, tmp_path: Path, part: str) -> None:
    (tmp_path / part).chmod(0o777)
    assert why(program) == f"{tmp_path / part} may be written by everybody"


def test_a_program_in_somebody_elses_folder_may_not(program: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "tool").write_text("")
    program.unlink()
    program.symlink_to(tmp_path / "theirs" / "tool")
    assert why(program) == f"{tmp_path / 'theirs'} belongs to uid 4711, who could change what runs as you"


@pytest.mark.parametrize("name", ["lost", "gone"])
def test_what_cannot_be_seen_may_not(program: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "lost").mkdir()
    assert why(program, tmp_path / name) == f"{tmp_path / name} cannot be looked at"
