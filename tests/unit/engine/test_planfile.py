"""Plan files: where one may be written, and which one may be applied."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler import planfile
from reconciler.errors import UsageError
from reconciler.plan import Plan, sha

NOW = datetime(2031, 1, 1, tzinfo=UTC)
PLAN = Plan("solo", ())


@pytest.mark.parametrize("content", [b"version: 1\n", b"{}", b'{"format": "other/1"}', b"\x00\xff", b"[" * 5000])
def test_what_is_no_plan_file_is_not_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "setup.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="would be lost"):
        planfile.write(path, PLAN, NOW)
    assert path.read_bytes() == content


def test_neither_is_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(UsageError, match="would be lost"):
            planfile.write(tmp_path / name, PLAN, NOW)
    with pytest.raises(UsageError, match="would be lost"):
        planfile.write(Path("/dev/null"), PLAN, NOW)
    assert not (tmp_path / "elsewhere").exists()


def test_a_new_file_an_empty_one_and_an_earlier_plan_are_written(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("new", "empty", "new"):
        planfile.write(tmp_path / name, PLAN, NOW)
        assert planfile.read(tmp_path / name, "solo", NOW).rows == {}


@pytest.mark.parametrize(("age", "words"), [(timedelta(hours=5), "too old"), (timedelta(minutes=-10), "in the future")])
def test_a_plan_holds_for_its_time(tmp_path: Path, age: timedelta, words: str) -> None:
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN, NOW - age)
    with pytest.raises(UsageError, match=words):
        planfile.read(path, "solo", NOW)
    planfile.write(path, PLAN, NOW + timedelta(minutes=1))
    assert planfile.read(path, "solo", NOW).rows == {}  # clocks of two machines are never quite one


@pytest.mark.parametrize("address", ["", "/", "main/default/nothing/x", "main\n/default", "main/\x1b[2J"])
def test_an_address_in_it_is_one_whatever_its_digest_says(tmp_path: Path, address: str) -> None:
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN, NOW)
    row = {"address": address, "row": "delete", "digest": "0" * 32, "id": "", "would": [], "bound": {}}
    row["bound"] = dict.fromkeys(("setup", "home", "state"), "")
    body = {**json.loads(path.read_bytes()), "rows": [row]}
    del body["content"]
    path.write_text(json.dumps({**body, "content": sha(body)}))
    with pytest.raises(UsageError, match="proper form"):
        planfile.read(path, "solo", NOW)
