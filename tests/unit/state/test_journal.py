"""What was begun and how it ended, through crashes, torn lines and damage."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler_specs.address import Address, Kind
from reconciler_state.errors import StateDamaged, StateError, StateMoved, StateTooNew
from reconciler_state.files import Files
from reconciler_state.journal import Done, Journal, Planned
from reconciler_state.local import LocalStore
from reconciler_state.record import HomeState
from reconciler_state.store import Physical

HOME = Physical("local", "hermes", "/srv/homes/main")
STATE = HomeState(HOME.place, HOME.harness, HOME.path, "line", 3)
BRIEF = Planned(Address.parse("main/default/jobs/brief"), "create", digest="d1", known_ids=("j0",))
SET = Planned(Address.parse("main/default/settings/a.b"), "update", "a.b", "d2")


def journal(root: Path, files: Files | None = None) -> Journal:
    return Journal.of(root, HOME, files)


def begun(root: Path, *actions: Planned) -> tuple[Journal, dict[Address, str]]:
    j = journal(root)
    j.start(owner="team", state=STATE)
    return j, j.begin(actions)


def test_a_run(tmp_path: Path) -> None:
    j, ids = begun(tmp_path, BRIEF, SET)
    assert [(i.intent, i.path) for i in journal(tmp_path).open_intents()] == [
        (ids[BRIEF.address], "default/jobs/brief"),
        (ids[SET.address], "default/settings/a.b"),
    ]
    intent = journal(tmp_path).open_intents()[0]
    assert (intent.owner, intent.row, intent.kind, intent.profile) == ("team", "create", Kind.JOB, "default")
    assert (intent.digest, intent.known_ids, intent.run) == ("d1", ("j0",), j.run)
    assert journal(tmp_path).open_intents()[1].known_ids is None
    j.done([Done(ids[BRIEF.address], "applied", id="j1"), Done(ids[SET.address], "refused", "no", ("value",))])
    assert journal(tmp_path).open_intents() == []
    j.end(STATE)
    assert [e["what"] for e in j.entries()] == ["run", "begin", "begin", "outcome", "outcome", "run-end"]
    assert [(p.outcome, p.reason) for p in j.history("default/settings/a.b")] == [("refused", "no")]
    assert j.history("default/jobs/other") == []


def test_nothing_is_written_unless_something_was_begun(tmp_path: Path) -> None:
    j = journal(tmp_path)
    assert j.open_intents() == [] and j.entries() == []
    j.start(owner="team")
    assert j.begin([]) == {}
    j.done([])
    j.end(STATE)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError):
        j.begin([BRIEF])


def test_one_fsync_for_all_intents_of_a_step(tmp_path: Path) -> None:
    files = Files()
    first = journal(tmp_path, files)
    first.start(owner="team")
    first.begin([SET])
    assert files.fsyncs == 3  # a new folder's name, a new file's, and its content
    first.end()
    files = Files()
    j = journal(tmp_path, files)
    j.start(owner="team")
    ids = j.begin([BRIEF, SET])
    assert (files.fsyncs, files.writes) == (1, 1)
    j.done([Done(i, "applied") for i in ids.values()])
    j.end()
    assert (files.fsyncs, files.writes) == (1, 3)


def test_ids_are_not_guessable(tmp_path: Path) -> None:
    _, ids = begun(tmp_path, BRIEF, SET)
    assert len(set(ids.values())) == 2 and all(len(i) == 20 for i in ids.values())
    path = journal(tmp_path).path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_uncertain_stays_open_until_a_later_run_settles_it(tmp_path: Path) -> None:
    j, ids = begun(tmp_path, BRIEF)
    j.done([Done(ids[BRIEF.address], "uncertain")])
    j.end()
    later = journal(tmp_path)
    assert [i.intent for i in later.open_intents()] == list(ids.values())
    later.start(owner="team")
    later.done([Done(ids[BRIEF.address], "applied", "settled")])
    later.end()
    assert later.open_intents() == []
    assert [p.reason for p in later.history("default/jobs/brief")] == ["settled"]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line(tmp_path: Path, cut: int) -> None:
    j, ids = begun(tmp_path, BRIEF)
    j.done([Done(ids[BRIEF.address], "applied")])
    whole = j.path.read_bytes()
    j.path.write_bytes(whole[:-cut])
    # Without its newline only, the record is whole; else its outcome is not known.
    expected = [] if cut == 1 else list(ids.values())
    later = journal(tmp_path)
    assert [i.intent for i in later.open_intents()] == expected
    later.start(owner="team")
    later.begin([SET])
    assert j.path.read_bytes().startswith(whole[:-cut])  # never edited
    assert ("torn" in [e["what"] for e in later.entries()]) is (cut != 1)
    assert [i.intent for i in later.open_intents()][: len(expected)] == expected


def test_a_torn_mark_can_be_torn_itself(tmp_path: Path) -> None:
    j, _ = begun(tmp_path, BRIEF)
    for tail in (b'{"what": "outc', b'\n{"what": "to', b"\n", b'{"at": 1'):
        with j.path.open("ab") as file:
            file.write(tail)
        assert len(journal(tmp_path).open_intents()) == 1
    later, _ = begun(tmp_path, SET)
    assert len(later.open_intents()) == 2
    assert len(begun(tmp_path, SET)[0].open_intents()) == 3


@pytest.mark.parametrize("bad", [b"{", b"[]", b'{"a": 1}', b"\xff\x00", b'{"what": 1}'])
def test_a_damaged_line_in_the_middle_is_told(tmp_path: Path, bad: bytes) -> None:
    j, ids = begun(tmp_path, BRIEF)
    j.done([Done(ids[BRIEF.address], "applied")])
    lines = j.path.read_bytes().split(b"\n")
    j.path.write_bytes(b"\n".join([lines[0], bad, *lines[2:]]))
    with pytest.raises(StateDamaged, match="line 2 is no record of ours") as caught:
        journal(tmp_path).open_intents()
    assert "reconciler state repair" in str(caught.value.hint)
    store = LocalStore(tmp_path)
    assert len(store.repair(do=True).aside) == 1 and store.repair(do=True).aside == []
    assert journal(tmp_path).entries() == []


def test_a_newer_program_wrote_it(tmp_path: Path) -> None:
    j, _ = begun(tmp_path, BRIEF)
    with j.path.open("ab") as file:
        file.write(b'{"what": "run", "format": 2}\n')
    with pytest.raises(StateTooNew, match="a newer program"):
        journal(tmp_path).open_intents()


class HalfWritten(Files):
    fail = False

    def put(self, fd: int, data: bytes) -> None:
        if not self.fail:
            return super().put(fd, data)
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_within_a_run(tmp_path: Path) -> None:
    """What could not be journaled was not begun; once there is room the run can say how it ended."""
    _, ids = begun(tmp_path, SET)
    files = HalfWritten()
    j = journal(tmp_path, files)
    j.start(owner="team")
    more = j.begin([SET])
    files.fail = True
    with pytest.raises(StateError, match="No space left"):
        j.begin([BRIEF])
    files.fail = False
    j.done([Done(i, "applied") for i in (*ids.values(), *more.values())])
    assert journal(tmp_path).open_intents() == []


def test_repair_puts_a_state_aside_that_went_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    old = store.write(HomeState(HOME.place, HOME.harness, HOME.path), 0)
    data = store.path(HOME).read_bytes()
    j = store.journal(HOME)
    j.start(owner="team", state=old)
    j.begin([SET])
    j.end(store.write(replace(old, version="2"), 1))
    assert store.repair(do=True).aside == []
    store.path(HOME).write_bytes(data)
    with pytest.raises(StateMoved, match="went back from serial 2 to 1") as caught:
        LocalStore(tmp_path).journal(HOME).check(old)
    assert "reconciler state repair" in str(caught.value.hint)
    store = LocalStore(tmp_path)
    assert len(store.repair(do=False).aside) == 1 and store.path(HOME).exists()
    assert len(store.repair(do=True).aside) == 1
    assert store.read(HOME) is None and store.journal(HOME).entries()


def test_an_older_state_is_told(tmp_path: Path) -> None:
    j, _ = begun(tmp_path, SET)
    j.end(replace(STATE, serial=5))
    j.check(replace(STATE, serial=5))
    j.check(replace(STATE, serial=6))
    with pytest.raises(StateMoved, match="went back from serial 5 to 4"):
        j.check(replace(STATE, serial=4))
    with pytest.raises(StateMoved, match="lineage other"):
        j.check(replace(STATE, lineage="other", serial=9))
    # The state was lost, and a run without one began another.
    j.start(owner="team", state=None)
    j.begin([SET])
    j.check(replace(STATE, lineage="other", serial=1))
    j.end(replace(STATE, lineage="other", serial=2))
    with pytest.raises(StateMoved):
        j.check(STATE)


@given(
    st.lists(
        st.binary(max_size=30)
        | st.dictionaries(
            st.sampled_from(["what", "intent", "lineage", "serial", "format", "known_ids", "path"]),
            st.sampled_from(["run", "begin", "outcome", "run-end", "torn", 1, 9, None, [1], {}, True]),
        ).map(lambda d: json.dumps(d).encode()),
        max_size=5,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_lines(tmp_path: Path, lines: list[bytes]) -> None:
    j = journal(tmp_path)
    j.path.parent.mkdir(exist_ok=True)
    j.path.write_bytes(b"\n".join(lines))
    try:
        j.open_intents()
        j.history("x")
        j.check(STATE)
    except StateError:
        return
    j.start(owner="t")
    j.begin([SET])
    assert j.open_intents()


def test_a_large_journal_goes_on_in_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is settled moves aside whole: history reads on through it, and what the last run left is still checked."""
    monkeypatch.setattr("reconciler_state.journal.PART", 1)
    for serial in (4, 5, 6):
        j, ids = begun(tmp_path, BRIEF)
        j.done([Done(ids[BRIEF.address], "applied", str(serial), id="j1")])
        j.end(replace(STATE, serial=serial))
    names = sorted(p.name for p in (tmp_path / "journal").iterdir())
    assert names == [f"{HOME.key}.1.jsonl", f"{HOME.key}.2.jsonl", f"{HOME.key}.jsonl"]
    assert [p.reason for p in journal(tmp_path).history("default/jobs/brief")] == ["4", "5", "6"]
    open_, _ = begun(tmp_path, BRIEF)  # and a run that is cut off right behind the change of files
    assert len(open_.open_intents()) == 1
    with pytest.raises(StateMoved, match="back from serial 6"):
        open_.check(replace(STATE, serial=5))


def test_an_open_intent_stays_in_the_journal_that_plans_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler_state.journal.PART", 1)
    first, ids = begun(tmp_path, BRIEF)
    first.done([Done(ids[BRIEF.address], "uncertain")])
    first.end(STATE)
    begun(tmp_path, SET)
    assert [p.name for p in (tmp_path / "journal").iterdir()] == [f"{HOME.key}.jsonl"]
    assert len(journal(tmp_path).open_intents()) == 2


def test_a_part_is_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody took an earlier part away: its number is free, a later one's is not."""
    monkeypatch.setattr("reconciler_state.journal.PART", 1)
    j, _ = begun(tmp_path, BRIEF)
    kept = j.path.with_name(f"{HOME.key}.2.jsonl")
    kept.write_bytes(b"")
    j.done([Done(i, "applied") for i in [j.open_intents()[0].intent]])
    j.end(STATE)
    begun(tmp_path, BRIEF)
    assert kept.read_bytes() == b"" and j.path.with_name(f"{HOME.key}.3.jsonl").stat().st_size > 0


@pytest.mark.parametrize("taken", [(), (1,), (2,), (3,), (1, 2), (2, 3), (1, 2, 3)])
def test_a_part_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: tuple[int, ...]) -> None:
    monkeypatch.setattr("reconciler_state.journal.PART", 1)
    for serial in (4, 5, 6, 7):
        j, ids = begun(tmp_path, BRIEF)
        j.done([Done(ids[BRIEF.address], "applied", id="j1")])
        j.end(replace(STATE, serial=serial))
    for part in taken:
        j.path.with_name(f"{HOME.key}.{part}.jsonl").unlink()
    gone = [f"{HOME.key}.{part}.jsonl" for part in taken]
    assert journal(tmp_path).gone() == gone
    begun(tmp_path, BRIEF)  # goes on in a new file, behind all that there were
    assert journal(tmp_path).gone() == gone
    assert journal(tmp_path).path.with_name(f"{HOME.key}.4.jsonl").exists()


@pytest.mark.parametrize("said", [-1, 0, 10**12, "2", None])
def test_what_a_journal_says_of_its_parts_is_bounded(tmp_path: Path, said: object) -> None:
    """A name that is no number of ours beside it is none of its parts."""
    j, _ = begun(tmp_path, BRIEF)
    j.path.with_name(f"{HOME.key}.\u00b2.jsonl").write_bytes(b"")
    j.path.write_bytes(json.dumps({"what": "run-end", "part": said}).encode() + b"\n" + j.path.read_bytes())
    assert journal(tmp_path).gone() == [f"{HOME.key}.1.jsonl"]


def test_a_journal_of_an_older_version_tells_at_least_that_one_is_gone(tmp_path: Path) -> None:
    j, ids = begun(tmp_path, BRIEF)
    j.done([Done(ids[BRIEF.address], "applied", id="j1")])
    j.end(STATE)
    assert j.gone() == []
    j.path.write_bytes(b"".join(j.path.read_bytes().splitlines(keepends=True)[-1:]))
    assert journal(tmp_path).gone() == [f"{HOME.key}.1.jsonl"]


@pytest.mark.parametrize("left", [b"", b"\x00\xff\x13 no line of ours", b'{"what": "run", "format": 1'])
def test_a_journal_with_nothing_in_it_beside_a_state_is_damaged(tmp_path: Path, left: bytes) -> None:
    """What was begun and not ended would be forgotten; one that is not there at all is a journal put aside."""
    j, ids = begun(tmp_path, BRIEF)
    j.done([Done(ids[BRIEF.address], "uncertain")])
    j.end(STATE)
    j.path.write_bytes(left)
    with pytest.raises(StateDamaged, match="nothing of ours"):
        journal(tmp_path).check(STATE)
    store = LocalStore(tmp_path)
    assert len(store.repair(do=True).aside) == 1
    journal(tmp_path).check(STATE)
