"""One home per OpenClaw version for all the tests of a session that ask what must hold of a real home: it is made
stopped, lives through faults and edits, and moves. Beside it lies a decoy, to which the whole environment points.

Each test has a setup name, state and jobs of its own in it, and starts or stops its gateway as it needs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faults import driver
from faults.rig import snapshot
from openclaw import lab as labs
from openclaw.fake_gateway import Fake, served
from openclaw.test_writing import Story
from reconciler import planfile
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.event import Event
from reconciler.plan import Options, Plan
from reconciler.testing.kit import Kit
from reconciler_openclaw import home, jobs, rpc, serving, statedb
from reconciler_openclaw.provider import OpenClawProvider

PATIENCE = 240.0  # seconds for a run of ours that starts a gateway on a busy machine
# What a gateway writes by itself while it runs: logs, locks, its databases; jobs are compared one by one.
RUNNING = ("*.sqlite*", "*.lock", "*.log", "*.jsonl", "*.last-good", "*.bak*", "canvas/*", "devices/*", "*.json.*")


class House(labs.Lab):
    """A home beside the default place, with workspaces of its own: 7.1's usual one is shared by all homes of a user."""

    name = "own"

    @property
    def root(self) -> Path:
        return self.user / self.name

    @property
    def workspace(self) -> Path:
        """Outside the home, so that it stays where it is when the home is moved."""
        return self.user / "workspace"

    @property
    def here(self) -> home.Home:
        return home.locate(self.ref().place, os.path.realpath(self.root))

    @property
    def running(self) -> bool:
        return self.gateway is not None and self.gateway.poll() is None

    def up(self) -> None:
        if not self.running:
            self.gateway = None
            self.start()

    def down(self) -> None:
        self.stop()

    def stored(self) -> dict[str, str]:
        """Of each job that is not OpenClaw's own: its id and name, as the database has them."""
        rows = statedb.read(self.here).rows
        return {row.id: str(row.job["name"]) for row in rows if not jobs.own(row.job)}


def config(port: int, root: Path) -> str:
    defaults = f"workspace: '{root.parent}/workspace', model: {{primary: 'anthropic/claude-sonnet-5'}}"
    return (
        f"{{gateway: {{mode: 'local', bind: 'loopback', port: {port}, auth: {{mode: 'token', token: '{labs.TOKEN}'}}}},"
        f" agents: {{defaults: {{{defaults}}}}}}}\n"
    )


class Decoy:
    """Another home of the user, at the place where OpenClaw itself would look, and a gateway that nobody may ask."""

    def __init__(self, user: Path, fake: Fake) -> None:
        self.root, self.fake = user / ".openclaw", fake
        (self.root / "state").mkdir(parents=True)
        (self.root / "openclaw.json").write_text(config(fake.port, self.root))
        (self.root / ".env").write_text("OPENCLAW_GATEWAY_TOKEN=of-the-decoy-0123456789\n")
        self.before = snapshot(self.root)

    @property
    def env(self) -> dict[str, str]:
        """A caller's environment in which every word of OpenClaw's means the decoy."""
        root, url = str(self.root), f"ws://127.0.0.1:{self.fake.port}"
        return {
            "OPENCLAW_STATE_DIR": root,
            "OPENCLAW_CONFIG_PATH": f"{root}/openclaw.json",
            "OPENCLAW_HOME": str(self.root.parent),
            "OPENCLAW_PROFILE": "decoy",
            "OPENCLAW_AGENT_DIR": f"{root}/agents/main/agent",
            "OPENCLAW_OAUTH_DIR": f"{root}/credentials",
            "OPENCLAW_WORKSPACE_DIR": f"{root}/workspace",
            "OPENCLAW_INCLUDE_ROOTS": root,
            "OPENCLAW_GATEWAY_PORT": str(self.fake.port),
            "OPENCLAW_GATEWAY_URL": url,
            "OPENCLAW_GATEWAY_TOKEN": "of-the-decoy-0123456789",
            "OPENCLAW_GATEWAY_PASSWORD": "of-the-decoy-0123456789",
            "NODE_OPTIONS": "--require=/nowhere/to/be/found.js",
        }

    def untouched(self) -> bool:
        return snapshot(self.root) == self.before and not self.fake.connections


@contextmanager
def decoy(user: Path, folder: Path) -> Iterator[Decoy]:
    with served(folder) as fake:
        fake.connections = 0
        yield Decoy(user, fake)


class Life(Story):
    """One test's own setup and state over the shared home."""

    lab: House
    beside: Decoy

    setup_name = "solo"

    def setup(self, profiles: str, first: str = "adopt", door: str = "") -> str:
        return super().setup(profiles, first, door).replace("name: solo\n", f"name: {self.setup_name}\n", 1)

    def late(self, text: str, edit: Callable[[], object]) -> list[Event]:
        """What is planned, somebody's edit, and then the plan carried out with everything in it agreed to."""
        space, options = self.space(text), Options()
        plan = space.plan(options)
        assert not plan.homes[0].failed and not plan.homes[0].hold, plan.homes[0]
        edit()
        return list(apply(plan, agreed(plan, only=True), space, options))

    def named(self) -> list[str]:
        """The names of this test's own jobs, sorted; a twin shows twice."""
        mine = f"{self.setup_name}-"
        return sorted(name.removeprefix(mine) for name in self.lab.stored().values() if name.startswith(mine))

    def program(self, text: str, faults: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """`reconciler apply` of a reviewed plan as a process of its own, which ends where a fault says."""
        file, state, reviewed = self.root / "setup.yaml", self.root / "state", self.root / "plan.json"
        file.write_text(text)
        planfile.write(reviewed, self.plan(text), datetime.now(UTC), "the reviewer's run")
        argv = [sys.executable, str(Path(driver.__file__)), *faults, "--", "apply", "--plan", str(reviewed)]
        argv += ["--reviewed", "-f", str(file), "--state", str(state)]
        paths = ":".join(str(Path(driver.__file__).parents[2] / part) for part in ("", "specs", "state", "providers"))
        env = {**self.beside.env, "HOME": str(self.lab.user), "PATH": "/usr/bin:/bin", "PYTHONPATH": paths, "TZ": "UTC"}
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def cut_off(self, text: str, fault: str) -> None:
        """A run that is killed at this point; and no gateway of ours outlives it."""
        done = self.program(text, [f"{fault}:kill"])
        assert done.returncode == -signal.SIGKILL, (fault, done.returncode, done.stdout, done.stderr)
        if not self.lab.running:
            eventually(self.holds_no_gateway, "our quiet gateway lives on")

    def jobs_text(self, *names: str, **fields: str) -> str:
        """Jobs as lines of a profile's `jobs`; their names in the home begin with the setup's."""
        said = {"schedule": "{every: 2h}", "prompt": "Write.", "deliver": "local", **fields}
        words = ", ".join(f"{name}: {value}" for name, value in said.items())
        return "".join(f"\n    {name}: {{name: {self.setup_name}-{name}, {words}}}" for name in names)


def agreed(plan: Plan, only: bool = False) -> Consent:
    rows = frozenset(found.digests[action.address] for found in plan.homes for action in found.open)
    return Consent(yes=True, approved=rows, only_approved=only, terminal=True, reviewed=True)


def eventually(true: Callable[[], bool], otherwise: str, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)


def reasons(events: Sequence[Event]) -> Mapping[str, str]:
    """Why, per address path, for every row that has an outcome."""
    return {event.address.path: event.reason for event in events if event.address and event.outcome}


@contextmanager
def nothing_starts() -> Iterator[None]:
    """No process is started and no connection made meanwhile."""
    import pytest

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a process was started, or a connection made")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", never)
        patch.setattr(rpc, "open_at", never)
        yield


def gateway_pid(here: home.Home) -> int:
    found = serving.find(here)
    assert found is not None
    return found.pid


def make(user: Path, version: str) -> House:
    house = House(user, version, labs.free_port())
    house.root.mkdir(parents=True, mode=0o700)
    path = house.root / "openclaw.json"
    path.write_text(config(house.port, house.root))
    path.chmod(0o600)
    return house


def life(house: House, beside: Decoy, root: Path, name: str) -> Life:
    kit = Kit(OpenClawProvider(), lambda path: house)  # type: ignore[arg-type, return-value]
    found = Life(kit, root, house, kit.provider)  # type: ignore[arg-type]
    found.lab, found.beside, found.setup_name = house, beside, name
    return found
