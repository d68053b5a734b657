"""The kinds of openclaw.json as data: what is read, what is refused, what is written, and that adopt comes to rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.adopted import adopt, plan
from reconciler.action import CLEAR, Action, Fact, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Observed, Store, Unknown
from reconciler.provider import Canon
from reconciler_openclaw import edits, kinds, roster, steps
from reconciler_openclaw.authored import Authored
from reconciler_openclaw.view import View
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_specs.setup import Setup
from reconciler_specs.shape import SCALAR

HIDER = Hider(b"k")
TREE: dict[str, Any] = {
    "agents": {"entries": {"main": {"default": True}, "ops": {"tools": {"allow": ["read", "exec"]}}}},
    "channels": {
        "defaults": {"groupPolicy": "allowlist"},
        "telegram": {
            "botToken": "${TELEGRAM_BOT_TOKEN}", "allowFrom": [1, "*"], "dmPolicy": "open", "replyToMode": "first",
            "accounts": {"ops": {"botToken": {"source": "env", "provider": "default", "id": "OPS_TOKEN"},
                                 "allowFrom": ["7"], "dmPolicy": "allowlist"}},
        },
        "slack": {"enabled": False, "appToken": "plain-token-of-the-app",
                  "accounts": {"default": {"botToken": "${S}"}}},
    },
    "bindings": [
        {"agentId": "ops", "comment": "by hand", "match": {"channel": "telegram", "accountId": "ops"}},
        {"type": "acp", "agentId": "ops", "match": {"channel": "telegram"}},
        {"agentId": "main", "match": {"channel": "telegram", "peer": {"kind": "dm", "id": "7"}, "roles": ["b", "a"]}},
    ],
    "hooks": {
        "enabled": True, "token": "${HOOK_TOKEN}",
        "mappings": [
            {"id": "github", "match": {"path": "gh"}, "messageTemplate": "Look: {{x}}", "channel": "telegram",
             "to": "7", "model": "m"},
            {"id": "build", "agentId": "ops", "messageTemplate": "Build", "deliver": False},
            {"messageTemplate": "no id"},
        ],
    },
    "mcp": {"servers": {
        "fs": {"command": "npx", "args": ["-y", "fs"], "requestTimeoutMs": 20000, "toolFilter": {"include": ["a"]},
               "env": {"LEVEL": "debug", "FS_KEY": "${FS_KEY}", "PASSPHRASE": "swordfish", "N": 3}},
        "web": {"url": "https://mcp.example/x", "enabled": False, "headers": {"Authorization": "Bearer ${WEB}"}},
    }},
    "plugins": {"entries": {"diffs": {"enabled": True, "config": {"apiKey": "${D}", "x": 1}, "llm": {"a": True}}}},
    "skills": {"entries": {"gog": {"enabled": False, "apiKey": "${GOG}"}}},
}  # fmt: skip
SECRETS = "TELEGRAM_BOT_TOKEN=t\nOPS_TOKEN=o\nS=s\nHOOK_TOKEN=h\nFS_KEY=f\nWEB=w\nD=d\nGOG=g\n"


def view(profile: str, tree: dict[str, Any]) -> View:
    found = roster.read(tree, None)
    authored = Authored("/home/openclaw.json", tree, Store.PROPER)
    return View(profile, found.agent(profile), found, authored, "", HIDER, HIDER)


def read(kind: Kind, profile: str = "default", tree: dict[str, Any] = TREE) -> dict[str, dict[str, Any]]:
    return {key: dict(thing.fields) for key, thing in kinds.PARTS[kind].read(view(profile, tree), [], True).items()}


HIDDEN = {"$hidden": ...}


def seen(value: Any) -> Any:
    """Digests, whatever they are, as one mark."""
    if isinstance(value, dict):
        return HIDDEN if "$hidden" in value else {key: seen(item) for key, item in value.items()}
    return [seen(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("kind", "profile", "found"),
    [
        (Kind.CHANNEL, "default", {
            "telegram": {"enabled": True, "open": True, "allow": ["1"], "secrets": {"botToken": "TELEGRAM_BOT_TOKEN"},
                         "extra": {"replyToMode": "first"}},
            "telegram/ops": {"enabled": True, "open": False, "allow": ["7"], "secrets": {"botToken": "OPS_TOKEN"},
                             "extra": {"dmPolicy": "allowlist", "replyToMode": "first"}},
            "slack": {"enabled": False, "open": False, "secrets": {"appToken": HIDDEN, "botToken": "S"}},
        }),
        (Kind.CHANNEL, "ops", {}),
        (Kind.ROUTE, "ops", {
            "telegram account=ops": {"match": {"channel": "telegram", "account": "ops"}, "profile": "ops"}}),
        (Kind.ROUTE, "default", {"telegram direct=7 roles=a,b": {
            "match": {"channel": "telegram", "chat_kind": "direct", "chat": "7", "roles": ["a", "b"]},
            "profile": "default"}}),
        (Kind.WEBHOOK, "default", {"github": {
            "deliver": {"to": "telegram", "chat": "7"}, "prompt": "Look: {{x}}", "secret": {"secret": "HOOK_TOKEN"}}}),
        (Kind.WEBHOOK, "ops", {
            "build": {"deliver": "local", "prompt": "Build", "secret": {"secret": "HOOK_TOKEN"}}}),
        (Kind.MCP_SERVER, "default", {
            "fs": {"enabled": True, "command": "npx", "args": ["-y", "fs"], "timeout": 20,
                   "env": {"LEVEL": "debug", "FS_KEY": {"secret": "FS_KEY"}, "PASSPHRASE": HIDDEN, "N": "3"},
                   "extra": {"toolFilter": {"include": ["a"]}}},
            "web": {"enabled": False, "url": "https://mcp.example/x", "headers": {"Authorization": "Bearer ${WEB}"}},
        }),
        (Kind.TOOLSET, "ops", {"default": {"tools": ["read", "exec"]}}),
        (Kind.TOOLSET, "default", {}),
        (Kind.PLUGIN, "default", {"diffs": {"enabled": True, "config": {"apiKey": {"secret": "D"}, "x": 1}}}),
        (Kind.SKILL, "default", {"gog": {"enabled": False}}),
    ],
)  # fmt: skip
def test_what_is_read(kind: Kind, profile: str, found: dict[str, Any]) -> None:
    assert seen(read(kind, profile)) == found


def test_an_agent_without_tools_of_its_own_has_those_of_all() -> None:
    tree = {**TREE, "tools": {"allow": ["read"]}}
    thing = kinds.PARTS[Kind.TOOLSET].read(view("default", tree), ["default"], False)["default"]
    assert (dict(thing.fields), thing.defaults) == ({"tools": ["read"]}, frozenset({"tools"}))


def test_what_an_account_only_inherits_is_no_edit_of_it() -> None:
    parts, key = kinds.PARTS[Kind.CHANNEL], "telegram/ops"
    before = parts.read(view("ops", TREE), [key], False)[key]
    block = {word: value for word, value in TREE["channels"]["telegram"].items() if word == "accounts"}
    after = parts.read(view("ops", {**TREE, "channels": {"telegram": block}}), [key], False)[key]
    assert before.fingerprint == after.fingerprint and before.fields != after.fields


# -- written


def row(path: str, kind: Row = Row.UPDATE, harness_id: str = "", **fields: Any) -> Action:
    """A row that writes fields: a value, or (what is there, the value)."""
    changes = []
    for name, value in fields.items():
        old, new = value if isinstance(value, tuple) else (ABSENT, value)
        changes.append(FieldChange(name, FieldRow.SET, new, old, None, SCALAR, new))
    return Action(kind, Address.parse(f"main/{path}"), harness_id, tuple(changes))


def body(*rows: Action, tree: dict[str, Any] = TREE) -> tuple[Any, list[str]]:
    found = roster.read(tree, None)
    views = {name: view(name, tree) for name in found.profiles}
    config = edits.Config(Authored("/home/openclaw.json", tree, Store.PROPER), found, views)
    made = edits.patch(config, [edit for one in rows for edit in steps.edits(one, config)])
    return made.body, list(made.replace)


TELEGRAM, OPS = "default/channels/telegram", "default/channels/telegram/ops"
ACCOUNT = ("channels", "telegram", "accounts", "ops")


def at(*path: str, **value: Any) -> dict[str, Any]:
    whole: dict[str, Any] = value
    for step in reversed(path):
        whole = {step: whole}
    return whole


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (row(TELEGRAM, allow=(["1"], ["1", "2"])), at("channels", "telegram", allowFrom=[1, "2", "*"])),
        (row(TELEGRAM, open=(True, False)), at("channels", "telegram", allowFrom=[1], dmPolicy="pairing")),
        (row(OPS, open=(False, True)), at(*ACCOUNT, allowFrom=["7", "*"], dmPolicy="open")),
        (row(OPS, allow=(["7"], CLEAR)), at(*ACCOUNT, allowFrom=[])),
        (row(OPS, enabled=False), at(*ACCOUNT, enabled=False)),
        (row(OPS, secrets=({"botToken": "OPS_TOKEN"}, {"botToken": "NEW"})), at(*ACCOUNT, botToken="${NEW}")),
        (row(OPS, extra=({"a": 1}, {"b": {"c": 2}})), at(*ACCOUNT, a=None, b={"c": 2})),
        (row("default/channels/slack", enabled=(False, True)), at("channels", "slack", enabled=True)),
        (row("default/channels/slack", secrets=({"botToken": "S"}, {"botToken": "T"})),
         at("channels", "slack", "accounts", "default", botToken="${T}")),
        (row("default/channels/irc", Row.CREATE, enabled=True), at("channels", "irc", enabled=True)),
        (row("default/channels/slack", Row.DELETE), at("channels", slack=None)),
        (row(OPS, Row.DELETE), at("channels", "telegram", "accounts", ops=None)),
        (row(TELEGRAM, Row.DELETE),
         at("channels", "telegram", botToken=None, allowFrom=None, dmPolicy=None, replyToMode=None)),
        (row("default/mcp_servers/fs", env=({"LEVEL": "debug", "A": {"$hidden": "x"}}, {"A": {"$hidden": "x"}})),
         at("mcp", "servers", "fs", env={"LEVEL": None})),
        (row("default/mcp_servers/new", Row.CREATE, url="https://x", headers={"X-Key": {"secret": "K"}}, timeout=5),
         at("mcp", "servers", "new", url="https://x", headers={"X-Key": "${K}"}, requestTimeoutMs=5000)),
        (row("default/mcp_servers/fs", Row.DELETE), at("mcp", "servers", fs=None)),
        (row("default/plugins/diffs", config=({"x": 1}, {"x": 2})),
         at("plugins", "entries", "diffs", config={"x": 2})),
        (row("default/plugins/diffs", Row.DELETE), at("plugins", "entries", "diffs", enabled=None, config=None)),
        (row("default/skills/gog", Row.DELETE), at("skills", "entries", "gog", enabled=None)),
        (row("default/skills/new", Row.CREATE, enabled=False), at("skills", "entries", "new", enabled=False)),
        (row("ops/toolsets/default", tools=(["read"], ["read", "web"])),
         at("agents", "entries", "ops", "tools", allow=["read", "web"])),
        (row("default/toolsets/default", Row.CREATE, tools={"only": ["read"]}),
         at("agents", "entries", "main", "tools", allow=["read"])),
        (row("ops/toolsets/default", Row.DELETE), at("agents", "entries", "ops", "tools", allow=None)),
    ],
)  # fmt: skip
def test_what_is_written(action: Action, wanted: dict[str, Any]) -> None:
    assert body(action)[0] == wanted


def test_a_list_in_an_agent_of_71_is_named_as_its_gateway_names_it() -> None:
    tree = {"agents": {"list": [{"id": "main"}, {"id": "ops", "tools": {"allow": ["read", "exec"]}}]}}
    made, replace = body(row("ops/toolsets/default", tools=(["read", "exec"], ["read"])), tree=tree)
    assert made == {"agents": {"list": [{"id": "main"}, {"id": "ops", "tools": {"allow": ["read"]}}]}}
    assert replace == ["agents.list", "agents.list[].tools.allow"]


def test_routes_of_one_patch_leave_every_other_binding_where_it_is() -> None:
    made, replace = body(
        row("ops/routes/a", Row.CREATE, match={"channel": "irc", "chat": "#x", "chat_kind": "group"}, profile="ops"),
        row("default/routes/b", harness_id="telegram direct=7 roles=a,b", profile=("default", "ops")),
        row("ops/routes/c", Row.DELETE, "telegram account=ops"),
    )
    foreign, other = TREE["bindings"][1:]
    new = {"agentId": "ops", "match": {"channel": "irc", "peer": {"kind": "group", "id": "#x"}}}
    assert made == {"bindings": [foreign, {**other, "agentId": "ops"}, new]}
    assert replace == ["bindings"]
    with pytest.raises(edits.Refused, match="there is a binding"):
        body(row("ops/routes/a", Row.CREATE, match={"channel": "telegram", "account": "ops"}, profile="ops"))


def test_the_rest_of_a_binding_stays() -> None:
    """S0-17."""
    made, _ = body(row("ops/routes/c", harness_id="telegram account=ops", profile=("ops", "default")))
    assert made["bindings"][0] == {**TREE["bindings"][0], "agentId": "main"}


def test_webhooks_of_one_patch() -> None:
    made, replace = body(
        row("default/webhooks/github", prompt=("x", "Do it."), deliver=({}, "owner_chat"), secret={"secret": "NEW"}),
        row("ops/webhooks/new", Row.CREATE, prompt="New", deliver={"to": "telegram"}, secret={"secret": "NEW"}),
        row("ops/webhooks/build", Row.DELETE),
    )
    first, _, last = TREE["hooks"]["mappings"]
    github = {k: v for k, v in first.items() if k != "to"} | {
        "messageTemplate": "Do it.", "deliver": True, "channel": "last"}  # fmt: skip
    new = {"id": "new", "match": {"path": "new"}, "action": "agent", "agentId": "ops", "messageTemplate": "New",
           "deliver": True, "channel": "telegram"}  # fmt: skip
    assert made == {"hooks": {"token": "${NEW}", "mappings": [github, last, new]}}
    assert replace == ["hooks.mappings"]


# -- declared


def setup(site: Any, default: str, ops: str = "") -> Setup:
    def lines(text: str) -> str:
        return "".join(f"        {line}\n" for line in text.strip().splitlines())

    more = f"      ops:\n{lines(ops)}" if ops else ""
    text = f"version: 1\nname: solo\nhomes:\n  main:\n    harness: openclaw\n    path: {site.root}\n    profiles:\n"
    return load_text(f"{text}      default:\n{lines(default) or '        {}'}\n{more}", "setup.yaml", site.user)


def canon(site: Any, path: str, default: str, ops: str = "", bound: str | None = None) -> Canon:
    site.config(json.dumps(TREE))
    desired = setup(site, default, ops).desired("main")
    observation = site.provider.prepare(desired, site.observe(*map(str, desired)))
    found: Canon = site.provider.canon(desired[Address.parse(f"main/{path}")], observation, lambda _path: bound)
    return found


HOOK = "{secret: {secret: %s}, prompt: x, deliver: local}"


@pytest.mark.parametrize(
    ("path", "default", "ops", "field", "said"),
    [
        (TELEGRAM, "channels: {telegram: {enabled: true, admins: [1]}}", "", "admins", "commands.ownerAllowFrom"),
        (TELEGRAM, "channels: {telegram: {enabled: true, owner_chat: 1}}", "", "owner_chat", "last spoke"),
        (TELEGRAM, "channels: {telegram: {enabled: true, adapter: x}}", "", "adapter", "one way"),
        (TELEGRAM, "channels: {telegram: {enabled: true, extra: {dmPolicy: open}}}", "", "extra", "open: anyone"),
        (TELEGRAM, "channels: {telegram: {enabled: true, extra: {allowFrom: [1]}}}", "", "extra", "`allow`"),
        ("default/channels/slack/x", "channels: {slack/x: {enabled: true}}", "", "enabled", "off for all"),
        ("ops/channels/irc", "channels: {irc: {enabled: true}}", "channels: {irc: {enabled: true}}", "", "default too"),
        ("default/routes/r", "routes: {r: {match: {channel: irc}, profile: nobody}}", "", "profile",
         "route r leads to profile nobody"),
        ("default/routes/r", "routes: {r: {match: {channel: irc, chat: 1}}}", "", "match", "chat_kind"),
        ("default/routes/r", "routes: {r: {match: {channel: irc, thread: 1}}}", "", "match", "no threads"),
        ("default/routes/r", "routes: {r: {match: {channel: irc}, order: 1}}", "", "order", "says most"),
        ("default/routes/r", "routes: {r: {match: {channel: irc}}, s: {match: {channel: irc}}}", "", "match",
         "main/default/routes/s matches the same"),
        ("default/webhooks/a", f"webhooks: {{a: {HOOK % 'A'}, b: {HOOK % 'HOOK_TOKEN'}}}", "", "secret",
         "it is HOOK_TOKEN for b"),
        ("default/webhooks/build", f"webhooks: {{build: {HOOK % 'A'}}}", "", "", "profile ops's too"),
        ("default/webhooks/a", "webhooks: {a: {secret: {secret: A}, prompt: x, events: [push], deliver: local}}", "",
         "events", "what event"),
        ("ops/mcp_servers/x", "description: x", "mcp_servers: {x: {command: y}}", "", "for all agents"),
        ("default/mcp_servers/x", "mcp_servers: {x: {command: y, env: {MY_PASS: swordfish}}}", "", "env", "MY_PASS"),
        ("default/mcp_servers/x", "mcp_servers: {x: {command: y, extra: {requestTimeoutMs: 1}}}", "", "extra", "field"),
        ("default/toolsets/telegram", "toolsets: {telegram: [read]}", "", "", "only `default`"),
        ("ops/plugins/x", "description: x", "plugins: {x: {enabled: true}}", "", "for all agents"),
        ("ops/skills/x", "description: x", "skills: {x: {enabled: true}}", "", "for all agents"),
        ("default/settings/hooks.token",
         f"settings: {{hooks.token: {{secret: A}}}}\nwebhooks: {{a: {HOOK % 'HOOK_TOKEN'}}}", "", "value",
         "the secret of the webhooks"),
    ],
)  # fmt: skip
def test_what_is_refused_by_name(site: Any, path: str, default: str, ops: str, field: str, said: str) -> None:
    assert said in canon(site, path, default, ops).refused[field]


def test_a_source_of_a_skill_is_a_file_of_the_workspace(site: Any) -> None:
    (site.user / "s").mkdir()
    (site.user / "s" / "SKILL.md").write_text("x")
    assert "files: skills/x/SKILL.md" in canon(site, "default/skills/x", "skills: {x: {source: s}}").refused["content"]


def test_a_route_is_known_by_its_match(site: Any) -> None:
    text = "routes: {r: {match: {channel: irc, account: a}}}"
    assert canon(site, "default/routes/r", text, bound="irc account=a").refused == {}
    assert "give the route a new name" in canon(site, "default/routes/r", text, bound="irc").refused["match"]


def test_a_channel_of_another_profile_waits_for_a_route(site: Any) -> None:
    channel = "channels: {irc/a: {enabled: true}}"
    found = canon(site, "ops/channels/irc/a", "description: x", channel)
    assert "declare a route with match: {channel: irc, account: a}" in found.held
    routed = f"{channel}\nroutes: {{r: {{match: {{channel: irc, account: a}}}}}}"
    assert canon(site, "ops/channels/irc/a", "description: x", routed).held == ""
    # The home has a binding for this one.
    assert (
        canon(site, "ops/channels/telegram/ops", "description: x", "channels: {telegram/ops: {enabled: true}}").held
        == ""
    )


def test_a_secret_that_is_coming_holds_nothing_and_one_that_is_nowhere_does(site: Any) -> None:
    site.write(".env", "A=1\n")
    text = "channels: {irc: {enabled: true, secrets: {password: B}}}"
    assert "has no secret B" in canon(site, "default/channels/irc", text).held
    site.config(json.dumps(TREE))
    whole = (
        f"version: 1\nname: solo\nsecrets: {{B: {{env: X}}}}\nhomes:\n  main:\n    harness: openclaw\n"
        f"    path: {site.root}\n    profiles: {{default: {{{text}}}}}\n"
    )
    desired = load_text(whole, "setup.yaml", site.user).desired("main")
    observation = site.provider.prepare(desired, site.observe(*map(str, desired)))
    resource = desired[Address.parse("main/default/channels/irc")]
    assert site.provider.canon(resource, observation, lambda _path: None).held == ""


def test_a_binding_that_is_there_is_suggested_and_not_made_twice(site: Any) -> None:
    site.config(json.dumps(TREE))
    text = "routes: {mine: {match: {channel: telegram, account: ops}, profile: ops}}"
    desired = setup(site, text).desired("main")
    observation = site.provider.prepare(desired, site.observe(*map(str, desired)))
    assert observation.at("default", Kind.ROUTE, "telegram account=ops").name == "mine"


# -- what it means


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (row(TELEGRAM, open=(False, True)), {Fact.WIDENS_ACCESS}),
        (row(TELEGRAM, open=(True, False)), set()),
        (row(TELEGRAM, allow=(["1"], ["1", "2"])), {Fact.WIDENS_ACCESS}),
        (row(TELEGRAM, allow=(["1", "2"], ["1"])), set()),
        (row(TELEGRAM, secrets={"botToken": "A"}), {Fact.NEW_CREDENTIAL}),
        (row(TELEGRAM, extra={"groupPolicy": "open"}), {Fact.LOOSENS_SECURITY}),
        (row("default/routes/r", Row.CREATE, match={"channel": "irc"}, profile="default"), {Fact.WIDENS_ACCESS}),
        (row("default/webhooks/github", description="x"), set()),
        (row("default/webhooks/github", prompt="x"), {Fact.REACHES_PEOPLE}),
        (row("default/mcp_servers/fs", args=["x"]), {Fact.RUNS_CODE}),
        (row("default/mcp_servers/fs", env=({"A": "x"}, {"A": {"secret": "S"}})),
         {Fact.RUNS_CODE, Fact.NEW_CREDENTIAL}),
        (row("default/mcp_servers/web", enabled=True), {Fact.NEW_ADDRESS}),
        (row("default/mcp_servers/web", enabled=False), set()),
        (row("default/plugins/diffs", enabled=True), {Fact.RUNS_CODE}),
        (row("ops/toolsets/default", tools=(["read", "exec"], ["read"])), set()),
        (row("ops/toolsets/default", tools=(["read"], ["read", "web"])), {Fact.LOOSENS_SECURITY}),
        (row("default/skills/gog", enabled=True), {Fact.RUNS_CODE}),
        (row("default/channels/irc", Row.DELETE), set()),
    ],
)  # fmt: skip
def test_facts(site: Any, action: Action, wanted: set[Fact]) -> None:
    site.config(json.dumps(TREE))
    observation = site.observe(everything=True)
    desired = {change.field: change.declared for change in action.changes}
    assert site.provider.facts(action, desired, observation) == wanted


def test_of_71_a_channel_restarts_a_running_gateway(site: Any) -> None:
    site.config(json.dumps(TREE))
    observation = site.observe(everything=True)
    facts = {**observation.facts, "gateway": {"pid": 1, "port": 2}}
    for ran, restarts in (("2026.9.6", False), ("2026.7.1-2", True)):
        served = type(observation)(things=observation.things, facts={**facts, "ran": ran})
        assert (Fact.RESTARTS in site.provider.facts(row(TELEGRAM, enabled=False), {}, served)) is restarts


# -- adopt


def test_an_adopted_home_says_all_of_it_without_a_secret_and_comes_to_rest(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{site.user}/bin:/usr/bin:/bin")
    (site.user / "bin" / "openclaw").symlink_to(site.package / "openclaw.mjs")
    site.config(json.dumps(TREE))
    site.write(".env", SECRETS)
    made, space = adopt(site.root, tmp_path / "state", site.provider, {"openclaw": str(site.package)})
    default, ops = (made.block["profiles"][name] for name in ("default", "ops"))
    assert default["channels"]["telegram"]["open"] == "anyone"
    # What an account has from its channel is said there.
    assert default["channels"]["telegram/ops"] == {
        "enabled": True, "secrets": {"botToken": "OPS_TOKEN"}, "allow": ["7"], "extra": {"dmPolicy": "allowlist"},
    }  # fmt: skip
    assert set(default["webhooks"]) == {"github"} and set(ops["webhooks"]) == {"build"}
    assert "profile" not in next(iter(ops["routes"].values()))
    assert ops["toolsets"]["default"] == ["read", "exec"] or ops["toolsets"]["default"] == {"tools": ["read", "exec"]}
    assert default["plugins"] == {"diffs": {"enabled": True, "config": {"apiKey": {"secret": "D"}, "x": 1}}}
    assert default["skills"] == {"gog": {"enabled": False}}
    settings = default["settings"]
    assert set(settings) == {
        "channels.defaults.groupPolicy", "hooks.enabled", "plugins.entries.diffs.llm.a", "skills.entries.gog.apiKey",
    } | {key for key in settings if key.startswith("agents.")}  # fmt: skip
    text = render_setup("solo", {"main": made.block})
    assert "swordfish" not in text and "plain-token" not in text
    found = plan(space)
    assert found.hold is None and not found.failed
    assert [(str(a.address), str(a.row), a.reason) for a in found.actions] == []


# -- secrets


def test_secrets_by_name_and_where_one_stands_in_the_clear(site: Any) -> None:
    site.config(json.dumps({**TREE, "env": {"vars": {"INNER_KEY": "value-of-the-inner-one"}}}))
    site.write(".env", "A_TOKEN=value-of-the-token\nEMPTY=\n")
    site.jobs()
    site.secret("STORED")
    names = ("A_TOKEN", "INNER_KEY", "STORED", "EMPTY", "NOWHERE")
    observation = site.observe(*(f"main/secrets/{name}" for name in names))
    things = observation.things["", Kind.SECRET]
    assert isinstance(things, dict) and set(things) == {"A_TOKEN", "INNER_KEY", "STORED"}
    assert all(isinstance(thing, Observed) and thing.fields["present"] is True for thing in things.values())
    assert seen(things["A_TOKEN"].fields["value"]) == seen(things["INNER_KEY"].fields["value"]) == HIDDEN
    assert isinstance(things["STORED"].fields["value"], Unknown)
    assert observation.clear == {
        "openclaw.json: channels.slack.appToken", "openclaw.json: env.vars.INNER_KEY",
    }  # fmt: skip
    assert "value-of" not in repr(observation)
