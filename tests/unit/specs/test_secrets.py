"""Rule 5 and law L5: what looks like a credential is refused, and no message ever shows one."""

from __future__ import annotations

import json

import pytest

from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text
from reconciler_specs.secrets import looks_secret, may_hold_secret, secret_key

# Put together here, so that no file of this repository holds what a scanner would take for a live one.
FAKE = "FAKE0NOT0A0REAL0TOKEN"
TOKENS = {
    "openai": "sk-" + FAKE,
    "openrouter": "sk-" + "or-v1-" + FAKE,
    "github": "ghp" + "_" + FAKE,
    "github_oauth": "gho" + "_" + FAKE,
    "github_fine": "github" + "_pat_" + FAKE,
    "slack_bot": "xoxb" + "-" + FAKE,
    "slack_user": "xoxp" + "-" + FAKE,
    "slack_app": "xoxa" + "-" + FAKE,
    "aws": "AKIA" + "FAKE0NOT0A0REAL0"[:16],
    "google": "AIza" + (FAKE * 2)[:35],
    "telegram": "123456789" + ":" + (FAKE * 2)[:35],
    "jwt": "eyJ" + FAKE + "." + "eyJ" + FAKE + "." + FAKE,
    "pem": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "bearer": "Bearer " + FAKE,
    "viable": "vib" + "_" + FAKE,
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_tokens(token: str) -> None:
    assert looks_secret(token)
    assert looks_secret(f"use {token} for this")


ADDRESS = "https://me:" + "hunter22" + "@llm.example/v1"


def test_an_address_with_a_password_in_it_is_one_as_a_whole_value() -> None:
    assert looks_secret(ADDRESS)
    assert not looks_secret(f"see {ADDRESS} for an example")
    assert may_hold_secret(f'{{"base_url": "{ADDRESS}"}}')
    profiles = f"profiles: {{default: {{settings: {{a.b: '{ADDRESS}'}}}}}}"
    text = f"version: 1\nname: a\nhomes: {{m: {{harness: x, path: /x, {profiles}}}}}\n"
    with pytest.raises(SpecError) as error:
        load_text(text)
    assert "a credential stands in it" in str(error.value) and "hunter22" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "", "sk-learn is a library", "task-force-of-the-great-north", "ghp_short", "xox", "AKIA", "eyJhbGciOi",
        "Bearer $TOKEN", "the bearer of this letter", "-----BEGIN CERTIFICATE-----", "12:30 to 13:45", "vib_x",
        "telegram:123456789", "1001234567890:x", "risk-assessment-of-everything-here",
        "https://me:${PASSWORD}@llm.example", "https://me:<password>@llm.example", "postgres://me@db.example/x",
        "https://llm.example/a:b@c", "http://127.0.0.1:8080/@me",
    ],
)  # fmt: skip
def test_texts_that_are_none(text: str) -> None:
    assert not looks_secret(text)


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("token", True), ("api_key", True), ("API_KEY", True), ("botToken", True), ("clientSecret", True),
        ("password", True), ("credential", True), ("providers.x.api_key", True), ("key", True),
        ("sessionKey", False), ("store_key", False), ("a.sessionKey", False), ("max_tokens", False),
        ("keys", False), ("keyboard", False), ("passwords", False), ("model", False),
    ],
)  # fmt: skip
def test_keys(key: str, secret: bool) -> None:
    assert secret_key(key) is secret


PLACES = {
    "setting": "settings: {a: %s}",
    "setting_list": "settings: {a: [1, [%s]]}",
    "setting_map": "settings: {a: {b: %s}}",
    "setting_key_text": "settings: {a: {%s: 1}}",
    "prompt": "jobs: {b: {schedule: {every: 2h}, deliver: local, prompt: %s}}",
    "schedule": "jobs: {b: {schedule: %s, deliver: local, prompt: x}}",
    "deliver": "jobs: {b: {schedule: {every: 2h}, deliver: %s, prompt: x}}",
    "job_key": "jobs: {%s: {schedule: {every: 2h}, deliver: local, prompt: x}}",
    "unknown_key": "%s: {}",
    "unknown_value": "jobz: %s",
    "duplicate": "settings: {%s: 1, %s: 2}",
    "secret_name": "inference: {models: {m: {provider: p, model: m, key: {secret: %s}}}, default: m}",
    "model_key": "inference: {models: {m: {provider: p, model: m, key: %s}}, default: m}",
    "model": "inference: {models: {m: {provider: p, model: m}}, default: %s}",
    "file": "files: {A.md: {text: %s}}",
    "file_path": "files: {%s: {text: x}}",
    "source": "files: {A.md: {source: %s}}",
    "mode": "files: {A.md: {text: x, mode: %s}}",
    "unset": "jobs: {b: {schedule: {every: 2h}, deliver: local, prompt: x, unset: [%s]}}",
    "mode_of_field": "jobs: {b: {schedule: {every: 2h}, deliver: local, prompt: x, fields: {prompt: %s}}}",
    "context": "jobs: {b: {schedule: {every: 2h}, deliver: local, prompt: x, context_from: [%s]}}",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("token", [TOKENS["openai"], TOKENS["telegram"], TOKENS["jwt"]], ids=["sk", "telegram", "jwt"])
def test_refused_and_never_shown(place: str, token: str) -> None:
    quoted = json.dumps(token)
    text = "version: 1\nname: a\nhomes: {m: {harness: hermes, path: /x, profiles: {default: {"
    for written in (quoted, '"\\x' + f"{ord(token[0]):02x}" + token[1:] + '"'):
        with pytest.raises(SpecError) as caught:
            load_text(text + place.replace("%s", written) + "}}}}\n")
        assert any("credential" in r.message or "secret" in r.message for r in caught.value.reasons)
        assert token[4:] not in str(caught.value)


@pytest.mark.parametrize("key", ["api_key", "token", "providers.x.clientSecret", "nested: {password"])
def test_any_text_under_a_credential_key(key: str) -> None:
    value = "hunter" + "2two"
    close = "}" if "{" in key else ""
    text = "version: 1\nname: a\nhomes: {m: {harness: hermes, path: /x, profiles: {default: {settings: "
    text += f"{{{key}: {value}{close}}}" + "}}}}\n"
    with pytest.raises(SpecError) as caught:
        load_text(text)
    assert "never written" in str(caught.value)
    assert value not in str(caught.value)


def test_elsewhere_in_the_setup() -> None:
    token = TOKENS["github"]
    for extra in (
        f"x-notes: {token}",
        f"name: {token}",
        f"{token}: 1",
        f"parameters: {{p: {{type: string, default: {token}}}}}",
        f"policy: {{on_drift: {token}}}",
        f"places: {{a: {{exec: [curl, -H, {token}]}}}}",
        f"include: [{token}]",
        f"released: [{token}]",
        f"version: {token}",
    ):
        with pytest.raises(SpecError) as caught:
            load_text("homes: {m: {harness: hermes, path: /x}}\n" + extra + "\n")
        assert "credential" in str(caught.value)
        assert token not in str(caught.value)


def test_default_of_a_credential_parameter() -> None:
    text = "version: 1\nname: a\nhomes: {m: {harness: hermes, path: /x}}\n"
    with pytest.raises(SpecError, match="never written"):
        load_text(text + "parameters: {api_token: {type: string, default: hunter2}}\n")


def test_a_parse_error_shows_no_line() -> None:
    token = TOKENS["openai"]
    with pytest.raises(SpecError) as caught:
        load_text(f"a: [{token}\nb: @{token}: *x")
    assert token not in str(caught.value)


_FREE = (
    "mcp_servers: {a: {command: x, extra: {%s: %s}}}",
    "mcp_servers: {a: {command: x, env: {%s: %s}}}",
    "mcp_servers: {a: {url: x, headers: {%s: %s}}}",
    "plugins: {a: {enabled: true, config: {deep: {%s: %s}}}}",
    "settings: {a.%s: %s}",
)


@pytest.mark.parametrize("form", _FREE)
@pytest.mark.parametrize(
    ("key", "refused"),
    [("api_key", True), ("client_secret", True), ("A_TOKEN", True), ("sessionKey", False), ("store_key", False)],
)
def test_no_secret_stands_in_what_is_free(form: str, key: str, refused: bool) -> None:
    """S0-24: the rule for keys, and its exceptions, in every place where an author may write any key."""
    head = "version: 1\nname: s\nhomes:\n  main:\n    harness: native\n    path: /x\n    profiles: {default: {%s}}\n"
    load_text(head % (form % (key, "{secret: NAME}")))
    if not refused:
        load_text(head % (form % (key, "plain")))
        return
    with pytest.raises(SpecError) as caught:
        load_text(head % (form % (key, "plain")))
    assert "only named here" in str(caught.value) and "plain" not in str(caught.value)


@pytest.mark.parametrize("value", ["ghp_" + "a1B2" * 9, "https://ann:hunter2@git.example/x"])
def test_of_a_credential_one_thing_is_said(value: str) -> None:
    """It is taken out of the tree, and what stands there instead is no fault of anybody's."""
    homes = "homes: {m: {harness: native, path: /h}}\n"
    text = f"version: 1\nname: s\n{homes}state: {{backend: git, remote: '{value}'}}\n"
    with pytest.raises(SpecError) as caught:
        load_text(text, "setup.yaml")
    assert len(caught.value.reasons) == 1 and value not in str(caught.value)


def test_a_long_word_is_looked_through_once() -> None:
    """From each of its letters on it would take minutes: one job could hold up every plan."""
    text = "a@b " + "0123456789abcdef" * 20_000
    assert not may_hold_secret(text)
