"""Sessions: a command line's whole dialogue as a text file, run in a folder of its own and compared as a whole.

A line or two of what it shows.
with: hermes, openclaw       (optional: the real ones; `fake-hermes`, an install that is files only)
== file setup.yaml           (any number)
version: 1
== session
$ reconciler plan
what it prints, stderr included
[exit 3]                     (where it is not 0)
"""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools import harness

VERSION = "0.19.0"
OPENCLAW = "2026.9.6"
FAKE = ".local/share/uv/tools/hermes-agent"
FOLDER = Path(__file__).parent
UPDATE = "UPDATE_SESSIONS"
TIMEOUT = 300  # seconds, per command: a gateway takes ten to start, and ninety on a busy machine


@dataclass
class Command:
    """One command line with what it is to print; `code` is its exit code."""

    line: str
    output: str = ""
    code: int = 0


@dataclass
class Session:
    """A session file in parts; `head` is everything before the session itself, kept as it is written."""

    path: Path
    head: str = ""
    needs: str = ""
    files: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)

    def text(self) -> str:
        """The file's text, as it is written back in update mode."""
        parts = []
        for command in self.commands:
            lines = [f"$ {command.line}"]
            if command.output:
                lines.append(command.output)
            if command.code:
                lines.append(f"[exit {command.code}]")
            parts.append("\n".join(lines) + "\n")
        return f"{self.head}== session\n" + "\n".join(parts)


def read(path: Path) -> Session:
    """Raises ValueError for a file that is not a session."""
    text = path.read_text(encoding="utf-8")
    head, mark, dialogue = text.partition("== session\n")
    if not mark:
        raise ValueError(f"{path.name}: no `== session` line")
    session = Session(path, head)
    name = ""
    for line in head.splitlines():
        if line.startswith("== file "):
            name = line.removeprefix("== file ").strip()
            session.files[name] = ""
        elif name:
            session.files[name] += f"{line}\n"
        elif line.startswith("with: "):
            session.needs = line.removeprefix("with: ").strip()
    for line in dialogue.splitlines():
        if line.startswith("$ "):
            session.commands.append(Command(line.removeprefix("$ ")))
        elif not session.commands:
            raise ValueError(f"{path.name}: output before the first command")
        elif ended := re.fullmatch(r"\[exit (\d+)\]", line):
            session.commands[-1].code = int(ended[1])
        else:
            session.commands[-1].output += f"{line}\n"
    for command in session.commands:
        command.output = command.output.strip("\n")
    return session


def play(session: Session, root: Path) -> Session:
    """Runs the session below `root`; the same session with what was really printed."""
    work = Path(os.path.realpath(root)) / "work"
    work.mkdir()
    for name, text in session.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    env = _environment(session, work)
    played = Session(session.path, session.head, session.needs, session.files)
    for command in session.commands:
        done = subprocess.run(
            ["bash", "-c", command.line],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
        output = plain(done.stdout.decode("utf-8", errors="replace"), work)
        played.commands.append(Command(command.line, output, done.returncode))
    return played


def cache() -> Path:
    """Where `make hermes` puts the harness."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "agent-home-reconciler"


def _environment(session: Session, work: Path) -> dict[str, str]:
    path = [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    needs = session.needs.split(", ") if session.needs else []
    for need in needs:
        if need not in ("hermes", "fake-hermes", "openclaw"):
            raise ValueError(f"{session.path.name}: with: {need} is not known")
    if "hermes" in needs:
        hermes = cache() / f"hermes-{VERSION}" / "bin"
        if not (hermes / "hermes").exists():
            pytest.fail(f"hermes-agent {VERSION} is not installed: run make hermes")
        path.insert(1, str(hermes))
    if "openclaw" in needs:
        if not harness.is_complete("openclaw", OPENCLAW):
            pytest.fail(f"OpenClaw {OPENCLAW} is not installed: run make openclaw")
        script = harness.program("openclaw", OPENCLAW)
        path[1:1] = [str(script.parents[1] / ".bin"), str(harness.node().parent)]
    if "fake-hermes" in needs:
        install = work / FAKE
        (install / f"lib/python3.11/site-packages/hermes_agent-{VERSION}.dist-info").mkdir(parents=True)
        (install / "bin").mkdir()
        (install / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
        (install / "bin" / "python").chmod(0o755)
    return {
        "HOME": str(work),
        "XDG_STATE_HOME": str(work / "state"),
        "XDG_CACHE_HOME": str(work / "cache"),
        "HERMES_HOME": str(work / "home"),
        "PATH": ":".join(path),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "WORK": str(work),
    }


_PLAIN = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"-[0-9a-f]{16}\b"), "-<digest>"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12}\b|\b[0-9]{12}\b"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z)?"), "<time>"),
    (re.compile(r"  \(\d+\.\d s\)$", re.MULTILINE), ""),
    (re.compile(r'("seconds": )\d+(\.\d+)?'), r"\1<seconds>"),
    (re.compile(r"\bpid \d+"), "pid <pid>"),
    # Who runs the tests, where, and in which run.
    (re.compile(r"\bsession \S+ \d+( \d+)?"), "session <run>"),
    (re.compile(r"\bby \S+ \(\S+\) at "), "by <who> at "),
    (re.compile(r", by \S+; until "), ", by <who>; until "),
    (re.compile(r'"(by|host)": "[^"]+"'), r'"\1": "<who>"'),
    (re.compile(rf"\bby {re.escape(getpass.getuser())}\b"), "by <user>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
    (re.compile(r'("(?:actor|host|run)": )"(?!ci )[^"]*"'), r'\1"<who>"'),
)


def plain(text: str, work: Path) -> str:
    """Output without what differs from run to run: the folder, digests, ids and times."""
    text = text.replace(str(work), "<work>").replace(str(cache()), "<cache>")
    for pattern, word in _PLAIN:
        text = pattern.sub(word, text)
    return text.strip("\n")
