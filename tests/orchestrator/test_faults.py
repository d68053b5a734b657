"""What goes wrong on the way to the orchestrator: each ends in a clear row, and nothing is done twice."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from orchestrator import fake, lab
from orchestrator.lab import BRIEF
from reconciler.event import Event
from reconciler.testing.kit import World, job, outcomes
from reconciler_orchestrator import wire
from reconciler_shape import lease

pytestmark = pytest.mark.orchestrator


def held(world: World) -> str:
    """Why the home is held; that nothing is written then."""
    text = world.text(job())
    hold = world.plan(text).homes[0].hold
    assert hold is not None
    before = world.tree()
    world.apply(text)
    assert world.tree() == before
    return hold.why


# -- the socket


@pytest.mark.parametrize("written", [False, True], ids=["before-save", "after-save"])
def test_the_daemon_is_killed_in_mid_apply(root: Path, written: bool) -> None:
    """The line went out: it is uncertain, and the next run looks, by our id and mark."""
    world, home = lab.met(root), root / "home"
    text = world.text(job() + job("other"))
    with lab.serving(home, stub="hang-after" if written else "hang-before") as daemon:
        events: list[Event] = []
        run = threading.Thread(target=lambda: events.extend(world.apply(text)))
        run.start()
        assert daemon.stdout is not None
        assert any('"hanging"' in line for line in daemon.stdout)
        daemon.kill()
        run.join()
    outcome, why = lab.said(events)
    if written:
        # It had saved: the read-back shows it, unless it looks while the killed process is not quite gone.
        assert outcome in ("applied", "uncertain"), why
    else:
        assert outcome == "uncertain", why
    assert lab.said(events, "default/jobs/other") == ("skipped", "the door was lost")
    world.converge(text)
    assert sorted(lab.names(home)) == ["brief", "other"]


@pytest.mark.parametrize(
    "answer",
    [None, b"", b'{"ok": tr', b"good day\n", b"[]\n", b'{"ok": 1}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"],
    ids=["closed", "empty", "torn", "no-json", "a-list", "no-verdict", "no-text", "deep"],
)
def test_a_socket_that_breaks_after_the_line(root: Path, answer: bytes | None) -> None:
    world, home = lab.met(root), root / "home"
    text = world.text(job())
    with fake.daemon(home, lambda _line: answer) as lines:
        outcome, why = lab.said(world.apply(text))
    assert outcome == "uncertain" and "the line was sent" in why
    assert [line["op"] for line in lines] == ["jobs.create"]
    world.converge(text)  # cold: it never came to be, and is made once
    assert lab.names(home) == ["brief"]


def test_a_daemon_that_hangs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line went out, nothing comes back, and nothing can be asked: it is uncertain, and the home is held."""
    world = lab.met(root)
    text = world.text(job())
    monkeypatch.setattr(wire, "TIMEOUT", 0.5)
    released = threading.Event()

    def wait(_line: Any) -> None:
        released.wait()

    with fake.daemon(root / "home", wait) as lines:
        try:
            assert lab.said(world.apply(text))[0] == "uncertain"
            hold = world.plan(text).homes[0].hold
            assert hold is not None and "timed out" in hold.why
            assert len(lines) == 1
        finally:
            released.set()
    world.converge(text)


def test_a_lost_answer_is_settled_by_our_mark(root: Path) -> None:
    """It was carried out in the end, when nobody listened any more: taken as ours, not made again."""
    world, home = lab.met(root), root / "home"
    text = world.text(job())
    with fake.daemon(home, lambda _line: None) as lines:
        assert lab.said(world.apply(text))[0] == "uncertain"
    (line,) = lines
    assert lab.cold(home, line["op"], **line["args"])["ok"]
    done = outcomes(world.apply(text))
    assert done == {BRIEF: "applied"}, done
    assert lab.names(home) == ["brief"]
    assert not world.rows(text)


def test_what_only_the_daemon_has_is_settled_by_our_id(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the job in its memory, hangs in its save, and its list tells no metadata: the id says whose it is."""
    world, home = lab.met(root), root / "home"
    text = world.text(job())
    monkeypatch.setattr(wire, "TIMEOUT", 2.0)
    with lab.serving(home, stub="hang-before"):
        assert lab.said(world.apply(text))[0] == "applied"  # the list shows it
        assert not lab.stored(home)
        assert not world.rows(text)


def test_a_refusal_is_final(root: Path) -> None:
    """In the door's words; it is not tried by the other door."""
    world, home = lab.met(root), root / "home"
    with fake.daemon(home, lambda _line: b'{"ok": false, "error": "not today"}\n') as lines:
        assert lab.said(world.apply(world.text(job()))) == ("refused", "not today")
    assert len(lines) == 1 and not lab.stored(home)


def test_a_yes_that_is_none(root: Path) -> None:
    world, home = lab.met(root), root / "home"
    with fake.daemon(home, lambda _line: b'{"ok": true, "result": {"ran": "of course"}}\n'):
        assert lab.said(world.apply(world.text(job())))[0] == "not-applied"


def test_a_daemon_that_cannot_save(root: Path) -> None:
    """It has the job in its memory, and says no: it is looked at, and the plan says what is where."""
    world, home = lab.met(root), root / "home"
    text = world.text(job(skills="[a]"))
    with lab.serving(home, stub="fail-save"):
        outcome, why = lab.said(world.apply(text))
        assert outcome == "refused" and "the folder could not be written" in why
        assert any("in the running daemon, and not in the folder" in n for n in world.plan(text).homes[0].notes)
    world.converge(text)


@pytest.mark.parametrize("answer", [b'{"ok": true, "result": {"jobs": 1}}\n', b'{"ok": false, "error": "no"}\n', b"\n"])
def test_a_list_that_cannot_be_read_is_no_empty_one(root: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """L10: what the daemon holds is unknown, and nothing is deleted or made again."""
    world = lab.planning(root)
    text = world.text(job())
    world.converge(text)
    monkeypatch.setattr(fake, "NOTHING", answer)
    with fake.daemon(root / "home", lambda _line: None) as lines:
        plan = world.plan(text).homes[0]
        assert not plan.open
        world.apply(text)
        world.apply(world.text())
    assert not lines
    assert not world.rows(text)


def test_a_socket_of_everybody_is_not_used(root: Path) -> None:
    world, home = lab.met(root), root / "home"
    with fake.daemon(home, lambda _line: None) as lines:
        (home / "orchestrator.sock").chmod(0o777)
        assert "may be used by everybody" in held(world)
    assert not lines


# -- who has the home


def test_a_live_pid_without_a_socket_holds_the_home(root: Path) -> None:
    world = lab.met(root)
    fake.lease(root / "home")
    why = held(world)
    assert f"pid {os.getpid()}" in why and "does not answer" in why
    assert "does not answer" in held(lab.planning(root, mode="cold"))


def test_a_dead_lease_does_not(root: Path) -> None:
    world, home = lab.met(root), root / "home"
    gone = subprocess.Popen(["true"])
    gone.wait()
    fake.lease(home, pid=gone.pid)
    assert "is gone" in world.plan(world.text()).homes[0].notes[0]
    world.converge(world.text(job()))
    assert (home / "orchestrator.lock").exists()  # another's lease is not ours to clear


def test_a_lease_of_another_host(root: Path) -> None:
    """Its daemon may run there, on the same folder. Who knows better says so."""
    world = lab.met(root)
    fake.lease(root / "home", hostname="elsewhere.example", boot_id="x")
    why = held(world)
    assert "from another machine, elsewhere.example" in why and "mode: cold" in why
    (root / "other").mkdir()
    world = lab.planning(root, mode="cold")
    world.converge(world.text(job()))


def test_a_lease_of_an_earlier_boot(root: Path) -> None:
    world = lab.met(root)
    fake.lease(root / "home", hostname=os.uname().nodename, boot_id="00000000-0000-0000-0000-000000000000")
    assert "before this machine was started again" in world.plan(world.text()).homes[0].notes[0]
    world.converge(world.text(job()))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 0}', '{"pid": true}', '{"pid": "1"}', "\xff"])
def test_a_lease_that_cannot_be_read(root: Path, text: str) -> None:
    world = lab.met(root)
    (root / "home" / "orchestrator.lock").write_text(text, encoding="latin-1")
    assert "no lease that can be read" in held(world)


def test_a_lease_that_is_a_link(root: Path) -> None:
    (root / "home" / "orchestrator.lock").symlink_to("/etc/hostname")
    assert lease.inspect(root / "home").state is lease.State.UNREADABLE


@pytest.mark.parametrize("served", [False, True], ids=["cold", "live"])
def test_an_acquisition_guard_holds_the_home(root: Path, served: bool) -> None:
    world, home = lab.met(root), root / "home"
    with lab.serving(home) if served else lab.nothing():
        (home / "orchestrator.acquire").mkdir()
        assert "was cut off while it took the home" in held(world)
        assert (home / "orchestrator.acquire").exists()


def test_mode_live_never_falls_back(root: Path) -> None:
    world = lab.met(root)
    world = lab.planning(root, mode="live")
    assert "never falls back" in held(world)
    with lab.serving(root / "home"):
        world.converge(world.text(job()))


def test_mode_cold_is_never_beside_a_daemon(root: Path) -> None:
    world = lab.met(root)
    world = lab.planning(root, mode="cold")
    with lab.serving(root / "home"):
        assert "would write beside it" in held(world)
    world.converge(world.text(job()))


def test_a_socket_without_a_lease(root: Path) -> None:
    world, home = lab.met(root), root / "home"
    with fake.daemon(home, lambda _line: None):
        (home / "orchestrator.lock").rename(home / "away")
        assert "names no process that lives here" in held(world)
        (home / "away").rename(home / "orchestrator.lock")
