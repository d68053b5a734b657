"""Channels as Hermes's loader puts them together, and what is written for them: tables of files and fields."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler_shape import channels, channelwrites, platforms
from reconciler_shape.channels import Dialect, Store

HERMES = Dialect()
NATIVE = Dialect(references=True, adapter="adapter", in_block=True)


def seen(raw: Any, env: Any = None, paired: Any = None, name: str = "telegram", dialect: Dialect = HERMES) -> Any:
    found = channels.observed(Store(raw, env or {}, {name: paired or []}), name, dialect)
    return None if found is None else dict(found.fields)


def block(**fields: Any) -> Any:
    return {"platforms": {"telegram": fields}}


@pytest.mark.parametrize(
    ("raw", "env", "enabled"),
    [
        (block(enabled=True), {}, True),
        (block(enabled="yes"), {}, True),
        (block(enabled="off"), {}, False),
        (block(extra={"a": 1}), {}, False),
        (block(extra={"a": 1}), {"TELEGRAM_BOT_TOKEN": "x"}, True),
        (block(enabled=False), {"TELEGRAM_BOT_TOKEN": "x"}, False),
        ({**block(enabled=True), "telegram": {"enabled": False}}, {}, False),
        ({"gateway": block(enabled=False), **block(enabled=True)}, {}, True),
        ({"gateway": block(enabled=True)}, {}, True),
    ],
)
def test_whether_a_channel_is_on(raw: Any, env: Any, enabled: bool) -> None:
    assert seen(raw, env)["enabled"] is enabled


@pytest.mark.parametrize(
    ("name", "raw", "env", "enabled"),
    [
        ("email", {}, dict.fromkeys(platforms.KNOWN["email"].enables[0], "x"), True),
        ("whatsapp", {"enabled": True}, {"WHATSAPP_ENABLED": "false"}, False),
        ("whatsapp", {"enabled": False}, {"WHATSAPP_ENABLED": "true"}, True),
        ("webhook", {"enabled": False}, {"WEBHOOK_ENABLED": "1"}, True),
    ],
)
def test_what_env_forces(name: str, raw: Any, env: Any, enabled: bool) -> None:
    raw = {"platforms": {name: {**raw, "extra": {"a": 1}}}}
    assert seen(raw, env, name=name)["enabled"] is enabled


@pytest.mark.parametrize(
    ("raw", "env", "paired", "allow", "everybody"),
    [
        ({}, {"TELEGRAM_ALLOWED_USERS": " 2, 1 ,"}, [], ["1", "2"], False),
        ({"TELEGRAM_ALLOWED_USERS": 5}, {}, [], ["5"], False),
        ({"TELEGRAM_ALLOWED_USERS": 5}, {"TELEGRAM_ALLOWED_USERS": "6"}, [], ["6"], False),
        ({}, {"TELEGRAM_ALLOWED_USERS": "1"}, ["7"], ["1", "7"], False),
        ({}, {"TELEGRAM_ALLOWED_USERS": "1,*"}, [], ["1"], True),
        (block(enabled=True), {"TELEGRAM_ALLOW_ALL_USERS": "yes"}, [], [], True),
        (block(allow_from=[1, "2"]), {}, [], ["1", "2"], False),
        # A list of the block's own narrows the one of `.env`.
        (block(allow_from=[1, 2]), {"TELEGRAM_ALLOWED_USERS": "2,3"}, ["1"], ["1", "2"], False),
        (block(extra={"allow_from": "4,5"}), {}, [], ["4", "5"], False),
        ({**block(extra={"allow_from": [1]}), "telegram": {"allow_from": [9]}}, {}, [], ["9"], False),
    ],
)
def test_who_may_talk(raw: Any, env: Any, paired: Any, allow: list[str], everybody: bool) -> None:
    found = seen(raw, env, paired)
    assert (found.get("allow", []), found["open"]) == (allow, everybody)


@pytest.mark.parametrize(
    ("raw", "env", "there"),
    [
        ({}, {}, False),
        ({}, {"TELEGRAM_BOT_TOKEN": "x"}, False),  # a credential alone is no channel: it can be declared
        ({}, {"TELEGRAM_HOME_CHANNEL": "-1"}, True),
        (block(), {}, False),
        (block(note=1), {}, True),
        ({"telegram": {"reactions": True}}, {}, False),
        ({"telegram": {"enabled": False}}, {}, True),
    ],
)
def test_whether_a_channel_is_there(raw: Any, env: Any, there: bool) -> None:
    store = Store(raw, env)
    assert channels.there(store, "telegram") is there
    assert (channels.standing(store, "telegram") is not None) is there


def test_credentials_are_only_named() -> None:
    env = {"TELEGRAM_BOT_TOKEN": "t", "OTHER": "o"}
    raw = block(enabled=True, token="${OTHER}", extra={"botToken": "${OTHER}", "port": 1})
    assert seen(raw, env, dialect=NATIVE)["secrets"] == {"token": "OTHER", "botToken": "OTHER"}
    assert seen(raw, env)["secrets"] == {"token": "TELEGRAM_BOT_TOKEN"}  # Hermes expands nothing there
    found = channels.observed(Store(block(token="in-the-clear")), "telegram", HERMES)
    assert found is not None and "secrets" not in found.fields and found.literals == {"token": "in-the-clear"}
    assert "in-the-clear" not in repr(found)


@pytest.mark.parametrize(
    ("raw", "env", "chat"),
    [
        ({}, {"TELEGRAM_HOME_CHANNEL": "-1"}, "-1"),
        ({}, {"TELEGRAM_HOME_CHANNEL": "-1", "TELEGRAM_HOME_CHANNEL_THREAD_ID": "7"}, {"chat": "-1", "thread": "7"}),
        (block(home_channel={"chat_id": 3}), {}, "3"),
        (block(home_channel={"chat_id": 3}), {"TELEGRAM_HOME_CHANNEL": "-1"}, "-1"),
    ],
)
def test_the_home_chat(raw: Any, env: Any, chat: Any) -> None:
    assert seen(raw, env)["owner_chat"] == chat


@pytest.mark.parametrize(
    ("raw", "env", "paired", "fields", "sets", "unsets", "variables", "revoke"),
    [
        ({}, {}, [], {"enabled": True}, [(("platforms", "telegram", "enabled"), True)], [], {}, []),
        ({"telegram": {"enabled": False}}, {}, [], {"enabled": True}, [(("telegram", "enabled"), True)], [], {}, []),
        (
            {}, {"TELEGRAM_ALLOWED_USERS": "1,9"}, [], {"allow": ["1", "2"]},
            [], [], {"TELEGRAM_ALLOWED_USERS": "1,2"}, [],
        ),
        ({}, {"TELEGRAM_ALLOWED_USERS": "1"}, ["1"], {"allow": []}, [], [], {"TELEGRAM_ALLOWED_USERS": None}, ["1"]),
        ({"TELEGRAM_ALLOWED_USERS": 1}, {}, [], {"allow": None}, [], [("TELEGRAM_ALLOWED_USERS",)], {}, []),
        (
            {"discord": 1, **block(allow_from=[1])}, {}, [], {"allow": ["2"]},
            [(("platforms", "telegram", "allow_from"), ["2"])], [], {"TELEGRAM_ALLOWED_USERS": "2"}, [],
        ),
        ({}, {"TELEGRAM_ALLOWED_USERS": "*"}, [], {"open": False}, [], [], {"TELEGRAM_ALLOWED_USERS": None}, []),
        (
            {}, {"TELEGRAM_ALLOWED_USERS": "*,1"}, [], {"allow": ["1", "2"]},
            [], [], {"TELEGRAM_ALLOWED_USERS": "*,1,2"}, [],
        ),
        ({}, {}, [], {"open": True}, [], [], {"TELEGRAM_ALLOW_ALL_USERS": "true"}, []),
        ({}, {}, [], {"admins": ["1"]}, [(("platforms", "telegram", "extra", "allow_admin_from"), ["1"])], [], {}, []),
        (
            block(extra={"allow_admin_from": [1, 2], "group_allow_admin_from": [2]}), {}, [], {"admins": ["1"]},
            [
                (("platforms", "telegram", "extra", "allow_admin_from"), ["1"]),
                (("platforms", "telegram", "extra", "group_allow_admin_from"), ["1"]),
            ], [], {}, [],
        ),
        (
            {}, {"TELEGRAM_HOME_CHANNEL": "1", "TELEGRAM_HOME_CHANNEL_THREAD_ID": "2"}, [], {"owner_chat": "3"},
            [], [], {"TELEGRAM_HOME_CHANNEL": "3", "TELEGRAM_HOME_CHANNEL_THREAD_ID": None}, [],
        ),
        (
            block(extra={"a": {"b": 1, "c": 2}, "d": 3}), {}, [], {"extra": {"a": {"b": 1, "c": 4}}},
            [(("platforms", "telegram", "extra", "a", "c"), 4)], [("platforms", "telegram", "extra", "d")], {}, [],
        ),
        (
            {**block(extra={"require_mention": True}), "telegram": {"require_mention": True}}, {}, [],
            {"extra": {"require_mention": False}}, [(("telegram", "require_mention"), False)], [], {}, [],
        ),
        (
            block(extra={"key": {"$hidden": "x"}, "n": 1}), {}, [], {"extra": {"key": {"$hidden": "x"}, "n": 2}},
            [(("platforms", "telegram", "extra", "n"), 2)], [], {}, [],
        ),
    ],
)  # fmt: skip
def test_what_is_written(
    raw: Any, env: Any, paired: Any, fields: Any, sets: Any, unsets: Any, variables: Any, revoke: Any
) -> None:
    made = channelwrites.changes(Store(raw, env, {"telegram": paired}), "telegram", fields, HERMES)
    assert (made.sets, made.unsets, made.env, made.revoke) == (sets, unsets, variables, revoke)


def test_a_channel_is_taken_away_but_for_its_credentials() -> None:
    raw = {**block(enabled=True), "telegram": {"enabled": True, "reactions": True}}
    env = {"TELEGRAM_BOT_TOKEN": "t", "TELEGRAM_ALLOWED_USERS": "1,2", "TELEGRAM_HOME_CHANNEL": "3"}
    made = channelwrites.removal(Store(raw, env, {"telegram": ["1", "9"]}), "telegram")
    assert made.unsets == [("platforms", "telegram"), ("telegram", "enabled")]
    assert made.env == {"TELEGRAM_ALLOWED_USERS": None, "TELEGRAM_HOME_CHANNEL": None} and made.revoke == ["1"]


def test_native_keeps_admins_in_the_block_and_references_as_they_are() -> None:
    fields = {"admins": ["1"], "adapter": "socket", "secrets": {"botToken": "KEY", "token": "TELEGRAM_BOT_TOKEN"}}
    made = channelwrites.changes(Store({}), "telegram", fields, NATIVE)
    assert dict(made.sets) == {
        ("platforms", "telegram", "allow_admin_from"): ["1"],
        ("platforms", "telegram", "extra", "adapter"): "socket",
        ("platforms", "telegram", "extra", "botToken"): "${KEY}",
    }


def test_paths_that_are_a_channels() -> None:
    for path in (
        "platforms.x.enabled",
        "gateway.platforms.x.extra.a.b",
        "telegram.allow_from",
        "TELEGRAM_HOME_CHANNEL",
    ):
        assert channels.covers(path.split(".")), path
    for path in ("platforms.x.reply_to_mode", "telegram.reactions", "terminal.cwd", "platforms", "agent.max_turns"):
        assert not channels.covers(path.split(".")), path
