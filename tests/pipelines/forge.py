"""A forge on this machine: a bare repository, its runner, and the jobs of the example's pipelines as it runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "09-gitops"
FILES = {
    "github": ".github/workflows/reconcile.yml",
    "forgejo": ".forgejo/workflows/reconcile.yml",
    "gitlab": ".gitlab-ci.yml",
}
TOKEN = "token-of-the-bot-0123456789"
# Stands for the programs that talk to the forge: what they were called with, and what they were given on stdin.
_SPY = """\
#!/usr/bin/env python3
import json, pathlib, re, sys
stdin = "" if sys.stdin.isatty() or "--config" not in sys.argv else sys.stdin.read()
files = [a.rpartition("@")[2] for a in sys.argv[1:] if a.endswith((".md", ".json"))]
bodies = [pathlib.Path(name).read_text() for name in files]
with open("SENT", "a") as file:
    file.write(json.dumps({"argv": sys.argv, "stdin": stdin, "bodies": bodies}) + "\\n")
"""
_EXPRESSION = re.compile(r"\$\{\{ *([\w.]+) *\}\}")


@dataclass
class Job:
    """How a job ended; `failed` as the forge would show it. `folder` is its checkout."""

    code: int
    output: str
    failed: bool
    folder: Path


@dataclass
class Forge:
    """`system` is the word of FILES. A job runs in a fresh checkout, and each is another run."""

    root: Path
    system: str
    runs: Any = field(default_factory=lambda: count(101))

    def __post_init__(self) -> None:
        (self.root / ".gitconfig").write_text(
            "[user]\n\tname = ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
        )
        bin_ = self.root / "bin"
        bin_.mkdir()
        for name in ("gh", "curl"):
            (bin_ / name).write_text(_SPY.replace("SENT", str(self.root / "sent.jsonl")))
            (bin_ / name).chmod(0o755)
        self.git("init", "-q", "--bare", "hub.git", cwd=self.root)
        self.git("clone", "-q", "hub.git", "work", cwd=self.root)
        self.work = self.root / "work"
        self.home = self.root / "agents" / "main"

    @property
    def env(self) -> dict[str, str]:
        """Of the machine: the runner's user."""
        return {
            "HOME": str(self.root),
            "PATH": f"{self.root / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def git(self, *words: str, cwd: Path | None = None) -> str:
        line = ["git", *words]
        done = subprocess.run(
            line, cwd=cwd or self.work, env=self.env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    # -- what people do ------------------------------------------------------------------------------------------------

    def propose(self, text: str, branch: str = "change") -> str:
        """A branch with another setup, as a pull request; its commit."""
        self.git("checkout", "-q", "-B", branch)
        (self.work / "setup.yaml").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "Change the setup")
        self.git("push", "-qf", "origin", branch)
        return self.git("rev-parse", "HEAD")

    def merge(self, branch: str = "change", message: str = "Merge it") -> str:
        """Somebody merges a branch into main; the merge's commit."""
        self.git("checkout", "-q", "-B", "main")
        if self.git("ls-remote", "--heads", "origin", "main"):
            self.git("fetch", "-q")
            self.git("reset", "-q", "--hard", "origin/main")
            self.git("merge", "-q", "--no-ff", "-m", message, f"origin/{branch}")
        self.git("push", "-q", "-u", "origin", "main")
        return self.git("rev-parse", "HEAD")

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """A person on the machine, in a clone of the setup and a login session of their own."""
        self.git("checkout", "-q", "main")
        return subprocess.run(
            ["setsid", "--wait", "bash", "-c", line],
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    # -- what the forge does -------------------------------------------------------------------------------------------

    def job(self, name: str, commit: str, number: int = 7) -> Job:
        """Runs one job of the pipeline file, as committed with the example, on a commit."""
        run = next(self.runs)
        folder = self.checkout(commit, f"run-{run}")
        script, allowed, extra = self._script(name, number)
        env = {**self.env, **self._ci(commit, run, number), **extra}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=240,
        )
        return Job(done.returncode, done.stdout, done.returncode not in (0, *allowed), folder)

    def checkout(self, commit: str, name: str) -> Path:
        folder = self.root / "builds" / name
        folder.parent.mkdir(exist_ok=True)
        self.git("clone", "-q", str(self.root / "hub.git"), str(folder), cwd=self.root)
        self.git("checkout", "-q", "--detach", commit, cwd=folder)
        return folder

    def _script(self, name: str, number: int) -> tuple[str, tuple[int, ...], dict[str, str]]:
        """(the steps as one script, exit codes that do not fail the job, the steps' environment)."""
        document = yaml.safe_load((EXAMPLE / FILES[self.system]).read_text())
        if self.system == "gitlab":
            job = document[name]
            codes = job.get("allow_failure", {}).get("exit_codes", [])
            return "\n".join(job["script"]), tuple(codes), {}
        steps = [step for step in document["jobs"][name]["steps"] if "run" in step]
        env = {key: self._filled(text, number) for step in steps for key, text in step.get("env", {}).items()}
        return "\n".join(step["run"] for step in steps), (), env

    def _filled(self, text: str, number: int) -> str:
        known = {
            "github.token": TOKEN,
            "secrets.RECONCILER_TOKEN": TOKEN,
            "github.api_url": "https://forge.example/api/v1",
            "github.repository": "team/homes",
            "github.event.pull_request.number": str(number),
        }
        return _EXPRESSION.sub(lambda match: known[match[1]], text)

    def _ci(self, commit: str, run: int, number: int) -> dict[str, str]:
        if self.system == "gitlab":
            return {
                "GITLAB_CI": "true",
                "CI_PIPELINE_ID": str(run),
                "CI_COMMIT_SHA": commit,
                "GITLAB_USER_LOGIN": "ann",
                "CI_API_V4_URL": "https://forge.example/api/v4",
                "CI_PROJECT_ID": "3",
                "CI_MERGE_REQUEST_IID": str(number),
                "RECONCILER_TOKEN": TOKEN,
            }
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": str(run),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SHA": commit,
            "GITHUB_ACTOR": "ann",
            "GITHUB_REPOSITORY": "team/homes",
            "GITHUB_SERVER_URL": "https://forge.example",
        }

    # -- what is there then --------------------------------------------------------------------------------------------

    def sent(self) -> list[Mapping[str, Any]]:
        """What was sent to the forge."""
        path = self.root / "sent.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def jobs(self) -> dict[str, str]:
        """The prompts of the home's jobs, by name."""
        document = json.loads((self.home / "cron" / "jobs.json").read_text())
        return {job["name"]: job["prompt"] for job in document["jobs"]}

    def edit(self, before: str, after: str) -> None:
        """The agent changes its own job."""
        path = self.home / "cron" / "jobs.json"
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))
