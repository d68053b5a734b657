"""Settings and inference written into the real Hermes's config.yaml, read back by us and by Hermes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.lab import Lab, create, delete, resource, tree, update
from reconciler.action import CLEAR, Action
from reconciler.observe import ABSENT, Observed
from reconciler.provider import Code
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

pytestmark = pytest.mark.hermes

COMMENTED = """\
# hand-made
_config_version: 33
model:
  default: a/b   # the good one
  provider: openrouter
approvals: {mode: "off"}   # careful
agent:
    # four spaces
    max_turns: 90
platforms:
  telegram: {enabled: true, extra: {note: "${NOTE}"}}
fallback_providers:
- {provider: anthropic, model: x}
# the end
"""

TORTURE: dict[str, Json] = {
    "off": "off",
    "yes": "yes",
    "octal": "0755",
    "sexagesimal": "12:30",
    "exponent": "1e5",
    "null": "null",
    "tilde": "~",
    "date": "2031-02-03",
    "hash": "a #b",
    "colon": "a: b",
    "dash": "- x",
    "star": "*x",
    "brace": "{{x}}",
    "percent": "%x",
    "at": "@x",
    "backtick": "`x`",
    "empty": "",
    "blank": " x ",
    "lines": "one\n\ntwo\n",
    "nel": "a\x85b",
    "bell": "a\x07b",
    "emoji": "🦜 ü",
    "reference": "${NAME}",
    "true": True,
    "int": 7,
    "float": 0.1,
    "tiny": 1e-7,
    "none": None,
    "list": ["on", 1, {"a": "no"}],
    "map": {"on": "off", "1": "one", "a.b": [], "{}": {}},
    "long": "word " * 60,
}


def seen(lab: Lab, key: str, kind: Kind = Kind.SETTING) -> Observed:
    path = f"default/{kind.value}/{key}" if key else f"default/{kind.value}"
    found = lab.observe(path).at("default", kind, key)
    return found if isinstance(found, Observed) else Observed(kind, "default", key)


def put(lab: Lab, key: str, value: Json) -> Action:
    old = seen(lab, key)
    if old.get("value") is ABSENT:
        return create(f"default/settings/{key}", {"value": value})
    return update(f"default/settings/{key}", old, {"value": value})


def raw(lab: Lab) -> Any:
    return lab.hermes("from hermes_cli.config import read_raw_config as r; import json; print(json.dumps(r()))")


def test_every_value_there_and_back(each: Lab) -> None:
    each.config(COMMENTED)
    actions = [put(each, f'torture."{name}"', value) for name, value in TORTURE.items()]
    answers = each.perform(*actions)
    assert [(a.address.key, a.words) for a in answers if a.code is not Code.OK] == []
    assert raw(each)["torture"] == TORTURE
    for name, value in TORTURE.items():
        assert seen(each, f'torture."{name}"').fields == {"value": value}
    assert each.config().startswith(COMMENTED.removesuffix("# the end\n"))
    assert each.config().endswith("\n# the end\n")


def test_only_the_declared_value_changes(lab: Lab) -> None:
    lab.config(COMMENTED)
    lab.perform(
        put(lab, "agent.max_turns", 120), put(lab, "approvals.mode", "on"), put(lab, "timezone", "Europe/Vienna")
    )
    assert lab.config() == COMMENTED.replace("90", "120").replace('"off"', "'on'").replace(
        "# the end\n", "timezone: Europe/Vienna\n# the end\n"
    )
    lab.perform(delete("default/settings/timezone", seen(lab, "timezone"), ["value"]))
    assert "timezone" not in lab.config()
    assert lab.config().endswith("# the end\n")


def test_a_map_is_written_by_its_leaves(lab: Lab) -> None:
    lab.config(COMMENTED)
    old = seen(lab, "platforms")
    merged = {"telegram": {"enabled": False, "extra": {"note": "${NOTE}"}}, "discord": {"enabled": True}}
    assert lab.perform(update("default/settings/platforms", old, {"value": merged}))[0].code is Code.OK
    assert '{enabled: false, extra: {note: "${NOTE}"}}' in lab.config()
    assert raw(lab)["platforms"] == merged


def test_stale_and_refused_leave_the_rest(lab: Lab) -> None:
    lab.config(COMMENTED + "anchors: &a {x: 1}\nother: *a\n")
    old = seen(lab, "agent.max_turns")
    lab.config(lab.config().replace("90", "91"))
    answers = lab.perform(
        update("default/settings/agent.max_turns", old, {"value": 120}),
        put(lab, "anchors.x", 2),
        put(lab, "agent.other", "x"),
    )
    assert [a.code for a in answers] == [Code.STALE, Code.REFUSED, Code.OK]
    assert "beyond its own key" in answers[1].words
    assert raw(lab)["agent"] == {"max_turns": 91, "other": "x"}


@pytest.mark.parametrize("text", ["a: [\n", "- a\n- b\n", "a: 1\n\tb: 2\n", "x"], ids=["open", "list", "tab", "text"])
def test_an_unfit_config_is_never_written(lab: Lab, text: str) -> None:
    lab.config(text)
    action = create("default/settings/agent.max_turns", {"value": 1})
    assert lab.perform(action)[0].code is Code.REFUSED
    assert lab.config() == text


def test_the_link_stays(lab: Lab, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text(COMMENTED)
    real.chmod(0o640)
    (lab.root / "config.yaml").unlink()
    (lab.root / "config.yaml").symlink_to(real)
    assert lab.perform(put(lab, "agent.max_turns", 5))[0].code is Code.OK
    assert (lab.root / "config.yaml").is_symlink()
    assert "max_turns: 5" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_home_without_config(lab: Lab) -> None:
    (lab.root / "config.yaml").unlink()
    assert lab.perform(put(lab, "agent.max_turns", 5))[0].code is Code.OK
    assert lab.config() == "agent:\n  max_turns: 5\n"
    assert (lab.root / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_a_managed_home_is_refused(lab: Lab) -> None:
    (lab.root / ".managed").touch()
    assert "managed" in lab.observe().blocked
    assert lab.perform(create("default/settings/x", {"value": 1}))[0].code is Code.REFUSED


def test_a_hidden_value_is_never_written_back(lab: Lab) -> None:
    lab.config("_config_version: 33\nx: {api_key: abcdefgh12345678, other: 1}\n")
    old = seen(lab, "x")
    value = old.get("value")
    assert isinstance(value, dict)
    assert list(value["api_key"]) == ["$hidden"]
    assert lab.perform(update("default/settings/x", old, {"value": {**value, "other": 2}}))[0].code is Code.OK
    assert lab.config() == "_config_version: 33\nx: {api_key: abcdefgh12345678, other: 2}\n"


INFERENCE: dict[str, Json] = {
    "default": {
        "provider": "custom",
        "model": "qwen",
        "base_url": "http://127.0.0.1:9/v1",
        "key": {"secret": "LAB_KEY"},
        "api_mode": "chat_completions",
    },
    "fallbacks": [
        {"provider": "openrouter", "model": "x/y"},
        {"provider": "custom", "model": "z", "base_url": "http://h/v1", "key": {"secret": "LAB_KEY"}},
    ],
    "auxiliary": {"vision": {"provider": "openrouter", "model": "v/w"}},
}


@pytest.mark.parametrize(
    "start",
    [
        COMMENTED,
        "_config_version: 33\nmodel: some/name\nprovider: openrouter\nfallback_model: {provider: a, model: b}\n",
        "_config_version: 33\n",
        "model: {name: x, api_base: http://old/v1, provider: custom, api_key: '${OLD}', context_length: 5}\n",
    ],
    ids=["commented", "legacy", "empty", "alias"],
)
def test_inference_there_and_back(each: Lab, start: str) -> None:
    each.config(start)
    old = seen(each, "", Kind.INFERENCE)
    answer = each.perform(update("default/inference", old, INFERENCE))[0]
    assert (answer.code, answer.words) == (Code.OK, "")
    assert seen(each, "", Kind.INFERENCE).fields == INFERENCE
    config = raw(each)
    assert config["model"]["api_key"] == "${LAB_KEY}"
    assert not {"provider", "base_url", "api_base", "fallback_model"} & config.keys()
    if "context_length" in start:
        assert config["model"]["context_length"] == 5
    chain = each.hermes(
        "import json\nfrom hermes_cli.config import load_config\n"
        "from hermes_cli.fallback_config import get_fallback_chain as chain\nc = load_config()\n"
        "print(json.dumps([c['model'], [e['model'] for e in chain(c)], c['auxiliary']['vision']['model']]))"
    )
    assert (chain[0]["default"], chain[0]["provider"], chain[0]["base_url"]) == (
        "qwen",
        "custom",
        "http://127.0.0.1:9/v1",
    )
    assert chain[1:] == [["x/y", "z"], "v/w"]


def test_a_new_provider_leaves_nothing_of_the_old(lab: Lab) -> None:
    lab.config("model: {default: q, provider: custom, base_url: http://h/v1, api_key: '${LAB_KEY}', api_mode: x}\n")
    old = seen(lab, "", Kind.INFERENCE)
    new = {"provider": "openrouter", "model": "a/b", "key": {"secret": "OPENROUTER_API_KEY"}}
    canon = lab.canon(resource("default/inference", {"default": new}))
    assert canon.fields["default"] == {"provider": "openrouter", "model": "a/b"}
    assert lab.perform(update("default/inference", old, canon.fields))[0].code is Code.OK
    assert raw(lab)["model"] == {"default": "a/b", "provider": "openrouter"}
    assert seen(lab, "", Kind.INFERENCE).fields["default"] == canon.fields["default"]
    lab.perform(update("default/inference", seen(lab, "", Kind.INFERENCE), {"default": CLEAR, "fallbacks": CLEAR}))
    assert raw(lab) == {}


def test_provider_and_model_match_hermes_snapshots(lab: Lab) -> None:
    """What a job is held to is called as Hermes calls it."""
    lab.config(
        "model: {default: qwen, provider: 'custom:lab'}\nproviders: {lab: {base_url: 'http://h/v1', api_key: x}}\n"
    )
    answer = lab.create("x", {"schedule": {"every": "30m"}, "prompt": "x", "deliver": "local"})
    record = lab.jobs()[0]
    assert (record["provider_snapshot"], record["model_snapshot"]) == ("custom", "qwen")
    assert lab.job(answer.id).fields["follows"] == {"provider": "custom", "model": "qwen"}


def test_the_standard_keys_are_hermes_own(lab: Lab) -> None:
    from reconciler_hermes.models import STANDARD_KEYS

    theirs = lab.hermes(
        "from hermes_cli.auth import PROVIDER_REGISTRY as R; import json;"
        "print(json.dumps({k: v.api_key_env_vars for k, v in R.items()}))"
    )
    ours = {name: list(keys) for name, keys in STANDARD_KEYS.items() if name != "openrouter"}
    assert {name: theirs.get(name) for name in ours} == ours


def test_nothing_else_in_the_home_changes(lab: Lab, tmp_path: Path) -> None:
    decoy = tmp_path / "decoy" / ".hermes"
    decoy.mkdir(parents=True)
    (decoy / "config.yaml").write_text("model: x\n")
    before, theirs = tree(lab.root), tree(decoy)
    lab.perform(put(lab, "agent.max_turns", 5))
    after = tree(lab.root)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"config.yaml"}
    assert tree(decoy) == theirs
