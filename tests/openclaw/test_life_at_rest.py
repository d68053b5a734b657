"""What must hold of a stopped home: killed at each step, edited between plan and write, applied a hundred times.

A quiet gateway takes ten seconds to start: where no test needs one of its own, none is started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from faults.rig import snapshot
from openclaw.life import House, Life, eventually, gateway_pid, nothing_starts, reasons
from openclaw.test_writing import told
from reconciler.place import LocalPlace
from reconciler.testing.kit import tree
from reconciler_openclaw import rpc
from reconciler_openclaw.door import OpenClawDoor

pytestmark = [pytest.mark.openclaw, pytest.mark.timeout(900)]

COMMON = """
default:
  settings: {logging.level: warn}
  files: {scripts/disk.sh: {text: "df\\n"}}
  jobs:
    brief: {schedule: {every: 2h}, prompt: Write the brief., deliver: local}
    plants: {schedule: {cron: "5 8 * * *", tz: UTC}, prompt: Water., deliver: local}
"""


@pytest.fixture(autouse=True)
def at_rest(life: Life) -> None:
    life.lab.down()


@contextmanager
def at_each_write(edit: Callable[[], object]) -> Iterator[None]:
    """Somebody's edit in the last moment: planned again, locked and journaled, and the door about to be used."""
    perform = OpenClawDoor.perform

    def late(door: OpenClawDoor, step: Any) -> Any:
        edit()
        return perform(door, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenClawDoor, "perform", late)
        yield


@contextmanager
def killed_with_its_answer(lab: House, method: str) -> Iterator[list[int]]:
    """The gateway that serves the home is killed when it has been sent this call, before it can answer."""
    answer = rpc._answer
    killed: list[int] = []

    def wait(line: Any, name: str, what: str, until: float) -> Any:
        if what == method and not killed:
            killed.append(gateway_pid(lab.here))
            os.kill(killed[0], signal.SIGKILL)
        return answer(line, name, what, until)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc, "_answer", wait)
        yield killed


@contextmanager
def children() -> Iterator[list[str]]:
    """What we start meanwhile: the words after the program."""
    started: list[str] = []
    start = LocalPlace.start

    def watched(place: LocalPlace, argv: Sequence[str], *more: Any) -> subprocess.Popen[bytes]:
        started.append(" ".join(argv[2:4]))
        return start(place, argv, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPlace, "start", watched)
        yield started


def test_our_quiet_gateway_is_killed_and_then_we_are_and_a_hundred_applies_change_no_byte(life: Life) -> None:
    """L10, L11, L7, in one story, since each quiet gateway takes ten seconds. `mode: rpc`: the config goes through it
    too.

    It dies with a call that it has been sent: whether that was carried out, nobody says before the next run has looked.
    We die when it has made the jobs, and nothing of that is recorded: the next run finds them by their keys.
    """
    text = life.setup(COMMON, door=", mode: rpc")
    with killed_with_its_answer(life.lab, "cron.add") as killed, children() as started:
        events = life.apply(text)
    assert len(killed) == 1, reasons(events)
    assert "config patch" not in started
    outcomes = told(events)
    assert outcomes["default/jobs/brief"] in ("applied", "uncertain"), events
    assert outcomes["default/settings/logging.level"] == "applied"
    eventually(life.holds_no_gateway, "our quiet gateway lives on")

    life.cut_off(text, "<openclaw.perform:1")
    assert sorted(life.lab.stored().values()) == ["brief", "plants"]
    with nothing_starts():
        life.converge(text)
    assert sorted(life.lab.stored().values()) == ["brief", "plants"]

    before = snapshot(life.lab.root, life.lab.workspace, life.root / "state")
    with nothing_starts():
        for _ in range(100):
            assert life.apply(text) == []
    assert snapshot(life.lab.root, life.lab.workspace, life.root / "state") == before


@contextmanager
def child_killed(moment: Callable[[], object]) -> Iterator[list[int]]:
    """OpenClaw's command line is killed after `moment`, which may wait; the pids of those that were."""
    start, killed = LocalPlace.start, []

    def started(
        place: LocalPlace, argv: Sequence[str], env: dict[str, str], fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        process = start(place, argv, env, fds)
        if list(argv[2:4]) == ["config", "patch"]:
            killed.append(process.pid)

            def kill() -> None:
                moment()
                os.kill(process.pid, signal.SIGKILL)  # it is not waited for before its pipes are closed

            threading.Thread(target=kill, daemon=True).start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPlace, "start", started)
        yield killed


@pytest.mark.parametrize("when", ["at once", "as it writes"])
def test_the_command_line_is_killed(life: Life, when: str) -> None:
    """L10: what a killed child has done is seen by looking, never guessed; the next run puts it right."""
    config = life.lab.root / "openclaw.json"
    level = {"at once": "error", "as it writes": "debug"}[when]
    was = config.read_bytes()

    def written() -> None:
        until = time.monotonic() + 120
        while when != "at once" and config.read_bytes() == was and time.monotonic() < until:
            time.sleep(0.002)

    text = life.setup(f"default:\n  settings: {{logging.level: {level}}}\n  jobs: {{}}")
    with child_killed(written) as killed:
        events = life.apply(text)
    assert len(killed) == 1, reasons(events)
    expected = {"at once": "uncertain", "as it writes": "applied"}[when]
    assert told(events)["default/settings/logging.level"] == expected, events
    row = life.rows(text).get("default/settings/logging.level")
    assert (row is None) == (life.config().get("logging", {}).get("level") == level) == (when != "at once")
    assert not list(life.lab.root.glob("*.tmp")), "the killed child's own litter"


def set_by_hand(life: Life, logging: dict[str, str]) -> None:
    """The config as an editor leaves it."""
    path = life.lab.root / "openclaw.json"
    path.write_text(json.dumps({**life.config(), "logging": logging}, indent=2) + "\n")


def test_what_is_edited_before_the_write_is_refused_and_its_neighbours_are_not(life: Life) -> None:
    """L8: by an editor after the plan, and by OpenClaw's own command line in the last moment."""
    base = "default:\n  settings: {{logging.level: {}, logging.consoleLevel: {}}}\n"
    base += "  files: {{scripts/late.sh: {{text: {}}}}}"
    set_by_hand(life, {"level": "warn", "consoleLevel": "warn"})
    life.converge(life.setup(base.format("warn", "warn", "one")))
    script = life.lab.workspace / "scripts" / "late.sh"

    def by_hand() -> None:
        set_by_hand(life, {"level": "trace", "consoleLevel": "warn"})
        script.write_text("By hand.")

    events = life.late(life.setup(base.format("error", "error", "two")), by_hand)
    assert told(events) == {
        "default/settings/logging.level": "refused",
        "default/settings/logging.consoleLevel": "applied",
        "default/files/scripts/late.sh": "refused",
    }
    assert life.config()["logging"] == {"level": "trace", "consoleLevel": "error"}
    assert script.read_text() == "By hand."

    def by_the_program() -> None:
        done = life.lab.cli("config", "set", "logging.consoleLevel", "fatal")
        assert done.returncode == 0, done.stderr

    text = life.setup("default:\n  settings: {logging.consoleLevel: silent}")
    with at_each_write(by_the_program):
        events = life.apply(text)
    assert told(events)["default/settings/logging.consoleLevel"] == "refused"
    assert "changed" in reasons(events)["default/settings/logging.consoleLevel"]
    assert life.config()["logging"]["consoleLevel"] == "fatal"


@pytest.mark.parametrize("switch", ["OPENCLAW_CONFIG_READONLY", "OPENCLAW_NIX_MODE"])
def test_a_config_that_another_system_manages_is_named_at_plan_time(life: Life, switch: str) -> None:
    """In its words too: OpenClaw itself refuses what we do not try."""
    env = life.lab.root / ".env"
    env.write_text(f"{switch}=1\n")
    try:
        before = tree(life.lab.root)
        plan = life.plan(life.setup(COMMON.replace("warn", "fatal"))).homes[0]
        assert plan.hold is not None and f"{switch}=1" in plan.hold.why
        assert not plan.open
        assert tree(life.lab.root) == before
    finally:
        env.unlink()


def test_a_config_behind_a_link_is_named_at_plan_time(life: Life) -> None:
    path = life.lab.root / "openclaw.json"
    real = life.lab.user / "elsewhere.json"
    path.rename(real)
    path.symlink_to(real)
    try:
        plan = life.plan(life.setup(COMMON.replace("warn", "fatal"))).homes[0]
        assert plan.hold is not None and f"is a link to {real}" in plan.hold.why
        assert not plan.open
    finally:
        path.unlink()
        real.rename(path)
