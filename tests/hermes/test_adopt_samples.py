"""Adopt on sample homes: the setup has the tool kinds of each, no secret, and an empty plan after it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hermes.lab import tree
from hermes.test_conformance_reading import SAMPLES
from reconciler.adopt import adopt_home
from reconciler.draft import Draft, draft, survey
from reconciler.plan import Options
from reconciler.workspace import Workspace
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_state.local import LocalStore

WHOLE = {
    "config.yaml": """\
_config_version: 33
model: {default: a/b, provider: openrouter}
toolsets: [hermes-cli]
platform_toolsets: {cli: [hermes-cli, web], discord: []}
agent: {max_turns: 50, disabled_toolsets: [memory]}
skills: {disabled: [maps, brief], external_dirs: [/srv/skills]}
plugins:
  enabled: [disk-cleanup, "observability/langfuse"]
  disabled: [image_gen/openai]
  entries: {disk-cleanup: {days: 3}}
mcp_servers:
  "my.server":
    command: npx
    args: [-y, fs]
    env: {KEY: "${FS_KEY}", PORT: 3000, A_TOKEN: plain-canary-value}
    timeout: 2.5
  far:
    url: https://example.org/mcp
    headers: {Authorization: "Bearer ${FAR_TOKEN}", Cookie: cookie-canary}
    auth: oauth
    enabled: no
  secretive: {url: "https://me:url-canary@example.org/"}
  here: {command: x, cwd: /srv}
  odd: just text
approvals: {mode: off}
""",
    ".env": "FS_KEY=env-canary-0123456789\n",
    "skills/office/brief/SKILL.md": "---\nname: brief\n---\nx\n",
    "skills/other/SKILL.md": "---\nname: other\n---\nx\n",
}
REFUSED = ("13-corrupt-config", "14-corrupt-jobs", "19-managed")


def _unpacked(folder: Path) -> list[Path]:
    for path, text in WHOLE.items():
        target = folder / "whole" / ".hermes" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    if SAMPLES.is_file():
        with tarfile.open(SAMPLES) as archive:
            archive.extractall(folder, filter="data")
    return sorted(path for path in folder.glob("*/.hermes") if path.parent.name not in REFUSED)


def _taken(home: Path, folder: Path) -> tuple[Draft, str, list[str]]:
    """The draft, its text, and the rows of the plan after it was adopted."""
    found = survey(str(home), {"hermes": HermesProvider()})
    made = draft(found, "main", str(home))
    text = render_setup("adopted", {"main": made.block})
    setup = load_text(text, "setup.yaml", folder)
    space = Workspace(setup, LocalStore(folder / "state"), {"hermes": HermesProvider()})
    adopt_home(space, "main", (), dict(made.ids))
    (plan,) = space.plan(Options()).homes
    return made, text, [f"{a.address} {a.row} {a.reason} {[c.field for c in a.changes]}" for a in plan.actions]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return _unpacked(tmp_path_factory.mktemp("samples"))


def test_every_sample_is_taken_as_it_is(homes: list[Path], tmp_path: Path) -> None:
    for home in homes:
        folder = tmp_path / home.parent.name
        folder.mkdir()
        before = tree(home)
        made, text, rows = _taken(home, folder)
        assert rows == [], home
        assert tree(home) == before
        assert "canary" not in text + repr(made), home
        for word in ("  mcp_servers.", "platform_toolsets", "plugins.enabled", "skills.disabled"):
            assert word not in text, (home, word)
        if home.parent.name == "03-multi-profile":
            for profile in ("coder", "research"):
                assert set(made.block["profiles"][profile]["mcp_servers"]) == {"fs"}


def test_a_whole_home_is_said(homes: list[Path], tmp_path: Path) -> None:
    home = next(path for path in homes if path.parent.name == "whole")
    made, _, _ = _taken(home, tmp_path)
    block = made.block["profiles"]["default"]
    assert block["mcp_servers"] == {
        "my.server": {
            "command": "npx",
            "args": ["-y", "fs"],
            "env": {"KEY": {"secret": "FS_KEY"}, "PORT": "3000"},
            "extra": {"timeout": 2.5},
        },
        "far": {
            "url": "https://example.org/mcp",
            "headers": {"Authorization": "Bearer ${FAR_TOKEN}"},
            "extra": {"auth": "oauth"},
            "enabled": False,
        },
        "here": {"command": "x", "extra": {"cwd": "/srv"}},
    }
    assert block["toolsets"] == {"cli": {"tools": ["hermes-cli", "web"]}, "discord": {"tools": []}}
    assert block["plugins"] == {
        "disk-cleanup": {"enabled": True, "config": {"days": 3}},
        "observability/langfuse": {"enabled": True},
        "image_gen/openai": {"enabled": False},
    }
    assert block["skills"] == {"brief": {"enabled": False}, "maps": {"enabled": False}}
    assert set(block["settings"]) == {
        "agent.disabled_toolsets",
        "agent.max_turns",
        "approvals.mode",
        "skills.external_dirs",
    }
    out = {address.path for address in made.out}
    assert {"default/mcp_servers/secretive", "default/mcp_servers/odd"} <= out


KINDS = {
    "03-multi-profile": {
        "default": {"inference", "settings", "files", "channels", "routes"},
        "coder": {"description", "inference", "settings", "files", "mcp_servers", "jobs"},
        "research": {"inference", "settings", "files", "mcp_servers", "jobs"},
        "clone1": {"files"},
    },
    "05-job-shapes": {"default": {"inference", "files", "jobs"}},
    "11-yaml-torture": {"default": {"inference", "settings"}},
    "12-env-torture": {},
}
SECRETS = {
    "03-multi-profile": ("FAKEhookSecret", "FAKEglobal"),
    "12-env-torture": ("ghp_fake", "123:abc", "sk-or-a", "a b # c", "line2"),
}


@pytest.mark.skipif(not SAMPLES.is_file(), reason="the sample homes are not part of this repository")
@pytest.mark.parametrize("name", KINDS)
def test_all_kinds_of_a_sample_are_said_no_secret_is_and_the_plan_is_empty(
    name: str, homes: list[Path], tmp_path: Path
) -> None:
    home = next(path for path in homes if path.parent.name == name)
    made, text, rows = _taken(home, tmp_path)
    assert {profile: set(block) for profile, block in made.block["profiles"].items()} == KINDS[name]
    assert rows == []
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert kept
    for secret in (*SECRETS.get(name, ()), "sk-or-FAKE"):
        assert secret not in text + repr(made) and secret.encode() not in kept, secret


@pytest.mark.skipif(not SAMPLES.is_file(), reason="the sample homes are not part of this repository")
def test_a_webhook_whose_secret_has_no_name_stays_out_and_is_named(homes: list[Path], tmp_path: Path) -> None:
    home = next(path for path in homes if path.parent.name == "03-multi-profile")
    made, _, _ = _taken(home, tmp_path)
    (said,) = [line for line in made.left if "webhooks/github" in line]
    assert "secret" in said and "in the clear" in said and "FAKEhookSecret" not in said
    # With a name in `.env` that has this value, it is declared.
    env = home / ".env"
    before = env.read_text()
    try:
        env.write_text(before.rstrip("\n") + "\nGH_HOOK=FAKEhookSecret\n")
        (tmp_path / "named").mkdir()
        made, text, rows = _taken(home, tmp_path / "named")
    finally:
        env.write_text(before)
    hook = made.block["profiles"]["default"]["webhooks"]["github"]
    assert hook["secret"] == {"secret": "GH_HOOK"} and "FAKEhookSecret" not in text and rows == []
