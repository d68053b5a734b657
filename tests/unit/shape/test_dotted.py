"""Dotted paths of config.yaml, and what a reference means there."""

from __future__ import annotations

import json

import pytest

from reconciler_shape import dotted


def test_settings_paths() -> None:
    for key in ("a", "a.b", 'providers."my.host".base_url', '"a\\"b".c', "mcp servers.x"):
        assert dotted.join(dotted.split(key)) == key
    assert json.dumps(dotted.split('a."b.c"')) == '["a", "b.c"]'
    for key in ("", ".a", "a.", 'a."b', "a..b"):
        with pytest.raises(dotted.BadKey):
            dotted.split(key)


def test_a_named_secret_and_back() -> None:
    value = {"token": {"secret": "BOT_TOKEN"}, "list": [{"api_key": {"secret": "KEY"}}], "name": "x"}
    raw, names = dotted.referenced(value)
    assert raw == {"token": "${BOT_TOKEN}", "list": [{"api_key": "${KEY}"}], "name": "x"}
    assert names == {"BOT_TOKEN", "KEY"}
    assert dotted.named(raw, "") == value
    assert dotted.named("${HOME}", "path") == "${HOME}"


def test_a_part_of_a_value_is_declared_as_a_whole() -> None:
    raw = {"list": [1], "one": 2, "map": {"a": {}}}
    assert "list is a list" in dotted.through_a_value(("list", "x"), raw)
    assert "one is a single value" in dotted.through_a_value(("one", "x"), raw)
    assert not dotted.through_a_value(("map", "a", "new", "er"), raw)
