"""MCP servers, toolsets and plugins between config.yaml and the setup: pure, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.action import CLEAR, Action, Fact, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Store, Unknown
from reconciler_shape import (
    dotted,
    mcp_servers,
    parts,
    plugins,
    review,
    shaped,
    skillfolder,
    skills,
    toolfacts,
    toolsets,
)
from reconciler_shape.edits import CannotWrite, Edits
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import shape_of

HIDER = Hider(b"k" * 32, ["a-secret-of-the-home"])
SERVERS = mcp_servers.servers()

FOUND: list[tuple[shaped.Shaped, dict[str, Any], str, dict[str, Any] | None, set[str]]] = [
    (SERVERS, {"mcp_servers": {"a.b": {"command": "x"}}}, "a.b", {"command": "x", "enabled": True}, {"enabled"}),
    (
        SERVERS,
        {"mcp_servers": {"a": {"command": "x", "enabled": "off"}}},
        "a",
        {"command": "x", "enabled": False},
        set(),
    ),
    (
        SERVERS,
        {"mcp_servers": {"a": {"url": "u", "timeout": 1.5, "auth": "oauth"}}},
        "a",
        {"url": "u", "enabled": True, "extra": {"timeout": 1.5, "auth": "oauth"}},
        {"enabled"},
    ),
    (
        SERVERS,
        {"mcp_servers": {"a": {"command": "x", "env": {"PORT": 80, "T": "${T}"}, "args": [1]}}},
        "a",
        {"command": "x", "env": {"PORT": "80", "T": "${T}"}, "extra": {"args": [1]}, "enabled": True},
        {"enabled"},
    ),
    (SERVERS, {"mcp_servers": {"a": None}}, "a", None, set()),
    (SERVERS, {"mcp_servers": []}, "a", None, set()),
    (toolsets.TOOLSETS, {"platform_toolsets": {"cli": ["web", 12]}}, "cli", {"tools": ["web", "12"]}, set()),
    (toolsets.TOOLSETS, {"platform_toolsets": {"cli": []}}, "cli", {"tools": []}, set()),
    (toolsets.TOOLSETS, {"toolsets": ["hermes-cli"]}, "default", {"tools": ["hermes-cli"]}, {"tools"}),
    (toolsets.TOOLSETS, {"toolsets": ["kanban"]}, "default", {"tools": ["kanban"]}, set()),
    (toolsets.TOOLSETS, {}, "cli", None, set()),
    (plugins.PLUGINS, {"plugins": {"enabled": ["a/b"]}}, "a/b", {"enabled": True}, set()),
    (plugins.PLUGINS, {"plugins": {"enabled": ["a"], "disabled": ["a"]}}, "a", {"enabled": False}, set()),
    (plugins.PLUGINS, {"plugins": {"entries": {"a": {"k": 1}}}}, "a", {"config": {"k": 1}}, set()),
    (plugins.PLUGINS, {"plugins": {"enabled": "a"}}, "a", None, set()),
]


@pytest.mark.parametrize(("kind", "raw", "key", "fields", "defaults"), FOUND)
def test_found(kind: shaped.Shaped, raw: Any, key: str, fields: Any, defaults: set[str]) -> None:
    found = shaped.read(kind, "default", raw, [key], False, HIDER)
    assert (dict(found[key].fields) if key in found else None) == fields
    if fields is not None:
        assert found[key].defaults == defaults and found[key].fingerprint
        assert shaped.read(kind, "default", raw, [], True, HIDER).keys() == {key}


def test_what_is_no_list_or_mapping_is_unknown() -> None:
    found = shaped.read(toolsets.TOOLSETS, "default", {"platform_toolsets": {"cli": "a,b"}}, ["cli"], False, HIDER)
    assert isinstance(found["cli"].get("tools"), Unknown)
    found = shaped.read(SERVERS, "default", {"mcp_servers": {"a": "x"}}, ["a"], False, HIDER)
    assert isinstance(found["a"].get("command"), Unknown)
    assert shaped.express(SERVERS, found["a"]) == {}


def test_no_secret_is_read_or_expressed() -> None:
    entry = {
        "url": "https://example.org/",
        "headers": {"Authorization": "plain-one", "X": "${X_NAME}", "Y": "Bearer ${B}"},
        "auth": {"client_secret": "plain-two", "id": "me"},
    }
    raw = {"mcp_servers": {"a": entry, "b": {"url": "https://me:plain-three@example.org/"}}}
    raw["mcp_servers"]["c"] = {"command": "x", "args": ["--key", "a-secret-of-the-home"]}
    found = shaped.read(SERVERS, "default", raw, [], True, HIDER)
    text = repr(found)
    assert not [word for word in ("plain-one", "plain-two", "plain-three", "a-secret-of") if word in text]
    assert shaped.express(SERVERS, found["a"]) == {
        "url": "https://example.org/",
        "headers": {"X": {"secret": "X_NAME"}, "Y": "Bearer ${B}"},
        "extra": {"auth": {"id": "me"}},
    }
    assert shaped.express(SERVERS, found["b"]) == {}
    assert shaped.express(SERVERS, found["c"]) == {"command": "x"}


def test_a_credential_in_the_clear_is_refused() -> None:
    refused = SERVERS.refused({"url": "https://a:b@example.org", "headers": {"Cookie": "x", "Y": "Bearer ${B}"}})
    assert set(refused) == {"url", "headers"} and "Cookie" in refused["headers"]
    assert SERVERS.refused({"command": "x", "extra": {"auth": "oauth"}}) == {}


def change(name: str, write: Any, observed: Any = ABSENT) -> FieldChange:
    return FieldChange(name, FieldRow.SET, write, observed, None, shape_of(None), write)


def action(path: str, *changes: FieldChange, row: Row = Row.UPDATE, **more: Any) -> Action:
    return Action(row, Address.parse(f"main/default/{path}"), changes=changes, **more)


def test_edits_touch_only_what_differs() -> None:
    hidden = {"$hidden": "d1"}
    made = shaped.edits(
        SERVERS,
        action(
            "mcp_servers/a.b",
            change("env", {"A": "2", "K": hidden}, {"A": "1", "K": hidden, "GONE": "x"}),
            change("timeout", CLEAR, 3),
            change("extra", {"auth": "oauth"}, {"tools": {}, "auth": "none"}),
        ),
    )
    base = ["mcp_servers", "a.b"]
    assert made.sets == [[[*base, "env", "A"], "2"], [[*base, "auth"], "oauth"]]
    assert made.unsets == [[*base, "env", "GONE"], [*base, "timeout"], [*base, "tools"]]
    with pytest.raises(CannotWrite):
        shaped.edits(SERVERS, action("mcp_servers/a", change("args", ["x", hidden], ["x"])))
    gone = shaped.edits(plugins.PLUGINS, action("plugins/a", row=Row.DELETE))
    assert gone.removes == [[["plugins", "enabled"], "a"], [["plugins", "disabled"], "a"]]
    assert gone.unsets == [["plugins", "entries", "a"]]


def test_a_member_leaves_the_others_alone() -> None:
    raw = {"plugins": {"enabled": ["b", 7, "a"]}}
    on, off = ["plugins", "enabled"], ["plugins", "disabled"]
    assert parts.with_members(raw, [[off, "a"]], [[on, "a"]]) == [[on, ["b", 7]], [off, ["a"]]]
    assert parts.with_members(raw, [[on, "7"]], [[off, "x"]]) == []
    with pytest.raises(parts.NoList):
        parts.with_members({"plugins": {"enabled": "a"}}, [[on, "b"]], [])
    made = Edits()
    plugins.PLUGINS.edit("a", {"enabled": CLEAR}, {}, made)
    assert (made.adds, made.removes) == ([], [[on, "a"], [off, "a"]])


FACTS: list[tuple[Action, dict[str, Any], set[Fact]]] = [
    (action("mcp_servers/a", change("args", ["x"])), {"command": "x"}, {Fact.RUNS_CODE}),
    (action("mcp_servers/a", change("timeout", 3)), {"command": "x"}, set()),
    (action("mcp_servers/a", change("enabled", True)), {"url": "x"}, {Fact.NEW_ADDRESS}),
    (action("mcp_servers/a", change("enabled", False)), {"command": "x"}, set()),
    (action("mcp_servers/a", change("env", {"A": "${K}"})), {"command": "x"}, {Fact.RUNS_CODE, Fact.NEW_CREDENTIAL}),
    (action("mcp_servers/a", change("extra", {"trust": True})), {"url": "x"}, {Fact.LOOSENS_SECURITY}),
    (action("toolsets/cli", change("tools", ["a", "b"], ["a"])), {}, {Fact.LOOSENS_SECURITY}),
    (action("toolsets/cli", change("tools", {"only": ["a"]}, ["a", "b"])), {}, set()),
    (action("toolsets/cli", change("tools", ["a"])), {}, {Fact.LOOSENS_SECURITY}),
    (action("toolsets/cli", change("tools", CLEAR, ["a"])), {}, {Fact.LOOSENS_SECURITY}),
    (action("plugins/a", change("enabled", True)), {}, {Fact.RUNS_CODE}),
    (action("plugins/a", change("enabled", False)), {}, set()),
    (action("skills/a", change("enabled", True)), {}, set()),
    (action("skills/a", change("content", "d"), carries={"files": {"SKILL.md": ""}}), {}, set()),
    (action("skills/a", change("content", "d"), carries={"files": {"SKILL.md": "", "x.py": ""}}), {}, {Fact.RUNS_CODE}),
]


@pytest.mark.parametrize(("row", "effective", "facts"), FACTS)
def test_facts(row: Action, effective: Any, facts: set[Fact]) -> None:
    assert toolfacts.facts(row, effective) == facts


OWNED: list[tuple[str, Any, str]] = [
    ("mcp_servers.fs.command", None, "mcp_servers"),
    ("mcp_servers", {"fs": {}}, "mcp_servers"),
    ("platform_toolsets.cli", [], "toolsets"),
    ("toolsets", [], "toolsets"),
    ("skills.disabled", [], "skills"),
    ("skills", {"disabled": []}, "skills"),
    ("skills", {"external_dirs": []}, ""),
    ("plugins.enabled", [], "plugins"),
    ("plugins.entries.a.k", 1, "plugins"),
    ("plugins.other", 1, ""),
    ("mcp.auto_reload_on_config_change", True, ""),
]


@pytest.mark.parametrize(("key", "value", "word"), OWNED)
def test_a_setting_that_a_kind_stands_for_is_refused_by_its_name(key: str, value: Any, word: str) -> None:
    why = dotted.owned(dotted.split(key), value)
    assert (f"belongs to {word}: declare it there" in why) if word else why == ""


def test_skills_need_no_config_beside_them() -> None:
    assert skills.store(Kind.SKILL, Store.MISSING) is Store.PROPER
    assert skills.store(Kind.SKILL, Store.IMPROPER) is Store.IMPROPER
    assert skills.store(Kind.PLUGIN, Store.MISSING) is Store.MISSING


def test_a_first_toolset_says_that_the_defaults_end() -> None:
    row = action("toolsets/cli", change("tools", ["web"]), row=Row.CREATE)
    assert "defaults are not" in review.tools(row).notes[0]
    assert review.tools(action("toolsets/cli", change("tools", ["web"], ["a"]))).notes == ()


CALLED = [
    ("---\nname: a\n---\n", "a"),
    ('---\ndescription: x\nname: "a b" \n---\n', "a b"),
    ("---\nx: 1\n---\nname: a\n", ""),
    ("name: a\n", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "name"), CALLED)
def test_the_name_that_a_skill_gives_itself(text: str, name: str) -> None:
    assert skillfolder.called(text) == name
