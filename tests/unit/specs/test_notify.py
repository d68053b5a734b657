"""`notify:` as written: what is read, and each refusal at its place."""

from __future__ import annotations

import pytest

from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text

REST = "homes: {main: {harness: native, path: /srv/home}}\n"


def text(block: str) -> str:
    return f"version: 1\nname: solo\nnotify:\n  ops: {block}\n{REST}"


def test_what_is_read() -> None:
    [target] = load_text(
        text("{url: 'https://hooks.example.org/x', on: [held, applied], only: [main]}")
    ).notify.values()
    assert target.url == {"url": "https://hooks.example.org/x"} and target.only == ("main",)
    assert target.name == "ops" and target.on == {"held", "applied"}
    [target] = load_text(text("{url: {env: NOTIFY_URL}, bearer: {env: NOTIFY_B}}")).notify.values()
    assert target.url == {"env": "NOTIFY_URL"} and target.bearer == {"env": "NOTIFY_B"}
    assert target.on == {"held", "drift", "failed"}
    assert load_text(f"version: 1\nname: solo\n{REST}").notify == {}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{}", "url is needed"),
        ("{url: }", "url is needed"),
        ("[x]", "a map is expected"),
        ("{url: 'http://hooks.example.org/x'}", "https:// is expected"),
        ("{url: 'ftp://hooks.example.org/x'}", "https:// is expected"),
        ("{url: 'file:///etc/passwd'}", "no URL"),
        ("{url: 'https://'}", "no URL"),
        ("{url: 'https://[::1'}", "no URL"),
        ("{url: 'https://h:99999/'}", "no URL"),
        ('{url: "https://h/a b"}', "no URL"),
        ("{url: 'https://ann:pw@hooks.example.org/'}", "a credential stands in it"),
        ("{url: {env: HOME}}", "is no variable for a message"),
        ("{url: {env: [x]}}", "is no variable for a message"),
        ("{url: {command: [cat, /etc/passwd]}}", "is not a key here"),
        ("{url: {file: /etc/passwd}}", "is not a key here"),
        ("{url: 'https://h/', bearer: {file: x}}", "is not a key here"),
        ("{url: 'https://h/', bearer: keep}", "{env: NAME} is expected"),
        ("{url: 'https://h/', on: [helt]}", '"helt" is none of'),
        ("{url: 'https://h/', on: held}", "a list is expected"),
        ("{url: 'https://h/', onn: [held]}", '"onn" is not a key here'),
        ("{url: 3}", "a text is expected"),
    ],
)
def test_refusals(block: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_text(text(block))
    assert said in str(caught.value) and "setup.yaml:4:" in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:1/"])
def test_this_machine_needs_no_encryption(url: str) -> None:
    assert load_text(text(f"{{url: '{url}'}}")).notify["ops"].url == {"url": url}


def test_a_token_in_it_is_never_shown() -> None:
    token = "ghp_" + "a1B2" * 9
    with pytest.raises(SpecError) as caught:
        load_text(text(f"{{url: 'https://h/', bearer: {token}}}"))
    assert token not in str(caught.value)
