"""A canary in every place that a secret may stand in, and then every place that it may not reach (L5, E51, F13)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faults.rig import Rig, trouble
from webhook import webhook

pytestmark = pytest.mark.hermes

TOKEN = "sk-proj-CANARYtoken0123456789abcdefABCDEF01"
PLAIN = "correct-horse-battery-CANARYplain"  # only .env says that it is one
URL = "hunter2CANARYurl"
CALLER = "ghp_CANARYcaller0123456789abcdefghijklmn"
ALL = (TOKEN, PLAIN, URL, CALLER, "CANARY")

_CONFIG = f"""_config_version: 33
model: {{default: a/b, provider: openrouter, api_key: {TOKEN}}}
agent: {{max_turns: 90, note: "use {PLAIN} there"}}
mcp_servers:
  box: {{url: "https://me:{URL}@example.org/", headers: {{Authorization: "Bearer {TOKEN}"}}, env: {{A_TOKEN: {PLAIN}}}}}
"""
_ENV = f"""OPENROUTER_API_KEY={TOKEN}
export BOX_PASSWORD="{PLAIN}"
SITE_SECRET='{URL}'
"""
_JOBS = f"""
import json, cron.jobs as c
c.create_job(name="uses {TOKEN}", prompt="Call it with {PLAIN}.", schedule="every 2h", deliver="local")
c.create_job(name="brief", prompt="Say {TOKEN} and {PLAIN}.", schedule="every 3h", deliver="local")
c.create_job(name="{PLAIN}", prompt="x", schedule="every 4h", deliver="local")
print(1)
"""
_BODY = """
settings: {agent.note: fine, agent.max_turns: 120}
files: {SOUL.md: {block: nothing.md}}
jobs:
  brief: {schedule: {every: 3h}, prompt: Say nothing., deliver: local}
  plants: {schedule: {every: 3h}, prompt: Water., deliver: local}
"""

REPORTS = ("--report", "plan.r.md", "--report", "plan.r.html", "--report", "plan.r.json")


@pytest.fixture
def leaky(bare: Rig) -> Rig:
    (bare.home / "config.yaml").write_text(_CONFIG)
    (bare.home / ".env").write_text(_ENV)
    (bare.home / "SOUL.md").write_text(f"Be kind. The door opens with {PLAIN}, the other with {TOKEN}.\n")
    bare.hermes(_JOBS)
    bare.setup(_BODY)
    bare.env = {
        "OPENROUTER_API_KEY": CALLER,
        "GITHUB_TOKEN": CALLER,
        "HERMES_SESSION_KEY": CALLER,
        "RECONCILER_DEBUG": "1",
    }
    return bare


def _leaks(*texts: str) -> list[str]:
    return sorted({c for c in ALL for text in texts if c in text})


def _leaks_in(*paths: Path) -> list[str]:
    found = []
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file() and (_leaks(file.read_bytes().decode(errors="replace")) or _leaks(file.name)):
                found.append(str(file))
    return found


def test_no_command_shows_or_keeps_a_secret(leaky: Rig) -> None:
    """L5: no output, state, journal, plan file, events file, setup or message holds a canary, from first sight to
    drift."""
    with webhook() as (where, messages):
        told = f"notify: {{ops: {{url: '{where}', on: [held, drift, failed, applied]}}}}\n"
        leaky.file.write_text(leaky.file.read_text() + told)
        _life(leaky)
    assert len(messages) >= 2 and _leaks(*(m.decode() for m in messages)) == []


def _life(leaky: Rig) -> None:
    brief = "main/default/jobs/brief"
    commands = [
        ("plan", "--unmanaged"),
        ("plan", "--json", "--out", "plan.json"),
        ("adopt", str(leaky.home), "--as", "other", "--print", "--all"),
        ("adopt", "main"),
        ("plan", "--out", "plan.json", *REPORTS),
        ("plan", "--format", "mermaid"),
        ("plan", "--format", "dot"),
        ("apply", "--plan", "plan.json", "--reviewed", "--events", "events"),
        ("show", brief),
        ("show", brief, "--json"),
        ("show", "main/default/files/SOUL.md"),
        ("history", brief),
        ("history", "--json"),
        ("plan", "--undo", "last", "--json"),
        ("doctor", "main"),
        ("state", "list"),
    ]
    for command in commands:
        done = leaky.cli(*command)
        assert (_leaks(done.text), trouble(done)) == ([], []), (command, done.text)
    leaky.edit_jobs(lambda jobs: [j.update(prompt=f"Now with {PLAIN} {TOKEN}") for j in jobs if j["name"] == "brief"])
    (leaky.home / "config.yaml").write_text(_CONFIG.replace("there", "here"))
    for command in [
        ("status", "--json"),
        ("status",),
        ("plan", "--json"),
        ("plan", *(word.replace("plan.", "drift.") for word in REPORTS)),
        ("capture", brief),
        ("apply", "--json", "--restore", brief),
    ]:
        done = leaky.cli(*command)
        assert (_leaks(done.text), trouble(done)) == ([], []), (command, done.text)
    assert _leaks_in(leaky.state, leaky.root / "plan.json", leaky.root / "events", leaky.file) == []
    reports = sorted(leaky.root.glob("plan.*.*")) + sorted(leaky.root.glob("drift.*.*"))
    assert len(reports) == 6 and _leaks_in(*reports) == []


def test_adopt_writes_no_secret_into_a_setup(leaky: Rig) -> None:
    """F13, E46: the setup that adopt writes holds no value of `.env` or of a credential key."""
    leaky.file.unlink()
    done = leaky.cli("adopt", str(leaky.home), "--all")
    assert (done.code, trouble(done)) == (0, []), done.text
    assert _leaks(done.text, leaky.file.read_text()) == []
    assert _leaks_in(leaky.state) == []


def test_no_secret_in_what_a_failing_worker_says(leaky: Rig) -> None:
    """L5, L10: the harness's words, a dying worker's last line and a wrong answer are blotted out."""
    leaky.arm("after-jobs", "leak")
    (leaky.hooks / "leak").write_text(f"boom {PLAIN} {TOKEN} https://me:{URL}@example.org")
    done = leaky.cli("apply", "main", "main/default/jobs/plants", "--yes", "--events", "events", "--json")
    leaky.reached("after-jobs")
    assert _leaks(done.text) == [], done.text
    json.loads(done.out)
    assert _leaks_in(leaky.state, leaky.root / "events") == []


def test_no_reference_is_written_out(leaky: Rig) -> None:
    """F02, F12: a `${VAR}` in config.yaml is still one after the setting beside it was written."""
    path = leaky.home / "config.yaml"
    path.write_text(_CONFIG.replace(f"api_key: {TOKEN}", 'api_key: "${OPENROUTER_API_KEY}"'))
    leaky.setup("settings: {agent.max_turns: 100000}")
    leaky.apply()
    assert "${OPENROUTER_API_KEY}" in path.read_text() and "100000" in path.read_text()
