"""A native home with its state on a branch: a runner that is really killed, and one that knows nothing goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from reconciler_state.repository import Repository
from runners import bare

ROOT = Path(__file__).parents[2]
# Dies before the n-th call of git; without a number it says how many there were.
DRIVER = """
import os, signal, sys
from reconciler_state.repository import Repository
at, call, seen = int(sys.argv.pop(1)), Repository._call, []
def counted(self, words, *rest):
    if len(seen) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    seen.append(words[0])
    return call(self, words, *rest)
Repository._call = counted
from reconciler.cli.app import run
code = run(sys.argv[1:])
print(len(seen), file=sys.stderr)
sys.exit(code)
"""
SETUP = """version: 1
name: team
state: {{backend: git, remote: {remote}}}
homes:
  main:
    harness: native
    path: {home}
    first_contact: provision
    profiles:
      default:
        settings: {{a.b: {value}}}
        jobs:
{jobs}"""


def job(name: str) -> str:
    return f"          {name}: {{schedule: {{every: 2h}}, prompt: Write., deliver: local}}\n"


def run(root: Path, runner: str, at: int, *words: str) -> subprocess.CompletedProcess[str]:
    env = {
        "HOME": str(root / "user"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in (".", "specs", "state", "providers")),
    }
    argv = [
        sys.executable,
        "-c",
        DRIVER,
        str(at),
        *words,
        "-f",
        str(root / "setup.yaml"),
        "--state",
        str(root / runner),
    ]
    return subprocess.run(argv, env=env, cwd=root, capture_output=True, text=True, check=False, timeout=120)


def apply(root: Path, runner: str, at: int = -1) -> subprocess.CompletedProcess[str]:
    return run(root, runner, at, "apply", "main", "--yes")


def setup(root: Path, value: int, *jobs: str) -> None:
    text = SETUP.format(remote=root / "state.git", home=root / "home", value=value, jobs="".join(map(job, jobs)))
    (root / "setup.yaml").write_text(text)


def prepared(root: Path) -> Path:
    root.mkdir()
    bare(root / "state.git")
    setup(root, 1, "brief")
    assert apply(root, "one").returncode == 0
    setup(root, 2, "brief", "other")
    return root


def names(root: Path) -> list[str]:
    [path] = (root / "home").rglob("jobs.json")
    data = json.loads(path.read_text())
    return sorted(str(record["name"]) for record in data["jobs"])


def test_a_kill_before_a_call_of_git(tmp_path: Path) -> None:
    """Every third call: `tests/unit/state/test_shared_kills.py` has every one, in one process."""
    root, kept = prepared(tmp_path / "root"), tmp_path / "kept"
    shutil.copytree(root, kept)
    whole = apply(root, "one")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    calls = int(whole.stderr.splitlines()[-1])
    assert calls > 10
    for at in range(0, calls, 3):
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        assert apply(root, "one", at).returncode == -signal.SIGKILL
        done = apply(root, "late")
        assert done.returncode == 0, done.stdout + done.stderr
        assert names(root) == ["brief", "other"]
        for runner in ("late", "one"):
            quiet = run(root, runner, -1, "plan", "--detailed-exitcode")
            assert quiet.returncode == 0, (at, runner, quiet.stdout + quiet.stderr)
        repository = Repository(root / "state.git")
        [file] = repository.run("ls-tree", "-r", "--name-only", "reconciler-state", "journal/").splitlines()
        records = [json.loads(line) for line in repository.run("show", f"reconciler-state:{file}").splitlines()]
        begun = {r["intent"] for r in records if r["what"] == "begin"}
        assert begun == {r["intent"] for r in records if r["what"] == "outcome"}
