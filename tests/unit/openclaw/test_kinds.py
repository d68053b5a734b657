"""Inference, settings, files and profiles of a home, and what is declared of them in OpenClaw's terms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.observe import Observed, Unknown
from reconciler.provider import Canon
from reconciler_openclaw import jobwords, roster, secretrefs
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load_text
from unit.openclaw.conftest import NEW, OLD, job

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def canon(site: Any, block: str, address: str) -> Canon:
    """The canon of one thing of profile `default`, declared as YAML lines, against the site's home."""
    lines = "".join(f"        {line}\n" for line in block.strip().splitlines())
    text = (
        "version: 1\nname: solo\nhomes:\n  main:\n    harness: openclaw\n    path: " + str(site.root) + "\n"
        f"    profiles:\n      default:\n{lines}"
    )
    desired = load_text(text, "setup.yaml", site.user).desired("main")
    provider = OpenClawProvider(lambda: NOW)
    observation = provider.prepare(desired, site.observe(*map(str, desired)))
    return provider.canon(desired[Address.parse(f"main/default/{address}")], observation, lambda _path: None)


def declared_job(site: Any, **fields: str) -> Canon:
    said = {"schedule": "{every: 2h}", "prompt": "Write.", "deliver": "local", **fields}
    lines = "".join(f"    {key}: {value}\n" for key, value in said.items() if value)
    return canon(site, f"jobs:\n  brief:\n{lines}", "jobs/brief")


# inference


def test_inference(site: Any) -> None:
    site.config()
    found = site.observe().at("default", Kind.INFERENCE, "")
    assert isinstance(found, Observed)
    assert found.fields["default"] == {"provider": "anthropic", "model": "claude-opus-5"}  # by its alias
    assert found.fields["fallbacks"] == [
        {"provider": "openai", "model": "gpt-6"},
        {"provider": "local", "model": "qwen"},
    ]
    assert found.fields["auxiliary"] == {"image": {"provider": "google", "model": "gemini-4"}}
    providers = found.fields["providers"]
    assert isinstance(providers, dict)
    assert providers["local"] == {
        "base_url": "http://127.0.0.1:8080/v1",
        "key": {"secret": "LOCAL_API_KEY"},
        "api_mode": "openai-completions",
    }
    assert providers["openai"] == {"key": {"secret": "OPENAI_API_KEY"}}
    assert "$hidden" in providers["odd"]["key"]


def test_an_agents_own_model(site: Any) -> None:
    site.config()
    found = site.observe().at("ops", Kind.INFERENCE, "")
    assert isinstance(found, Observed)
    assert found.fields["default"] == {"provider": "openai", "model": "gpt-6-mini"}
    assert "auxiliary" not in found.fields


def test_inference_comes_back_as_it_is_declared(site: Any) -> None:
    site.config()
    observation = site.observe()
    found = observation.at("default", Kind.INFERENCE, "")
    said = site.provider.express(found, observation)
    assert said["default"] == "claude-opus-5" and said["fallbacks"] == ["gpt-6", "qwen"]
    assert said["models"]["qwen"] == {
        "provider": "local",
        "model": "qwen",
        "base_url": "http://127.0.0.1:8080/v1",
        "key": {"secret": "LOCAL_API_KEY"},
        "api_mode": "openai-completions",
    }


MODELS = """
inference:
  models:
    a: {{provider: local, model: qwen, base_url: "http://127.0.0.1:8080/v1/", key: {{secret: {key}}}}}
    b: {{provider: anthropic, model: claude-opus-5, key: {{secret: ANTHROPIC_API_KEY}}}}
  default: b
  fallbacks: [a]
  {more}
"""


def test_declared_inference(site: Any) -> None:
    site.config()
    site.write(".env", "ANTHROPIC_API_KEY=sk-ant-0123456789abcdef\n")
    found = canon(site, MODELS.format(key="LOCAL_API_KEY", more=""), "inference")
    assert found.fields == {
        "default": {"provider": "anthropic", "model": "claude-opus-5"},
        "fallbacks": [{"provider": "local", "model": "qwen"}],
        "providers": {"local": {"base_url": "http://127.0.0.1:8080/v1", "key": {"secret": "LOCAL_API_KEY"}}},
    }
    assert found.held == "" and not found.refused


def test_what_inference_waits_for_and_refuses(site: Any) -> None:
    site.config()
    found = canon(
        site, MODELS.format(key="NO_KEY", more="auxiliary: {vision: a, image: a}\n  unattended: a"), "inference"
    )
    assert "ANTHROPIC_API_KEY, NO_KEY" in found.held
    assert "OpenClaw has no model for vision" in found.refused["auxiliary"]
    assert "unattended" in found.refused


# settings


def test_settings_of_the_home_and_of_an_agent(site: Any) -> None:
    site.config()
    observation = site.observe(everything=True)
    mine, ops = observation.things["default", Kind.SETTING], observation.things["ops", Kind.SETTING]
    assert isinstance(mine, dict) and isinstance(ops, dict)
    assert ops.keys() == {"name"}
    assert not [key for key in mine if key.startswith(("channels", "bindings", "mcp"))]
    assert mine["gateway.mode"].fields == {"value": "local"}
    assert not [key for key in mine if "agents.defaults.model." in key or "providers.local.baseUrl" in key]
    text = repr(observation)
    for secret in ("Tr0ub4dor", "hunter2", "plain-value", "value-of-the-local-key"):
        assert secret not in text


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("agents.defaults.model.primary", "belongs to inference"),
        ("models.providers.local.apiKey", "belongs to inference"),
        ("agents.entries.ops.name", "agents are profiles"),
        ("agents.entries.main.model", "belongs to inference"),
        ("agents.list", "agents are profiles"),
        ("meta.lastTouchedVersion", "OpenClaw's own mark"),
        ("gateway.mode.x", "is a single value"),
        ("bindings.x", "belong to the routes"),
        ("bindings", "belong to the routes"),
        ("channels.telegram.botToken", "declare it as channels: {telegram: …}"),
        ("hooks.mappings", "belong to the webhooks"),
        ("mcp.servers.fs.command", "belong to the MCP servers"),
        ("plugins.entries.x.config.y", "belong to the plugins"),
        ("skills.entries.x.enabled", "belong to the skills"),
        ("agents.entries.main.tools.allow", "is its toolset"),
    ],
)
def test_settings_that_are_none(site: Any, key: str, said: str) -> None:
    site.config()
    found = canon(site, f"settings: {{{key}: 1}}", f"settings/{key}")
    assert said in found.refused["value"]


def test_a_setting_names_its_secret(site: Any) -> None:
    site.config()
    found = canon(site, "settings: {hooks.token: {secret: HOOK_TOKEN}}", "settings/hooks.token")
    assert found.fields == {"value": {"secret": "HOOK_TOKEN"}}
    assert "HOOK_TOKEN" in found.held
    site.jobs()
    site.secret("HOOK_TOKEN")
    assert canon(site, "settings: {hooks.token: {secret: HOOK_TOKEN}}", "settings/hooks.token").held == ""


def test_the_default_agents_own_settings(site: Any) -> None:
    """By its id, whichever form the roster has."""
    for text in ("{agents: {list: [{id: 'a'}, {id: 'm', default: true, skills: ['x']}]}}",
                 "{agents: {entries: {m: {default: true, skills: ['x']}}}}"):  # fmt: skip
        site.config(text)
        found = site.observe("main/default/settings/agents.entries.m.skills")
        thing = found.at("default", Kind.SETTING, "agents.entries.m.skills")
        assert isinstance(thing, Observed) and thing.fields == {"value": ["x"]}


@pytest.mark.parametrize(
    ("value", "under", "named"),
    [
        ("${A_KEY}", "apiKey", {"secret": "A_KEY"}),
        ("${A_KEY}", "path", "${A_KEY}"),
        ("x ${A_KEY}", "token", "x ${A_KEY}"),
        ({"source": "store", "provider": "default", "id": "A"}, "token", {"secret": "A"}),
        ({"source": "file", "id": "/a/b"}, "token", {"$native": {"source": "file", "id": "/a/b"}}),
        ({"a": {"token": "${B}"}}, "", {"a": {"token": {"secret": "B"}}}),
    ],
)
def test_references_to_secrets(value: Any, under: str, named: Any) -> None:
    assert secretrefs.named(value, under) == named


def test_references_are_written_as_they_stand() -> None:
    kept = {"source": "env", "provider": "p", "id": "A"}
    assert secretrefs.native({"secret": "A"}, frozenset(), kept) == kept
    assert secretrefs.native({"secret": "A"}, frozenset({"A"})) == {"source": "store", "provider": "default", "id": "A"}
    assert secretrefs.native({"t": {"secret": "A"}}, frozenset()) == {"t": "${A}"}


# files and profiles


def test_files_of_the_workspace(site: Any) -> None:
    site.config("{}")
    site.write("workspace/SOUL.md", "Be kind.\n")
    site.write("workspace/AGENTS.md", "# Agents\n")
    site.write("workspace/scripts/disk.sh", "df\n")
    template = site.package / "docs/reference/templates/AGENTS.md"
    template.parent.mkdir(parents=True)
    template.write_text("---\ntitle: x\n---\n\n# Agents\n")
    found = site.observe(everything=True).things["default", Kind.FILE]
    assert isinstance(found, dict)
    assert found.keys() == {"AGENTS.md", "SOUL.md", "scripts/disk.sh"}
    assert found["SOUL.md"].fields["text"] == "Be kind.\n"
    assert found["AGENTS.md"].defaults == {"text", "mode"} and not found["SOUL.md"].defaults


def test_links_out_of_the_workspace_are_not_followed(site: Any) -> None:
    site.config("{}")
    (site.root / "workspace").mkdir()
    (site.user / "elsewhere").mkdir()
    (site.root / "workspace" / "scripts").symlink_to(site.user / "elsewhere")
    (site.root / "workspace" / "SOUL.md").symlink_to(site.user / "lib")
    found = site.observe("main/default/files/SOUL.md", "main/default/files/scripts/x.sh").things["default", Kind.FILE]
    assert isinstance(found, dict)
    assert all(isinstance(found[name].fields["text"], Unknown) for name in ("SOUL.md", "scripts/x.sh"))


@pytest.mark.parametrize("path", ["openclaw.json", "src/x.ts", "notes.md"])
def test_files_outside_the_list(site: Any, path: str) -> None:
    site.config("{}")
    found = canon(site, f"files: {{{path}: {{text: x}}}}", f"files/{path}")
    assert "not a file that a setup may write" in found.refused["text"]


def test_profiles(site: Any) -> None:
    site.config()
    ops = site.observe().at("", Kind.PROFILE, "ops")
    assert isinstance(ops, Observed)
    assert ops.fields == {"description": "Runs things."}
    assert ops.about["called"] == "Ops"
    assert ops.about["holds"] == ["the binding of telegram ops"]


def test_a_declared_profile_that_is_not_there(site: Any) -> None:
    site.config()
    observation = site.observe("main/new/jobs/x", "main/new/settings/name")
    assert observation.at("", Kind.PROFILE, "new") is not None
    assert observation.things["new", Kind.JOB] == {} == observation.things["new", Kind.SETTING]
    assert observation.facts["profiles"]["new"]["agent_path"] == ["agents", "entries", "new"]


# jobs


def test_a_declared_job_equals_what_it_makes(site: Any) -> None:
    site.config()
    site.timezone = "Europe/Vienna"
    found = declared_job(
        site,
        schedule='{cron: "0 8 * * MON-FRI"}',
        deliver='{to: telegram/ops, chat: "1", thread: "2"}',
        failure_deliver='{to: slack, chat: "C1"}',
        model="{provider: openai, model: gpt-6}",
        toolsets="[read]",
        session="session:mine",
        paused="true",
    )
    assert not found.refused and found.held == ""
    again = jobwords.observed({**jobwords.to_native(found.fields), "id": "x"})
    assert again == found.fields
    assert found.fields["schedule"] == {"cron": "0 8 * * 1-5", "tz": "Europe/Vienna"}
    assert any("up to 5 minutes later" in note for note in found.notes)
    assert any("no channel slack" in note for note in found.notes)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"skills": "[x]"}, "skills"),
        ({"context_from": "self"}, "context_from"),
        ({"before": "x.sh"}, "before"),
        ({"monitor": '{url: "https://x"}'}, "monitor"),
        ({"id": "x"}, "id"),
        ({"metadata": "{a: 1}"}, "metadata"),
        ({"workdir": "/tmp"}, "workdir"),
        ({"repeat": "3"}, "repeat"),
        ({"session": "chat"}, "session"),
        ({"session": "main", "deliver": "owner_chat"}, "deliver"),
        ({"session": "main", "model": "{provider: a, model: b}"}, "model"),
        ({"failure_deliver": '{to: slack, chat: "C1", thread: "2"}'}, "failure_deliver"),
        ({"prompt": "", "run": "../x.sh"}, "run"),
    ],
)
def test_what_a_job_cannot_have(site: Any, fields: dict[str, str], refused: str) -> None:
    site.config()
    assert set(declared_job(site, **fields).refused) == {refused}


def test_a_script_lies_in_the_workspace(site: Any) -> None:
    site.config("{}")
    found = declared_job(site, prompt="", run="disk.sh")
    assert found.fields["run"] == str(site.root / "workspace/scripts/disk.sh")
    assert "scripts/disk.sh is neither" in found.held
    site.write("workspace/scripts/disk.sh", "df\n")
    assert declared_job(site, prompt="", run="disk.sh").held == ""
    thing = site.job(payload={"kind": "command", "argv": [found.fields["run"]]})
    assert site.provider.express(thing, site.observe())["run"] == "disk.sh"
    assert declared_job(site, prompt="", run="/usr/bin/true").fields["run"] == "/usr/bin/true"


def test_a_past_one_shot_is_expired(site: Any) -> None:
    site.config()
    assert "has passed" in declared_job(site, schedule='{at: "2026-11-30T00:00:00Z"}').expired
    assert declared_job(site, schedule='{at: "2031-11-30T00:00:00Z"}', repeat="1").expired == ""


def test_only_the_default_agent_has_a_main_session() -> None:
    found = roster.read({"agents": {"list": [{"id": "a"}, {"id": "b"}]}}, OLD)
    assert (found.default, found.profile("b")) == ("a", "b")


def test_what_an_agent_made_is_never_planned(site: Any) -> None:
    """A setup that names it is refused, whatever the row would be."""
    from reconciler.action import Action, Row

    site.config()
    site.jobs(job(owner={"agentId": "main"}))
    action = Action(Row.UNOWNED, Address.parse("main/default/jobs/Brief"), "j1")
    [row] = site.provider.review([action], site.observe(), {})
    assert row.row is Row.REFUSED and "never touched" in row.reason
    assert NEW in site.provider.limits()[0]
