"""A lease as anybody may have left it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reconciler_shape import lease
from reconciler_shape.lease import State


def write(root: Path, **said: object) -> None:
    (root / lease.LOCK).write_text(json.dumps({"pid": os.getpid(), "started_at": "2026-12-01T08:00:00Z", **said}))


def test_a_folder_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / lease.LOCK).mkdir()
    assert lease.inspect(tmp_path).state is State.UNREADABLE


def test_one_nested_without_end_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / lease.LOCK).write_text("[" * 60_000)
    assert lease.inspect(tmp_path).state is State.UNREADABLE


@pytest.mark.parametrize("name", ["host", "hostname"])
@pytest.mark.parametrize("boot", ["boot", "boot_id"])
def test_later_versions_say_host_and_boot(tmp_path: Path, name: str, boot: str) -> None:
    write(tmp_path, **{name: "elsewhere"})
    assert lease.inspect(tmp_path).state is State.FOREIGN
    write(tmp_path, **{name: lease.host(), boot: "0"})
    assert lease.inspect(tmp_path).state is State.EARLIER


def test_what_surely_has_the_file_lives(tmp_path: Path) -> None:
    write(tmp_path, pid=2**22 + 7, hostname="elsewhere")
    assert lease.inspect(tmp_path, lambda _fd: True).state is State.LIVE


def test_a_process_that_is_not_shown_to_us_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `hidepid`: the kernel says that it is there, and not when it began."""
    write(tmp_path, pid=2**22 + 7, start_time="77")

    def kill(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert lease.inspect(tmp_path).state is State.LIVE
    monkeypatch.undo()
    assert lease.inspect(tmp_path).state is State.DEAD
    assert lease.start_time(2**80) == ""


def test_its_words_are_shown_only_as_what_they_should_be(tmp_path: Path) -> None:
    token = "ghp_" + "a" * 36
    write(tmp_path, started_at=token, hostname=token)
    found = lease.inspect(tmp_path)
    assert found.state is State.FOREIGN and token not in found.words and "another machine" in found.words
