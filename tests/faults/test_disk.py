"""Disks that are full or read-only, and what others own or may write: a clear word, the old file whole (L17, L8)."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.rig import SECOND, Rig, contents, settled, snapshot, trouble
from reconciler.plan import Options

pytestmark = pytest.mark.hermes

_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount or to own as another")


@pytest.fixture
def small(bare: Rig) -> Iterator[Rig]:
    """The home lies on a disk of 24 MiB of its own."""
    kept = bare.root / "kept"
    bare.home.rename(kept)
    bare.home.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", str(bare.home)], check=False)
    if mounted.returncode:
        pytest.skip("no mount here")
    shutil.copytree(kept, bare.home, dirs_exist_ok=True)
    try:
        bare.apply()
        yield bare
    finally:
        subprocess.run(["umount", "-l", str(bare.home)], check=True)


@_ROOT
def test_a_full_disk_is_told_before_the_first_write(small: Rig) -> None:
    """L8: preflight: with less than 16 MiB left the home fails (exit 4), nothing is written, nothing is lost."""
    (small.home / "filler").write_bytes(b"x" * (10 << 20))
    small.setup(SECOND)
    before = snapshot(small.home)
    done = small.full()
    assert (done.code, "MiB are free" in done.text, trouble(done)) == (4, True, []), done.text
    assert snapshot(small.home) == before
    (small.home / "filler").unlink()
    assert small.full().code == 0
    settled(small)


@_ROOT
def test_a_disk_that_fills_up_in_the_middle(small: Rig) -> None:
    """L9, “disk full” in the door's facts: each file is the old one or the new one, whole; refused or not applied."""
    small.setup(SECOND)
    small.pipe()
    small.arm("before-config", "wait")
    run = small.start("apply", "--plan", str(small.plan_file()), "--reviewed")
    small.reached("before-config")
    filler = small.home / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    before = contents(small.home)
    small.go()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 4, (out + err).decode()
    assert b"Traceback" not in err
    assert contents(small.home) == before
    filler.unlink()
    small.apply()
    settled(small)


@_ROOT
def test_a_read_only_home(small: Rig) -> None:
    """L8: a home on a read-only disk can be planned, and is told before anything is tried."""
    small.setup(SECOND)
    subprocess.run(["mount", "-o", "remount,ro", str(small.home)], check=True)
    done = small.full()
    assert (done.code, "cannot be written" in done.text, trouble(done)) == (4, True, []), done.text
    subprocess.run(["mount", "-o", "remount,rw", str(small.home)], check=True)
    assert small.full().code == 0


@pytest.mark.parametrize("point", ["after-hello", "before-jobs"])
def test_a_limit_of_the_file_size_in_the_worker(rig: Rig, point: str) -> None:
    """L9: every write of the worker fails with EFBIG: refused in the system's words, the old files are whole."""
    rig.setup(SECOND)
    rig.arm(point, "limit=64")
    before = contents(rig.home)
    done = rig.full()
    assert (done.code, trouble(done)) == (4, []), done.text
    assert "File too large" in done.text, done.text
    after = contents(rig.home)
    if point == "after-hello":
        assert {k: v for k, v in after.items() if "cron" not in k} == {
            k: v for k, v in before.items() if "cron" not in k
        }
    assert after[str(rig.home / "cron" / "jobs.json")] == before[str(rig.home / "cron" / "jobs.json")]
    rig.apply()
    settled(rig)
    assert not [p for p in rig.home.rglob("*") if p.suffix == ".tmp"]


@_ROOT
@pytest.mark.parametrize("how", ["read-only", "a file", "below a file", "another's", "full"])
def test_a_state_folder_that_cannot_be_written(bare: Rig, how: str) -> None:
    """3. of “What must work”: state is tried before the first door call: exit 1 or 4, and the home has no new byte."""
    before = snapshot(bare.home)
    mounted = False
    if how in ("read-only", "full"):
        bare.state.mkdir(mode=0o700)
        options = "ro" if how == "read-only" else "size=4k,mode=700"
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(bare.state)], check=False).returncode:
            pytest.skip("no mount here")
        mounted = True
    elif how == "a file":
        bare.state.write_text("mine\n")
    elif how == "below a file":
        bare.state.write_text("mine\n")
        bare.state = bare.state / "deeper"
    else:
        (bare.state / "homes").mkdir(parents=True)
        (bare.state / "journal").mkdir()
        for path in bare.plan().homes:
            key = bare.space().journal(path.ref).path
            key.write_text("")
            os.chown(key, 12345, 12345)
    try:
        done = bare.cli("apply", "main", "--yes")
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(bare.state)], check=True)
    assert (done.code in (1, 4), trouble(done)) == (True, []), (done.code, done.text)
    assert "state" in done.text
    assert snapshot(bare.home) == before


@_ROOT
def test_a_home_of_another_uid(rig: Rig) -> None:
    """L17: we act as the home's owner; a home of somebody else is held or failed, named with both uids."""
    rig.setup(SECOND)
    os.chown(rig.home, 12345, 12345)
    before = snapshot(rig.home)
    done = rig.full()
    assert (done.code in (3, 4), trouble(done)) == (True, []), done.text
    assert "uid 12345" in done.text
    assert snapshot(rig.home) == before


@_ROOT
def test_as_a_user_without_rights(rig: Rig) -> None:
    """L17, E17: what may not be looked at is a home that failed, with the system's words; never an empty home."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        Path(folder).chmod(0o755)
        rig.state = Path(folder) / "state"
        space = rig.space()
        space.plan(Options())  # every module is there from now on
        before = snapshot(rig.home)
        os.seteuid(12345)
        try:
            [plan] = space.plan(Options()).homes
        finally:
            os.seteuid(0)
    assert not plan.open and "ermission denied" in plan.failed, plan
    assert snapshot(rig.home) == before


@pytest.mark.parametrize("what", ["home", "interpreter", "its folder"])
def test_what_everybody_may_write_is_refused(rig: Rig, what: str) -> None:
    """L17: a home, an interpreter or its folder that others may write is refused before anything starts."""
    rig.setup(SECOND)
    path = {"home": rig.home, "interpreter": rig.python, "its folder": rig.python.parent}[what]
    path.chmod(path.stat().st_mode | 0o002)
    before = contents(rig.home)
    done = rig.full()
    assert (done.code, "may be written by everybody" in done.text) == (4, True), done.text
    assert contents(rig.home) == before
    assert not (rig.hooks / "at-start").exists()


def test_read_only_files(rig: Rig) -> None:
    """A config.yaml of mode 0444 keeps its mode and its comments; as root, or with a writable folder, it is written."""
    path = rig.home / "config.yaml"
    path.chmod(0o444)
    rig.setup(SECOND)
    done = rig.full()
    assert (done.code in (0, 4), trouble(done)) == (True, []), done.text
    assert path.stat().st_mode & 0o777 == 0o444
    assert "# by hand" in path.read_text()
    assert Path(path).is_file()
