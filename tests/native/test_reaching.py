"""Channels, routes and webhooks on native homes, by both doors, and where Hermes opens the folder afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from native.lab import do, refused, serving, tree
from reconciler.action import Fact, Row
from reconciler.consent import Consent
from reconciler.draft import draft, survey
from reconciler.plan import Options
from reconciler.testing.kit import Kit, World, outcomes
from reconciler.testing.kit import world as make_world
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider
from reconciler_specs.render import render_setup

TOKEN = "123456:" + "FAKE" * 9
HOOK = "hook-secret-0123456789"
ENV = f"TELEGRAM_BOT_TOKEN={TOKEN}\nSLACK_KEY=slack-key-0123456789\nGH_HOOK={HOOK}\n"
ALL = """
channels:
  telegram:
    enabled: true
    secrets: {token: TELEGRAM_BOT_TOKEN}
    allow: [1001, 1002]
    admins: [1001]
    owner_chat: {chat: "-100", thread: "7"}
    extra: {port: 8443}
  slack:
    enabled: false
    secrets: {botToken: SLACK_KEY}
    adapter: socket
routes:
  dev: {match: {channel: discord, guild: "9"}, profile: coder, order: 2}
  ops: {match: {channel: discord, chat: "5"}, order: 1}
webhooks:
  github:
    secret: {secret: GH_HOOK}
    events: [pull_request, issues.opened]
    prompt: PR {pull_request.title}
    deliver: {to: telegram, chat: "42"}
    skills: [review]
"""
CODER = "      coder: {}\n"


class Nobody:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"nobody does {name} here")


@pytest.fixture(params=["cold", "live"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    def make(path: Path) -> Any:
        init(path)
        (path / ".env").write_text(ENV)
        return Nobody(path)

    # A daemon takes these in when it starts: each change of one restarts it.
    found = make_world(Kit(NativeProvider(), make, restart="when_needed"), tmp_path)
    found.apply(found.text())
    with serving(found.home.path) if request.param == "live" else nullcontext():
        yield found


def config(world: World) -> Any:
    return do(world.home.path, "state.get")["state"]["profiles"]["default"]


def test_all_of_them_come_to_be_change_and_go(here: World) -> None:
    here.converge(here.text(rest=ALL, extra=CODER))
    root = here.home.path
    channels = config(here)["channels"]
    assert channels["telegram"]["enabled"] is True and channels["telegram"]["extra"]["port"] == 8443
    assert channels["slack"]["credentials"] == {"botToken": {"dotenv": "SLACK_KEY"}}
    assert config(here)["access"]["admins"] == {"telegram": ["1001"]}
    assert [route["name"] for route in config(here)["routes"]] == ["ops", "dev"]
    record = json.loads((root / "webhook_subscriptions.json").read_text())["github"]
    assert record["secret"] == "${GH_HOOK}" and record["deliver_extra"] == {"chat_id": "42"}
    before = tree(root)
    for _ in range(3):
        assert here.apply(here.text(rest=ALL, extra=CODER)) == []
    assert tree(root) == before
    for old, new in (
        ("[1001, 1002]", "[1002, 1003]"),
        ("admins: [1001]", "admins: [1003]"),
        ('{chat: "-100", thread: "7"}', '"-200"'),
        ("{port: 8443}", "{port: 8444, mode: x}"),
        ("adapter: socket", "adapter: http"),
        ("order: 2", "order: 0"),
        ("events: [pull_request, issues.opened]", "events: [push]"),
        ('{to: telegram, chat: "42"}', "owner_chat"),
        ("skills: [review]", "description: Reviews."),
    ):
        here.converge(here.text(rest=ALL.replace(old, new), extra=CODER))
        assert (
            json.loads((root / "webhook_subscriptions.json").read_text())["github"]["created_at"]
            == record["created_at"]
        )
    (root / ".env").write_text((root / ".env").read_text().replace(f"TELEGRAM_BOT_TOKEN={TOKEN}\n", ""))
    kept = here.apply(here.text(extra=CODER), consent=Consent(yes=True, terminal=True))
    assert set(outcomes(kept).values()) == {"waits for consent"}
    lifted = Options(allow=frozenset({"many-deletes", "last-of-kind"}))
    assert set(outcomes(here.apply(here.text(extra=CODER), lifted)).values()) == {"applied"}
    assert not here.rows(here.text(extra=CODER))
    assert (config(here)["channels"], config(here)["routes"], config(here)["subscriptions"]) == ({}, [], {})
    assert (root / ".env").read_text() == ENV.replace(f"TELEGRAM_BOT_TOKEN={TOKEN}\n", "")


def test_who_was_paired_stays_and_who_leaves_the_setup_is_out(here: World) -> None:
    root = here.home.path
    text = here.text(rest="channels: {telegram: {enabled: true, allow: [1, 2]}}")
    here.converge(text)
    do(root, "access.allow", platform="telegram", user_id="777") if not (root / "orchestrator.sock").exists() else None
    here.converge(here.text(rest="channels: {telegram: {enabled: true, allow: [1]}}"))
    allowed = config(here)["access"]["allowlist"]["telegram"]
    assert "1" in allowed and "2" not in allowed
    here.converge(here.text(rest="channels: {telegram: {enabled: true, allow: {only: [1]}}}"))
    assert config(here)["access"]["allowlist"]["telegram"] == ["1"]


def test_an_edit_in_the_home_is_drift(here: World) -> None:
    text = here.text(rest=ALL, extra=CODER)
    here.converge(text)
    file = here.home.path / "config.yaml"
    file.write_text(file.read_text().replace("port: 8443", "port: 1").replace("profile: coder", "profile: default"))
    rows = here.rows(text)
    assert {path: [(c.field, str(c.row)) for c in row.changes] for path, row in rows.items()} == {
        "default/channels/telegram": [("extra", "drift")],
        "default/routes/dev": [("profile", "drift")],
    }
    assert here.apply(text) == []
    done = here.apply(text, Options(restore=tuple(f"main/{path}" for path in rows)))
    assert set(outcomes(done).values()) == {"applied"} and not here.rows(text)


def test_facts_and_refusals(here: World) -> None:
    rows = here.rows(here.text(rest=ALL, extra=CODER))
    for path in ("channels/telegram", "routes/dev", "webhooks/github"):
        assert Fact.WIDENS_ACCESS in rows[f"default/{path}"].facts, path
    assert Fact.REACHES_PEOPLE in rows["default/webhooks/github"].facts
    for rest, why in (
        ("channels: {slack/T01: {enabled: true}}", "one account per channel"),
        ("routes: {a: {match: {channel: x, team: t}, profile: nobody}}", "route a goes to profile nobody"),
        ("webhooks: {bad.name: {secret: {secret: GH_HOOK}, prompt: x, deliver: local}}", "a webhook's name"),
    ):
        (row,) = (row for path, row in here.rows(here.text(rest=rest)).items() if path != "coder")
        assert row.row is Row.REFUSED and why in row.reason, row.reason


def test_nothing_of_a_secret_is_seen(here: World) -> None:
    here.converge(here.text(rest=ALL, extra=CODER))
    plan = here.plan(here.text(rest=ALL, extra=CODER), Options(unmanaged=True, in_sync=True))
    for secret in (HOOK, TOKEN, "slack-key-0123456789"):
        assert secret not in repr(plan.homes[0].observation)
        for path in (here.root / "state").rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def test_adopt_says_all_of_it_and_plans_nothing(here: World, tmp_path: Path) -> None:
    here.converge(here.text(rest=ALL, extra=CODER))
    made = draft(survey(str(here.home.path), {"native": NativeProvider()}), "main", str(here.home.path))
    text = render_setup("other", {"main": made.block})
    assert not made.left, made.left
    for secret in (HOOK, TOKEN, "slack-key-0123456789"):
        assert secret not in text
    block = made.block["profiles"]["default"]
    assert block["channels"]["telegram"] == {
        "enabled": True,
        "secrets": {"token": "TELEGRAM_BOT_TOKEN"},
        "allow": ["1001", "1002"],
        "admins": ["1001"],
        "owner_chat": {"chat": "-100", "thread": "7"},
        "extra": {"port": 8443},
    }
    assert block["channels"]["slack"]["adapter"] == "socket"
    assert [*block["routes"]] == ["ops", "dev"] and block["routes"]["dev"]["order"] == 2
    assert block["webhooks"]["github"]["secret"] == {"secret": "GH_HOOK"} and "settings" not in block


def test_the_verbs_refuse_what_cannot_be(tmp_path: Path) -> None:
    home = tmp_path / "home"
    init(home)
    (home / ".env").write_text("TELEGRAM_ALLOWED_USERS=1\n")
    for args, why in (
        ({"fields": {"allow": ["a b"]}}, "cannot stand in a list"),
        ({"fields": {"allow": "1"}}, "a list of ids"),
        ({"fields": {"secrets": {"token": "NOT_THERE"}}}, ".env has no "),
        ({"fields": {"extra": {"api_key": "abcdefgh12345678"}}}, "only named"),
        ({"fields": {"what": 1}}, "is not known"),
    ):
        assert why in refused(home, "channels.set", platform="telegram", **args)
    assert "no channel" in refused(home, "channels.unset", platform="slack", everything=True)
    assert "match is required" in refused(home, "routes.put", name="a", profile="default")
    assert "has no route" in refused(home, "routes.delete", name="a")
