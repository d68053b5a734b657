"""A restart of the daemon as a row of its own: for what it takes in at its start, last, and seen by its lease."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from native.lab import native, serving
from reconciler.action import Row
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.errors import DoorLost
from reconciler.plan import Options
from reconciler.provider import Step
from reconciler.testing.kit import Kit, World, outcomes
from reconciler.testing.kit import world as make_world
from reconciler_native import lease, restart
from reconciler_native.door import NativeDoor
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider

CHANNEL = "default/channels/telegram"
OFF = "channels: {telegram: {enabled: false, allow: [1]}}"
ON = "channels: {telegram: {enabled: true, allow: [1]}}"
ALLOWED = Options(allow=frozenset({"restart"}))


class Nobody:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def make(path: Path) -> Any:
    init(path)
    (path / ".env").write_text("TELEGRAM_BOT_TOKEN=a-token-that-is-none-0123\n")
    return Nobody(path)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[World]:
    """A home with a channel that is off, served by a daemon."""
    found = make_world(Kit(NativeProvider(), make), tmp_path)
    found.converge(found.text(rest=OFF))
    with serving(found.home.path):
        yield found


def may(world: World, word: str) -> World:
    return replace(world, kit=replace(world.kit, restart=word))


def held(root: Path) -> lease.Lease:
    found = lease.inspect(root)
    assert found.state is lease.State.LIVE and found.lease is not None
    return found.lease


def test_it_is_held_until_it_is_allowed_and_the_next_plan_still_knows(here: World) -> None:
    root, text = here.home.path, here.text(rest=ON)
    before = held(root)
    rows = here.rows(text)
    assert list(rows) == [CHANNEL, "home"]  # last
    assert rows["home"].row is Row.RESTART and rows["home"].guard == "restart"
    assert [a.path for a in rows["home"].needs] == [CHANNEL]
    assert rows["home"].hold and "the daemon, for default/channels/telegram" in rows["home"].hold.why
    assert outcomes(here.apply(text)) == {CHANNEL: "applied"}
    assert held(root) == before
    # Written, and not in force: no later plan forgets it.
    again = here.rows(text)
    assert list(again) == ["home"] and again["home"].hold is not None
    assert outcomes(here.apply(text, ALLOWED, Consent())) == {"home": "applied"}
    after = held(root)
    assert after.started_at > before.started_at and after.pid == before.pid
    assert not here.rows(text)
    tree = here.tree()
    assert here.apply(text, ALLOWED) == [] and here.tree() == tree  # L7


def test_whoever_restarts_it_has_done_it(here: World) -> None:
    text = here.text(rest=ON)
    here.apply(text)
    assert list(here.rows(text)) == ["home"]
    code, said = native("restart", "--root", str(here.home.path))
    assert code == 0 and "restart: a daemon serves this home" in said["result"]["ran"]
    assert not here.rows(text)


def test_where_it_is_wanted_it_is_a_row_that_needs_consent(here: World) -> None:
    world = may(here, "when_needed")
    text = world.text(rest=ON)
    row = world.rows(text)["home"]
    assert (row.tier, row.rule, row.hold) == ("confirm", "restarts", None)
    said = text.replace("first_contact", "policy: {unattended: [set channels, claim channels]}\n    first_contact")
    waits = outcomes(world.apply(said, consent=Consent(yes=True)))
    assert waits["home"] == "waits for consent" or waits[CHANNEL] == "waits for consent"
    plan = world.plan(text)
    agreed = Consent(approved=frozenset(plan.homes[0].asked), only_approved=True)
    assert outcomes(apply_(world, text, agreed)) == {CHANNEL: "applied", "home": "applied"}
    assert not world.rows(text)


def apply_(world: World, text: str, consent: Consent) -> list[Any]:
    space = world.space(text)
    return list(apply(space.plan(Options()), consent, space, Options()))


def test_unattended_says_restart_home(here: World) -> None:
    here.apply(here.text(rest=ON))
    text = may(here, "when_needed").text(rest=ON)
    assert outcomes(here.apply(text, consent=Consent(yes=True))) == {"home": "waits for consent"}
    said = text.replace("first_contact", "policy: {unattended: [restart home]}\n    first_contact")
    assert outcomes(here.apply(said, consent=Consent(yes=True))) == {"home": "applied"}


def test_never_is_a_note(here: World) -> None:
    text = may(here, "never").text(rest=ON)
    plan = here.plan(text).homes[0]
    assert [a.address.path for a in plan.actions] == [CHANNEL]
    assert any("restart: never" in note and CHANNEL in note for note in plan.notes)
    assert outcomes(here.apply(text)) == {CHANNEL: "applied"}
    assert not here.rows(text)


def test_what_counts_at_once_asks_for_none(here: World) -> None:
    assert "home" not in here.rows(here.text(rest=OFF.replace("[1]", "[1, 2]")))


def test_a_new_value_of_a_channels_secret_asks_for_it(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESH_TOKEN", "a-token-that-is-none-4567")
    world = may(here, "when_needed")
    kept = world.text(rest=ON.replace("allow", "secrets: {token: TELEGRAM_BOT_TOKEN}, allow"))
    world.converge(kept)
    text = kept.replace("homes:", "secrets: {TELEGRAM_BOT_TOKEN: {env: FRESH_TOKEN}}\nhomes:", 1)
    row = world.rows(text)["home"]
    assert "for secrets/TELEGRAM_BOT_TOKEN" in row.reason
    world.converge(text)


def test_a_failed_row_leaves_it_out(here: World) -> None:
    world = may(here, "when_needed")
    text = world.text(rest=ON)
    plan = world.plan(text).homes[0]
    only = Consent(approved=frozenset({plan.digests[plan.actions[-1].address]}), only_approved=True)
    assert outcomes(apply_(world, text, only)) == {CHANNEL: "refused", "home": "skipped"}


def test_from_inside_the_daemon_it_is_refused(here: World) -> None:
    here.apply(here.text(rest=ON))
    world = may(here, "when_needed")
    text = world.text(rest=ON)
    space = world.space(text)
    pid = held(here.home.path).pid
    space.ancestors = lambda: [pid]  # type: ignore[method-assign]
    plan = space.plan(Options())
    agreed = Consent(yes=True, approved=frozenset(plan.homes[0].asked), terminal=True, reviewed=True)
    assert outcomes(list(apply(plan, agreed, space, Options()))) == {"home": "refused"}


def test_a_home_that_does_not_load_keeps_its_daemon(here: World) -> None:
    root = here.home.path
    before = held(root)
    config = (root / "config.yaml").read_text() if (root / "config.yaml").exists() else ""
    (root / "config.yaml").write_text("worker: [\n")
    answer = restart.ask(root)
    assert not answer["ok"] and "goes on" in answer["error"]
    (root / "config.yaml").write_text(config)
    assert held(root) == before
    assert native("status", "--root", str(root))[0] == 0


def test_a_daemon_that_does_not_come_back_is_said(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here.apply(here.text(rest=ON))
    text = here.text(rest=ON)
    monkeypatch.setattr(restart, "DEADLINE", 0.0)
    monkeypatch.setattr(restart, "ask", lambda root: {"ok": True})
    assert outcomes(here.apply(text, ALLOWED, Consent())) == {"home": "not-applied"}
    assert list(here.rows(text)) == ["home"]


def test_a_lease_without_its_moment_is_refused_by_name(here: World) -> None:
    root = here.home.path
    here.apply(here.text(rest=ON))
    record = json.loads((root / lease.LOCK).read_text())
    (root / lease.LOCK).write_text(json.dumps({k: v for k, v in record.items() if k != "started_at"}))
    here.apply(here.text(rest=ON.replace("true", "false")))
    row = here.rows(here.text(rest=ON.replace("true", "false")), ALLOWED)["home"]
    assert row.hold is not None and "could not be seen" in row.hold.why
    assert row.hold.command == f"reconciler native restart --root {root}"


def test_a_run_that_is_cut_off_after_the_write_forgets_nothing(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = NativeDoor.perform

    def cut(self: NativeDoor, step: Step) -> Any:
        real(self, step)
        raise DoorLost("the line was sent, and its answer is lost")

    text = may(here, "when_needed").text(rest=ON)
    with monkeypatch.context() as broken:
        broken.setattr(NativeDoor, "perform", cut)
        here.apply(text)
    assert here.rows(text)["home"].row is Row.RESTART
    here.apply(text)
    assert not here.rows(text)


def test_a_home_that_nobody_serves_needs_none(tmp_path: Path) -> None:
    world = make_world(Kit(NativeProvider(), make), tmp_path)
    world.converge(world.text(rest=OFF))
    world.converge(world.text(rest=ON))
    code, said = native("restart", "--root", str(world.home.path))
    assert code == 1 and "no daemon serves this home" in said["error"]
