import os
import subprocess
import sys
import time

import psutil
import pytest

from reconciler import processes

ASK = "import json, os; from reconciler import processes as p; print(json.dumps([p.session(), p.session_began()]))"


def test_the_processes_above_are_told_nearest_first() -> None:
    code = "from reconciler.processes import ancestors; print(*ancestors())"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", f"'{sys.executable}' -c '{code}'; true"], stdout=subprocess.PIPE, text=True
    )
    told = [int(pid) for pid in shell.communicate(timeout=60)[0].split()]
    assert told[:2] == [shell.pid, os.getpid()]
    assert told == [shell.pid, os.getpid(), *(p for p in processes.ancestors())]
    assert 1 not in told and 0 not in told


def test_without_an_answer_the_parent_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: psutil.Process) -> None:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "parent", refuse)
    monkeypatch.setattr(os, "getppid", lambda: 77)
    assert processes.ancestors() == [77]


def test_two_commands_of_one_session_are_one_and_another_session_is_another() -> None:
    once, again = (subprocess.run([sys.executable, "-c", ASK], capture_output=True, check=True) for _ in range(2))
    assert once.stdout == again.stdout
    apart = subprocess.run([sys.executable, "-c", ASK], capture_output=True, check=True, start_new_session=True)
    assert apart.stdout != once.stdout


def test_a_session_began_before_now_and_after_what_is_older() -> None:
    before = time.time()
    told = subprocess.run(
        [sys.executable, "-c", "from reconciler.processes import session_began; print(session_began())"],
        capture_output=True,
        check=True,
        start_new_session=True,
        text=True,
    )
    # The kernel counts in hundredths, from a start of the machine that it tells in whole seconds.
    assert before - 2 <= float(told.stdout) <= time.time() + 2


@pytest.mark.parametrize("leader", [0, 1])
def test_a_session_whose_leader_is_not_to_be_seen_is_that_of_process_1(
    monkeypatch: pytest.MonkeyPatch, leader: int
) -> None:
    """The kernel says 0 in a pid namespace that the leader is not in, and for what a container's process 1 starts."""
    monkeypatch.setattr(os, "getsid", lambda _pid: leader)
    name = processes.session().split()
    assert name[:3] == ["session", os.uname().nodename, "1"]
    assert processes.session_began() == psutil.Process(1).create_time() > 0


def test_a_leader_that_has_ended_tells_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(os, "getsid", lambda _pid: ended.pid)
    assert processes.session() == f"session {os.uname().nodename} {ended.pid}"
    assert processes.session_began() == 0.0
