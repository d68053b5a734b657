"""All kinds of openclaw.json on a real running home: made in one apply, changed, edited by somebody else, deleted.

The chapters go on from each other's end, since a gateway takes ten seconds to start.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from openclaw.adopted import adopt, plan
from openclaw.life import reasons
from openclaw.test_writing import Story, told
from reconciler.consent import Consent
from reconciler.plan import Options
from reconciler.testing.kit import Kit
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_shape import dotenv
from reconciler_specs.render import render_setup

pytestmark = [pytest.mark.openclaw, pytest.mark.timeout(600)]

# Made up; they have the look that OpenClaw asks of a bot's token.
VALUES = {"TG_BOT": "1000001:of-the-tests-a", "OPS_BOT": "1000002:of-the-tests-b", "FS_KEY": "f-0123456789",
          "HOOK_TOKEN": "hook-of-the-tests-0123456789"}  # fmt: skip
DEFAULT = """
default:
  settings: {hooks.enabled: true}
  channels: {telegram: {enabled: true, secrets: {botToken: TG_BOT}, allow: ["101"]}}
  mcp_servers:
    fs: {command: /bin/true, args: [a, b], env: {LEVEL: debug, FS_KEY: {secret: FS_KEY}}, timeout: 20, enabled: false}
  toolsets: {default: [read, write]}
  skills: {weather: {enabled: false}}
  plugins: {admin-http-rpc: {enabled: true}}
  webhooks: {github: {secret: {secret: HOOK_TOKEN}, prompt: Look., deliver: owner_chat}}
"""
OPS = """
ops:
  channels: {telegram/ops: {enabled: true, secrets: {botToken: OPS_BOT}, allow: ["102"], extra: {dmPolicy: allowlist}}}
  routes: {mine: {match: {channel: telegram, account: ops}}}
  webhooks: {build: {secret: {secret: HOOK_TOKEN}, prompt: Build., deliver: local}}
"""
ALL = DEFAULT + OPS
KINDS = ("channels/telegram", "channels/telegram/ops", "mcp_servers/fs", "toolsets/default", "skills/weather",
         "plugins/admin-http-rpc", "webhooks/github", "routes/mine", "webhooks/build")  # fmt: skip


def declared(story: Story, body: str) -> str:
    sources = ", ".join(f"{name}: {{env: OF_THE_TEST_{name}}}" for name in VALUES)
    head = f"name: solo\npolicy: {{limits: {{deletes: 50}}}}\nsecrets: {{{sources}}}\n"
    return story.setup(body).replace("name: solo\n", head, 1)


def env(story: Story) -> dict[str, str]:
    lines = (story.lab.root / ".env").read_text().splitlines()
    return dict(entry for line in lines if (entry := dotenv.entry(line)))


def valid(story: Story) -> bool:
    """As the gateway judges the file; the command line, which takes seconds for it, is asked at the end."""
    return bool(story.lab.rpc("config.get")["valid"])


def answer_to_a_webhook(story: Story, token: str) -> int:
    """Of a path that no mapping has: 404 to who may call, 401 to who may not."""
    with closing(HTTPConnection("127.0.0.1", story.lab.port, timeout=30)) as wire:
        wire.request("POST", "/hooks/nothing", "{}", {"Authorization": f"Bearer {token}"})
        with wire.getresponse() as answer:
            return answer.status


def all_kinds_are_made_in_one_apply(story: Story) -> None:
    text = declared(story, ALL)
    story.converge(text)
    # A secret that came while the gateway runs is known to it.
    assert [answer_to_a_webhook(story, token) for token in (VALUES["HOOK_TOKEN"], "another")] == [404, 401]
    assert env(story) == VALUES and (story.lab.root / ".env").stat().st_mode & 0o777 == 0o600
    raw = (story.lab.root / "openclaw.json").read_text()
    assert not [name for name, value in VALUES.items() if value in raw]
    assert valid(story)
    before = raw
    assert story.apply(text) == []
    assert (story.lab.root / "openclaw.json").read_text() == before
    state = b"".join(p.read_bytes() for p in (story.root / "state").rglob("*") if p.is_file())
    assert not [name for name, value in VALUES.items() if value.encode() in state]


def a_change_of_each_is_written(story: Story) -> None:
    changed = ALL.replace('["101"]', '["101", "103"]').replace("[a, b]", "[a]").replace("[read, write]", "[read]")
    changed = changed.replace("Build.", "Build it.").replace("{enabled: false}}", "{enabled: true}}")
    story.converge(declared(story, changed))
    config = story.config()
    telegram = config["channels"]["telegram"]
    allowed = telegram.get("accounts", {}).get("default", {}).get("allowFrom", telegram.get("allowFrom"))
    assert allowed == ["101", "103"]
    assert config["mcp"]["servers"]["fs"]["args"] == ["a"]
    assert config["hooks"]["mappings"][1]["messageTemplate"] == "Build it."
    assert valid(story)
    story.converge(declared(story, ALL))


def somebodys_edit_is_drift_and_is_restored_when_it_is_said(story: Story) -> None:
    done = story.lab.cli("config", "set", "mcp.servers.fs.args", '["c"]', "--strict-json")
    assert done.returncode == 0, done.stderr
    text = declared(story, ALL)
    rows = story.rows(text)
    assert {path: [(c.field, str(c.row)) for c in row.changes if c.held] for path, row in rows.items()} == {
        "default/mcp_servers/fs": [("args", "drift")]
    }
    assert story.apply(text) == []
    done_again = story.apply(text, Options(restore=("main/default/mcp_servers/fs",)))
    assert told(done_again) == {"default/mcp_servers/fs": "applied"}


def a_rotated_secret_is_written_and_the_rest_of_its_file_stays(story: Story) -> None:
    file = story.lab.root / ".env"
    file.write_text("# mine\nOTHER=1\n" + file.read_text())
    os.environ["OF_THE_TEST_FS_KEY"] = "g-0123456789"
    story.converge(declared(story, ALL))
    assert env(story) == {**VALUES, "OTHER": "1", "FS_KEY": "g-0123456789"}
    assert file.read_text().startswith("# mine\nOTHER=1\n")


def the_home_as_it_is_comes_to_rest_in_another_setup(story: Story) -> None:
    door = {"openclaw": str(labs.program(story.lab.version)), "node": str(labs.NODE)}
    folder = story.root / "adopted"
    folder.mkdir()
    made, space = adopt(story.lab.root, folder, story.provider, door)
    text = render_setup("solo", {"main": made.block})
    groups = {name: set(block) for name, block in made.block["profiles"].items()}
    assert {"channels", "mcp_servers", "toolsets", "skills", "plugins", "webhooks"} <= groups["default"], text
    assert {"routes", "webhooks"} <= groups["ops"], text
    found = plan(space)
    assert [(str(a.address), str(a.row), a.reason) for a in found.actions] == [], (found.hold, found.failed)


def what_leaves_the_setup_is_deleted_after_a_review(story: Story) -> None:
    bare = declared(story, "default: {}\nops: {}")
    options = Options(allow=frozenset({"last-of-kind"}))
    gone = {path for path, row in story.rows(bare).items() if str(row.row) == "delete"}
    assert {path.split("/", 1)[1] for path in gone} == set(KINDS)
    waiting = told(story.apply(bare, options, Consent(yes=True, terminal=True)))
    assert {path: waiting.get(path) for path in gone} == dict.fromkeys(gone, "waits for consent"), waiting
    events = story.apply(bare, options)
    done = told(events)
    assert set(done.values()) == {"applied"} and gone <= done.keys(), [e for e in reasons(events).items() if e[1]]
    assert story.apply(bare) == [] and not env(story).keys() & VALUES.keys()
    config = story.config()
    assert "bindings" not in config or config["bindings"] == []
    assert config["hooks"]["mappings"] == [] and "fs" not in config["mcp"].get("servers", {})
    assert valid(story) and json.loads(story.lab.cli("config", "validate", "--json").stdout)["valid"]


@pytest.mark.parametrize("version", labs.VERSIONS)
def test_every_kind_of_the_config_on_a_real_home(
    version: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = Path(os.path.realpath(tmp_path_factory.mktemp("user")))
    lab = labs.make(user, version)
    monkeypatch.setenv("HOME", str(user))
    for name, value in VALUES.items():
        monkeypatch.setenv(f"OF_THE_TEST_{name}", value)
    kit: Any = Kit(OpenClawProvider(), lambda path: lab)  # type: ignore[arg-type, return-value]
    story = Story(kit, tmp_path, lab, kit.provider)  # type: ignore[arg-type]
    story.lab = lab
    lab.start()
    try:
        all_kinds_are_made_in_one_apply(story)
        a_change_of_each_is_written(story)
        somebodys_edit_is_drift_and_is_restored_when_it_is_said(story)
        a_rotated_secret_is_written_and_the_rest_of_its_file_stays(story)
        the_home_as_it_is_comes_to_rest_in_another_setup(story)
        what_leaves_the_setup_is_deleted_after_a_review(story)
    finally:
        lab.stop()
