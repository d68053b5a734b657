"""A declared thing in Hermes's terms: what it becomes, what is refused, and what the row waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.action import CLEAR, Action, Fact, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT
from reconciler.provider import Canon
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import SCALAR, shape_of


def resource(path: str, fields: Mapping[str, Any], **more: Any) -> Resource:
    address = Address.parse(f"main/{path}")
    return Resource(address, fields, {k: shape_of(v) for k, v in fields.items()}, **more)


def canon(site: Any, *resources: Resource, ids: Mapping[str, str] | None = None) -> Canon:
    provider = HermesProvider(clock=lambda: datetime(2030, 1, 1, tzinfo=UTC))
    observation = site.observe(*(r.address.path for r in resources))
    observation = provider.prepare({r.address: r for r in resources}, observation)
    return provider.canon(resources[0], observation, (ids or {}).get)


def job(site: Any, ids: Mapping[str, str] | None = None, **fields: Any) -> Canon:
    return canon(site, resource("default/jobs/brief", fields), ids=ids)


@pytest.mark.parametrize(
    ("name", "declared", "canonical"),
    [
        ("schedule", {"every": "2h"}, {"every": "120m"}),
        ("schedule", {"cron": "0  8 * * MON-fri"}, {"cron": "0 8 * * 1-5"}),
        ("schedule", {"cron": "0 8 * JAN *", "tz": "Europe/Brussels"}, {"cron": "0 8 * 1 *"}),
        ("schedule", {"at": "2031-02-03T14:00:00+01:00"}, {"at": "2031-02-03T13:00:00Z"}),
        ("deliver", "owner_chat", {"to": "telegram"}),
        (
            "deliver",
            {"to": "Telegram", "chat": "-100", "thread": "7"},
            {"to": "telegram", "chat": "-100", "thread": "7"},
        ),
        (
            "model",
            {"provider": "openrouter", "model": "m", "key": {"secret": "OPENROUTER_API_KEY"}},
            {"provider": "openrouter", "model": "m"},
        ),
        ("before", "scripts/disk.sh", "disk.sh"),
        ("run", "disk.sh", "disk.sh"),
        ("workdir", "/srv/x/", "/srv/x"),
        ("skills", ["a", "b", "a"], ["a", "b"]),
        ("session", "main", "main"),
    ],
)
def test_jobs(site: Any, name: str, declared: Any, canonical: Any) -> None:
    found = job(site, **{name: declared})
    assert (found.fields[name], found.refused, found.held) == (canonical, {}, "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schedule": {"cron": "0 8 * * *", "tz": "Asia/Tokyo"}}, "set it to the home's zone (Europe/Brussels)"),
        ({"schedule": {"cron": "0 8 * * L"}}, "five fields"),
        ({"schedule": {"cron": "0 8 * * 1 30"}}, "five fields"),
        ({"failure_deliver": "local"}, "Hermes 0.19 has no separate target for failures"),
        ({"monitor": {"url": "http://x"}}, "Hermes 0.19 has no monitor per job"),
        ({"id": "x"}, "draws the ids itself"),
        ({"metadata": {}}, "Hermes 0.19 has no metadata"),
        ({"session": "other"}, "`main`"),
        ({"toolsets": []}, "leave `toolsets` out"),
        ({"repeat": 0}, "counts from 1"),
        ({"run": "../x.sh"}, "under scripts/"),
        (
            {"model": {"provider": "openrouter", "model": "m", "key": {"secret": "PASSPHRASE"}}},
            "per provider, not per job",
        ),
        ({"model": {"provider": "openrouter", "model": "m", "api_mode": "x"}}, "no api_mode per job"),
        ({"deliver": {"to": "telegram", "chat": "a:b"}}, "cannot be told apart"),
    ],
)
def test_refused_jobs(site: Any, fields: dict[str, Any], words: str) -> None:
    refused = job(site, **fields).refused
    assert list(refused) == list(fields)
    assert words in "".join(refused.values())


def test_older_versions_refuse_what_they_cannot_store(make_site: Callable[[str], Any]) -> None:
    old = make_site("0.16.0")
    old.write("config.yaml", "model: {default: a, provider: b}\n")
    found = canon(
        old,
        resource("default/jobs/x", {"session": "main", "prompt": "x"}),
        resource("default/inference", {"default": {"provider": "b", "model": "a"}}),
    )
    assert found.refused == {"session": "Hermes 0.16 has no choice of session per job (needs 0.18 or later)"}
    assert "follows" not in found.fields


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"run": "none.sh"}, "scripts/none.sh is neither in the home nor declared"),
        ({"model": {"provider": "custom:x", "model": "m", "key": {"secret": "NOPE"}}}, ".env has no NOPE"),
        ({"context_from": ["gone"]}, "there is no job gone"),
    ],
)
def test_held_jobs(site: Any, fields: dict[str, Any], words: str) -> None:
    assert words in job(site, **fields).held


def test_owner_chat_needs_one_home_channel(site: Any) -> None:
    site.write(".env", "TELEGRAM_HOME_CHANNEL=1\nMATRIX_HOME_ROOM=!x:y\n")
    assert "matrix, telegram each have a home channel" in job(site, deliver="owner_chat").held
    site.write(".env", "TELEGRAM_HOME_CHANNEL=\n")
    assert "no channel of this profile has a home channel" in job(site, deliver="owner_chat").held


def test_a_declared_script_is_a_need(site: Any) -> None:
    script = Address.parse("main/default/files/scripts/new.sh")
    found = canon(
        site,
        resource("default/jobs/x", {"run": "new.sh"}, needs=()),
        resource(script.path, {"text": "x"}),
    )
    assert (found.held, found.needs) == ("", (script,))
    assert canon(site, resource("default/jobs/x", {"run": "new.sh"}, needs=(script,))).held == ""


def test_references(site: Any) -> None:
    site.jobs({"id": "0a1b2c3d4e5f", "name": "x"})
    found = job(
        site,
        {"default/jobs/a": "111111111111"},
        context_from=["default/jobs/a", "default/jobs/b", "self", "0a1b2c3d4e5f"],
    )
    assert found.fields["context_from"] == [
        "111111111111",
        {"$ref": "default/jobs/b"},
        {"$ref": "default/jobs/brief"},
        "0a1b2c3d4e5f",
    ]
    assert job(site, {"default/jobs/brief": "222222222222"}, context_from=["self"]).fields["context_from"] == [
        "222222222222"
    ]


def test_a_past_time_is_over(site: Any) -> None:
    assert "has passed" in job(site, schedule={"at": "2029-12-31T00:00:00Z"}).expired
    assert job(site, schedule={"at": "2030-01-01T00:01:00Z"}).expired == ""


def test_unpinned_jobs_follow_the_declared_model(site: Any) -> None:
    inference = resource("default/inference", {"default": {"provider": "custom:lab", "model": "q"}})
    found = canon(site, resource("default/jobs/x", {"prompt": "x"}), inference)
    assert found.fields["follows"] == {"provider": "custom", "model": "q"}
    assert found.needs == (inference.address,)
    pinned = resource("default/jobs/x", {"prompt": "x", "model": {"provider": "o", "model": "m"}})
    assert "follows" not in canon(site, pinned, inference).fields
    assert "follows" not in canon(site, resource("default/jobs/x", {"run": "disk.sh"}), inference).fields
    assert "follows" not in canon(site, resource("default/jobs/x", {"prompt": "x"})).fields


def test_the_declared_zone_counts(site: Any) -> None:
    site.write("config.yaml", "")
    when = resource("default/jobs/x", {"schedule": {"cron": "0 8 * * *", "tz": "Asia/Tokyo"}})
    assert "no `timezone` setting" in "".join(canon(site, when).refused.values())
    zone = resource("default/settings/timezone", {"value": "Asia/Tokyo"})
    assert canon(site, when, zone).refused == {}
    site.timezone = "Asia/Tokyo"
    assert canon(site, when).refused == {}


def test_inference(site: Any) -> None:
    found = canon(
        site,
        resource(
            "default/inference",
            {
                "default": {"provider": "openrouter", "model": "a", "key": {"secret": "OPENROUTER_API_KEY"}},
                "fallbacks": [{"provider": "custom", "model": "b", "base_url": "http://h/", "key": {"secret": "LAB"}}],
                "auxiliary": {"vision": {"provider": "o", "model": "v"}},
                "unattended": {"provider": "o", "model": "v"},
            },
        ),
    )
    assert found.fields == {
        "default": {"provider": "openrouter", "model": "a"},
        "fallbacks": [{"provider": "custom", "model": "b", "base_url": "http://h", "key": {"secret": "LAB"}}],
        "auxiliary": {"vision": {"provider": "o", "model": "v"}},
    }
    assert found.held == "the home's .env has no LAB"
    assert list(found.refused) == ["unattended"]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("model.default", "belongs to inference"),
        ("fallback_providers", "belongs to inference"),
        ("_config_version", "Hermes's own mark"),
        ("timezone.x", "timezone is a single value"),
        ('a."b', "not a dotted path"),
    ],
)
def test_refused_settings(site: Any, key: str, words: str) -> None:
    assert words in canon(site, resource(f"default/settings/{key}", {"value": 1})).refused["value"]


def test_what_the_machine_pins_cannot_be_set(site: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "managed.yaml").write_text("agent: {max_turns: 5}\n")
    monkeypatch.setattr("reconciler_hermes.reading._MANAGED", str(tmp_path / "managed.yaml"))
    assert any("pins 1 setting" in note for note in site.observe().notes)
    for key, pinned in (("agent.max_turns", True), ("agent", True), ("agent.other", False)):
        assert bool(canon(site, resource(f"default/settings/{key}", {"value": 1})).refused) is pinned


@pytest.mark.parametrize(
    "path", ["config.yaml", ".env", "cron/jobs.json", "../x", "/etc/x", "skills/.hub/lock.json", "scripts"]
)
def test_refused_files(site: Any, path: str) -> None:
    assert canon(site, resource(f"default/files/{path}", {"text": "x"})).refused


def test_files(site: Any) -> None:
    assert canon(site, resource("default/files/SOUL.md", {"block": "x"})).fields == {"block": "x\n"}
    assert canon(site, resource("default/files/scripts/a.sh", {"text": "x", "mode": "755"})).fields["mode"] == "0755"
    assert canon(site, resource("default/files/scripts/a.sh", {"mode": "rwx"})).refused


def _action(path: str, row: Row = Row.CREATE, **write: Any) -> Action:
    changes = tuple(
        FieldChange(k, FieldRow.UNSET if v is CLEAR else FieldRow.SET, v, ABSENT, None, SCALAR, v)
        for k, v in write.items()
    )
    return Action(row, Address.parse(f"main/{path}"), changes=changes)


@pytest.mark.parametrize(
    ("path", "fields", "facts"),
    [
        ("default/jobs/x", {"prompt": "x", "deliver": "local"}, set()),
        ("default/jobs/x", {"prompt": "x", "deliver": {"to": "telegram"}}, {Fact.REACHES_PEOPLE}),
        ("default/jobs/x", {"run": "a.sh", "deliver": "local"}, {Fact.RUNS_CODE}),
        ("default/jobs/x", {"before": "a.sh", "deliver": {"to": "x"}}, {Fact.RUNS_CODE, Fact.REACHES_PEOPLE}),
        ("default/settings/agent.max_turns", {"value": 1}, set()),
        ("default/settings/approvals.mode", {"value": "off"}, {Fact.LOOSENS_SECURITY}),
        ("default/settings/TELEGRAM_ALLOW_ALL_USERS", {"value": True}, {Fact.LOOSENS_SECURITY}),
        ("default/settings/x.api_url", {"value": "http://h"}, {Fact.NEW_ADDRESS}),
        ("default/settings/x.api_key", {"value": "abc"}, {Fact.SECRET_IN_CLEAR}),
        ("default/settings/x.api_key", {"value": "${NAME}"}, set()),
        ("default/files/SOUL.md", {"text": "x"}, set()),
        ("default/files/scripts/a.sh", {"text": "x"}, {Fact.RUNS_CODE}),
        ("default/files/skills/a/run", {"text": "x", "mode": "0755"}, {Fact.RUNS_CODE}),
        ("default/inference", {"default": {"provider": "openrouter", "model": "z"}}, set()),
        ("default/inference", {"default": {"provider": "anthropic", "model": "z"}}, {Fact.NEW_ADDRESS}),
        (
            "default/inference",
            {"default": {"provider": "openrouter", "model": "z", "base_url": "http://h", "key": {"secret": "K"}}},
            {Fact.NEW_ADDRESS, Fact.NEW_CREDENTIAL},
        ),
        ("coder", {"description": "x"}, set()),
    ],
)
def test_facts(site: Any, path: str, fields: dict[str, Any], facts: set[Fact]) -> None:
    row = Row.UPDATE if "inference" in path else Row.CREATE
    assert site.provider.facts(_action(path, row, **fields), fields, site.observe(path)) == facts


def test_facts_of_small_changes(site: Any) -> None:
    desired = {"run": "a.sh", "deliver": {"to": "telegram"}, "paused": False}
    observation = site.observe()
    quiet = _action("default/jobs/x", Row.UPDATE, follows={"provider": "p", "model": "m"}, name="y")
    assert site.provider.facts(quiet, desired, observation) == set()
    assert site.provider.facts(_action("default/jobs/x", Row.UPDATE, paused=True), desired, observation) == set()
    assert site.provider.facts(_action("default/jobs/x", Row.UPDATE, paused=False), desired, observation)
    assert site.provider.facts(_action("default", Row.DELETE), {}, observation) == {Fact.PERMANENT}
    assert site.provider.facts(_action("coder", Row.DELETE), {}, observation) == set()


def test_review_never_clears_what_it_derives(site: Any) -> None:
    observation = site.observe()
    unset = _action("default/jobs/x", Row.UPDATE, follows=CLEAR)
    [row] = site.provider.review([unset], observation, {})
    assert row.changes[0].row is FieldRow.RELEASE
    pinned = _action("default/jobs/x", Row.UPDATE, follows={"provider": "p", "model": "m"})
    [row] = site.provider.review([pinned], observation, {})
    assert (row.row, row.changes) == (Row.IN_SYNC, ())


def test_a_run_under_way_is_named(site: Any) -> None:
    site.jobs({"id": "0a1b2c3d4e5f", "name": "x", "fire_claim": {"at": "now"}})
    delete = Action(Row.DELETE, Address.parse("main/default/jobs/x"), id="0a1b2c3d4e5f")
    [row] = site.provider.review([delete], site.observe(), {})
    assert "under way" in row.notes[0]


def test_batches(site: Any) -> None:
    keys = [
        site.provider.batch(_action(path)) for path in ("a/jobs/x", "a/jobs/y", "b/jobs/x", "a/settings/x", "a", "b")
    ]
    assert len(set(keys)) == 5
    assert keys[0] == keys[1]
    assert Kind.JOB.value in keys[0]
