"""A home that OpenClaw itself has made, by `onboard`, its command line and its gateway, in one setup: every kind in it,
no secret, and nothing to do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openclaw import lab as labs
from openclaw.adopted import adopt, plan
from reconciler.testing.kit import tree
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.render import render_setup

pytestmark = [pytest.mark.openclaw, pytest.mark.timeout(600)]

# Made up. All but the hooks' stand in the clear in the config, as OpenClaw's own commands put them there.
BOT, OPS_BOT = "1000001:canary-of-the-first-bot", "1000002:canary-of-the-second-bot"
HOOK, KEY = "canary-of-the-hooks-0123456789", "sk-canary-of-a-server-0123456789"
SECRETS = (BOT, OPS_BOT, HOOK, KEY, labs.TOKEN)
SKIPPED = ("channels", "skills", "search", "health", "ui", "hooks", "daemon")
ONBOARD = (
    *("onboard", "--non-interactive", "--accept-risk", "--mode", "local", "--auth-choice", "skip", "--json"),
    *("--gateway-bind", "loopback", "--gateway-auth", "token", "--no-install-daemon"),
    *(f"--skip-{part}" for part in SKIPPED),
)
BY_RPC = {
    "agents": {"defaults": {"model": {"primary": "anthropic/claude-sonnet-5"}}},
    "bindings": [{"agentId": "ops", "match": {"channel": "telegram", "accountId": "ops"}}],
    "channels": {"telegram": {"allowFrom": ["101"], "accounts": {"ops": {"botToken": OPS_BOT, "allowFrom": ["102"]}}}},
    "hooks": {
        "enabled": True,
        "token": "${HOOK_TOKEN}",
        "mappings": [{"id": "push", "match": {"path": "push"}, "action": "agent", "messageTemplate": "Look."}],
    },
    "logging": {"level": "warn"},
    "plugins": {"entries": {"workboard": {"enabled": True}}},
    "skills": {"entries": {"weather": {"enabled": False}}},
    "tools": {"allow": ["read", "write"]},
}


def fill(lab: labs.Lab) -> None:
    """Something of every kind, by OpenClaw's own doors; the gateway runs in the end."""

    def cli(*words: str) -> None:
        done = lab.cli(*words)
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])

    cli(*ONBOARD, "--gateway-port", str(lab.port), "--gateway-token", labs.TOKEN)
    cli("channels", "add", "--channel", "telegram", "--token", BOT)
    server = {"command": "/bin/true", "args": ["a"], "env": {"API_KEY": KEY, "LEVEL": "debug"}, "enabled": False}
    cli("mcp", "set", "files", json.dumps(server))
    (lab.root / ".env").write_text(f"HOOK_TOKEN={HOOK}\n")
    lab.start()
    lab.add_agent("ops")
    lab.patch(BY_RPC, ["bindings", "hooks.mappings", "tools.allow", "channels.telegram.allowFrom"])
    turn = {"sessionTarget": "isolated", "wakeMode": "now", "delivery": {"mode": "none"}}
    for name, agent in (("brief", "main"), ("watch", "ops")):
        payload = {"kind": "agentTurn", "message": f"Do the {name}."}
        lab.add_job(name=name, agentId=agent, schedule={"kind": "every", "everyMs": 7_200_000}, payload=payload, **turn)


@pytest.mark.parametrize("version", labs.VERSIONS)
def test_every_kind_of_a_home_that_openclaw_made(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = Path(os.path.realpath(tmp_path)) / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    lab = labs.Lab(user, version, labs.free_port())
    try:
        fill(lab)
    finally:
        lab.stop()
    before = tree(lab.root)
    door = {"openclaw": str(labs.program(version)), "node": str(labs.NODE)}
    block, space = adopt(lab.root, tmp_path, OpenClawProvider(), door)
    found = plan(space)
    assert tree(lab.root) == before
    assert not found.failed and found.hold is None, (found.failed, found.hold)
    assert [(str(a.address), str(a.row), a.reason) for a in found.actions] == []
    groups = {name: set(kinds) for name, kinds in block.block["profiles"].items()}
    everything = {"inference", "channels", "webhooks", "mcp_servers", "skills", "plugins", "files", "settings", "jobs"}
    assert everything <= groups["default"], groups
    assert {"telegram", "telegram/ops"} <= block.block["profiles"]["default"]["channels"].keys()
    assert {"routes", "files", "jobs"} <= groups["ops"], groups
    assert "main/default/mcp_servers/files: env holds a secret in the clear, which stays out" in block.look, block.look
    text = render_setup("solo", {"main": block.block}) + "".join(
        p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file() and user not in p.parents
    )
    assert not [secret for secret in SECRETS if secret in text]
