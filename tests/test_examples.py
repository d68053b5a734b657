"""The demos run, and show what the README says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.lab import python_of

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def demo(name: str) -> str:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    script = ROOT / "examples" / name / "demo.sh"
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing goes wrong on the way; what a door waits for is told there.
    assert all(line.startswith("  … main: ") for line in done.stderr.splitlines()), done.stderr
    return done.stdout


def picture() -> list[str]:
    """The plan in the README, below its first line: that one has a path."""
    text = (ROOT / "README.md").read_text()
    block = text[text.index("## A plan") :].split("```\n")[1]
    return block.splitlines()[1:]


def test_the_demo_with_nothing_installed() -> None:
    out = demo("00-native")
    assert "\n".join(picture()) in out
    for words in ("Applied: 9 applied", "Nothing to do.", "captured main/default", "deletes need a review"):
        assert words in out
    assert out.rstrip().endswith("Sum up the week from the morning briefs.")


@pytest.mark.hermes
def test_the_demo_on_hermes() -> None:
    out = demo("01-quickstart")
    assert "\n".join(picture()) in out
    assert "Scheduled Jobs" in out


@pytest.mark.openclaw
def test_the_demo_on_openclaw() -> None:
    out = demo("02-openclaw")
    for words in ("Applied: 4 applied", "Nothing to do.", "captured main/default/jobs/morning-brief"):
        assert words in out


def test_the_demo_of_a_whole_home() -> None:
    out = demo("03-whole-home")
    for words in ("Applied: 18 applied", "17 unchanged", "present, other than its source", "Applied: 1 applied"):
        assert words in out
    assert "no copy holds a value" in out
    assert "not-a-real" not in out and "another-token" not in out


@pytest.mark.hermes
def test_the_same_whole_home_on_hermes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One apply from nothing; what Hermes itself then says of its jobs, servers and skills; and nothing left to do."""
    work = tmp_path / "setup"
    shutil.copytree(ROOT / "examples" / "03-whole-home", work)
    python = python_of("0.19.0")
    text = (work / "setup.yaml").read_text()
    (work / "setup.yaml").write_text(
        text.replace("harness: native", f"harness: hermes\n    door: {{python: {python}}}")
    )
    (work / "secrets.env").write_text("TELEGRAM_BOT_TOKEN=not-a-real-token\n")
    (work / "hook-secret").write_text("not-a-real-hook-secret\n")
    env = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "OPENROUTER_API_KEY": "not-a-real",
    }
    env |= {"XDG_STATE_HOME": str(tmp_path / "state"), "HERMES_HOME": str(work / "home")}

    def run(*words: str) -> str:
        done = subprocess.run(list(words), cwd=work, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("reconciler", "plan", "--out", "plan.json")
    assert "Applied: 18 applied" in run("reconciler", "apply", "--plan", "plan.json")
    assert "17 unchanged" in run("reconciler", "plan", "--detailed-exitcode")
    hermes = str(Path(python).parent / "hermes")
    assert "morning-brief" in run(hermes, "-p", "default", "cron", "list")
    assert "files" in run(hermes, "-p", "default", "mcp", "list")
    assert "house" in run(hermes, "-p", "default", "skills", "list")


def test_the_demo_on_the_viable_sandbox() -> None:
    out = demo("04-viable")
    for words in ("Applied: 3 applied", "termsUrl is refused", "there already: task", "task would go, and"):
        assert words in out
