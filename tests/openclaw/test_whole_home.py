"""`examples/03-whole-home/openclaw.yaml` from nothing in one apply, and what OpenClaw's own commands then say of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from reconciler.observe import Wanted
from reconciler_openclaw import home, jobs, statedb
from reconciler_specs.address import Kind

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "03-whole-home"
# Made up; a bot's token has the look that OpenClaw asks of one.
VALUES = {"ANTHROPIC_API_KEY": "not-a-real-key", "TELEGRAM_BOT_TOKEN": "1000001:not-a-real-token",
          "CODER_BOT_TOKEN": "1000002:not-a-real-token", "HOOK_TOKEN": "not-a-real-hook-secret-0123456789"}  # fmt: skip


def says(lab: labs.Lab, *words: str) -> Any:
    """What a command of OpenClaw's says in JSON."""
    done = lab.cli(*words, "--json")
    assert done.stdout.lstrip().startswith("{"), (words, done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout)


@pytest.mark.openclaw
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", labs.VERSIONS)
def test_a_whole_home_from_nothing(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Path(os.path.realpath(tmp_path)) / "setup"
    shutil.copytree(EXAMPLE, work)
    lab = labs.Lab(work, version, labs.free_port())
    monkeypatch.setenv("HOME", str(work))
    door = f"harness: openclaw\n    door: {{openclaw: {labs.program(version)}, node: {labs.NODE}}}"
    text = (work / "openclaw.yaml").read_text().replace("harness: openclaw", door)
    (work / "setup.yaml").write_text(text.replace("path: ./openclaw", f"path: {lab.root}"))
    (work / "secrets.env").write_text("".join(f"{name}={VALUES[name]}\n" for name in VALUES if "BOT" in name))
    (work / "hook-secret").write_text(VALUES["HOOK_TOKEN"] + "\n")
    reconciler = str(Path(sys.executable).parent / "reconciler")
    env = {**os.environ, "XDG_STATE_HOME": str(work / "state"), "ANTHROPIC_API_KEY": VALUES["ANTHROPIC_API_KEY"]}

    def run(*words: str) -> str:
        argv = [reconciler, *words]
        done = subprocess.run(argv, env=env, cwd=work, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not [value for value in VALUES.values() if value in done.stdout + done.stderr]
        return done.stdout

    run("plan", "--out", "plan.json")
    assert "Applied: 22 applied" in run("apply", "--plan", "plan.json", "--reviewed")
    assert "22 unchanged" in run("plan", "--detailed-exitcode")
    kept = [p for p in (work / "state").rglob("*") if p.is_file()]
    assert kept and not [p for p in kept for value in VALUES.values() if value.encode() in p.read_bytes()]

    assert says(lab, "config", "validate")["valid"] is True
    health = says(lab, "doctor", "--lint")
    assert health["checksRun"] > 0 and not [f for f in health["findings"] if f["severity"] == "error"], health
    agents = says(lab, "status")["heartbeat"]["agents"]
    assert {agent["agentId"] for agent in agents} == {"main", "coder"}
    rows = statedb.read(home.locate(lab.ref().place, str(lab.root))).rows
    assert sorted(str(row.job["name"]) for row in rows if not jobs.own(row.job)) == ["morning-brief", "review"]
    seen = lab.observe(Wanted(everything=True))
    assert {str(thing.kind) for thing in seen.all()} >= {
        str(kind) for kind in Kind if kind not in (Kind.HOME, Kind.SECRET)
    }
