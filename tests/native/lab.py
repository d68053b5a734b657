"""Native homes for tests: verbs, the command line and the daemon as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler_native.home import Home
from reconciler_native.operator import apply_operator

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
_RUN = (
    "import sys\nfrom reconciler.cli.app import app, run\nfrom reconciler_native.commands import register\n"
    "register(app)\nsys.exit(run(['native', *sys.argv[1:]]))\n"
)


def env() -> dict[str, str]:
    paths = [ROOT, ROOT / "specs", ROOT / "state", ROOT / "providers"]
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(map(str, paths))}


def argv(*words: str) -> list[str]:
    """The command line of `reconciler native …`."""
    return [sys.executable, "-c", _RUN, *words]


def native(*words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the one line that a command printed."""
    done = subprocess.run(argv(*words), env=env(), capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


def do(root: Path, op: str, profile: str = "default", **args: Any) -> dict[str, Any]:
    """A verb that must be done; its result."""
    answer = apply_operator(Home(root), op, args, profile, AT)
    assert answer["ok"], answer
    result: dict[str, Any] = answer["result"]
    return result


def refused(root: Path, op: str, profile: str = "default", **args: Any) -> str:
    """A verb that must be refused, leaving every byte; its sentence."""
    before = tree(root)
    answer = apply_operator(Home(root), op, args, profile, AT)
    assert not answer["ok"], answer
    assert tree(root) == before
    return str(answer["error"])


def tree(root: Path) -> dict[str, bytes]:
    """Every file's bytes but for the write lock, which is empty."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != ".orchestrator.write"
    }


@contextmanager
def serving(root: Path) -> Iterator[subprocess.Popen[str]]:
    """A daemon that is ready; killed at the end if the test has not stopped it."""
    daemon = subprocess.Popen(argv("serve", "--root", str(root)), env=env(), stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    try:
        for line in daemon.stdout:
            if json.loads(line)["event"] == "ready":
                break
        else:
            raise AssertionError("the daemon ended before it was ready")
        yield daemon
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()
