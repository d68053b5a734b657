"""What an observation says of homes in every state, without a Hermes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ProviderError
from reconciler.observe import ABSENT, Observed, Store, Unknown
from reconciler_specs.address import Kind


def job(**more: Any) -> dict[str, Any]:
    return {
        "id": "0a1b2c3d4e5f",
        "name": "Brief",
        "prompt": "Write.",
        "schedule": {"kind": "interval", "minutes": 120, "display": "every 120m"},
        "deliver": "local",
        "repeat": {"times": None, "completed": 3},
        "enabled": True,
        "state": "scheduled",
        **more,
    }


def fields(site: Any, **more: Any) -> dict[str, Any]:
    site.jobs(job(**more))
    found = site.observe().at("default", Kind.JOB, "0a1b2c3d4e5f")
    assert isinstance(found, Observed)
    return dict(found.fields)


def test_a_plain_job(site: Any) -> None:
    assert fields(site) == {
        "name": "Brief",
        "prompt": "Write.",
        "schedule": {"every": "120m"},
        "deliver": "local",
        "skills": [],
        "context_from": [],
        "paused": False,
        "follows": {"provider": "openrouter", "model": "a/b"},
    }


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        ({"schedule": {"kind": "cron", "expr": "0  8 * *  MON-FRI"}}, "schedule", {"cron": "0 8 * * 1-5"}),
        (
            {"schedule": {"kind": "once", "run_at": "2031-02-03T15:00:00+01:00"}},
            "schedule",
            {"at": "2031-02-03T14:00:00Z"},
        ),
        ({"schedule": {"kind": "once", "run_at": "2031-02-03T15:00:00"}}, "schedule", {"at": "2031-02-03T14:00:00Z"}),
        (
            {"schedule": {"kind": "interval", "minutes": 0, "display": "x"}},
            "schedule",
            {"$native": {"kind": "interval", "minutes": 0}},
        ),
        (
            {"schedule": {"kind": "cron", "expr": "0 8 * * 1 30"}},
            "schedule",
            {"$native": {"kind": "cron", "expr": "0 8 * * 1 30"}},
        ),
        ({"schedule": None}, "schedule", ABSENT),
        ({"schedule": "every 5m"}, "schedule", {"$native": "every 5m"}),
        ({"deliver": "origin"}, "deliver", {"$native": "origin"}),
        ({"deliver": ["telegram"]}, "deliver", {"$native": ["telegram"]}),
        ({"deliver": "telegram:-100:7"}, "deliver", {"to": "telegram", "chat": "-100", "thread": "7"}),
        ({"deliver": "telegram:-1001234567890"}, "deliver", {"to": "telegram", "chat": "-1001234567890"}),
        ({"deliver": "matrix:!r:h.org:$t"}, "deliver", {"to": "matrix", "chat": "!r:h.org", "thread": "$t"}),
        ({"deliver": "signal:+43:1"}, "deliver", {"to": "signal", "chat": "+43:1"}),
        ({"deliver": None}, "deliver", ABSENT),
        ({"model": "m/x"}, "model", {"$native": {"model": "m/x"}}),
        ({"model": "m/x", "provider": "openrouter"}, "model", {"provider": "openrouter", "model": "m/x"}),
        ({"model": "m/x", "provider": "openrouter"}, "follows", ABSENT),
        ({"no_agent": True, "script": "a.sh"}, "run", "a.sh"),
        ({"no_agent": True, "script": "a.sh"}, "before", ABSENT),
        ({"no_agent": True, "script": "a.sh"}, "follows", ABSENT),
        ({"no_agent": True, "script": "a.sh", "prompt": "Unread."}, "prompt", ABSENT),
        ({"script": "a.sh"}, "before", "a.sh"),
        ({"skill": "old"}, "skills", ["old"]),
        ({"context_from": "x"}, "context_from", ["x"]),
        ({"attach_to_session": False}, "session", "isolated"),
        ({"attach_to_session": None}, "session", ABSENT),
        ({"enabled": False}, "paused", True),
        ({"state": "paused", "enabled": True}, "paused", True),
        ({"state": "completed", "enabled": False}, "paused", False),
        ({"repeat": {"times": 5, "completed": 1}}, "repeat", 5),
        ({"repeat": None}, "repeat", ABSENT),
        ({"prompt": None}, "prompt", ABSENT),
        ({"name": None}, "name", "Write."),
        (
            {"model_snapshot": "old/m", "provider_snapshot": None},
            "follows",
            {"provider": "openrouter", "model": "old/m"},
        ),
    ],
)
def test_job_fields(site: Any, record: dict[str, Any], name: str, value: Any) -> None:
    assert fields(site, **record).get(name, ABSENT) == value


def test_a_run_changes_no_fingerprint_and_a_hand_does(site: Any) -> None:
    def mark(**more: Any) -> str:
        site.jobs(job(**more))
        found = site.observe().at("default", Kind.JOB, "0a1b2c3d4e5f")
        return str(found.fingerprint)

    first = mark()
    ran = {"last_run_at": "x", "next_run_at": "y", "fire_claim": {"a": 1}, "repeat": {"times": None, "completed": 9}}
    assert mark(**ran) == first
    assert mark(x_reconciler={"intent": "i"}) == first
    for more in ({"prompt": "Other."}, {"new_field": 1}, {"enabled": False}, {"repeat": {"times": 4}}, {"skill": "x"}):
        assert mark(**more) != first


def test_odd_stores_lose_nothing(site: Any) -> None:
    site.jobs(
        job(), job(name="twin"), {"name": "no id"}, {"id": "b2", "schedule": None, "prompt": None, "repeat": None}
    )
    observation = site.observe()
    things = observation.things["default", Kind.JOB]
    assert set(things) == {"0a1b2c3d4e5f", "b2"}
    assert all(isinstance(value, Unknown) for value in things["0a1b2c3d4e5f"].fields.values())
    assert "two jobs have the id" in things["0a1b2c3d4e5f"].fields["name"].reason
    assert any("'no id' has no id" in note for note in observation.notes)


@pytest.mark.parametrize(
    ("text", "store", "words"),
    [
        (None, Store.MISSING, ""),
        ('{"jobs": []}', Store.PROPER, ""),
        ("{}", Store.EMPTY, ""),
        ("", Store.IMPROPER, "jobs.json:1:1"),
        ('{"jobs": [\n{"id"', Store.IMPROPER, "jobs.json:2:6"),
        ('{"jobs": null}', Store.IMPROPER, "no list of jobs"),
        ('{"jobs": [1]}', Store.IMPROPER, "job number 1 is a int"),
        ("3", Store.IMPROPER, "no list of jobs"),
        (b"\xff\xfe", Store.IMPROPER, "not UTF-8"),
        ("[" * 100_000, Store.IMPROPER, "nested too deeply"),
    ],
)
def test_the_state_of_a_store(site: Any, text: Any, store: Store, words: str) -> None:
    if text is not None:
        site.write("cron/jobs.json", text)
    observation = site.observe()
    things = observation.things["default", Kind.JOB]
    assert observation.stores["default", Kind.JOB] is store
    assert (words in things.reason) if words else things == {}


def test_a_store_that_is_no_file(site: Any) -> None:
    (site.root / "cron" / "jobs.json").mkdir(parents=True)
    assert "Is a directory" in site.observe().things["default", Kind.JOB].reason
    (site.root / "cron" / "jobs.json").rmdir()
    os.mkfifo(site.root / "cron" / "jobs.json")
    assert "not a regular file" in site.observe().things["default", Kind.JOB].reason
    (site.root / "cron" / "jobs.json").unlink()
    (site.root / "cron" / "jobs.json").symlink_to("/etc/hostname")
    assert "a link to" in site.observe().things["default", Kind.JOB].reason


def test_what_ended_by_itself(site: Any) -> None:
    site.jobs(job())
    for name in ("0a1b2c3d4e5f", "feedfeedfeed"):
        site.write(f"cron/output/{name}/2026-11-30_15-22-11.md", "x")
    (site.root / "cron" / "output" / "cafecafecafe").mkdir()
    ended = site.observe().ended["default", Kind.JOB]
    assert list(ended) == ["feedfeedfeed"]
    assert "2026-11-30" in ended["feedfeedfeed"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [\n", "config.yaml:2:1"), ("- a\n", "config.yaml:1:1: a list"), (b"a: \xff\n", "not UTF-8")],
)
def test_an_unreadable_config_is_unknown_and_never_absent(site: Any, text: Any, words: str) -> None:
    site.write("config.yaml", text)
    observation = site.observe("default/settings/agent.max_turns")
    assert words in observation.at("default", Kind.SETTING, "agent.max_turns").reason
    assert words in observation.at("default", Kind.INFERENCE, "").fields["default"].reason
    assert observation.stores["default", Kind.SETTING] is Store.IMPROPER


def test_a_config_that_is_too_big_or_a_link_to_nothing(site: Any) -> None:
    site.write("config.yaml", "#" * (5 << 20))
    assert "larger than" in site.observe().things["default", Kind.SETTING].reason
    (site.root / "config.yaml").unlink()
    (site.root / "config.yaml").symlink_to("nowhere.yaml")
    assert "is not there" in site.observe().things["default", Kind.SETTING].reason


def test_settings_by_path(site: Any) -> None:
    site.write("config.yaml", 'a: {"b.c": 1, d: yes, e: 2031-02-03}\nflag: off\nlist: [1, 2]\n')
    paths = ['a."b.c"', "a.d", "a.e", "flag", "list", "a", "none.here", "list.0"]
    observation = site.observe(*(f"default/settings/{path}" for path in paths))
    found = {key: thing.fields["value"] for key, thing in observation.things["default", Kind.SETTING].items()}
    native = {"$native": "2031-02-03"}
    assert found == {
        'a."b.c"': 1,
        "a.d": True,
        "a.e": native,
        "flag": False,
        "list": [1, 2],
        "a": {"b.c": 1, "d": True, "e": native},
    }


def test_everything_for_adopt(site: Any) -> None:
    observation = site.observe(everything=True)
    things = observation.things["default", Kind.SETTING]
    assert set(things) == {"timezone", "agent.max_turns"}
    expressed = {key: site.provider.express(thing, observation) for key, thing in things.items()}
    assert expressed["agent.max_turns"] == {"value": 90}
    (server,) = observation.things["default", Kind.MCP_SERVER].values()
    assert "plain-value" not in repr(server)
    assert site.provider.express(server, observation) == {"command": "npx"}
    assert set(observation.things["default", Kind.FILE]) == {"scripts/disk.sh"}


def test_no_secret_is_shown(site: Any) -> None:
    site.write(
        "config.yaml", "x: {api_key: literal-key, ref: '${NAME}', note: 'use Tr0ub4dor&3 here', n: {token: 12345}}\n"
    )
    site.write("SOUL.md", "my key is sk-or-v1-0000000000\n")
    site.jobs(job(prompt="say Tr0ub4dor&3"))
    observation = site.observe(everything=True)
    text = repr(observation)
    for secret in ("literal-key", "Tr0ub4dor", "sk-or-v1", "12345}"):
        assert secret not in text
    settings = observation.things["default", Kind.SETTING]
    assert settings["x.ref"].fields["value"] == "${NAME}"
    again = site.observe(everything=True)
    assert again.things == observation.things
    site.options = {**site.options, "$key": "33" * 32}
    assert site.observe(everything=True).things != observation.things


@pytest.mark.parametrize(
    ("config", "default", "fallbacks"),
    [
        ("model: x/y\n", {"provider": "auto", "model": "x/y"}, []),
        ("model: {model: x, provider: p}\n", {"provider": "p", "model": "x"}, []),
        (
            "model: {name: x}\nprovider: p\nbase_url: http://h/\n",
            {"provider": "p", "model": "x", "base_url": "http://h"},
            [],
        ),
        (
            "model: {default: x, api_base: http://h, provider: custom}\n",
            {"provider": "custom", "model": "x", "base_url": "http://h"},
            [],
        ),
        (
            "model: {default: x, provider: custom, api_key: '${K}', api_mode: m}\n",
            {"provider": "custom", "model": "x", "key": {"secret": "K"}, "api_mode": "m"},
            [],
        ),
        (
            "model: {default: x, provider: openrouter, api_key: '${OPENROUTER_API_KEY}'}\n",
            {"provider": "openrouter", "model": "x"},
            [],
        ),
        ("{}\n", ABSENT, []),
        (
            "fallback_model: {provider: o, model: b}\n"
            "fallback_providers: [{provider: O, model: a}, {provider: o, model: B}, {x: 1}]\n",
            ABSENT,
            [{"provider": "O", "model": "a"}, {"provider": "o", "model": "B"}],
        ),
        (
            "fallback_providers: {provider: o, model: a, key_env: K}\n",
            ABSENT,
            [{"provider": "o", "model": "a", "key": {"secret": "K"}}],
        ),
    ],
)
def test_inference_in_every_form(site: Any, config: str, default: Any, fallbacks: Any) -> None:
    site.write("config.yaml", config)
    found = site.observe().at("default", Kind.INFERENCE, "")
    assert found.get("default") == default
    assert found.get("fallbacks") == fallbacks


@pytest.mark.parametrize(
    "address",
    ["https://me:" + "hunter22" + "@llm.example/v1", "https://llm.example/v1?k=Tr0ub4dor&3"],
    ids=["own", "of .env"],
)
def test_a_secret_in_an_address_is_hidden_wherever_a_model_stands(site: Any, address: str) -> None:
    entry = f"{{provider: custom, default: m, model: m, base_url: '{address}'}}"
    site.write("config.yaml", f"model: {entry}\nfallback_providers: [{entry}]\nauxiliary: {{vision: {entry}}}\n")
    site.jobs(job(provider="custom", model="m", base_url=address))
    observation = site.observe()
    inference = observation.at("default", Kind.INFERENCE, "")
    models = [inference.fields["default"], inference.fields["fallbacks"][0], inference.fields["auxiliary"]["vision"]]
    models.append(observation.at("default", Kind.JOB, "0a1b2c3d4e5f").fields["model"])
    assert [list(model["base_url"]) for model in models] == [["$hidden"]] * 4
    assert "models" not in site.provider.express(inference, observation)


def test_inference_for_adopt(site: Any) -> None:
    site.write(
        "config.yaml",
        "model: {default: a/hermes-4, provider: o}\n"
        "fallback_providers: [{provider: p, model: b/hermes-4}]\n"
        "auxiliary: {vision: {provider: o, model: a/hermes-4}, mcp: {provider: auto, model: ''}}\n",
    )
    observation = site.observe()
    assert site.provider.express(observation.at("default", Kind.INFERENCE, ""), observation) == {
        "models": {
            "hermes-4": {"provider": "o", "model": "a/hermes-4"},
            "hermes-4-2": {"provider": "p", "model": "b/hermes-4"},
        },
        "default": "hermes-4",
        "fallbacks": ["hermes-4-2"],
        "auxiliary": {"vision": "hermes-4"},
    }


def test_profiles(site: Any) -> None:
    site.write("profiles/coder/profile.yaml", "description: Writes code.\ndescription_auto: true\n")
    site.write("profiles/coder/config.yaml", "model: other\n")
    site.write("profiles/coder/memories/USER.md", "x")
    site.write("profiles/Bad/x", "")
    (site.root / "profiles" / "linked").symlink_to(site.root / "profiles" / "coder")
    observation = site.observe("ghost/jobs/x")
    profiles = observation.things["", Kind.PROFILE]
    assert list(profiles) == ["default", "coder"]
    assert profiles["coder"].fields == {"description": "Writes code."}
    assert profiles["coder"].about["holds"] == ["memories/USER.md"]
    assert observation.at("coder", Kind.INFERENCE, "").get("default") == {"provider": "auto", "model": "other"}
    assert observation.at("ghost", Kind.JOB, "x") is ABSENT
    assert observation.stores["ghost", Kind.JOB] is Store.MISSING


def test_what_is_special_is_named(site: Any, tmp_path: Path) -> None:
    site.write("active_profile", "gone\n")
    site.write("distribution.yaml", "name: x\n")
    (site.root / "config.yaml").rename(tmp_path / "dot.yaml")
    (site.root / "config.yaml").symlink_to(tmp_path / "dot.yaml")
    notes = " | ".join(site.observe().notes)
    assert "active_profile is gone, which is not there" in notes
    assert "comes from a distribution" in notes
    assert "is a link to" in notes
    assert site.observe().blocked == ""
    site.write(".managed", "")
    assert "managed by NixOS" in site.observe().blocked


def test_what_is_no_home(site: Any, tmp_path: Path) -> None:
    site.root = tmp_path / "nothing"
    assert not site.observe().exists
    site.root.mkdir()
    assert site.observe().exists
    (site.root / "openclaw.json").write_text("{}")
    with pytest.raises(ProviderError, match="is not a Hermes home"):
        site.observe()
    site.root = site.root / "openclaw.json"
    with pytest.raises(ProviderError, match="is a file"):
        site.observe()


def test_without_an_interpreter_it_can_still_be_read(site: Any) -> None:
    site.options = {"python": "/no/such/python"}
    observation = site.observe()
    assert observation.version is None
    assert "there is no /no/such/python" in observation.notes[0]
    assert "cannot be told" in site.provider.supported(None)
    assert site.provider.supported("0.19.7") == ""
    assert "not tested" in site.provider.supported("0.21.0")


def test_door_options() -> None:
    from reconciler_hermes import PROVIDER

    assert PROVIDER.options({}) == []
    assert PROVIDER.options({"python": "~/x/bin/python"}) == []
    assert len(PROVIDER.options({"python": "bin/python", "node": "x"})) == 2
