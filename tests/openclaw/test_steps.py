"""Rows as one patch: what merges, what is taken away, and which lists are named."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.test_door import change
from reconciler.action import CLEAR, Action, Row
from reconciler.observe import ABSENT, Store
from reconciler_openclaw import edits, roster, steps
from reconciler_openclaw.authored import Authored
from reconciler_openclaw.view import View
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Address, Kind

NEW: dict[str, Any] = {"agents": {"entries": {"main": {}, "ops": {"model": "a/old", "tools": {"allow": ["x"]}}}}}
OLD: dict[str, Any] = {"agents": {"list": [{"id": "ops", "model": {"primary": "a/old", "fallbacks": ["a/f"]}}]}}


def config(tree: dict[str, Any], store: frozenset[str] = frozenset()) -> edits.Config:
    authored = Authored("/home/openclaw.json", tree, Store.PROPER)
    found = roster.read(tree, None)
    views = {
        name: View(name, found.agent(name), found, authored, "", Hider(b"k"), Hider(b"k"))
        for name in [*found.profiles, "ops"]
    }
    return edits.Config(authored, found, views, store)


def setting(profile: str, key: str, write: Any, seen: Any = ABSENT) -> Action:
    address = Address("main", profile, Kind.SETTING, key)
    return Action(Row.UPDATE, address, key, (change("value", write, seen),))


def inference(profile: str, **fields: Any) -> Action:
    return Action(
        Row.UPDATE,
        Address("main", profile, Kind.INFERENCE),
        changes=tuple(change(name, value) for name, value in fields.items()),
    )


def patch(tree: dict[str, Any], *actions: Action, store: frozenset[str] = frozenset()) -> edits.Patch:
    found = config(tree, store)
    return edits.patch(found, [edit for action in actions for edit in steps.edits(action, found)])


MODEL = {"provider": "a", "model": "new"}


@pytest.mark.parametrize(
    ("action", "body"),
    [
        (inference("default", default=MODEL), {"defaults": {"model": {"primary": "a/new"}}}),
        (inference("ops", default=MODEL), {"entries": {"ops": {"model": "a/new"}}}),
        (
            inference("ops", fallbacks=[MODEL]),
            {"entries": {"ops": {"model": {"primary": "a/old", "fallbacks": ["a/new"]}}}},
        ),
        (inference("ops", default=CLEAR), {"entries": {"ops": {"model": None}}}),
        (inference("ops", auxiliary={"image": MODEL}), {"entries": {"ops": {"imageModel": "a/new"}}}),
        (setting("ops", "tools.allow", ["y"], ["x"]), {"entries": {"ops": {"tools": {"allow": ["y"]}}}}),
    ],
)
def test_entries(action: Action, body: dict[str, Any]) -> None:
    assert patch(NEW, action).body == {"agents": body}


def test_a_list_of_agents_is_written_whole_and_named() -> None:
    found = patch(OLD, setting("default", "logging.level", "warn"), inference("default", default=MODEL))
    assert found.body == {
        "logging": {"level": "warn"},
        "agents": {"list": [{"id": "ops", "model": {"primary": "a/new", "fallbacks": ["a/f"]}}]},
    }
    assert found.replace == ["agents.list"]
    assert OLD["agents"]["list"][0]["model"]["primary"] == "a/old"


def test_an_agent_that_the_list_lacks_gets_an_entry() -> None:
    tree: dict[str, Any] = {"agents": {"list": []}}
    found = patch(tree, setting("default", "agents.entries.main.tools.profile", "full"))
    assert found.body == {"agents": {"list": [{"id": "main", "tools": {"profile": "full"}}]}}


def test_lists_that_go_with_an_object_are_named() -> None:
    tree = {"mcp": {"servers": {"x": {"args": ["-v"], "env": {"A": "b"}}}}}
    found = patch(tree, setting("default", "mcp.servers.x", CLEAR))
    assert (found.body, found.replace) == ({"mcp": {"servers": {"x": None}}}, ["mcp.servers.x.args"])


def test_a_provider_with_an_address_gets_its_models() -> None:
    wanted = {"own": {"base_url": "https://models.example/v1", "key": {"secret": "OWN_KEY"}}}
    row = inference("default", default={"provider": "own", "model": "m"}, providers=wanted)
    assert patch({}, row).body["models"] == {
        "providers": {
            "own": {
                "baseUrl": "https://models.example/v1",
                "apiKey": "${OWN_KEY}",
                "models": [{"id": "m", "name": "m"}],
            }
        }
    }


def test_a_secret_of_openclaws_store_is_named_as_one() -> None:
    found = patch({}, setting("default", "hooks.token", {"secret": "HOOK"}), store=frozenset({"HOOK"}))
    assert found.body["hooks"]["token"] == {"source": "store", "provider": "default", "id": "HOOK"}


def test_what_is_hidden_is_left_and_never_written() -> None:
    seen = {"key": {"$hidden": "d"}, "level": 1}
    assert patch({}, setting("default", "plugin.x", {**seen, "level": 2}, seen)).body == {"plugin": {"x": {"level": 2}}}
    with pytest.raises(edits.Refused, match=r"plugin\.x\.key"):
        patch({}, setting("default", "plugin.x", {"key": {"$hidden": "e"}, "level": 1}, seen))
