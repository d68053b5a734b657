"""Routes and webhooks of a Hermes-shaped home, between their records and the setup's words."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler_shape import routes, webhooks

A = {"name": "a", "platform": "discord", "guild_id": "9", "profile": "coder"}
B = {"name": "b", "platform": "slack", "chat_id": "C1", "profile": "default", "note": "x"}
NAMELESS = {"platform": "x", "profile": "default"}


def test_a_route_in_the_setups_words() -> None:
    assert routes.observed([NAMELESS, B, A], "a") == {
        "match": {"channel": "discord", "guild": "9"}, "profile": "coder", "order": ["b"],
    }  # fmt: skip
    assert routes.observed([B, A], "a", ours=["a"])["order"] == []
    for odd in ({**A, "enabled": False}, {**A, "guild_id": 9}):
        assert "$native" in routes.observed([odd], "a")["match"]


@pytest.mark.parametrize(
    ("raw", "where", "count"),
    [
        ({}, ("gateway", "profile_routes"), 0),
        ({"gateway": {"profile_routes": [A]}}, ("gateway", "profile_routes"), 1),
        ({"gateway": {"profile_routes": [A]}, "profile_routes": []}, ("profile_routes",), 0),
    ],
)
def test_where_routes_count(raw: Any, where: Any, count: int) -> None:
    assert routes.place(raw) == where and len(routes.entries(raw)) == count


def test_what_is_no_list_is_not_read_as_none() -> None:
    with pytest.raises(ValueError, match="no list"):
        routes.entries({"gateway": {"profile_routes": {}}})


def test_a_route_is_put_by_name_and_others_stay() -> None:
    made = routes.put([NAMELESS, B], "a", {"match": {"channel": "discord", "guild": "9"}, "profile": "coder"})
    assert made == [NAMELESS, B, A]
    made = routes.put([B, A], "b", {"match": {"channel": "slack"}, "profile": "coder"})
    assert made[0] == {"name": "b", "platform": "slack", "profile": "coder", "note": "x"} and B["chat_id"] == "C1"
    assert routes.without([NAMELESS, A, B], "a") == [NAMELESS, B]


@pytest.mark.parametrize(
    ("names", "one", "after", "before", "result"),
    [
        ("abc", "a", "b", "", "bac"),
        ("abc", "a", "c", "", "bca"),
        ("abc", "c", "", "b", "acb"),
        ("abc", "c", "", "", "abc"),
        ("axb", "a", "b", "", "xba"),
        ("abc", "b", "c", "a", "acb"),
    ],
)
def test_a_route_moves_as_far_as_needed(names: str, one: str, after: str, before: str, result: str) -> None:
    found = [{"name": name} for name in names]
    made = routes.put(found, one, {"order": {"after": list(after), "before": list(before)}})
    if (names, one, after, before) == ("abc", "b", "c", "a"):
        assert [e["name"] for e in made].index("b") > [e["name"] for e in made].index("c")
    else:
        assert "".join(entry["name"] for entry in made) == result


RECORD = {
    "description": "Agent-created subscription: gh", "events": ["push"], "secret": "s3cret-value", "prompt": "P {x}",
    "skills": [], "deliver": "telegram", "created_at": "T", "deliver_extra": {"chat_id": 42, "thread_id": "7"},
}  # fmt: skip


def test_a_webhook_in_the_setups_words() -> None:
    fields, secret = webhooks.observed(RECORD, "gh", {"ZED": "s3cret-value", "HOOK": "s3cret-value"})
    assert (fields["secret"], secret) == ({"secret": "HOOK"}, None)
    assert fields["deliver"] == {"to": "telegram", "chat": "42", "thread": "7"}
    assert webhooks.defaults(fields, "gh") == {"description", "deliver_only"}
    fields, secret = webhooks.observed(RECORD, "gh", {"HOOK": "another"})
    assert "secret" not in fields and secret == "s3cret-value"
    assert webhooks.observed({**RECORD, "secret": "${HOOK}"}, "gh", {})[0]["secret"] == {"secret": "HOOK"}
    for odd in ({"deliver_extra": {"repo": "x"}}, {"deliver": 5}):
        assert "$native" in webhooks.observed({**RECORD, **odd}, "gh", {})[0]["deliver"]


@pytest.mark.parametrize("target", ["local", {"to": "slack"}, {"to": "slack", "chat": "C1"}, "owner_chat"])
def test_targets_come_back(target: Any) -> None:
    made = webhooks.record(None, "gh", {"deliver": target}, "s", "T")
    assert webhooks.observed(made, "gh", {})[0]["deliver"] == target


def test_an_update_keeps_secret_time_and_unknown_keys() -> None:
    old = {**RECORD, "script": "x.sh"}
    made = webhooks.record(old, "gh", {"events": ["a.b"], "deliver_only": True, "description": None}, None, "later")
    assert made == {**old, "events": ["a.b"], "deliver_only": True}
    assert webhooks.record(made, "gh", {"deliver_only": None, "deliver": "local"}, "new", "later") == {
        **{key: value for key, value in old.items() if key != "deliver_extra"}, "events": ["a.b"], "secret": "new",
        "deliver": "log",
    }  # fmt: skip


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"a": 1}', b"\xff"])
def test_a_broken_file_is_not_an_empty_one(data: bytes) -> None:
    with pytest.raises(webhooks.NotReadable):
        webhooks.parse(data, "f")


def test_no_file_and_an_empty_one() -> None:
    assert webhooks.parse(None, "f") == webhooks.parse(b" \n", "f") == {}
