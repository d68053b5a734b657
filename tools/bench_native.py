"""Measures a native home: cold verbs beside the real orchestrator's in the same run, live verbs, plan and apply.

Part of tools/bench.py. Live verbs are timed in this process, from the call to the answer as a value.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness

if TYPE_CHECKING:
    from bench import Bench

ORCHESTRATOR = "0.1.2"
SIZES = (10, 100, 1000, 10_000)
PLANNED = (100, 1000)
CALLS = 50
"""Live calls per figure."""


def run(bench: Bench) -> None:
    for jobs in SIZES:
        print(f"\n{jobs} jobs in one native home")
        root = _home(bench, jobs)
        _cold(bench, root)
        _live(bench, root)
        if jobs in PLANNED:
            _plan(bench, root, jobs)
        shutil.rmtree(root)


def _home(bench: Bench, jobs: int) -> Path:
    from bench import make_home

    root = bench.work / f"native-{jobs}"
    store = make_home(root, jobs)
    # As Hermes writes it: one line per field, so that the bytes are those of a real store.
    store.write_text(json.dumps(json.loads(store.read_text()), indent=2))
    # In lines, as `native init` and our verbs write it.
    (root / "config.yaml").write_text("_config_version: 33\nmodel:\n  default: a/b\n  provider: openrouter\n")
    (root / ".orchestrator.write").touch(0o600)
    return root


def _cold(bench: Bench, root: Path) -> None:
    """Whole processes. The verbs act on the job in the middle of the store."""
    from bench import RECONCILER

    update = json.dumps({"id": _middle(root), "prompt": "Other words."})
    native = [*RECONCILER, "native"]
    where = ["--root", str(root), "--json"]
    bench.run("cold read (jobs.get)", [*native, "jobs.get", *where, json.dumps({"id": _middle(root)})])
    bench.run("cold verb (jobs.update)", [*native, "jobs.update", *where, update])
    program = harness.program("orchestrator", ORCHESTRATOR)
    if not harness.is_complete("orchestrator", ORCHESTRATOR):
        print("  the real orchestrator is not installed: make test installs it")
        return
    bench.run("the orchestrator's cold verb", [str(harness.node()), str(program), "jobs.update", *where, update])


def _middle(root: Path) -> str:
    jobs = json.loads((root / "cron" / "jobs.json").read_text())["jobs"]
    found: str = jobs[len(jobs) // 2]["id"]
    return found


def _live(bench: Bench, root: Path) -> None:
    from reconciler_native import wire

    middle = _middle(root)

    def call(op: str, **args: Any) -> None:
        answer = wire.call(root, {"op": op, "args": args})
        if not answer["ok"]:
            raise SystemExit(f"{op}: {answer['error']}")

    with _serving(bench, root):
        _p50("live read (jobs.get)", lambda n: call("jobs.get", id=middle))
        _p50("live read of all (jobs.list)", lambda n: call("jobs.list"), times=9)
        _p50("live write (jobs.update)", lambda n: call("jobs.update", id=middle, prompt=f"Words {n}."))
        _p50("live write (jobs.create)", lambda n: call("jobs.create", prompt="x", schedule="0 8 * * *"))


@contextmanager
def _serving(bench: Bench, root: Path) -> Iterator[None]:
    from bench import RECONCILER

    argv = [*RECONCILER, "native", "serve", "--root", str(root)]
    daemon = subprocess.Popen(argv, env=bench.env, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        if '"ready"' not in daemon.stdout.readline():
            raise SystemExit("the daemon did not begin")
        yield
    finally:
        daemon.terminate()
        daemon.communicate()


def _p50(title: str, call: Callable[[int], None], times: int = CALLS) -> None:
    took = []
    for n in range(times):
        start = time.perf_counter()
        call(n)
        took.append((time.perf_counter() - start) * 1000)
    print(f"  {title:<44} {statistics.median(took):7.2f} ms p50", flush=True)


def _plan(bench: Bench, root: Path, jobs: int) -> None:
    from bench import RECONCILER, setup_text

    shutil.rmtree(bench.work / "state", ignore_errors=True)
    shutil.rmtree(root)
    _home(bench, jobs)
    setup = bench.work / "setup.yaml"
    setup.write_text(setup_text({"main": root}, jobs).replace("harness: hermes", "harness: native"))
    bench.run("adopt HOME", [*RECONCILER, "adopt", "main"], times=1)
    bench.run("plan, nothing to do", [*RECONCILER, "plan"])
    bench.run("apply, nothing to do", [*RECONCILER, "apply", "--yes"])
    text = setup_text({"main": root}, jobs, changed=1, new=50)
    setup.write_text(text.replace("harness: hermes", "harness: native"))
    bench.run("apply, 1 job changed and 50 created", [*RECONCILER, "apply", "--yes"], times=1)
