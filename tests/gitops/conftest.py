"""A hub, an author's checkout and a native home, and `reconciler` as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

SETUP = """\
version: 1
name: team
policy: {unattended: [provision homes]}
homes:
  main:
    harness: native
    path: ../home
    first_contact: provision
    profiles:
      default:
        jobs:
          brief: {schedule: {every: 30m}, prompt: One., deliver: local}
"""


class Site:
    """One machine: `work` is a checkout of `hub.git`, beside the home that its setup declares."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.home = root / "home"
        (root / ".gitconfig").write_text(
            "[user]\n\tname = ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
        )
        self.git("init", "-q", "--bare", "hub.git", cwd=root)
        self.git("clone", "-q", "hub.git", "work", cwd=root)
        self.push(SETUP)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "XDG_STATE_HOME": str(self.root / "state"),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.work, env=self.env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def push(self, text: str, subject: str = "change") -> str:
        (self.work / "setup.yaml").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", subject)
        self.git("push", "-q", "-u", "origin", "HEAD")
        return self.git("rev-parse", "HEAD")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["reconciler", *words],
            cwd=self.work,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """`reconciler gitops run`, to be ended by the test."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen(["reconciler", "gitops", "run", *words], cwd=self.work, env=self.env, **pipes)

    def jobs(self) -> list[str]:
        document = json.loads((self.home / "cron" / "jobs.json").read_text())
        return [job["prompt"] for job in document["jobs"]]


def events(text: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Path(os.path.realpath(tmp_path)))
