"""The older setup.json becomes a setup that loads, with a note for whatever it could not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler_specs.address import Address
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text
from reconciler_specs.upgrade import upgrade

OLD: dict[str, Any] = {
    "harness": "hermes",
    "profiles": {
        "default": {
            "schema_version": 1,
            "parameters": {"workspace": {"default": "/srv"}},
            "inference": {
                "models": {
                    "daily": {"provider": "openrouter", "model": "a/b", "credential": "OPENROUTER_API_KEY"},
                    "own": {"provider": "custom", "model": "c", "endpoint": "http://x/v1", "placeholder_key": "none"},
                },
                "default": "daily",
                "unattended": "own",
            },
            "jobs": {
                "brief": {
                    "schedule": {"kind": "cron", "expr": "0 8 * * *", "tz": "Europe/Vienna"},
                    "prompt": "Look at {{workspace}} and $(literally) this.",
                    "deliver": "discord:123",
                    "model": "daily",
                    "toolsets": ["web"],
                    "workdir": "{{workspace}}/x",
                    "repeat": {"times": 3, "completed": 1},
                    "enabled": False,
                },
                "watch": {
                    "schedule": {"kind": "interval", "minutes": 30},
                    "script": "disk.sh",
                    "no_agent": True,
                    "prompt": "ignored",
                    "deliver": "origin",
                },
                "once": {
                    "schedule": {"kind": "once", "run_at": "2031-02-03T09:00:00+01:00"},
                    "script": "pre.sh",
                    "prompt": "x",
                    "monitor_url": "https://example.org",
                    "surprise": 1,
                },
            },
            "extensions": {"hermes": {"config": {"agent.max_turns": 120}}, "orchestrator": {"config": {"a": 1}}},
            "moved": [{"from": "old", "to": "brief"}],
            "removed": [{"key": "gone"}],
        }
    },
}


def test_all_of_it() -> None:
    done = upgrade(json.dumps(OLD), name="solo", home_id="main", path="/data")
    desired = load_text(done.text).desired("main")

    def fields(address: str) -> Any:
        return dict(desired[Address.parse(f"main/default/{address}")].fields)

    daily = {"provider": "openrouter", "model": "a/b", "key": {"secret": "OPENROUTER_API_KEY"}}
    assert fields("jobs/brief") == {
        "name": "brief",
        "schedule": {"cron": "0 8 * * *", "tz": "Europe/Vienna"},
        "prompt": "Look at /srv and $(literally) this.",
        "deliver": {"to": "discord", "chat": "123"},
        "model": daily,
        "toolsets": ["web"],
        "workdir": "/srv/x",
        "repeat": 3,
        "paused": True,
    }
    assert fields("jobs/watch") == {
        "name": "watch", "schedule": {"every": "30m"}, "run": "disk.sh", "deliver": "local",
    }  # fmt: skip
    assert fields("jobs/once")["monitor"] == {"url": "https://example.org"}
    assert fields("jobs/once")["before"] == "pre.sh"
    assert fields("inference")["default"] == daily
    assert fields("inference")["unattended"] == {"provider": "custom", "model": "c", "base_url": "http://x/v1"}
    assert fields("settings/agent.max_turns") == {"value": 120}
    assert load_text(done.text).moved == (
        (Address.parse("main/default/jobs/old"), Address.parse("main/default/jobs/brief")),
    )
    notes = "\n".join(done.notes)
    for word in (
        "surprise",
        "orchestrator",
        "placeholder_key",
        "origin",
        "removed",
        "was not said",
        "prompt was left out",
    ):
        assert word in notes


def test_one_package_without_profiles() -> None:
    package = {**OLD["profiles"]["default"], "harness": "hermes"}
    assert load_text(upgrade(json.dumps(package)).text).homes["main"].profiles == ("default",)


def test_a_parameter_without_default_is_to_fill_in() -> None:
    done = upgrade('{"schema_version": 1, "parameters": {"w": {}}, "jobs": {}}')
    assert "with: {w: TODO}" in done.text
    assert any("fill in" in n for n in done.notes)


def test_no_credential_is_carried_over() -> None:
    token = "sk-" + "FAKE0NOT0A0REAL0TOKEN"
    old = {
        "schema_version": 1,
        "inference": {"models": {"m": {"provider": "p", "model": "x", "credential": token}}, "default": "m"},
        "jobs": {"b": {"schedule": {"kind": "interval", "minutes": 5}, "prompt": f"use {token}", "deliver": "local"}},
        "extensions": {"hermes": {"config": {"x.api_key": "hunter2two", "y": {"token": "hunter2two", "z": 1}}}},
    }
    done = upgrade(json.dumps(old))
    for text in (done.text, *done.notes):
        assert token not in text
        assert "hunter2two" not in text
    assert sum("credential" in n for n in done.notes) >= 3


@pytest.mark.parametrize("data", ["{}", "[]", "1", '{"schema_version": 2}', '{"jobs": {}}', "", "\x00", "{"])
def test_what_is_not_the_older_form(data: str) -> None:
    with pytest.raises(SpecError):
        upgrade(data)


@pytest.mark.parametrize(
    "junk",
    [None, 1, "x", [], [1], {"a": 1}, {"default": []}, {"default": {"jobs": [], "inference": 3, "extensions": []}}],
)
def test_odd_parts_make_notes_not_tracebacks(junk: Any) -> None:
    for key in ("profiles", "jobs", "inference", "extensions", "parameters", "moved", "removed"):
        upgrade(json.dumps({"schema_version": 1, key: junk}))
        upgrade(
            json.dumps({"schema_version": 1, "profiles": {"default": {key: junk, "jobs": {"b": {"schedule": junk}}}}})
        )
