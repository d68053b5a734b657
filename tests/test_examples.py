"""The demos run, and show what the README says of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def demo(name: str) -> str:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    script = ROOT / "examples" / name / "demo.sh"
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
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


def test_the_demo_on_the_viable_sandbox() -> None:
    out = demo("04-viable")
    for words in ("Applied: 3 applied", "termsUrl is refused", "there already: task", "task would go, and"):
        assert words in out
