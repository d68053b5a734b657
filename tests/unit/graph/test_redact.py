"""What is blotted out and escaped before a person sees it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.redact import BLOT, hide, is_hidden, scrub, unsayable
from reconciler_specs.secrets import looks_secret

# Taken apart, so that no scanner takes this file for a leak.
TOKENS = [
    "sk-" + "a1B2" * 8,
    "ghp_" + "a1B2" * 9,
    "xoxb-" + "1234567890-abcdef",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "eyJ" + "hbGciOiJIUzI1" + ".eyJ" + "zdWIiOiIxMjM0" + ".abc-def",
    "12345678:" + "a" * 35,
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_blotted_out_and_the_rest_stays(token: str) -> None:
    for text in (f"key {token} was refused", f'{{"key": "{token}"}}', f"https://x.test/?k={token}&b=1", token):
        shown = scrub(text)
        assert token not in shown and BLOT in shown and not looks_secret(shown)
        assert shown.startswith(text[:3]) or text == token
    assert scrub(f"key {token} was refused") == f"key {BLOT} was refused"


def test_bearer_and_private_keys() -> None:
    assert scrub("Authorization: Bearer " + "x" * 24 + " end") == f"Authorization: Bearer {BLOT} end"
    pem = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIabc\n-----END RSA " + "PRIVATE KEY-----"
    assert scrub(f"a\n{pem}\nb") == f"a\n{BLOT}\nb"
    assert scrub(f"a\n{pem[:30]}\nMII") == f"a\n{BLOT}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb\x00\x9b1m", "a\\x0db\\x00\\x9b1m"),
        ("user\u202enimda", "user\\u202enimda"),
        ("\u2066a\u2069\u200f\ufeff", "\\u2066a\\u2069\\u200f\\ufeff"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("grüße 👩\u200d💻 日本", "grüße 👩\u200d💻 日本"),
        ("lone \ud800", "lone \\ud800"),
    ],
)
def test_escapes(text: str, shown: str) -> None:
    assert scrub(text) == shown


@given(st.text())
def test_scrubbed_text_can_be_printed_and_scrubbed_again(text: str) -> None:
    shown = scrub(text)
    shown.encode("utf-8")
    assert "\x1b" not in shown and "\u202e" not in shown
    assert scrub(shown) == shown


def test_hidden_values() -> None:
    one, two = hide("secret", b"k" * 32), hide("secret", b"K" * 32)
    assert is_hidden(one) and one == hide("secret", b"k" * 32) and one != two
    assert "secret" not in str(one)
    assert not is_hidden("x") and not is_hidden({"$hidden": "a", "b": 1}) and not is_hidden({})


@pytest.mark.parametrize(
    "text",
    [
        "https://ann:hunter2@git.example/x",
        "cannot reach https://ann:hunter2@git.example/x: refused",
        "(postgres://:hunter2@db/x), and redis://u:hunter2@[::1]:6379",
    ],
)
def test_the_password_of_an_address_is_blotted_out_wherever_it_stands(text: str) -> None:
    assert "hunter2" not in scrub(text) and BLOT in scrub(text)


@pytest.mark.parametrize(
    "text", ["https://ann@git.example/x", "https://u:${PW}@h/x", "https://u:***@h", "see 10:30, ask ann@example.org"]
)
def test_an_address_without_one_is_shown(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize(
    ("value", "may"),
    [
        ("x", True),
        (["a", {"b": 1}], True),
        ({"$hidden": "00"}, False),
        ([{"$native": 1}], False),
        ({"a": {"$hidden": "0"}}, False),
    ],
)
def test_what_a_setup_can_say(value: Any, may: bool) -> None:
    assert unsayable(value) is not may
