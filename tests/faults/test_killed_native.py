"""kill -9 at each step of a whole native home, of every kind: the next run settles it, and no secret gets anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import planfile
from reconciler.plan import Options, Plan
from reconciler.workspace import Workspace
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider
from reconciler_specs.load import load
from reconciler_state.local import LocalStore

HERE = Path(__file__).parent
CANARY = "CANARY-0123456789abcdef"
OLD = "CANARY-in-the-home-9876543210"
SETUP = """
version: 1
name: solo
secrets:
  TELEGRAM_BOT_TOKEN: {env: SOURCE_TOKEN}
  HOOK: {dotenv: {file: values.env, key: HOOK}}
homes:
  main:
    harness: native
    path: ./home
    first_contact: adopt
    profiles:
      default:
        worker: {harness: codex, env: {A_TOKEN: {secret: HOOK}}}
        channels:
          telegram: {enabled: true, secrets: {token: TELEGRAM_BOT_TOKEN}, allow: ["1"], owner_chat: "1"}
        routes:
          coder: {match: {channel: telegram, chat: "2"}, profile: coder}
        webhooks:
          push: {secret: {secret: HOOK}, events: [push], prompt: Look., deliver: local}
        mcp_servers:
          fs: {command: npx, args: [fs], env: {FS_KEY: {secret: HOOK}}}
        toolsets:
          telegram: [web, file]
        skills:
          house: {source: house}
        plugins:
          disk-cleanup: {enabled: true, config: {days: 3}}
        planning_kits:
          desk: {source: "kit:support-desk"}
        settings: {agent.max_turns: 120}
        files:
          SOUL.md: {text: "Be kind.\\n"}
        jobs:
          brief: {schedule: {every: 2h}, prompt: Write., deliver: local}
      coder: {description: Writes code.}
"""
KINDS = 12  # steps of the door: one per profile and kind


class Place:
    """One folder with a home, a setup of every kind, and the program that is killed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "setup.yaml").write_text(SETUP)
        (root / "values.env").write_text(f"HOOK={CANARY}-hook\n")
        (root / "house" / "more").mkdir(parents=True)
        (root / "house" / "SKILL.md").write_text("---\nname: house\n---\nSweep.\n")
        for number in range(3):
            (root / "house" / "more" / f"{number}.md").write_text(f"{number}\n")
        init(root / "home")
        (root / "home" / ".env").write_text(f"OLD_KEY={OLD}\n")
        (root / "home" / "config.yaml").write_text(f"# mine\nnote: 'call {OLD} now'\n")
        self.said = b""

    def plan(self) -> Plan:
        os.environ["SOURCE_TOKEN"] = f"{CANARY}-token"
        space = Workspace(load(self.root / "setup.yaml"), LocalStore(self.root / "state"), {"native": NativeProvider()})
        with closing(space):
            return space.plan(Options())

    def apply(self, *faults: str) -> int:
        """By the command line, every row reviewed; what it says is kept."""
        planfile.write(self.root / "plan.json", self.plan(), datetime.now(UTC))
        program = [str(HERE / "driver.py"), *faults, "--"] if faults else ["-m", "reconciler"]
        paths = ":".join(str(HERE.parents[1] / part) for part in ("", "specs", "state", "providers"))
        done = subprocess.run(
            [sys.executable, *program, "apply", "--plan", "plan.json", "--reviewed", "--json", "--events", "events",
             "-f", "setup.yaml", "--state", "state"],
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, "SOURCE_TOKEN": f"{CANARY}-token", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        return done.returncode

    def settled(self) -> None:
        """All that is declared is there once, all of ours is owned, and no secret is where none may be."""
        home = self.plan().homes[0]
        assert not (home.failed or home.hold or home.actions), (home.failed, home.hold, home.actions)
        config = yaml.safe_load((self.root / "home" / "config.yaml").read_text())
        assert len(config["gateway"]["profile_routes"]) == 1 and config["note"] == f"call {OLD} now"
        jobs = json.loads((self.root / "home" / "cron" / "jobs.json").read_text())["jobs"]
        assert [job["name"] for job in jobs] == ["brief"]
        env = (self.root / "home" / ".env").read_text().splitlines()
        assert sorted(env) == sorted(
            [f"OLD_KEY={OLD}", f"TELEGRAM_BOT_TOKEN={CANARY}-token", f"HOOK={CANARY}-hook", *_lists(env)]
        )
        folder = self.root / "home" / "skills"
        assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["0.md", "1.md", "2.md", "SKILL.md"]
        owned = {path for state in self._states() for path in state.owned("solo")}
        declared = {address.path for address in load(self.root / "setup.yaml").desired("main")}
        assert declared - owned <= {"default"} and owned <= declared
        assert not list((self.root / "home").rglob("*.tmp"))
        self.clean()

    def _states(self) -> list[Any]:
        store = LocalStore(self.root / "state")
        return [store.read(where) for where in store.list()]

    def clean(self) -> None:
        """The canary is in no output, event, plan, state or journal."""
        places = [self.root / "events", self.root / "plan.json", *(self.root / "state").rglob("*")]
        kept = b"".join(path.read_bytes() for path in places if path.is_file())
        assert kept and b"CANARY" not in self.said + kept


def _lists(lines: list[str]) -> list[str]:
    return [line for line in lines if "_ALLOWED_USERS=" in line or "_HOME_CHANNEL" in line]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SOURCE_TOKEN", f"{CANARY}-token")
    return Place(tmp_path)


def test_a_whole_home_is_applied_and_at_rest(place: Place) -> None:
    assert place.apply() == 0, place.said.decode()
    place.settled()


@pytest.mark.parametrize("number", range(1, KINDS + 1))
@pytest.mark.parametrize("at", ["<", ">"])
def test_killed_around_each_step_of_the_door(place: Place, at: str, number: int) -> None:
    assert place.apply(f"{at}native.perform:{number}:kill") == -signal.SIGKILL
    place.clean()
    assert place.apply() == 0, place.said.decode()
    place.settled()


@pytest.mark.parametrize("number", range(1, 17, 2))
def test_killed_in_the_middle_of_a_write(place: Place, number: int) -> None:
    assert place.apply(f"<native.put:{number}:kill") == -signal.SIGKILL
    place.clean()
    assert place.apply() == 0, place.said.decode()
    place.settled()


@pytest.mark.parametrize("point", [">store.write", "<store.write", "<journal.begin", ">journal.done"])
@pytest.mark.parametrize("number", [2, 5, 8, 11])
def test_killed_around_what_is_recorded(place: Place, point: str, number: int) -> None:
    assert place.apply(f"{point}:{number}:kill") == -signal.SIGKILL
    place.clean()
    assert place.apply() == 0, place.said.decode()
    place.settled()
