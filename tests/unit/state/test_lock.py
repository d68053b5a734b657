"""One writer per home, across processes; who holds it, in the message."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from reconciler_state.errors import StateError, StateLocked
from reconciler_state.lock import Holder, lock_home
from reconciler_state.store import Physical

# Holds the lock until its stdin closes; with "child" it starts a worker that gets the descriptor.
HOLDER = """
import subprocess, sys
from pathlib import Path
from reconciler_state.lock import lock_home
from reconciler_state.store import Physical
home, root = Path(sys.argv[1]), Path(sys.argv[2])
with lock_home(home, Physical("local", "hermes", str(home)), root, command="apply", wait=0) as lock:
    if sys.argv[3] in ("child", "orphan"):
        worker = [sys.executable, "-c", "import sys; print('worker', flush=True); sys.stdin.read()"]
        subprocess.Popen(worker, pass_fds=[lock.fd])
    else:
        print("held", flush=True)
    if sys.argv[3] != "orphan":
        sys.stdin.read()
"""


class Clock:
    """Time that passes only by pausing."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


def physical(home: Path) -> Physical:
    return Physical("local", "hermes", str(home))


def note(home: Path, root: Path) -> Path:
    return root / "holders" / f"{physical(home).key}.json"


@contextmanager
def holder(home: Path, root: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", HOLDER, str(home), str(root), how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() in (b"held\n", b"worker\n")
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(10)


def refused(home: Path, root: Path, wait: float = 10.0) -> tuple[str, Clock]:
    clock = Clock()
    with (
        pytest.raises(StateLocked) as caught,
        lock_home(home, physical(home), root, command="plan", wait=wait, clock=clock, pause=clock.pause),
    ):
        pass
    return str(caught.value), clock


def test_held_and_released(home: Path, root: Path) -> None:
    for _ in range(2):
        with lock_home(home, physical(home), root, command="apply") as lock:
            assert os.path.samestat(os.fstat(lock.fd), home.stat())
            assert json.loads(note(home, root).read_text())["pid"] == os.getpid()
            assert not os.get_inheritable(lock.fd)  # a child has it only by pass_fds
        assert not note(home, root).exists()
    assert list(home.iterdir()) == []


def test_it_is_released_when_the_block_raises(home: Path, root: Path) -> None:
    with pytest.raises(KeyError), lock_home(home, physical(home), root, command="apply"):
        raise KeyError
    with lock_home(home, physical(home), root, command="apply", wait=0):
        pass


def test_two_processes(home: Path, root: Path) -> None:
    with holder(home, root, "alone") as process:
        text, clock = refused(home, root)
        assert f"{home} is locked by pid {process.pid} (apply, since " in text and "on this machine" in text
        assert 10 <= clock.now < 11 and clock.pauses > 100
        assert note(home, root).exists()
    with lock_home(home, physical(home), root, command="apply", wait=0):
        pass


def test_it_waits_until_the_other_is_done(home: Path, root: Path) -> None:
    with holder(home, root, "alone") as process:

        def pause(_seconds: float) -> None:
            if process.stdin and not process.stdin.closed:
                process.stdin.close()
                process.wait(10)

        with lock_home(home, physical(home), root, command="apply", pause=pause):
            assert json.loads(note(home, root).read_text())["pid"] == os.getpid()


def test_a_worker_keeps_the_lock_after_its_parents_kill(home: Path, root: Path) -> None:
    with holder(home, root, "child") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        text, _ = refused(home, root)
        assert "a worker that is still finishing" in text and f"pid {process.pid}" in text
    # The worker's input is closed now: it ends, and with it the lock; the stale note is in nobody's way.
    with lock_home(home, physical(home), root, command="apply", wait=10):
        assert json.loads(note(home, root).read_text())["pid"] == os.getpid()


def test_a_worker_keeps_the_lock_after_its_parents_end(home: Path, root: Path) -> None:
    with holder(home, root, "orphan") as process:
        process.wait(10)
        assert "a process that left no note" in refused(home, root)[0]
    with lock_home(home, physical(home), root, command="apply"):
        pass


def test_a_kill_leaves_no_lock(home: Path, root: Path) -> None:
    with holder(home, root, "alone") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert note(home, root).exists()
        with lock_home(home, physical(home), root, command="apply", wait=0):
            pass
    assert not note(home, root).exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": "elsewhere"}, "on another machine, elsewhere"),
        ({"boot": "earlier"}, "left no note; the last note is from before this machine was started again"),
        ({"started": "1"}, "a worker that is still finishing"),
        ({"pid": 2**22 + 1}, "a worker that is still finishing"),
    ],
)
def test_who_holds_it(home: Path, root: Path, change: dict[str, object], words: str) -> None:
    with holder(home, root, "alone"):
        path = note(home, root)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        assert words in refused(home, root, wait=0)[0]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"host": 1}', '{"x": 1}'])
def test_a_note_that_says_nothing(home: Path, root: Path, text: str | None) -> None:
    with holder(home, root, "alone"):
        note(home, root).unlink()
        if text is not None:
            note(home, root).write_text(text)
        assert "a process that left no note" in refused(home, root, wait=0)[0]


def test_only_ones_own_note_is_taken_away(home: Path, root: Path) -> None:
    with lock_home(home, physical(home), root, command="apply"):
        other = replace(Holder.me("other"), pid=1)
        note(home, root).write_text(json.dumps(asdict(other)))
    assert note(home, root).exists()


def test_a_home_replaced_while_waiting_is_locked_anew(home: Path, root: Path) -> None:
    with holder(home, root, "alone"):

        def pause(_seconds: float) -> None:
            if not home.with_name("old").exists():
                home.rename(home.with_name("old"))
                home.mkdir()

        with lock_home(home, physical(home), root, command="apply", pause=pause) as lock:
            assert os.path.samestat(os.fstat(lock.fd), home.stat())


def test_a_home_replaced_at_the_last_moment_is_locked_anew(
    home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(fd: int, how: int) -> None:
        if not home.with_name("old").exists():
            home.rename(home.with_name("old"))
            home.mkdir()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with lock_home(home, physical(home), root, command="apply") as lock:
        assert os.path.samestat(os.fstat(lock.fd), home.stat())


def test_what_cannot_be_locked(home: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(home)
    for path in (tmp_path / "gone", tmp_path / "file", tmp_path / "link"):
        with (
            pytest.raises(StateError, match="cannot be locked"),
            lock_home(path, physical(path), root, command="apply"),
        ):
            pass


def test_a_state_folder_that_cannot_be_written_is_no_reason_to_refuse(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with lock_home(home, physical(home), tmp_path / "file", command="apply"):
        pass
