"""Who may talk on a channel of an orchestrator's home: by the package's cold `access` verbs, in Hermes's stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator import lab
from reconciler.action import Fact, Row
from reconciler.draft import draft, survey
from reconciler.plan import Options
from reconciler.testing.kit import World, job, outcomes
from reconciler_orchestrator.provider import OrchestratorProvider

pytestmark = pytest.mark.orchestrator

TELEGRAM = "default/channels/telegram"
PLATFORMS = 'platforms: {"telegram": {"enabled": true}}\n'


@pytest.fixture
def here(root: Path) -> World:
    home = root / "home"
    (home / "config.yaml").write_text(lab.CONFIG + PLATFORMS)
    (home / ".env").write_text("# mine\nTELEGRAM_ALLOWED_USERS=1,theirs\n")
    return lab.met(root)


def told(world: World) -> Any:
    """Allow list and admins as the package itself reports them."""
    code, said = lab.run("access", "pair-list", "--root", str(world.home.path))
    assert code == 0, said
    return said["allowlist"], said["admins"]


def channel(allow: str = "[1, 2]", admins: str = "[1]", **more: str) -> str:
    said = {"enabled": "true", "allow": allow, "admins": admins, **more}
    return f"channels: {{telegram: {{{', '.join(f'{key}: {value}' for key, value in said.items())}}}}}"


def test_access_is_given_and_taken(here: World) -> None:
    row = here.rows(here.text(rest=channel()))[TELEGRAM]
    assert Fact.WIDENS_ACCESS in row.facts and str(row.tier) == "confirm"
    here.converge(here.text(rest=channel()))
    assert told(here) == ({"telegram": ["1", "2", "theirs"]}, {"telegram": ["1"]})
    before = here.tree()
    assert here.apply(here.text(rest=channel())) == [] and here.tree() == before
    here.converge(here.text(rest=channel("[2, 3]", "[2]")))
    assert told(here) == ({"telegram": ["2", "3", "theirs"]}, {"telegram": ["2"]})
    here.converge(here.text(rest=channel("{only: [2]}", "[2]")))
    assert told(here) == ({"telegram": ["2"]}, {"telegram": ["2"]})


def test_who_is_revoked_behind_our_back_is_drift(here: World) -> None:
    text = here.text(rest=channel())
    here.converge(text)
    assert lab.run("access", "revoke", "telegram", "2", "--root", str(here.home.path))[0] == 0
    (row,) = here.rows(text).values()
    assert [(c.field, str(c.row)) for c in row.changes] == [("allow", "drift")]
    assert here.apply(text) == []
    assert outcomes(here.apply(text, Options(restore=(f"main/{TELEGRAM}",)))) == {TELEGRAM: "applied"}
    assert told(here)[0] == {"telegram": ["1", "2", "theirs"]}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"enabled": "false"}, "enabled: telegram is on"),
        ({"open": "anyone"}, "open: "),
        ({"extra": "{port: 1}"}, "extra: "),
        ({"secrets": "{token: TELEGRAM_BOT_TOKEN}"}, "secrets: "),
        ({"owner_chat": "1"}, "owner_chat: "),
        ({"allow": '["--root"]'}, "allow: "),
    ],
)
def test_what_no_verb_reaches_is_refused_by_name(here: World, more: dict[str, str], why: str) -> None:
    row = here.rows(here.text(rest=channel(**more)))[TELEGRAM]
    assert row.row is Row.REFUSED and why in row.reason, row.reason


def test_other_kinds_of_reach_are_refused_by_name(here: World) -> None:
    rest = "routes: {a: {match: {channel: x}}}\nwebhooks: {b: {secret: {secret: K}, prompt: x, deliver: local}}"
    rows = here.rows(here.text(rest=rest))
    assert {path: row.row for path, row in rows.items()} == dict.fromkeys(
        ("default/routes/a", "default/webhooks/b"), Row.REFUSED
    )


def test_a_running_daemon_has_no_verb_for_it(here: World) -> None:
    with lab.serving(here.home.path):
        text = here.text(job(), rest=channel())
        before = told(here)
        row = here.rows(text)[TELEGRAM]
        assert row.hold is not None and "stop the daemon" in row.hold.why
        done = outcomes(here.apply(text))
        assert done["default/jobs/brief"] == "applied" and told(here) == before
    here.converge(text)


def test_adopt_says_access_only(here: World) -> None:
    here.converge(here.text(rest=channel()))
    provider = OrchestratorProvider()
    found = draft(survey(str(here.home.path), {"orchestrator": provider}), "main", str(here.home.path))
    assert found.block["profiles"]["default"]["channels"] == {
        "telegram": {"enabled": True, "allow": ["1", "2", "theirs"], "admins": ["1"]}
    }


def test_a_broken_store_of_pairings_is_unknown(here: World) -> None:
    here.converge(here.text(rest=channel()))
    file = here.home.path / "platforms" / "pairing" / "telegram-approved.json"
    assert list(json.loads(file.read_text())) == ["2"]
    file.write_text("{")
    assert here.rows(here.text(rest=channel()))[TELEGRAM].row is Row.BLOCKED
