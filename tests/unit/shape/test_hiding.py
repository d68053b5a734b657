"""What a reference is and what is the secret itself, under a credential's key."""

from __future__ import annotations

import pytest

from reconciler_shape.hiding import Hider, is_hidden


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ({"secret": "BOT_TOKEN"}, False),
        ({"dotenv": "BOT_TOKEN"}, False),
        ({"secret": "hunter2hunter2"}, True),  # somebody's own mapping, with the secret in it
        ({"secret": "AKIAIOSFODNN7EXAMPLE"}, True),
        ({"secret": "BOT_TOKEN", "more": "x"}, True),
        ("${BOT_TOKEN}", False),
        ("plain", True),
    ],
)
def test_under_a_credentials_key(value: object, hidden: bool) -> None:
    assert is_hidden(Hider(b"k").value({"api_key": value})) is hidden
