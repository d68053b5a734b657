"""Measures plan, adopt and apply on homes of several sizes, each beside its floor in the same run.

    python tools/bench.py [--sizes 10,100,1000,5000] [--homes 1,20,200] [--repeat 3] [--only hermes | native | openclaw]

Prints wall seconds, CPU seconds and peak memory of whole processes (median of the repeats). Nothing is asserted:
the figures are for people to compare with the floor beside them, on this machine, in this run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import bench_native
import bench_openclaw

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-home-reconciler"
HERMES = CACHE / "hermes-0.19.0" / "bin"
RECONCILER = [sys.executable, "-m", "reconciler"]

# What reading costs at the least: the bytes of the job stores, parsed.
FLOOR_READ = "import json,sys\nfor p in sys.argv[1:]: json.loads(open(p,'rb').read())"
# What 50 creates cost at the least: Hermes's own functions in one interpreter, saved once.
FLOOR_WRITE = """
import contextlib, sys
import cron.jobs as cj
with cj._jobs_lock():
    jobs = cj.load_jobs()
    real = cj.save_jobs
    cj.load_jobs, cj.save_jobs = (lambda: jobs), (lambda new, **kw: None)
    for i in range(int(sys.argv[1])):
        cj.create_job(prompt=f"Write report {i}.", schedule="every 30m", name=f"new-{i}", deliver="local",
                      provider="openrouter", model="a/b")
    cj.load_jobs, cj.save_jobs = None, real
    real(jobs)
"""


@dataclass(frozen=True)
class Cost:
    wall: float
    cpu: float
    memory: float  # MiB

    def __str__(self) -> str:
        return f"{self.wall:7.3f} s wall  {self.cpu:7.3f} s cpu  {self.memory:6.0f} MiB"


def measure(argv: list[str], env: dict[str, str], cwd: Path, codes: tuple[int, ...] = (0,)) -> Cost:
    """One whole process with its children. Raises SystemExit with its output when it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            out.seek(0)
            text = out.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(argv[:6])} ended with {process.returncode}:\n{text}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(c, n) for c in costs) for n in ("wall", "cpu", "memory")))


def record(number: int) -> dict[str, object]:
    """A job as Hermes 0.19 stores it."""
    return {
        "id": f"{number:012x}",
        "name": f"job-{number}",
        "prompt": f"Write report {number} from the notes of the day. " * 8,
        "skills": [],
        "skill": None,
        "model": "a/b",
        "provider": "openrouter",
        "provider_snapshot": None,
        "model_snapshot": None,
        "base_url": None,
        "script": None,
        "no_agent": False,
        "context_from": None,
        "schedule": {"kind": "cron", "expr": f"{number % 60} 9 * * *", "display": f"{number % 60} 9 * * *"},
        "schedule_display": f"{number % 60} 9 * * *",
        "repeat": {"times": None, "completed": 0},
        "enabled": True,
        "state": "scheduled",
        "paused_at": None,
        "paused_reason": None,
        "created_at": "2026-11-30T16:35:21.660826+01:00",
        "next_run_at": "2027-12-01T09:00:00+01:00",
        "last_run_at": None,
        "last_status": None,
        "last_error": None,
        "last_delivery_error": None,
        "deliver": "local",
        "origin": None,
        "enabled_toolsets": None,
        "workdir": None,
    }


def make_home(path: Path, jobs: int) -> Path:
    (path / "cron").mkdir(parents=True)
    path.chmod(0o700)
    (path / "config.yaml").write_text("_config_version: 33\nmodel: {default: a/b, provider: openrouter}\n")
    store = path / "cron" / "jobs.json"
    store.write_text(json.dumps({"jobs": [record(n) for n in range(jobs)], "updated_at": "2026-11-30T16:35:21+01:00"}))
    store.chmod(0o600)
    return store


def job_text(number: int, minute: int | None = None) -> str:
    prompt = f"Write report {number} from the notes of the day. " * 8
    minute = number % 60 if minute is None else minute
    return (
        f'          job-{number}: {{schedule: {{cron: "{minute} 9 * * *"}}, prompt: {json.dumps(prompt)}, '
        f"model: {{provider: openrouter, model: a/b}}, deliver: local}}\n"
    )


def setup_text(homes: dict[str, Path], jobs: int, changed: int = 0, new: int = 0) -> str:
    parts = ["version: 1\nname: bench\nhomes:\n"]
    for name, path in homes.items():
        parts.append(
            f"  {name}:\n    harness: hermes\n    path: {path}\n    first_contact: adopt\n    profiles:\n"
            "      default:\n        jobs:\n"
        )
        parts += [job_text(n, (n + 7) % 60 if n < changed else None) for n in range(jobs)]
        parts += [
            f"          new-{n}: {{schedule: {{every: 30m}}, prompt: Write report {n}., "
            "model: {provider: openrouter, model: a/b}, deliver: local}\n"
            for n in range(new)
        ]
    return "".join(parts)


class Bench:
    """One folder per size, thrown away at the end; `env` is what every process gets."""

    def __init__(self, work: Path, repeat: int) -> None:
        self.work = work
        self.repeat = repeat
        self.env = {
            "PATH": f"{HERMES}:{os.environ['PATH']}",
            "HOME": str(work),
            "XDG_STATE_HOME": str(work / "state"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            "LANG": "C.UTF-8",
        }

    def run(self, title: str, argv: list[str], codes: tuple[int, ...] = (0,), times: int | None = None) -> Cost:
        cost = median([measure(argv, self.env, self.work, codes) for _ in range(times or self.repeat)])
        print(f"  {title:<44} {cost}", flush=True)
        return cost

    def sizes(self, jobs: int) -> None:
        print(f"\n{jobs} jobs in one home")
        shutil.rmtree(self.work / "state", ignore_errors=True)
        home = self.work / f"home-{jobs}"
        store = make_home(home, jobs)
        setup = self.work / "setup.yaml"
        setup.write_text(setup_text({"main": home}, jobs))
        self.run("floor: read and parse the store", [sys.executable, "-c", FLOOR_READ, str(store)])
        print_setup = self.work / "adopted.yaml"
        cold = [*RECONCILER, "adopt", str(home), "--print", "-f", str(print_setup)]
        self.run("adopt PATH --print", cold, times=1)
        self.run("adopt HOME", [*RECONCILER, "adopt", "main"], times=1)
        self.run("plan, nothing to do", [*RECONCILER, "plan"])
        self.run("apply, nothing to do", [*RECONCILER, "apply", "--yes"])
        data = json.loads(store.read_text())
        for job in data["jobs"][: max(1, jobs // 10)]:
            job["prompt"] = "Somebody else's words."
        changed = json.dumps(data)
        before = store.read_text()
        store.write_text(changed)
        self.run("plan, a tenth changed in the home", [*RECONCILER, "plan"])
        store.write_text(before)
        setup.write_text(setup_text({"main": home}, jobs, changed=1))
        self.run("apply, 1 job changed", [*RECONCILER, "apply", "--yes"], times=1)
        setup.write_text(setup_text({"main": home}, jobs, changed=1, new=50))
        python = str(HERMES / "python")
        floor_home = self.work / f"floor-{jobs}"
        make_home(floor_home, jobs)
        floor_env = {**self.env, "HERMES_HOME": str(floor_home)}
        floor = measure([python, "-I", "-c", FLOOR_WRITE, "50"], floor_env, self.work)
        print(f"  {'floor: bare worker, 50 creates, one save':<44} {floor}")
        self.run("apply, 50 jobs created", [*RECONCILER, "apply", "--yes"], times=1)
        if jobs <= 1000:
            self.today(home)

    def today(self, home: Path) -> None:
        """How people do it now: one CLI call each."""
        env = {**self.env, "HERMES_HOME": str(home)}
        hermes = str(HERMES / "hermes")
        listed = measure([hermes, "-p", "default", "cron", "list", "--all"], env, self.work)
        print(f"  {'today: hermes cron list':<44} {listed}")
        made = [
            measure(
                [hermes, "-p", "default", "cron", "create", "every 30m", "Write a report.", "--name", f"cli-{n}"],
                env,
                self.work,
            )
            for n in range(3)
        ]
        one = median(made)
        fifty = Cost(one.wall * 50, one.cpu * 50, one.memory)
        print(f"  {'today: 50 x hermes cron create (3 measured)':<44} {fifty}")

    def fleet(self, count: int) -> None:
        print(f"\n{count} home(s) with 50 jobs each")
        shutil.rmtree(self.work / "state", ignore_errors=True)
        homes = {f"h{n}": self.work / f"fleet-{count}" / f"h{n}" for n in range(count)}
        stores = [str(make_home(path, 50)) for path in homes.values()]
        (self.work / "setup.yaml").write_text(setup_text(homes, 50))
        self.run("floor: read and parse the stores", [sys.executable, "-c", FLOOR_READ, *stores])
        self.run("apply (first contact: adopt)", [*RECONCILER, "apply", "--plan", self.saved()], times=1)
        self.run("plan, nothing to do", [*RECONCILER, "plan"])

    def saved(self) -> str:
        path = self.work / "plan.json"
        measure([*RECONCILER, "plan", "--out", str(path)], self.env, self.work)
        return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="10,100,1000,5000")
    parser.add_argument("--homes", default="1,20,200")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("hermes", "native", "openclaw"))
    args = parser.parse_args()
    if args.only in (None, "hermes") and not HERMES.is_dir():
        raise SystemExit("hermes-agent is not installed; run `make bench`, which installs it")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), args.repeat)
        print("whole processes, median of", args.repeat)
        bench.run("floor: python -c pass", [sys.executable, "-c", "pass"])
        bench.run("reconciler --help", [*RECONCILER, "--help"])
        if args.only in (None, "native"):
            bench_native.run(bench)
        if args.only in (None, "openclaw"):
            bench_openclaw.run(bench)
        if args.only in ("native", "openclaw"):
            return
        for jobs in (int(n) for n in args.sizes.split(",") if n):
            bench.sizes(jobs)
        for count in (int(n) for n in args.homes.split(",") if n):
            bench.fleet(count)


if __name__ == "__main__":
    main()
