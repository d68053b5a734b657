"""The restart of a real gateway: for what it takes in when it starts, by the signal of its own unit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.lab import python_of
from reconciler.action import Row
from reconciler.consent import Consent
from reconciler.plan import Options
from reconciler.testing.kit import Kit, World, outcomes
from reconciler.testing.kit import world as make_world
from reconciler_hermes import gateways, insiders
from reconciler_hermes.provider import HermesProvider

pytestmark = pytest.mark.hermes

CHANNEL = "default/channels/telegram"
TOKEN = "123456:" + "FAKE" * 9
# Webhooks are served on loopback: a gateway without any channel ends by itself.
CONFIG = (
    "_config_version: 33\nmodel: {default: a/b, provider: openrouter}\nagent: {restart_drain_timeout: 1}\n"
    "platforms: {webhook: {enabled: true, extra: {host: 127.0.0.1, port: 0, secret: not-a-real-secret-0123}}}\n"
)
OFF = "channels: {telegram: {enabled: false, allow: [1]}}"
ON = "channels: {telegram: {enabled: false, allow: [1], admins: [1]}}"
# What s6 does with a service, in small: it starts it again whenever it ends, until it is told to stop.
SUPERVISE = """#!/bin/sh
trap 'kill $child; exit 0' TERM
while :; do
  "$@" & child=$!
  wait $child
done
"""


class Nobody:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def make(path: Path) -> Any:
    path.mkdir()
    (path / "config.yaml").write_text(CONFIG)
    (path / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    return Nobody(path)


@pytest.fixture
def here(tmp_path: Path) -> World:
    kit = Kit(HermesProvider(), make, door=f"{{python: {python_of('0.19.0')}}}", restart="when_needed")
    found = make_world(kit, tmp_path)
    found.converge(found.text(rest=OFF))
    return found


@contextmanager
def gateway(world: World, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    root = world.home.path
    env = {"HOME": str(root.parent), "HERMES_HOME": str(root), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    argv = [*before, str(python_of("0.19.0")), "-m", "hermes_cli.main", "gateway", "run"]
    with (root.parent / "gateway.log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, cwd=root.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    ref = world.space(world.text()).ref("main")
    try:
        until(lambda: insiders.running(ref, str(root))[0] != 0 and ready(root), process, root)
        yield process
    finally:
        pid = insiders.running(ref, str(root))[0]
        process.terminate()
        process.wait(timeout=30)
        if pid and pid != process.pid and insiders.running(ref, str(root))[0] == pid:
            os.kill(pid, signal.SIGKILL)


def ready(root: Path) -> bool:
    state = root / "gateway_state.json"
    return state.exists() and '"running"' in state.read_text()


def until(holds: Any, process: subprocess.Popen[bytes], root: Path) -> None:
    for _ in range(600):
        if holds():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail((root.parent / "gateway.log").read_text()[-2000:])


def test_a_supervised_gateway_is_restarted_and_seen_again(here: World, tmp_path: Path) -> None:
    supervisor = tmp_path / "s6-supervise"
    supervisor.write_text(SUPERVISE)
    supervisor.chmod(0o755)
    text = here.text(rest=ON)
    ref = here.space(text).ref("main")
    with gateway(here, str(supervisor)) as process:
        before = insiders.running(ref, ref.path)
        rows = here.rows(text)
        assert list(rows) == [CHANNEL, "home"]
        assert (rows["home"].row, rows["home"].hold, rows["home"].tier) == (Row.RESTART, None, "confirm")
        assert outcomes(here.apply(text)) == {CHANNEL: "applied", "home": "applied"}
        after = insiders.running(ref, ref.path)
        assert after[0] and after != before
        assert not here.rows(text)
        until(lambda: ready(here.home.path), process, here.home.path)


def test_one_that_nobody_would_start_again_is_never_signalled(here: World) -> None:
    text = here.text(rest=ON)
    with gateway(here) as process:
        row = here.rows(text)["home"]
        assert row.hold is not None and "runs under no service" in row.hold.why
        assert row.hold.command == f"HERMES_HOME={here.home.path} hermes gateway restart"
        assert outcomes(here.apply(text, Options(allow=frozenset({"restart"})))) == {CHANNEL: "applied"}
        assert list(here.rows(text)) == ["home"]
        ref = here.space(text).ref("main")
        found = gateways.running(ref, {"default": ref.path})["default"]
        assert "no service" in gateways.restart(ref, ref.path, found.start)
        assert process.poll() is None
    # It is gone: whatever starts next takes everything in.
    assert not here.rows(text)


def test_ask_is_the_default_and_never_is_a_note(here: World) -> None:
    with gateway(here):
        for word, rows in (("ask", [CHANNEL, "home"]), ("never", [CHANNEL])):
            world = replace(here, kit=replace(here.kit, restart=word))
            plan = world.plan(world.text(rest=ON)).homes[0]
            assert [a.address.path or "home" for a in plan.actions] == rows
            assert any("restart: never" in note for note in plan.notes) is (word == "never")
        assert outcomes(here.apply(here.text(rest=OFF), consent=Consent())) == {}


def test_a_pid_that_another_process_has_is_not_signalled(here: World) -> None:
    ref = here.space(here.text()).ref("main")
    began = insiders.started(ref, os.getpid())
    (here.home.path / "gateway.pid").write_text(f'{{"pid": {os.getpid()}, "start_time": {began}}}')
    assert "another one by now" in gateways.restart(ref, ref.path, f"{os.getpid()} 1")
    assert "no service" in gateways.restart(ref, ref.path, f"{os.getpid()} {began}")
