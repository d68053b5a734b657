"""Approvals and decisions as files: whole, ours, in proper form, or they count for nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler_state.approvals import Approval, Approvals
from reconciler_state.decisions import Decision, Decisions, Said
from reconciler_state.errors import StateError
from reconciler_state.files import Files

PLAN, ROW, OTHER = "a" * 32, "b" * 32, "c" * 32
NOW = datetime(2031, 1, 1, 12, tzinfo=UTC)
ANN = Approval(
    {ROW: "main/default/jobs/brief"}, "ann", "desk", "session desk 1 2", NOW, "https://git.example.org/runs/1"
)


def always(_approval: Approval) -> bool:
    return True


def approvals(root: Path) -> Approvals:
    return Approvals(root, Files())


def file(root: Path) -> Path:
    return root / "approvals" / f"{PLAN}.json"


def test_nothing_is_there_before_the_first(tmp_path: Path) -> None:
    assert approvals(tmp_path / "state").read("solo") == ([], [])
    assert not (tmp_path / "state").exists()


def test_what_is_given_is_read(tmp_path: Path) -> None:
    assert approvals(tmp_path).add("solo", PLAN, ANN, always)
    bob = replace(ANN, by="bob", rows={OTHER: "main"})
    assert approvals(tmp_path).add("solo", PLAN, bob, always)
    (found,), wrong = approvals(tmp_path).read("solo")
    assert (found.plan, found.approvals, wrong) == (PLAN, (ANN, bob), [])
    assert approvals(tmp_path).read("other") == ([], [])
    assert file(tmp_path).stat().st_mode & 0o777 == 0o600


def test_approving_again_writes_nothing(tmp_path: Path) -> None:
    approvals(tmp_path).add("solo", PLAN, replace(ANN, rows={ROW: "main", OTHER: "main"}), always)
    before = file(tmp_path).stat().st_mtime_ns
    assert not approvals(tmp_path).add("solo", PLAN, replace(ANN, at=NOW + timedelta(hours=1)), always)
    assert file(tmp_path).stat().st_mtime_ns == before
    assert approvals(tmp_path).add("solo", PLAN, replace(ANN, run="another"), always)


def test_what_is_over_is_left_out_by_the_next(tmp_path: Path) -> None:
    approvals(tmp_path).add("solo", PLAN, ANN, always)
    later = replace(ANN, at=NOW + timedelta(hours=9))
    assert approvals(tmp_path).add("solo", PLAN, later, lambda given: given.at > NOW)
    assert approvals(tmp_path).read("solo")[0][0].approvals == (later,)


def _good() -> dict[str, Any]:
    given: dict[str, Any] = {"by": "ann", "host": "desk", "run": "r", "pipeline": "", "at": NOW.isoformat()}
    given |= {"rows": {ROW: "main"}, "blocks": ["b"]}
    return {"format": 1, "setup": "solo", "plan": PLAN, "approvals": [given]}


def _with(**change: Any) -> bytes:
    return json.dumps({**_good(), **change}).encode()


def _given(**change: Any) -> bytes:
    return _with(approvals=[{**_good()["approvals"][0], **change}])


def test_what_is_proper_is_read(tmp_path: Path) -> None:
    (tmp_path / "approvals").mkdir()
    (tmp_path / "approvals" / f"{PLAN}.json").write_bytes(_with())
    [approved], wrong = approvals(tmp_path).read("solo")
    assert approved.approvals[0].blocks == ("b",) and not wrong


WRONG: dict[str, bytes] = {
    "empty": b"",
    "cut off": _with()[:-9],
    "binary": b"\x00\xff\xfe",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "blocks that are none": _given(blocks=[1]),
    "without blocks": _given(blocks=None),
    "a later format": _with(format=2),
    "true is no format": _with(format=True),
    "another plan": _with(plan=OTHER),
    "no setup": _with(setup=None),
    "approvals as a map": _with(approvals={"0": {}}),
    "an approval that is none": _with(approvals=["ann"]),
    "a time without a zone": _given(at="2031-01-01T12:00:00"),
    "no time": _given(at="soon"),
    "a time as a number": _given(at=3),
    "rows as a list": _given(rows=[ROW]),
    "a digest that is none": _given(rows={"x": "main"}),
    "an address that is no text": _given(rows={ROW: 3}),
    "nobody": _given(by=None),
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG.keys())
def test_what_is_not_in_proper_form_counts_for_nothing_and_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "approvals").mkdir()
    file(tmp_path).write_bytes(data)
    found, (why,) = approvals(tmp_path).read("solo")
    assert found == [] and str(file(tmp_path)) in why and "approves nothing" in why
    with pytest.raises(StateError):
        approvals(tmp_path).add("solo", PLAN, ANN, always)
    assert file(tmp_path).read_bytes() == data, "and is not written over"


def _link(path: Path) -> None:
    path.parent.joinpath("elsewhere").write_bytes(_with())
    path.symlink_to("elsewhere")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 9 * 2**20)


@pytest.mark.parametrize("made", [_link, os.mkfifo, Path.mkdir, _huge], ids=["link", "pipe", "folder", "huge"])
def test_what_is_no_file_of_ours_counts_for_nothing(tmp_path: Path, made: Callable[[Path], object]) -> None:
    (tmp_path / "approvals").mkdir()
    made(file(tmp_path))
    found, wrong = approvals(tmp_path).read("solo")
    assert found == [] and len(wrong) == 1


def test_other_names_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "approvals").mkdir()
    for name in ("README", f"{PLAN}.json.orig", "x.json", f".{PLAN}.json.tmp"):
        (tmp_path / "approvals" / name).write_bytes(b"?")
    assert approvals(tmp_path).read("solo") == ([], [])


def test_a_plan_of_another_setup_is_refused(tmp_path: Path) -> None:
    approvals(tmp_path).add("solo", PLAN, ANN, always)
    with pytest.raises(StateError, match="of the setup 'solo'"):
        approvals(tmp_path).add("other", PLAN, ANN, always)


def test_a_file_of_another_user_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approvals(tmp_path).add("solo", PLAN, ANN, always)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found, (why,) = approvals(tmp_path).read("solo")
    assert found == [] and "belongs to uid" in why


def _approve(root: Path, number: int) -> None:
    approvals(root).add("solo", PLAN, replace(ANN, by=f"person {number}"), always)


def test_many_at_once_lose_none(tmp_path: Path) -> None:
    people = [multiprocessing.get_context("fork").Process(target=_approve, args=(tmp_path, n)) for n in range(12)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    (found,), _ = approvals(tmp_path).read("solo")
    assert {a.by for a in found.approvals} == {f"person {n}" for n in range(12)}


# -- decisions --------------------------------------------------------------------------------------------------------

WAITS = Decision(
    Said.WAITED, NOW.isoformat(), "main", "adopt", ROW, "confirm", "first contact", "needs", "ann", "h", "r"
)


def decisions(root: Path) -> Decisions:
    return Decisions(root, "solo", Files())


def test_the_same_is_said_once(tmp_path: Path) -> None:
    later = (NOW + timedelta(minutes=5)).isoformat()
    decisions(tmp_path).record([WAITS])
    decisions(tmp_path).record([replace(WAITS, at=later)])
    assert decisions(tmp_path).read() == [WAITS]
    for news in (
        replace(WAITS, why="another reason"),
        replace(WAITS, digest=OTHER),
        replace(WAITS, said=Said.EXPIRED),
        replace(WAITS, by="bob"),
        replace(WAITS, said=Said.PERMITTED),
        replace(WAITS, said=Said.PERMITTED),
        WAITS,
    ):
        decisions(tmp_path).record([news])
        assert decisions(tmp_path).read()[-1] == news
    assert len(decisions(tmp_path).read()) == 8


def test_nothing_to_say_makes_no_file(tmp_path: Path) -> None:
    decisions(tmp_path / "state").record([])
    assert decisions(tmp_path).read() == [] and not (tmp_path / "state").exists()


@pytest.mark.parametrize("torn", [b'{"format": 1, "said": "wai', b"\x00\x01", b"[]", b'{"said": 3}', b"[" * 5000])
def test_a_line_that_a_crash_cut_off_is_passed_over(tmp_path: Path, torn: bytes) -> None:
    decisions(tmp_path).record([WAITS])
    path = tmp_path / "decisions" / "solo.jsonl"
    path.write_bytes(path.read_bytes() + torn)
    after = replace(WAITS, said=Said.REFUSED)
    decisions(tmp_path).record([after])
    assert decisions(tmp_path).read() == [WAITS, after]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "solo.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError):
        decisions(tmp_path).record([WAITS])
    assert not (tmp_path / "elsewhere").exists()
