"""Measures an OpenClaw home of 2026.9.6: plans with its gateway down and up, 25 job changes, one change of the config.

Part of tools/bench.py. Beside each write are the bare calls of the gateway from one Python process, and OpenClaw's own
command line. The jobs are put into the stopped home's database as copies of one that OpenClaw made: it takes thirty
writes a minute.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness

if TYPE_CHECKING:
    from bench import Bench

VERSION = "2026.9.6"
SIZES = (10, 100, 1000)
CHANGES = 25
BY_HAND = 3
"""Calls of the command line that are measured; the figure is for CHANGES of them."""
TOKEN = "token-of-the-bench-0123456789"
START = 180.0  # seconds: ten on an idle machine

# The floor: what the same changes cost as bare calls. The first word is the port, the others are METHOD PARAMS.
FLOOR = f"""
import json, sys
from reconciler_openclaw import rpc
line = rpc.open_at(int(sys.argv[1]), rpc.Credential({TOKEN!r}), print)
if sys.argv[2] == "jobs":
    jobs = [job for job in line.call("cron.list", {{"includeDisabled": True, "limit": 200}})["jobs"]
            if job["name"].startswith("job-")][:{CHANGES}]
    for job in jobs:
        patch = {{"payload": {{"kind": "agentTurn", "message": sys.argv[3]}}}}
        line.call("cron.update", {{"id": job["id"], "patch": patch, "expectedConfigRevision": job["configRevision"]}})
else:
    base = line.call("config.get")["hash"]
    line.call("config.patch", {{"raw": json.dumps({{"logging": {{"level": sys.argv[3]}}}}), "baseHash": base}}, 60)
line.close()
"""


@dataclass
class Home:
    """One throw-away home; HOME of all that runs for it is `user`."""

    user: Path
    port: int

    @property
    def root(self) -> Path:
        return self.user / ".openclaw"

    @property
    def argv(self) -> list[str]:
        return [str(harness.node()), str(harness.program("openclaw", VERSION))]

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{harness.node().parent}:/usr/bin:/bin",
            "HOME": str(self.user),
            "OPENCLAW_STATE_DIR": str(self.root),
            "OPENCLAW_CONFIG_PATH": str(self.root / "openclaw.json"),
            "OPENCLAW_SKIP_CHANNELS": "1",
            "OPENCLAW_SKIP_CRON": "1",
            "OPENCLAW_NO_RESPAWN": "1",
            "npm_config_offline": "true",
        }

    @contextmanager
    def served(self) -> Iterator[Any]:
        """A connection to the home's gateway, which is started for it."""
        from reconciler_openclaw import rpc

        with (self.user / "gateway.log").open("ab") as log:
            gateway = subprocess.Popen([*self.argv, "gateway", "run"], env=self.env, stdout=log, stderr=log)
        try:
            credential = rpc.Credential(TOKEN)
            line = rpc.open_at(self.port, credential, print, START, lambda: gateway.poll() is None)
            with closing(line):
                yield line
        finally:
            gateway.send_signal(signal.SIGTERM)
            gateway.wait()


def run(bench: Bench) -> None:
    if not harness.is_complete("openclaw", VERSION):
        print("\nOpenClaw is not installed: make openclaw installs it")
        return
    for jobs in SIZES:
        print(f"\n{jobs} jobs in one OpenClaw home")
        _size(bench, jobs)


def _size(bench: Bench, jobs: int) -> None:
    from bench import RECONCILER

    home = _made(bench.work / f"openclaw-{jobs}")
    with home.served() as line:
        line.call("cron.add", _job(0))
    _fill(home.root / "state" / "openclaw.sqlite", jobs)
    bench.env = {**bench.env, "HOME": str(home.user), "XDG_STATE_HOME": str(home.user / "state")}
    setup = bench.work / "setup.yaml"
    setup.write_text(_setup(home, jobs))
    plan = [*RECONCILER, "plan", "--detailed-exitcode"]
    bench.run("adopt HOME", [*RECONCILER, "adopt", "main"], times=1)
    bench.run("plan, nothing to do, gateway down", plan)
    with home.served() as line:
        line.call("config.get")  # the first answer loads the gateway's schema, for whoever asks
        bench.run("plan, nothing to do, gateway up", plan)
        bench.run("apply, nothing to do, gateway up", [*RECONCILER, "apply", "--yes"])
        if jobs >= CHANGES:
            _writes(bench, home, jobs, setup)


def _writes(bench: Bench, home: Home, jobs: int, setup: Path) -> None:
    from bench import RECONCILER, Cost, measure, median

    apply = [*RECONCILER, "apply", "--yes"]
    floor = [sys.executable, "-c", FLOOR, str(home.port)]
    setup.write_text(_setup(home, jobs, changed=CHANGES))
    bench.run(f"apply, {CHANGES} jobs changed", apply, times=1)
    bench.run(f"floor: {CHANGES} bare calls", [*floor, "jobs", "Bare words."], times=1)
    by_hand = [
        measure([*home.argv, "cron", "edit", job, "--message", "By hand."], home.env, bench.work)
        for job in _ids(home)[:BY_HAND]
    ]
    one = median(by_hand)
    many = Cost(one.wall * CHANGES, one.cpu * CHANGES, one.memory)
    print(f"  {f'today: {CHANGES} x openclaw cron edit ({BY_HAND} measured)':<44} {many}")
    setup.write_text(_setup(home, jobs, changed=CHANGES, level="warn"))
    bench.run("apply, one setting changed", [*apply, "main/default/settings/logging.level"], times=1)
    bench.run("floor: config.get and config.patch", [*floor, "config", "error"], times=1)
    config = [*home.argv, "config", "set", "logging.level", "info"]
    print(f"  {'today: openclaw config set':<44} {measure(config, home.env, bench.work)}")


def _made(user: Path) -> Home:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        home = Home(Path(os.path.realpath(user)), int(found.getsockname()[1]))
    home.root.mkdir(parents=True, mode=0o700)
    auth = {"mode": "token", "token": TOKEN}
    config = {
        "gateway": {"mode": "local", "bind": "loopback", "port": home.port, "auth": auth},
        "logging": {"level": "info"},
    }
    (home.root / "openclaw.json").write_text(json.dumps(config, indent=2))
    (home.root / "openclaw.json").chmod(0o600)
    return home


def _prompt(number: int) -> str:
    return " ".join([f"Write report {number} from the notes of the day."] * 8)


def _job(number: int) -> dict[str, Any]:
    return {
        "name": f"job-{number}",
        "agentId": "main",
        "schedule": {"kind": "cron", "expr": f"{1 + number % 59} 9 * * *", "tz": "UTC"},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "payload": {"kind": "agentTurn", "message": _prompt(number)},
        "delivery": {"mode": "none"},
    }


def _fill(database: Path, jobs: int) -> None:
    """The one job that is there, copied: its row with another id, name, line and prompt."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM cron_jobs WHERE name = 'job-0'").fetchone())
        for number in range(1, jobs):
            job = {**json.loads(row["job_json"]), **_job(number), "id": f"00000000-0000-4000-8000-{number:012x}"}
            copy = {**row, "job_id": job["id"], "name": job["name"], "job_json": json.dumps(job)}
            marks = ", ".join("?" * len(copy))
            connection.execute(f"INSERT INTO cron_jobs ({', '.join(copy)}) VALUES ({marks})", list(copy.values()))


def _ids(home: Home) -> list[str]:
    with closing(sqlite3.connect(f"file:{home.root}/state/openclaw.sqlite?mode=ro", uri=True)) as connection:
        return [str(job) for (job,) in connection.execute("SELECT job_id FROM cron_jobs WHERE name LIKE 'job-%'")]


def _setup(home: Home, jobs: int, changed: int = 0, level: str = "info") -> str:
    node, script = home.argv
    lines = [
        "version: 1\nname: bench\nhomes:\n  main:\n    harness: openclaw\n"
        f"    path: {home.root}\n    door: {{openclaw: {script}, node: {node}}}\n    profiles:\n      default:\n"
        f"        settings: {{logging.level: {level}}}\n        jobs:\n"
    ]
    for number in range(jobs):
        prompt = "Other words." if number < changed else _prompt(number)
        lines.append(
            f'          job-{number}: {{schedule: {{cron: "{1 + number % 59} 9 * * *", tz: UTC}}, '
            f"prompt: {json.dumps(prompt)}, deliver: local}}\n"
        )
    return "".join(lines)
