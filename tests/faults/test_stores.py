"""Stores that are not as they should be: a clear row or a held home, nothing lost, no traceback (L14, F05, E17).

Reading starts no process, so that most of this runs in this process; what would be written goes through the command.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable

import pytest

from faults.rig import CONFIG, FIRST, SECOND, Rig, contents, settled, snapshot, trouble

pytestmark = pytest.mark.hermes

_NAMES = "abcdefghij"
# Each line holds the one before nine times: 3.5 billion values in 500 bytes.
_ALIASES = "a: &a [x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{name}'] * 9)}]\n" for name, after in itertools.pairwise(_NAMES)
)

# What config.yaml holds → whether it can be read.
BROKEN: dict[str, bytes] = {
    "unparsable": b"model: {default: a/b\nagent: [",
    "a tab": b"agent:\n\tmax_turns: 3\n",
    "a list": b"- a\n- b\n",
    "a scalar": b"hello\n",
    "NUL bytes": b"agent:\n  max_turns: 9\0\0\0\n",
    "only NUL": b"\0" * 4096,
    "bad UTF-8": b"agent: {note: \xff\xfe}\n",
    "20 MB": b"a: b\n" + b"# x\n" * (5 << 20),
    "nested deeply": b"a: " + b"[" * 20_000 + b"]" * 20_000,
    "aliases that explode": _ALIASES.encode(),
    "an alias that holds itself": b"a: &a [*a]\n",
    "a python object": b"a: !!python/object/apply:os.system [touch /tmp/pwned]\n",
    "an undefined alias": b"a: *nowhere\n",
}
FINE: dict[str, bytes] = {
    "no version": b"model: {default: a/b, provider: openrouter}\nagent: {max_turns: 90}\n",
    "empty": b"",
    "only a comment": b"# mine\n",
    "anchors": b"x: &x {max_turns: 90, note: keep}\nagent:\n  <<: *x\nother: *x\n",
    "off, yes and 12:30": b"agent: {max_turns: 90, mode: off, when: 12:30, 'on': yes, n: 0755}\nflags: [yes, 'no']\n",
    "a date and NaN": b"agent: {max_turns: 90, day: 2026-01-02, x: .nan, y: .inf}\n",
    "BOM": b"\xef\xbb\xbfagent: {max_turns: 90}\n",
    "CRLF": b"agent:\r\n  max_turns: 90 # mine\r\nother: 1\r\n",
    "no end of line": b"agent: {max_turns: 90}",
    "null sections": b"agent:\nmodel:\n",
}
JOBS: dict[str, bytes | None] = {
    "truncated": b'{"jobs": [{"id": "0a1b2c3d4e5f", "name": "brief", "pro',
    "an empty mapping": b"{}",
    "missing": None,
    "0 bytes": b"",
    "a text": b'"jobs"',
    "null jobs": b'{"jobs": null}',
    "jobs by name": b'{"jobs": {"brief": {}}}',
    "an entry that is none": b'{"jobs": [7]}',
    "bad UTF-8": b'{"jobs": [{"id": "\xff"}]}',
    "nested deeply": b'{"jobs": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "NUL": b"\0" * 512,
    "a number of 10,000 digits": b'{"jobs": [{"id": "0a1b2c3d4e5f", "repeat": ' + b"9" * 10_000 + b"}]}",
}


def test_a_config_that_cannot_be_read(rig: Rig) -> None:
    """F05: a config.yaml that cannot be read is Unknown, never “everything is missing”: its rows are held with the
    file's name, and reading it takes no long time and no memory."""
    rig.setup(FIRST.replace("120", "150"))
    for what, data in BROKEN.items():
        (rig.home / "config.yaml").write_bytes(data)
        before = snapshot(rig.home, rig.state)
        started = time.process_time()
        [plan] = rig.plan().homes
        assert time.process_time() - started < 5, what
        row = {str(a.address): a for a in plan.actions}["main/default/settings/agent.max_turns"]
        assert row.hold is not None and not row.writes, (what, row)
        assert "config.yaml" in row.hold.why, (what, row.hold)
        rig.apply()
        assert snapshot(rig.home, rig.state) == before, what


@pytest.mark.parametrize("what", ["a list", "only NUL", "bad UTF-8"])
def test_beside_a_config_that_cannot_be_read_files_go_on_or_not(rig: Rig, what: str) -> None:
    """F05: whatever else of the home is written, config.yaml keeps its bytes, and no file is lost or added."""
    (rig.home / "config.yaml").write_bytes(BROKEN[what])
    rig.setup(FIRST.replace("120", "150").replace("nothing", "little"))
    before = contents(rig.home)
    rig.apply()
    after = contents(rig.home)
    assert after[str(rig.home / "config.yaml")] == BROKEN[what]
    assert set(before) == set(after)


def test_no_job_is_made_in_a_home_whose_config_cannot_be_read(rig: Rig) -> None:
    """F05: plan stops for that home. Hermes would run on its defaults, and hold a new job to a model that nobody
    chose (and leave a `.corrupt` copy in the home)."""
    (rig.home / "config.yaml").write_bytes(BROKEN["unparsable"])
    rig.setup(SECOND)
    before = snapshot(rig.home)
    rig.apply()
    assert snapshot(rig.home) == before


@pytest.mark.parametrize("what", ["unparsable", "nested deeply"])
def test_the_command_line_names_the_broken_config(rig: Rig, what: str) -> None:
    """F05, exit codes: held or blocked is 3, the file is named, and there is no traceback."""
    (rig.home / "config.yaml").write_bytes(BROKEN[what])
    done = rig.cli("plan", "--detailed-exitcode")
    assert (done.code, trouble(done)) == (3, []), done.text
    assert f"{rig.home}/config.yaml" in done.out


@pytest.mark.parametrize("what", FINE)
def test_an_odd_config_is_written_with_care(bare: Rig, what: str) -> None:
    """5. of “What must work”: only the declared path changes; what else is there means to Hermes what it meant."""
    path = bare.home / "config.yaml"
    path.write_bytes(FINE[what])
    before = _meaning(bare)
    bare.setup("settings: {agent.max_turns: 150}")
    outcomes = {str(e.address): (str(e.outcome), e.reason) for e in bare.apply() if e.outcome}
    address = "main/default/settings/agent.max_turns"
    after = _meaning(bare)
    if outcomes[address][0] == "applied":
        assert after.setdefault("agent", {}).pop("max_turns") == 150
        section = before.get("agent") or {}
        section.pop("max_turns", None)
        before["agent"] = section
    else:
        assert outcomes[address][0] == "refused" and path.read_bytes() == FINE[what], outcomes
    assert repr(after) == repr(before)
    for comment in (b"# mine",):
        assert path.read_bytes().count(comment) == FINE[what].count(comment)


def _meaning(rig: Rig) -> dict[str, dict[str, object]]:
    import yaml

    found: dict[str, dict[str, object]] = yaml.load((rig.home / "config.yaml").read_bytes(), yaml.SafeLoader) or {}
    return found


def test_a_job_store_that_is_not_proper(rig: Rig) -> None:
    """L14: the home is held whole, the reason names the store, no row writes, and no byte changes."""
    path = rig.home / "cron" / "jobs.json"
    rig.setup(SECOND)
    for what, data in JOBS.items():
        path.unlink(missing_ok=True) if data is None else path.write_bytes(data)
        before = snapshot(rig.home, rig.state)
        [plan] = rig.plan().homes
        assert plan.hold is not None and not plan.open, (what, plan)
        assert "rebuild" in plan.hold.command or "jobs.json" in plan.hold.why, (what, plan.hold)
        rig.apply()
        assert snapshot(rig.home, rig.state) == before, what


def test_the_job_store_is_a_folder_a_pipe_or_a_link(rig: Rig) -> None:
    """L18: only regular files are read; a pipe does not make us wait; a link out of the home is not followed."""
    path = rig.home / "cron" / "jobs.json"
    outside = rig.root / "outside.json"
    outside.write_bytes(path.read_bytes())
    makes: list[Callable[[], object]] = [path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(outside)]
    rig.setup(SECOND)
    for make in makes:
        path.rmdir() if path.is_dir() else path.unlink()
        make()
        before = snapshot(rig.home) if not path.is_fifo() else {}
        [plan] = rig.plan().homes
        assert plan.hold is not None and not plan.open, plan
        rig.apply()
        assert not before or snapshot(rig.home) == before
    done = rig.cli("apply", "--yes")
    assert (done.code, trouble(done)) == (3, []), done.text


def test_duplicate_and_missing_ids(rig: Rig) -> None:
    """5. of the store list: two records with one id, and one without: named, and never written over."""
    rig.edit_jobs(lambda jobs: jobs.append({**jobs[0], "prompt": "The other one."}))
    rig.setup(SECOND)
    before = contents(rig.home / "cron")
    done = rig.full()
    assert (done.code in (3, 4), trouble(done)) == (True, []), done.text
    assert "two jobs have the id" in done.out
    assert [j["prompt"] for j in rig.jobs() if j["name"] == "brief"] == ["Write the brief.", "The other one."]
    rig.edit_jobs(lambda jobs: jobs[-1].pop("id"))
    done = rig.full()
    assert (done.code in (3, 4), trouble(done)) == (True, []), done.text
    assert "has no id" in done.out
    assert len([j for j in rig.jobs() if j.get("prompt") == "The other one."]) == 1
    assert set(before) == set(contents(rig.home / "cron"))


@pytest.mark.parametrize("where", ["inside", "outside", "dangling", "loop"])
def test_a_config_that_is_a_link(rig: Rig, where: str) -> None:
    """A link of config.yaml is followed as Hermes follows it, kept as a link, and named; one that leads nowhere is
    told, not replaced."""
    path = rig.home / "config.yaml"
    target = {"inside": rig.home / "real.yaml", "outside": rig.root / "dotfiles.yaml"}.get(where, rig.root / "none")
    if where == "loop":
        target = path
    if where in ("inside", "outside"):
        target.write_text(path.read_text())
    path.unlink()
    path.symlink_to(target)
    rig.setup(SECOND)
    row = rig.rows()["main/default/settings/agent.max_turns"]
    if where in ("inside", "outside"):
        assert any("is a link to" in n for n in rig.plan().homes[0].notes)
        assert rig.full().code == 0
        settled(rig)
        assert "150" in target.read_text()
    else:
        assert row.hold is not None
        rig.apply()
    assert path.is_symlink() and path.readlink() == target


@pytest.mark.parametrize("how", ["mark", "environment"])
def test_a_managed_home_is_not_written(rig: Rig, how: str) -> None:
    """F16: `.managed` in the home, or HERMES_MANAGED around us, holds it whole, and says who owns the file."""
    rig.setup(SECOND)
    if how == "mark":
        (rig.home / ".managed").touch()
    before = snapshot(rig.home)
    done = rig.full(**({"HERMES_MANAGED": "nixos"} if how == "environment" else {}))
    if how == "mark":
        assert (done.code in (3, 4), "managed" in done.text) == (True, True), done.text
        assert snapshot(rig.home) == before
    else:  # our own environment is not the home's: it says nothing of it
        assert done.code == 0, done.text


def test_a_home_that_is_gone_or_empty(rig: Rig) -> None:
    """E15, E17, L14: an unmounted or emptied home is held, never “all deleted”, never made again by itself."""
    moved = rig.root / "elsewhere"
    rig.home.rename(moved)
    rig.setup(FIRST)
    done = rig.cli("apply", "--yes")
    assert (done.code, "--allow rebuild" in done.out) == (3, True), done.text
    assert not rig.home.exists()
    rig.home.mkdir(mode=0o700)
    done = rig.cli("apply", "--yes")
    assert (done.code, trouble(done)) == (3, []), done.text
    assert not list(rig.home.iterdir())
    rig.home.rmdir()
    moved.rename(rig.home)
    assert rig.cli("plan", "--detailed-exitcode").code == 0


def test_config_is_a_tall_yaml_of_settings(bare: Rig) -> None:
    """A config without the declared section and without a version still takes it, and nothing else."""
    (bare.home / "config.yaml").write_text(CONFIG.replace("_config_version: 33\n", ""))
    bare.setup("settings: {display.compact: true}")
    assert {str(e.outcome) for e in bare.apply() if e.outcome} == {"applied"}
    text = (bare.home / "config.yaml").read_text()
    assert "# by hand" in text and "_config_version" not in text
