"""Channels, routes and webhooks on the real Hermes: declared, applied, and seen as its own loader sees them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.lab import python_of
from reconciler.action import Fact, Row
from reconciler.adopt import adopt_home
from reconciler.consent import Consent
from reconciler.draft import draft, survey
from reconciler.plan import Options
from reconciler.testing.kit import Kit, World, outcomes, world
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.address import Kind
from reconciler_specs.render import render_setup

pytestmark = pytest.mark.hermes

CONFIG = "# mine\n_config_version: 33\nmodel: {default: a/b, provider: openrouter}\n"
TOKEN = "123456:" + "FAKE" * 9
HOOK = "hook-secret-0123456789"
ENV = f"# keys\nOPENROUTER_API_KEY=not-a-real-key-0123456789\nTELEGRAM_BOT_TOKEN={TOKEN}\nGH_HOOK={HOOK}\n"
TELEGRAM = "default/channels/telegram"

_LOAD = """
import json, os
from hermes_cli.env_loader import load_hermes_dotenv
load_hermes_dotenv(hermes_home=os.environ["HERMES_HOME"])
from gateway.config import load_gateway_config
from gateway.slash_access import policy_from_extra
c = load_gateway_config()
print(json.dumps({
    "platforms": {
        p.value: {
            "enabled": v.enabled, "token": bool(v.token), "extra": v.extra,
            "home": v.home_channel and [v.home_channel.chat_id, v.home_channel.thread_id],
            "admins": sorted(policy_from_extra(v.extra, "dm").admin_user_ids),
        } for p, v in c.platforms.items()
    },
    "allow": {k: v for k, v in os.environ.items() if "ALLOW" in k},
    "routes": [[r.name, r.platform, r.guild_id, r.chat_id, r.profile] for r in c.profile_routes],
}))
"""
_PAIR = """
import json, sys
from gateway.pairing import PairingStore
store = PairingStore()
store._approve_user("telegram", "777", "Ann")
print(json.dumps(None))
"""
_APPROVED = """
import json
from gateway.pairing import PairingStore
print(json.dumps([u["user_id"] for u in PairingStore().list_approved("telegram")]))
"""


@dataclass
class Home:
    path: Path

    def hermes(self, code: str) -> Any:
        env = {"HOME": str(self.path.parent), "HERMES_HOME": str(self.path), "PATH": os.environ["PATH"]}
        argv = [str(python_of("0.19.0")), "-I", "-c", code]
        done = subprocess.run(argv, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout.decode().strip().splitlines()[-1])

    def loaded(self) -> Any:
        """The gateway's configuration as Hermes's own loader makes it."""
        return self.hermes(_LOAD)

    def env(self) -> str:
        return (self.path / ".env").read_text()

    def config(self) -> str:
        return (self.path / "config.yaml").read_text()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"nobody does {name} here")


@pytest.fixture
def here(tmp_path: Path) -> World:
    def make(path: Path) -> Home:
        path.mkdir(mode=0o700)
        (path / "config.yaml").write_text(CONFIG)
        (path / ".env").write_text(ENV)
        return Home(path)

    found = world(Kit(HermesProvider(), make, f"{{python: {python_of('0.19.0')}}}"), tmp_path)
    found.apply(found.text())
    return found


def channel(**fields: str) -> str:
    said = {"enabled": "true", **fields}
    return "channels:\n  telegram:\n" + "".join(f"    {key}: {value}\n" for key, value in said.items())


WHOLE = {
    "secrets": "{token: TELEGRAM_BOT_TOKEN}",
    "allow": "[1001, 1002]",
    "admins": "[1001]",
    "owner_chat": '{chat: "-100123", thread: "7"}',
    "extra": "{reply_in_thread: true, base_url: http://127.0.0.1:9}",
}


def test_a_whole_channel_and_each_change_of_it(here: World) -> None:
    home: Any = here.home
    here.converge(here.text(rest=channel(**WHOLE)))
    loaded = home.loaded()
    telegram = loaded["platforms"]["telegram"]
    assert telegram["enabled"] and telegram["token"] and telegram["home"] == ["-100123", "7"]
    assert telegram["admins"] == ["1001"] and telegram["extra"]["reply_in_thread"] is True
    assert loaded["allow"]["TELEGRAM_ALLOWED_USERS"] == "1001,1002"
    assert home.env().startswith(ENV) and home.config().startswith(CONFIG)
    for change in (
        {"allow": "[1002, 1003]"},
        {"admins": "[1002, 1003]"},
        {"owner_chat": '"-100124"'},
        {"extra": "{reply_in_thread: false, base_url: http://127.0.0.1:9}"},
        {"open": "anyone"},
        {"enabled": "false"},
    ):
        here.converge(here.text(rest=channel(**{**WHOLE, **change})))
    here.converge(here.text(rest=channel(**{**WHOLE, "allow": "[1002]", "enabled": "false"})))
    loaded = home.loaded()
    assert loaded["allow"] == {"TELEGRAM_ALLOWED_USERS": "1002"}
    assert loaded["platforms"]["telegram"]["enabled"] is False
    before = here.tree()
    for _ in range(3):
        assert here.apply(here.text(rest=channel(**{**WHOLE, "allow": "[1002]", "enabled": "false"}))) == []
    assert here.tree() == before


def test_pairing_is_kept_and_a_revoked_id_is_revoked_everywhere(here: World) -> None:
    home: Any = here.home
    here.converge(here.text(rest=channel(allow="[1, 777]")))
    home.hermes(_PAIR)
    here.converge(here.text(rest=channel(allow="[1, 2, 777]")))
    assert home.hermes(_APPROVED) == ["777"]
    here.converge(here.text(rest=channel(allow="[1, 2]")))
    assert home.hermes(_APPROVED) == []
    assert home.loaded()["allow"]["TELEGRAM_ALLOWED_USERS"] == "1,2"
    home.hermes(_PAIR)
    before = here.tree()  # who was let in at run time stays, and is no drift
    (row,) = here.rows(here.text(rest=channel(allow="[1, 2]"))).values()
    assert [str(c.row) for c in row.changes] == ["stamp"]
    here.converge(here.text(rest=channel(allow="[1, 2]")))
    assert here.tree() == before
    here.converge(here.text(rest=channel(allow="[1, 2, 3]")))
    assert home.hermes(_APPROVED) == ["777"]
    here.converge(here.text(rest=channel(allow="{only: [1]}")))
    assert home.hermes(_APPROVED) == [] and home.loaded()["allow"]["TELEGRAM_ALLOWED_USERS"] == "1"


def test_a_member_that_somebody_takes_out_is_drift(here: World) -> None:
    home: Any = here.home
    text = here.text(rest=channel(allow="[1, 2]", admins="[1]"))
    here.converge(text)
    (home.path / ".env").write_text(home.env().replace("TELEGRAM_ALLOWED_USERS=1,2", "TELEGRAM_ALLOWED_USERS=2,9"))
    (row,) = here.rows(text).values()
    assert [(c.field, str(c.row)) for c in row.changes] == [("allow", "drift")]
    assert here.apply(text) == []
    done = here.apply(text, Options(restore=(f"main/{TELEGRAM}",)))
    assert outcomes(done) == {TELEGRAM: "applied"}
    assert home.loaded()["allow"]["TELEGRAM_ALLOWED_USERS"] == "2,9,1"


def test_what_widens_access_needs_a_person(here: World) -> None:
    home: Any = here.home
    rows = here.rows(here.text(rest=channel(allow="[1]")))
    assert Fact.WIDENS_ACCESS in rows[TELEGRAM].facts and str(rows[TELEGRAM].tier) == "confirm"
    here.converge(here.text(rest=channel(allow="[1, 2]", admins="[1]", enabled="false")))
    for change, widens in (
        ({"allow": "[1]"}, False),
        ({"allow": "[1, 2, 3]"}, True),
        ({"admins": "[2, 1]"}, True),
        ({"admins": "{only: []}"}, True),  # without an admin everybody is one
        ({"enabled": "true"}, True),
        ({"open": "anyone"}, True),
    ):
        said = {"allow": "[1, 2]", "admins": "[1]", "enabled": "false", **change}
        row = here.rows(here.text(rest=channel(**said)))[TELEGRAM]
        assert (Fact.WIDENS_ACCESS in row.facts) is widens, change
    assert home.loaded()["platforms"]["telegram"]["enabled"] is False


def test_a_delete_needs_a_review_and_no_token_that_keeps_it_on(here: World) -> None:
    home: Any = here.home
    here.converge(here.text(rest=channel(**WHOLE)))
    row = here.rows(here.text())[TELEGRAM]
    assert row.row is Row.DELETE and row.hold is not None and "TELEGRAM_BOT_TOKEN" in row.hold.why
    (home.path / ".env").write_text(home.env().replace(f"TELEGRAM_BOT_TOKEN={TOKEN}\n", ""))
    done = outcomes(here.apply(here.text(), consent=Consent(yes=True, terminal=True)))
    assert done[TELEGRAM] == "waits for consent"
    here.converge(here.text())
    assert "telegram" not in home.loaded()["platforms"] and home.loaded()["allow"] == {}
    assert home.env() == ENV.replace(f"TELEGRAM_BOT_TOKEN={TOKEN}\n", "")


@pytest.mark.parametrize(
    ("key", "fields", "why"),
    [
        ("slack/T01", {}, "one account per channel"),
        ("telegram", {"secrets": "{token: OTHER_TOKEN}"}, "secrets: "),
        ("telegram", {"adapter": "x"}, "adapter: "),
        ("telegram", {"extra": "{api_key: {secret: GH_HOOK}}"}, "extra: "),
        ("telegram", {"extra": "{allow_admin_from: [1]}"}, "extra: "),
        ("telegram", {"allow": '["a,b"]'}, "allow: "),
        ("webhook", {"allow": "[1]"}, "allow: "),
    ],
)
def test_what_hermes_has_no_place_for_is_refused_by_name(
    here: World, key: str, fields: dict[str, str], why: str
) -> None:
    rest = channel(**fields).replace("  telegram:", f"  {key}:")
    row = here.rows(here.text(rest=rest))[f"default/channels/{key}"]
    assert row.row is Row.REFUSED and why in row.reason, row.reason


def test_a_secret_that_the_home_lacks_holds_the_channel(here: World) -> None:
    rest = "channels:\n  discord: {enabled: true, secrets: {token: DISCORD_BOT_TOKEN}}\n"
    row = here.rows(here.text(rest=rest))["default/channels/discord"]
    assert row.hold is not None and "DISCORD_BOT_TOKEN" in row.hold.why


def test_the_effective_value_is_compared(here: World) -> None:
    """A block at the top wins over `platforms`, and `.env` over both."""
    home: Any = here.home
    (home.path / "config.yaml").write_text(
        CONFIG + "platforms: {discord: {enabled: true, extra: {require_mention: true, note: a}}}\n"
        "discord: {enabled: false, require_mention: false, allow_from: [5], allow_admin_from: ['7']}\n"
    )
    text = here.text(rest="channels:\n  discord: {enabled: true, allow: [5, 6], extra: {require_mention: true}}\n")
    adopt_home(here.space(text), "main")
    rows = here.rows(text)["default/channels/discord"]
    assert {c.field: str(c.row) for c in rows.changes} == {"enabled": "claim", "allow": "claim", "extra": "claim"}
    here.converge(text)
    loaded = home.loaded()
    discord = loaded["platforms"]["discord"]
    assert discord["enabled"] and discord["extra"]["require_mention"] is True and discord["admins"] == ["7"]
    assert discord["extra"]["allow_from"] == ["5", "6"]
    assert sorted(loaded["allow"]["DISCORD_ALLOWED_USERS"].split(",")) == ["5", "6"]


@pytest.mark.parametrize(
    ("env", "after"),
    [
        (
            "A=1\nTELEGRAM_ALLOWED_USERS=9\nB=2\nTELEGRAM_ALLOWED_USERS=1\n# end",
            "=9\nB=2\nTELEGRAM_ALLOWED_USERS=1,2\n# end",
        ),
        ("export TELEGRAM_ALLOWED_USERS='1'\r\nZ=3\n", "export TELEGRAM_ALLOWED_USERS=1,2\r\nZ=3\n"),
        ('M="a\nb"\n  SPACED = x \nNOEQ', 'M="a\nb"\n  SPACED = x \nNOEQ\nTELEGRAM_ALLOWED_USERS=1,2\n'),
        ("OPENROUTER_API_KEY=sk-or-aTELEGRAM_ALLOWED_USERS=1\n", "USERS=1\nTELEGRAM_ALLOWED_USERS=1,2\n"),
    ],
    ids=["twice", "export", "several-lines", "joined"],
)
def test_odd_env_files(here: World, env: str, after: str) -> None:
    """The line that Hermes goes by is ours, the others stay byte for byte."""
    home: Any = here.home
    (home.path / ".env").write_bytes(env.encode())
    text = here.text(rest=channel(enabled="false", allow="[1, 2]"))
    adopt_home(here.space(text), "main")
    here.converge(text)
    assert (home.path / ".env").read_bytes().decode().endswith(after)
    assert home.loaded()["allow"]["TELEGRAM_ALLOWED_USERS"] == "1,2"


def test_a_value_of_several_lines_is_not_written_into(here: World) -> None:
    home: Any = here.home
    (home.path / ".env").write_text('M="a\nTELEGRAM_ALLOWED_USERS=1\n"\n')
    text = here.text(rest=channel(enabled="false", allow="[1, 2]"))
    adopt_home(here.space(text), "main")
    before = here.tree()
    done = here.apply(text)
    assert outcomes(done)[TELEGRAM] == "refused" and here.tree() == before


ROUTES = """\
routes:
  dev: {match: {channel: discord, guild: "9"}, profile: coder, order: 2}
  ops: {match: {channel: discord, chat: "5"}, profile: default, order: 1}
"""


def test_routes_by_name_in_their_order(here: World) -> None:
    home: Any = here.home
    (home.path / "config.yaml").write_text(
        CONFIG + "gateway:\n  multiplex_profiles: true\n  profile_routes:\n"
        "  - {name: theirs, platform: slack, chat_id: C1, profile: default, note: x}\n"
    )
    coder = "      coder: {}\n"
    here.converge(here.text(rest=ROUTES, extra=coder))
    raw = home.hermes("import json; from hermes_cli.config import read_raw_config as r; print(json.dumps(r()))")
    names = [entry["name"] for entry in raw["gateway"]["profile_routes"]]
    assert names == ["theirs", "ops", "dev"] and raw["gateway"]["profile_routes"][0]["note"] == "x"
    assert ["dev", "discord", "9", None, "coder"] in home.loaded()["routes"]
    turned = ROUTES.replace("order: 2", "order: 0")
    here.converge(here.text(rest=turned, extra=coder))
    raw = home.hermes("import json; from hermes_cli.config import read_raw_config as r; print(json.dumps(r()))")
    assert [entry["name"] for entry in raw["gateway"]["profile_routes"]] == ["theirs", "dev", "ops"]
    one = turned.partition("  ops:")[0]
    here.converge(here.text(rest=one, extra=coder))
    assert [route[0] for route in home.loaded()["routes"]] == ["theirs", "dev"]


def test_routes_that_cannot_be(here: World) -> None:
    rest = "routes:\n  dev: {match: {channel: discord, roles: [x]}, profile: zzz}\n"
    row = here.rows(here.text(rest=rest))["default/routes/dev"]
    assert row.row is Row.REFUSED and "roles" in row.reason and "route dev goes to profile zzz" in row.reason
    coder = "      coder:\n        routes:\n          dev: {match: {channel: discord}}\n"
    row = here.rows(here.text(extra=coder))["coder/routes/dev"]
    assert row.row is Row.REFUSED and "default profile" in row.reason


WEBHOOK = """\
webhooks:
  github:
    secret: {secret: GH_HOOK}
    events: [pull_request]
    prompt: PR {pull_request.title}
    deliver: {to: telegram, chat: "42"}
"""


def _subscriptions(home: Any) -> Any:
    code = "import json; from hermes_cli.webhook import _load_subscriptions as l; print(json.dumps(l()))"
    return home.hermes(code)


def test_webhooks_keep_their_secret_and_their_time(here: World) -> None:
    home: Any = here.home
    here.converge(here.text(rest=WEBHOOK))
    made = _subscriptions(home)["github"]
    assert made["secret"] == HOOK and made["deliver"] == "telegram" and made["deliver_extra"] == {"chat_id": "42"}
    for old, new in (
        ("[pull_request]", "[push]"),
        ("PR {pull_request.title}", "New words."),
        ('{to: telegram, chat: "42"}', "local"),
    ):
        here.converge(here.text(rest=WEBHOOK.replace(old, new)))
        now = _subscriptions(home)["github"]
        assert (now["secret"], now["created_at"]) == (HOOK, made["created_at"])
    (home.path / ".env").write_text(ENV.replace(HOOK, "another-secret-9876543210"))
    (row,) = here.rows(here.text(rest=WEBHOOK.replace("chat", "chat"))).values()
    assert "secret" in [c.field for c in row.changes]
    options = Options(restore=("main/default/webhooks/github",))
    here.apply(here.text(rest=WEBHOOK), options)
    assert _subscriptions(home)["github"]["secret"] == "another-secret-9876543210"
    here.converge(here.text())
    assert _subscriptions(home) == {}


def test_a_broken_file_of_webhooks_is_no_empty_one(here: World) -> None:
    home: Any = here.home
    here.converge(here.text(rest=WEBHOOK))
    file = home.path / "webhook_subscriptions.json"
    file.write_bytes(file.read_bytes()[:-10])
    before = here.tree()
    row = here.rows(here.text(rest=WEBHOOK))["default/webhooks/github"]
    assert row.row is Row.BLOCKED
    here.apply(here.text(rest=WEBHOOK))
    assert here.tree() == before


def test_a_webhook_without_its_secret_waits(here: World) -> None:
    row = here.rows(here.text(rest=WEBHOOK.replace("GH_HOOK", "NOT_THERE")))["default/webhooks/github"]
    assert row.hold is not None and "NOT_THERE" in row.hold.why


def test_no_secret_is_seen(here: World) -> None:
    here.converge(here.text(rest=channel(**WHOLE) + WEBHOOK))
    plan = here.plan(here.text(), Options(unmanaged=True, in_sync=True))
    for secret in (HOOK, TOKEN):
        assert secret not in repr(plan.homes[0].observation)
        for path in (here.root / "state").rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path
    assert plan.homes[0].observation.at("default", Kind.WEBHOOK, "github") is not None


def test_adopt_of_the_sample_homes_says_them_and_plans_nothing(here: World, tmp_path: Path) -> None:
    """A channel, a route and a webhook that others made: no secret in the setup, and nothing left to do."""
    home: Any = here.home
    (home.path / "config.yaml").write_text(
        CONFIG + "gateway: {multiplex_profiles: true, profile_routes: "
        '[{name: dev, platform: discord, guild_id: "9", profile: default}]}\n'
        "platforms: {telegram: {enabled: true}, webhook: {enabled: true, extra: {port: 18644, secret: FAKEglobal}}}\n"
    )
    (home.path / ".env").write_text(ENV + "TELEGRAM_ALLOWED_USERS=1001,1002\nTELEGRAM_HOME_CHANNEL=-1001234567890\n")
    record = {
        "description": "Agent-created subscription: github", "events": ["pull_request"], "secret": HOOK,
        "prompt": "PR {x}", "skills": [], "deliver": "telegram", "created_at": "T", "deliver_extra": {"chat_id": "42"},
    }  # fmt: skip
    (home.path / "webhook_subscriptions.json").write_text(
        json.dumps({"github": record, "foreign": {**record, "secret": "a-secret-of-nobody"}})
    )
    before = here.tree()
    made = draft(survey(str(home.path), {"hermes": here.provider}), "main", str(home.path))
    block = made.block["profiles"]["default"]
    assert block["channels"] == {
        "telegram": {
            "enabled": True,
            "secrets": {"token": "TELEGRAM_BOT_TOKEN"},
            "allow": ["1001", "1002"],
            "owner_chat": "-1001234567890",
        },
        "webhook": {"enabled": True, "extra": {"port": 18644}},
    }
    assert block["routes"] == {"dev": {"match": {"channel": "discord", "guild": "9"}, "profile": "default", "order": 1}}
    assert block["webhooks"] == {
        "github": {
            "events": ["pull_request"],
            "prompt": "PR {x}",
            "secret": {"secret": "GH_HOOK"},
            "deliver": {"to": "telegram", "chat": "42"},
        }
    }
    assert "foreign" in repr(made.left) and not any(
        key.startswith(("platforms", "gateway.profile")) for key in block["settings"]
    )
    made.block |= {"door": {"python": str(python_of("0.19.0"))}}
    text = render_setup("solo", {"main": made.block})
    assert not any(secret in text for secret in (TOKEN, HOOK, "FAKEglobal", "a-secret-of-nobody"))
    adopt_home(here.space(text), "main")
    assert not here.rows(text) and here.tree() == before


def test_a_running_gateway_is_told_of(here: World) -> None:
    """The row says when the change counts; what waits for a restart has its row at the end, held for a person."""
    home: Any = here.home
    here.converge(here.text(rest=channel(allow="[1]") + WEBHOOK))
    started = int(Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19])
    (home.path / "gateway.pid").write_text(json.dumps({"pid": os.getpid(), "start_time": started}))
    for rest, note in (
        (channel(allow="[1, 2]") + WEBHOOK, "takes effect with the next message"),
        (
            channel(allow="[1]", admins="[1]") + WEBHOOK,
            "takes effect when the gateway restarts",
        ),
        (channel(allow="[1]") + WEBHOOK.replace("PR", "MR"), ""),
    ):
        row, *rest_ = here.rows(here.text(rest=rest)).values()
        assert row.notes == ((note,) if note else ()), row
        assert [(r.row, r.hold is not None) for r in rest_] == ([(Row.RESTART, True)] if "restarts" in note else [])
    (home.path / "gateway.pid").write_text(json.dumps({"pid": os.getpid(), "start_time": started + 1}))
    (row,) = here.rows(here.text(rest=channel(allow="[1, 2]") + WEBHOOK)).values()
    assert not row.notes


def test_a_setting_beside_a_declared_channel_is_refused(here: World) -> None:
    rest = channel() + "settings: {platforms.telegram.enabled: false, platforms.slack.enabled: false}\n"
    rows = here.rows(here.text(rest=rest))
    assert rows["default/settings/platforms.telegram.enabled"].row is Row.REFUSED
    assert rows["default/settings/platforms.slack.enabled"].row is not Row.REFUSED
