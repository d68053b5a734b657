"""A throw-away Hermes home with its setup and state, worked on by the command line, and ways to let things fail."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes.lab import python_of
from reconciler import planfile
from reconciler.action import Action
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.event import Event
from reconciler.plan import Options, Plan
from reconciler.workspace import Workspace
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.load import load
from reconciler_state.local import LocalStore

HERE = Path(__file__).parent
CONFIG = "_config_version: 33\nmodel: {default: a/b, provider: openrouter}\nagent:\n  max_turns: 90  # by hand\n"
ENV = "OPENROUTER_API_KEY=not-a-real-key-0123456789\n"
PATIENCE = 60.0  # seconds, for what takes one

FIRST = """
settings: {agent.max_turns: 120}
files:
  SOUL.md: {block: nothing.md}
jobs:
  brief: {schedule: {cron: "0 8 * * *"}, prompt: Write the brief., deliver: local}
  old: {schedule: {every: 2h}, prompt: Sweep., deliver: local}
"""
# An update, a create, a delete, a setting and a file: every kind of step.
SECOND = """
settings: {agent.max_turns: 150}
files:
  SOUL.md: {block: little.md}
jobs:
  brief: {schedule: {cron: "0 8 * * *"}, prompt: Write the long brief., deliver: local}
  plants: {schedule: {every: 3h}, prompt: Water., deliver: local}
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Rig:
    """One folder with a home, a setup, a state folder, and an interpreter that can be told to fail."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = Path(os.path.realpath(self.root))
        self.home = self.root / "home"
        self.state = self.root / "state"
        self.file = self.root / "setup.yaml"
        self.hooks = self.root / "install" / "hooks"

    @property
    def python(self) -> Path:
        return self.root / "install" / "bin" / "python"

    def install(self) -> None:
        """Hermes's interpreter with our hook before it, beside Hermes's own version mark."""
        real = python_of("0.19.0")
        self.python.parent.mkdir(parents=True)
        self.hooks.mkdir()
        [mark] = real.parent.parent.glob("lib/python3*/site-packages/hermes_agent-*.dist-info")
        (self.root / "install" / Path(*mark.parts[-4:])).mkdir(parents=True)
        self.python.write_text(f"#!{real} -I\n" + (HERE / "hook.py").read_text())
        self.python.chmod(0o755)

    def make_home(self, config: str | None = CONFIG, env: str = ENV, home: Path | None = None) -> Path:
        home = home or self.home
        home.mkdir(mode=0o700)
        if config is not None:
            (home / "config.yaml").write_text(config)
        (home / ".env").write_text(env)
        (home / "SOUL.md").write_text("Be kind.\n")
        (home / "skills" / "mine").mkdir(parents=True)
        (home / "skills" / "mine" / "SKILL.md").write_text("---\nname: mine\n---\nBy hand.\n")
        return home

    def setup(self, body: str, *, head: str = "", home: str = "", homes: Mapping[str, str] | None = None) -> None:
        """Writes the setup: `body` is what the default profile declares, for each of `homes` (path by id)."""
        for name in ("nothing", "little"):
            (self.root / f"{name}.md").write_text(f"- Spend {name}.\n")
        body = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
        blocks = "".join(
            f"  {name}:\n    harness: hermes\n    path: {path}\n    first_contact: adopt\n"
            f"    door: {{python: {self.python}}}\n{home}    profiles:\n      default:\n{body}"
            for name, path in (homes or {"main": str(self.home)}).items()
        )
        self.file.write_text(f"version: 1\nname: solo\n{head}homes:\n{blocks}")

    # -- by the command line -----------------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "HOME": str(self.root / "user"),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": ":".join(str(HERE.parents[1] / p) for p in ("", "specs", "state", "providers")),
            **self.env,
            **more,
        }

    def _argv(self, args: Sequence[str], faults: Sequence[str]) -> list[str]:
        setup, state = ["-f", str(self.file)], ["--state", str(self.state)]
        match args[0]:
            case "validate":
                words = [*args, *setup]
            case "state":
                words = [*args, *state]
            case _:
                words = [*args, *setup, *state]
        if not faults and not {"FAULT_WAIT"} & self.env.keys():
            return [sys.executable, "-m", "reconciler", *words]
        return [sys.executable, str(HERE / "driver.py"), *faults, "--", *words]

    def cli(self, *args: str, faults: Sequence[str] = (), **env: str) -> Done:
        done = subprocess.run(
            self._argv(args, faults),
            cwd=self.root,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *args: str, faults: Sequence[str] = (), **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv(args, faults),
            cwd=self.root,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def full(self, faults: Sequence[str] = (), **env: str) -> Done:
        """Plans into a file and applies it, deletes included: a pipeline with a review."""
        return self.cli("apply", "--plan", str(self.plan_file()), "--reviewed", faults=faults, **env)

    def elsewhere(self, *args: str) -> Done:
        """The program in a run of its own: for a delete, another one than that of the apply."""
        argv = ["setsid", "-w", *self._argv(args, ())]
        env = self.environment()
        done = subprocess.run(argv, cwd=self.root, env=env, capture_output=True, timeout=PATIENCE, check=False)
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def plan_file(self) -> Path:
        """The file that `plan --out` would write now."""
        planfile.write(self.root / "plan.json", self.plan(), datetime.now(UTC), "the reviewer's run")
        return self.root / "plan.json"

    # -- in this process ---------------------------------------------------------------------------------------

    def space(self) -> Workspace:
        return Workspace(load(self.file), LocalStore(self.state), {"hermes": HermesProvider()})

    def plan(self, options: Options | None = None) -> Plan:
        with contextlib.closing(self.space()) as space:
            return space.plan(options or Options())

    def rows(self, options: Options | None = None) -> dict[str, Action]:
        return {str(a.address): a for h in self.plan(options).homes for a in h.actions}

    def apply(self, consent: Consent | None = None) -> list[Event]:
        """Plans and applies in this process; without a consent everything is agreed to."""
        options = Options()
        with contextlib.closing(self.space()) as space:
            plan = space.plan(options)
            if consent is None:
                rows = frozenset(h.digests[a.address] for h in plan.homes for a in h.open)
                consent = Consent(yes=True, approved=rows, terminal=True, reviewed=True)
            return list(apply(plan, consent, space, options))

    # -- hooks -------------------------------------------------------------------------------------------------

    def arm(self, point: str, words: str) -> None:
        (self.hooks / point).write_text(words)

    def pipe(self) -> Path:
        """The pipe on which a `wait` waits."""
        go = self.hooks / "go"
        if not go.exists():
            os.mkfifo(go)
        return go

    def reached(self, point: str) -> int:
        """Waits until a point was passed; the pid that passed it."""
        path = self.hooks / f"at-{point}"
        deadline = time.monotonic() + PATIENCE
        while not path.exists():
            assert time.monotonic() < deadline, f"{point} was not reached"
            time.sleep(0.01)
        return int(path.read_text())

    def go(self) -> None:
        """Lets the one who waits on the pipe go on."""
        with self.pipe().open("w"):
            pass

    # -- looking -----------------------------------------------------------------------------------------------

    def jobs(self) -> list[dict[str, Any]]:
        path = self.home / "cron" / "jobs.json"
        found: list[dict[str, Any]] = json.loads(path.read_text())["jobs"] if path.exists() else []
        return found

    def job(self, name: str) -> dict[str, Any]:
        [found] = [j for j in self.jobs() if j["name"] == name]
        return found

    def edit_jobs(self, edit: Any) -> None:
        """Changes jobs.json as an editor would: `edit` gets the list."""
        path = self.home / "cron" / "jobs.json"
        data = json.loads(path.read_text())
        edit(data["jobs"])
        path.write_text(json.dumps(data))

    def owned(self) -> set[str]:
        """The harness ids of what state says is ours, in whichever home."""
        store = LocalStore(self.state)
        states = [store.read(p) for p in store.list()]
        return {t.id for s in states if s for t in s.owned("solo").values()}

    def hermes(self, code: str, *args: str) -> Any:
        """The JSON that `code` prints under Hermes's own interpreter for this home."""
        env = {"HOME": str(self.root), "HERMES_HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        argv = [str(python_of("0.19.0")), "-I", "-c", code, *args]
        done = subprocess.run(argv, env=env, capture_output=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout.decode().strip().splitlines()[-1])


def snapshot(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Every path below the folders with its kind, bytes, mode and time of change."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in folders:
        for path in [folder, *sorted(folder.rglob("*"))]:
            info = path.lstat()
            what: object = None
            if path.is_symlink():
                what = str(path.readlink())
            elif path.is_file():
                what = path.read_bytes()
            found[str(path)] = (what, info.st_mode, info.st_mtime_ns)
    return found


def contents(*folders: Path) -> dict[str, object]:
    """Like `snapshot`, without times and folders: what nobody may lose."""
    return {k: v[0] for k, v in snapshot(*folders).items() if v[0] is not None}


def settled(rig: Rig) -> None:
    """The next runs have cleared up: all that is declared is there once, and all of ours is owned (L11)."""
    plan = rig.plan()
    for home in plan.homes:
        assert not home.failed and not home.hold and not home.actions, (home.failed, home.hold, home.actions)
    names = [j["name"] for j in rig.jobs()]
    assert len(names) == len(set(names)), names
    ids = rig.owned()
    orphans = [j["name"] for j in rig.jobs() if "x_reconciler" in j and j["id"] not in ids]
    assert not orphans
    left = [str(p) for p in rig.home.rglob("*") if p.name.startswith(".reconciler_") and p.suffix == ".tmp"]
    assert not left


def trouble(done: Done) -> list[str]:
    """What no message may hold."""
    signs = ("Traceback", "has a bug", "\x1b[31m", "\u202e")
    return [s for s in signs if s in done.text]
