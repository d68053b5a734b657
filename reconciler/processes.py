"""The processes around this one: what it runs below, and the login session that it is of.

The only module that knows psutil, which asks Linux and macOS alike.
"""

from __future__ import annotations

import os


def ancestors() -> list[int]:
    """The pids above this process, nearest first and without process 1; what the system tells of them, at least the
    parent."""
    import psutil

    found: list[int] = []
    above: psutil.Process | None = None
    try:
        above = psutil.Process().parent()
        while above is not None and above.pid > 1:
            found.append(above.pid)
            above = above.parent()
    except psutil.Error:
        pass  # it has ended, or is not ours to see: what is above it is not told
    return found or [pid for pid in (os.getppid(),) if pid > 1]


def session() -> str:
    """The login session, as its leader's pid and start time say: two commands of one script are one session."""
    leader = _leader()
    return f"session {os.uname().nodename} {leader} {_ticks(leader)}".rstrip()


def session_began() -> float:
    """When the login session began, in seconds since the epoch; 0.0 where the system does not tell."""
    import psutil

    try:
        return psutil.Process(_leader()).create_time()
    except psutil.Error:
        return 0.0


def _leader() -> int:
    """The session's leader. The kernel says 0 for one that this pid namespace does not have, and for what never got a
    session (what a container's or a virtual machine's process 1 starts): then it is process 1, the oldest that there
    is."""
    return os.getsid(0) or 1


def _ticks(pid: int) -> str:
    """When a process started, in the kernel's own ticks, "" where it does not tell. Not as a time of day: that moves
    with the clock, and one session would have two names."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
