"""Runs as the journal tells them; hostile or old entries cost what they say, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler_specs.address import Address
from reconciler_state.history import restored, runs, told
from reconciler_state.journal import Done, Journal, Planned

BRIEF = Address.parse("main/default/jobs/brief")


def journal(path: Path) -> Journal:
    return Journal(path / "journal" / "home.jsonl")


def test_a_run_with_all_that_was_said_of_it(tmp_path: Path) -> None:
    j = journal(tmp_path)
    j.start(owner="solo", version="0.19.0", run="r1", who={"actor": "ann", "commit": "c0ffee"})
    ids = j.begin([Planned(BRIEF, "update", "id1", tier="confirm", before={"prompt": "Old."}, rows={"prompt": "set"})])
    j.done([Done(ids[BRIEF], "applied", id="id1", door="worker")])
    j.end(None, {"default/jobs": ["id9 mine"]})
    [run] = runs(journal(tmp_path))
    [row] = run.rows
    assert (run.run, run.owner, run.version, run.who["actor"]) == ("r1", "solo", "0.19.0", "ann")
    assert run.seen == {"default/jobs": ["id9 mine"]}
    assert (row.path, row.row, row.tier) == ("default/jobs/brief", "update", "confirm")
    assert (row.outcome, row.door) == ("applied", "worker")
    assert row.before == {"prompt": "Old."} and row.rows == {"prompt": "set"} and run.seconds >= 0


def test_what_is_open_has_no_outcome_and_a_later_run_settles_it(tmp_path: Path) -> None:
    j = journal(tmp_path)
    j.start(owner="solo", run="r1")
    ids = j.begin([Planned(BRIEF, "create")])
    assert [r.outcome for r in runs(j)[0].rows] == [""]
    j = journal(tmp_path)
    j.start(owner="solo", run="r2")
    j.done([Done(ids[BRIEF], "settled", "found", id="id1")])
    j.end()
    first, second = runs(journal(tmp_path))
    assert (first.rows[0].outcome, first.rows[0].id, second.rows) == ("settled", "id1", ())


def test_entries_of_an_older_program_are_read() -> None:
    entries: list[dict[str, Any]] = [
        {"what": "run", "run": "r", "owner": "solo", "at": "2026-01-01T00:00:00+00:00"},
        {"what": "begin", "run": "r", "intent": "i", "path": "default", "kind": "profile", "row": "create"},
        {"what": "outcome", "run": "r", "intent": "i", "outcome": "applied"},
        {"what": "run-end", "run": "r", "at": "2026-01-01T00:00:02+00:00"},
    ]
    [run] = told(entries)
    assert run.seconds == 2 and run.rows[0].before == {} and run.who == {}


_json = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda s: st.lists(s, max_size=3), max_leaves=5)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"what": st.sampled_from(["run", "begin", "outcome", "seen", "run-end", "torn", "else"])},
            optional={
                name: _json | st.sampled_from(["r", "i"])
                for name in ("run", "intent", "before", "rows", "who", "seen", "fields", "outcome", "at", "owner")
            },
        ),
        max_size=12,
    )
)
def test_whatever_stands_in_it_nothing_breaks(entries: list[dict[str, Any]]) -> None:
    for run in told(entries):
        assert isinstance(run.seconds, float)
        restored([run], {"solo"})


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (["restore", "restore"], 2),
        (["restore", "set", "restore"], 1),
        (["restore", "set"], 0),
        (["set"], 0),
    ],
)
def test_restores_one_after_the_other_are_counted(rows: list[str], count: int) -> None:
    entries: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        entries += [
            {"what": "run", "run": f"r{number}", "owner": "solo"},
            {
                "what": "begin",
                "run": f"r{number}",
                "intent": f"i{number}",
                "path": "p",
                "row": "update",
                "rows": {"f": row},
            },
            {"what": "outcome", "intent": f"i{number}", "outcome": "applied"},
        ]
    assert restored(told(entries), {"solo"}) == ({("p", "f"): count} if count else {})
    assert restored(told(entries), {"other"}) == {}
