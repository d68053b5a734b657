"""State that is gone, damaged, older or from the future: a clear word, nothing lost, and a way on (L4, E19–E22)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from faults.rig import FIRST, SECOND, Rig, contents, settled, snapshot, trouble

pytestmark = pytest.mark.hermes


def _file(rig: Rig) -> Path:
    [path] = (rig.state / "homes").glob("*.json")
    return path


def test_state_is_deleted(rig: Rig) -> None:
    """E19: plan-only; `adopt` finds ours by the marker, and the plan is empty again."""
    rig.setup(FIRST.replace("120", "150"), home="")
    rig.file.write_text(rig.file.read_text().replace("    first_contact: adopt\n", ""))
    _file(rig).unlink()
    before = snapshot(rig.home)
    done = rig.cli("apply", "--yes")
    assert (done.code, "adopt main" in done.out, trouble(done)) == (3, True, []), done.text
    assert snapshot(rig.home) == before
    done = rig.cli("adopt", "main")
    assert done.code == 0, done.text
    assert snapshot(rig.home) == before
    rows = rig.rows()
    assert set(rows) == {"main/default/settings/agent.max_turns"}, rows
    rig.apply()
    settled(rig)


def test_state_is_deleted_and_a_twin_made(rig: Rig) -> None:
    """E19, E24: of two jobs with one name, `adopt` takes the one with our marker; the other stays a person's."""
    mine = rig.job("brief")["id"]
    twin = {k: v for k, v in rig.job("brief").items() if k != "x_reconciler"} | {"id": "f" * 12}
    rig.edit_jobs(lambda jobs: jobs.insert(0, twin))
    _file(rig).unlink()
    assert rig.cli("adopt", "main").code == 0
    assert mine in rig.owned() and "f" * 12 not in rig.owned()


def _broken(data: str) -> dict[str, str]:
    return {
        "truncated": data[: len(data) // 2],
        "empty": "",
        "a list": "[]\n",
        "NUL": "\0" * len(data),
        "deep": "[" * 100_000,
        "another's": data.replace('"harness": "hermes"', '"harness": "other"', 1),
        "from the future": data.replace('"format": 1', '"format": 99', 1),
        "conflict markers": f"<<<<<<< HEAD\n{data}=======\n{data}>>>>>>> theirs\n",
    }


def test_state_that_cannot_be_read(rig: Rig) -> None:
    """E21, E22: refused with the file's name; home, state and journal keep every byte, and no row is open."""
    path = _file(rig)
    data = path.read_text()
    rig.setup(SECOND)
    for what, broken in _broken(data).items():
        assert broken != data, what
        path.write_text(broken)
        before = snapshot(rig.home, rig.state)
        [plan] = rig.plan().homes
        assert path.name in plan.failed and not plan.open, (what, plan.failed)
        assert not [e for e in rig.apply() if str(e.outcome) == "applied"], what
        assert snapshot(rig.home, rig.state) == before, what


@pytest.mark.parametrize("what", ["conflict markers", "from the future", "deep"])
def test_every_command_says_which_state_is_broken(rig: Rig, what: str) -> None:
    """E21, E22: exit 1 or 4 and the file's name; what a newer program wrote is not put aside; after `state repair`
    and `adopt` everything is as before, and the broken file is kept."""
    path = _file(rig)
    broken = _broken(path.read_text())[what]
    path.write_text(broken)
    before = snapshot(rig.home, rig.state)
    for command in (("plan",), ("apply", "--yes"), ("status",), ("state", "list")):
        done = rig.cli(*command)
        assert not trouble(done), (command, done.text)
        assert done.code in ((1, 4) if command[0] in ("plan", "apply") else (0, 1, 4)), (command, done.text)
        assert path.name in done.text, (command, done.text)
    newer = int(what == "from the future")
    assert rig.cli("state", "repair").code == newer
    assert snapshot(rig.home, rig.state) == before
    assert rig.cli("state", "repair", "--yes").code == newer
    if newer:
        assert snapshot(rig.home, rig.state) == before
        return
    assert broken in [p.read_text() for p in path.parent.iterdir()], "what could not be read was not kept"
    assert rig.cli("adopt", "main").code == 0
    settled(rig)


def test_an_older_copy_is_put_back(rig: Rig) -> None:
    """E21: a serial that goes backwards is refused, with both serials."""
    path = _file(rig)
    older = path.read_bytes()
    rig.setup(SECOND)
    rig.apply()
    path.write_bytes(older)
    before = snapshot(rig.home, rig.state)
    done = rig.cli("apply", "--yes")
    assert (done.code in (1, 3, 4), trouble(done)) == (True, []), done.text
    assert "serial" in done.text and "older copy" in done.text, done.text
    assert snapshot(rig.home, rig.state) == before


def test_an_older_copy_is_put_back_after_a_run_that_was_cut_off(rig: Rig) -> None:
    """E21: the journal remembers what earlier runs left, though the last one was killed before it could say so."""
    path = _file(rig)
    older = path.read_bytes()
    rig.setup(SECOND)
    rig.apply()
    rig.setup(SECOND.replace("Water.", "Water twice."))
    assert rig.full([">door.perform:1:kill"]).code == -signal.SIGKILL
    path.write_bytes(older)
    done = rig.cli("plan")
    assert "serial" in done.text, done.text


def test_one_damaged_record(rig: Rig) -> None:
    """E20: the address of a corrupt entry becomes `unowned`; the rest goes on; nothing is made twice."""
    path = _file(rig)
    text = path.read_text()
    brief = rig.job("brief")["id"]
    assert brief in text
    path.write_text(text.replace(f'"{brief}"', "7", 1))
    row = rig.rows()["main/default/jobs/brief"]
    assert str(row.row) == "unowned" and row.hold is not None, row
    before = contents(rig.home)
    done = rig.cli("apply", "--yes")
    assert (done.code, trouble(done)) == (3, []), done.text
    assert contents(rig.home) == before
    assert rig.cli("adopt", "main/default/jobs/brief").code == 0
    settled(rig)


def test_a_journal_that_is_damaged(rig: Rig) -> None:
    """L9: a torn last line is skipped; a bad one in the middle is told by its number, and nothing is written."""
    [path] = (rig.state / "journal").glob("*.jsonl")
    data = path.read_bytes()
    path.write_bytes(data + b'{"what": "beg')
    rig.setup(SECOND)
    rig.apply()
    settled(rig)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"<<<<<<< HEAD\n", *lines[1:-1]]))  # no end: all of it is looked at
    before = snapshot(rig.home, rig.state)
    done = rig.cli("apply", "--yes")
    assert (done.code in (1, 4), trouble(done)) == (True, []), done.text
    assert "line 2" in done.text
    assert snapshot(rig.home, rig.state) == before


def test_a_home_restored_from_a_backup(rig: Rig) -> None:
    """E16: an older jobs.json put back: what is older is drift, what is gone is `missing`, nothing is doubled."""
    store = rig.home / "cron" / "jobs.json"
    older = store.read_bytes()
    rig.setup(SECOND)
    rig.apply()
    store.write_bytes(older)
    rows = rig.rows()
    assert str(rows["main/default/jobs/plants"].row) == "missing"
    brief = rows["main/default/jobs/brief"]
    assert {str(c.row) for c in brief.changes} == {"drift"} and not brief.writes
    assert "main/default/jobs/old" not in rows
