"""`.env`, maps of records, the `worker:` block, marked blocks, and secrets that were pasted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler_native import pasted, worker
from reconciler_native.dotenv import EnvFile
from reconciler_native.errors import LoadFailed, Refused
from reconciler_native.mapfile import MapFile
from reconciler_native.yamltext import YamlFile
from reconciler_shape import block
from reconciler_shape.hiding import Hider

TOKEN = "sk-" + "0123456789abcdef" * 2
ENV = '# keys\nA=1\nexport B="two"\n\nA=3\nEMPTY=\nnot a line\n'


def test_env_keeps_every_other_line() -> None:
    file = EnvFile(ENV.encode(), ".env")
    assert file.values() == {"A": "3", "B": "two", "EMPTY": ""}
    assert file.names() == ["A", "B"]
    assert file.encode("") == ENV.encode()
    file.set("A", "4")
    file.set("NEW", " spaced ")
    assert file.encode("").decode() == ENV.replace("A=3", "A=4") + 'NEW=" spaced "\n'
    file.remove("A")
    assert "A" not in EnvFile(file.encode(""), ".env").values()


@given(
    st.dictionaries(
        st.from_regex(r"\A[A-Z_]{1,6}\Z"),
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")),
        max_size=4,
    )
)
def test_env_gives_back_what_was_put_in(values: dict[str, str]) -> None:
    file = EnvFile(b"# first", ".env")
    for name, value in values.items():
        file.set(name, value)
    assert EnvFile(file.encode(""), ".env").values() == values


@pytest.mark.parametrize(("name", "value"), [("A B", "x"), ("", "x"), ("A", "x\ny"), ("A", "\0"), ("1A", "x")])
def test_env_refuses_what_it_cannot_hold_and_never_repeats_it(name: str, value: str) -> None:
    with pytest.raises(Refused) as refused:
        EnvFile(None, ".env").set(name, value + TOKEN)
    assert TOKEN not in str(refused.value)


def test_a_map_keeps_the_text_of_what_did_not_change() -> None:
    text = '{"a": {"x":1.0},\n\n "b"  : {"y": "é"}}'
    file = MapFile(text.encode(), "w.json")
    file.put("a", {"x": 1.0})
    assert file.encode("") == text.encode()
    file.put("c", {"z": [1]})
    assert (
        file.encode("").decode()
        == '{\n  "a": {"x":1.0},\n  "b"  : {"y": "é"},\n  "c": {\n    "z": [\n      1\n    ]\n  }\n}'
    )
    file.remove("b")
    assert json.loads(file.encode("")) == {"a": {"x": 1.0}, "c": {"z": [1]}}
    for bad in (b"[]", b'{"a": 1', b'{"a": 1, "a": 2}', b"\xff"):
        with pytest.raises(LoadFailed, match=r"w\.json"):
            MapFile(bad, "w.json")


@pytest.mark.parametrize(
    ("block_", "key"),
    [
        ({"harnes": "x"}, "worker.harnes"),
        ({"harness": "codex", "permission": {"x": 1}}, "worker.permission.x"),
        ({"harness": "codex", "permission": {"default": "maybe"}}, "worker.permission.default"),
        ({"harness": "codex", "permission": {"timeout_seconds": True}}, "worker.permission.timeout_seconds"),
        ({"harness": ""}, "worker.harness"),
        ({"harness": "codex", "model": 1}, "worker.model"),
        ({"harness": "codex", "env": [1]}, "worker.env"),
        ([], "worker"),
    ],
)
def test_an_unknown_key_of_the_worker_fails_the_load_naming_file_and_key(block_: Any, key: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        worker.check({"worker": block_}, "config.yaml")
    assert str(failed.value).startswith(f"config.yaml [{key}]: ") or not block_


def test_a_worker_is_filled_in_as_the_orchestrator_does() -> None:
    assert worker.check({"x": 1}, "config.yaml") is None
    assert worker.check({"worker": {"harness": "codex"}}, "config.yaml") == {
        "harness": "codex",
        "model": None,
        "preset": None,
        "cwd": ".",
        "env": {},
        "permission": {"timeout_seconds": 300, "default": "deny"},
    }


def test_pasted_secrets_move_and_leave_a_reference() -> None:
    config = YamlFile(
        f"model:\n  api_key: {TOKEN}  # mine\nplatforms:\n  telegram: {{token: abc123, extra: {{port: 1}}}}\n"
        f"notes: say {TOKEN} now\nfine:\n  api_key: ${{HERE}}\n".encode(),
        "config.yaml",
    )
    hooks = MapFile(b'{"gh": {"secret": "hmac-value", "prompt": "x"}}', "w.json")
    env = EnvFile(b"MODEL_API_KEY=another\n", ".env")
    moved = pasted.move(config, hooks, env)
    assert len(moved) == 3
    assert TOKEN not in "".join(moved)
    assert env.values() == {
        "MODEL_API_KEY": "another",
        "MODEL_API_KEY_2": TOKEN,
        "TELEGRAM_TOKEN": "abc123",
        "WEBHOOK_GH_SECRET": "hmac-value",
    }
    text = config.encode("").decode()
    assert "api_key: ${MODEL_API_KEY_2}  # mine" in text
    assert "token: '${TELEGRAM_TOKEN}'" in text
    assert hooks.get("gh")["secret"] == "${WEBHOOK_GH_SECRET}"
    assert pasted.move(config, hooks, env) == []


@pytest.mark.parametrize(
    ("key", "value", "is_one"),
    [
        ("api_key", "abc", True),
        ("botToken", "x1", True),
        ("hint", TOKEN, True),
        ("hint", f"use {TOKEN}", False),
        ("api_key", "${KEY}", False),
        ("api_key", "", False),
        ("record_key", "ctrl+b", False),
        ("sessionKey", "a", False),
        ("ssh_key", "~/.ssh/id", False),
        ("password", True, False),
        ("max_tokens", "12", False),
        ("store_key", "a", False),
    ],
)
def test_what_is_a_pasted_secret(key: str, value: Any, is_one: bool) -> None:
    assert pasted.is_pasted(key, value) is is_one


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=40),
    st.text("ab\n", max_size=9),
)
def test_a_block_goes_in_and_out_again(text: str, ours: str) -> None:
    there = block.put(text, "SOUL.md", "me", ours)
    assert block.find(there, "SOUL.md", "me") == (ours if not ours or ours.endswith("\n") else ours + "\n")
    assert block.put(there, "SOUL.md", "me", ours) == there
    assert block.put(there, "SOUL.md", "me", None) in (text, text + "\n")
    with pytest.raises(block.Torn):
        block.find(there + block.markers("SOUL.md", "me")[0], "SOUL.md", "me")


@given(
    st.recursive(
        st.text(max_size=5) | st.integers(-9999, 9999),  # a longer number may hold the secret's digits
        lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=4), x, max_size=3),
        max_leaves=5,
    ),
    st.text("abcXYZ019-_", min_size=8, max_size=20),
)
def test_no_secret_is_in_what_is_shown(value: Any, secret: str) -> None:
    hider = Hider(b"k" * 32, [secret])
    shown = json.dumps(hider.value({"a": value, "b": f"x {secret} y", "token": secret, "list": [secret]}))
    assert secret not in shown
    assert secret not in hider.text(f"no {secret}!")
    for there in (
        {"a": value},
        {"a": value, "b": f"\n{secret}"},
        {"x": {"aToken": "zz"}},
        [f'"\t{TOKEN}"'],
        f"\u001f{TOKEN}",
    ):
        assert hider.whole(there) == hider.value(there)
