"""A home that is adopted gives a setup whose plan is empty, holds no secret, and was not written to."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from openclaw.adopted import adopt, plan
from reconciler.action import Row
from reconciler.plan import Options
from reconciler.provider import Portable
from reconciler.testing.kit import tree
from reconciler.workspace import Workspace
from reconciler_openclaw import install
from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_specs.resource import Resource
from reconciler_state.local import LocalStore
from unit.openclaw.conftest import CONFIG, NEW, OLD, job


@pytest.mark.parametrize("version", [NEW, OLD])
def test_adopt_and_plan_again(site: Any, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{site.user}/bin:/usr/bin:/bin")
    (site.user / "bin" / "openclaw").symlink_to(site.package / "openclaw.mjs")
    site.install(version)
    text = CONFIG
    if version == OLD:
        text = CONFIG.replace(
            "entries: {main: {default: true}, ops: {", "list: [{id: 'main', default: true}, {id: 'ops', "
        )
        text = text.replace("model: 'openai/gpt-6-mini'}},", "model: 'openai/gpt-6-mini'}],")
        text = text.replace("ownership: 'explicit',", "")
    site.config(text)
    at = {"kind": "at", "at": "2031-02-03T07:00:00.000Z"}
    sends = {"mode": "announce", "channel": "telegram", "to": "1001", "threadId": "7"}
    site.jobs(
        job(id="a", name="Brief me"),
        job(id="b", name="Once", schedule=at, deleteAfterRun=True, enabled=False),
        job(id="c", name="Sends", delivery=sends, agentId="ops"),
        job(id="d", name="Hook", delivery={"mode": "webhook", "to": "https://x.example/hook"}),
        job(id="e", name="Chat's", owner={"agentId": "main", "sessionKey": "k"}),
        job(
            id="f", name="Event", sessionTarget="main", payload={"kind": "systemEvent", "text": "Tick."}, delivery=None
        ),
        job(id="g", name="Script", payload={"kind": "command", "argv": ["/bin/true"]}, delivery={"mode": "none"}),
        job(id="h", name="Inline", payload={"kind": "script", "script": "1"}),
        ran=version,
    )
    site.write("workspace/SOUL.md", "Be kind.\n")
    before = tree(site.root)
    made, space = adopt(site.root, tmp_path / "state", site.provider, {"openclaw": str(site.package)})
    setup = render_setup("solo", {"main": made.block})
    for secret in ("Tr0ub4dor", "hunter2", "plain-value", "value-of-the-local-key"):
        assert secret not in setup
    found = plan(space)
    assert not found.failed and found.hold is None, (found.failed, found.hold)
    rows = {str(a.address): (str(a.row), a.reason, [(c.field, str(c.row)) for c in a.changes]) for a in found.actions}
    assert rows == {}
    assert tree(site.root) == before
    names = set(made.block["profiles"]["default"]["jobs"])
    assert names == {"brief-me", "once", "hook", "event", "script"}
    (chats,) = [line for line in made.left if "Chat's" in line]
    assert chats.endswith("an agent made it in a chat, and it acts for that chat")
    assert made.block["profiles"]["ops"]["inference"]["default"] == "gpt-6-mini"


def test_what_a_copy_leaves_and_what_things_mean(site: Any) -> None:
    assert isinstance(site.provider, Portable)
    site.config()
    site.jobs(job())
    site.write("agents/main/sessions/a.jsonl", "x" * 10)
    site.write("workspace-ops/SOUL.md", "x")
    site.write("tmp/x", "x")
    found = {part.path: (part.what, part.files) for part in site.provider.behind(site.ref)}
    assert found == {
        "agents": ("sessions and what agents remember of them", 1),
        "state": ("run history, approvals, pairings, the secret store", 1),
        "workspace-ops": ("workspace", 1),
    }
    address = Address.parse("main/default/jobs/x")
    daily = Resource(address, {"schedule": {"cron": "0 8 * * *"}}, {})
    site.timezone = "Europe/Vienna"
    assert site.provider.implied(daily, site.observe()) == {"time zone": "Europe/Vienna"}


@pytest.fixture
def planned(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An adopted home with three jobs, and the rows of its next plan."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(install, "_INSTALLS", (str(site.package),))
    site.config()
    site.jobs(*(job(id=name, name=name) for name in ("a", "b", "c")), job(id="d", agentId="ops", name="d"))
    _, space = adopt(site.root, tmp_path / "state", site.provider, {})
    return lambda: plan(space)


def change(site: Any, sql: str) -> None:
    connection = sqlite3.connect(site.root / "state" / "openclaw.sqlite")
    with connection:
        connection.execute(sql)
    connection.close()


def test_an_edit_in_the_home_is_drift(site: Any, planned: Any) -> None:
    change(site, "UPDATE cron_jobs SET job_json = replace(job_json, 'Write.', 'Other.') WHERE job_id = 'a'")
    [row] = planned().actions
    assert (str(row.address), str(row.row)) == ("main/default/jobs/a", "update")
    assert [(c.field, str(c.row), c.observed) for c in row.changes if c.held] == [("prompt", "drift", "Other.")]


def test_a_run_is_no_drift(site: Any, planned: Any) -> None:
    change(site, """UPDATE cron_jobs SET state_json = '{"lastRunStatus": "ok", "nextRunAtMs": 1}'""")
    assert planned().actions == ()


def test_one_job_gone_is_missing_and_all_gone_is_a_lost_store(site: Any, planned: Any) -> None:
    change(site, "DELETE FROM cron_jobs WHERE job_id = 'a'")
    assert [(str(r.address), str(r.row)) for r in planned().actions] == [("main/default/jobs/a", "missing")]
    change(site, "DELETE FROM cron_jobs WHERE job_id != 'd'")
    assert "all 3 of our jobs" in planned().hold.why


@pytest.mark.parametrize(
    ("sql", "config", "reason"),
    [
        (
            "UPDATE cron_jobs SET job_json = replace(job_json, 'main', 'ops') WHERE job_id = 'a'",
            {},
            "the job is one of profile ops now; `moved:` follows it there",
        ),
        ("", {"main: {default: true}, ops: {": "main: {}, ops: {default: true, "}, "one of profile main now"),
        ("UPDATE cron_jobs SET job_json = '[1' WHERE job_id = 'a'", {}, "its record cannot be read"),
        ("", {"ops: {": "other: {"}, "of an agent ops that is not in the config"),
    ],
    ids=["other agent", "other default agent", "record", "agent gone"],
)
def test_a_job_that_is_there_and_not_where_it_was_is_never_made_again(
    site: Any, planned: Any, sql: str, config: dict[str, str], reason: str
) -> None:
    change(site, sql or "SELECT 1")
    text = CONFIG
    for old, new in config.items():
        assert old in text
        text = text.replace(old, new)
    site.config(text)
    found = planned()
    rows = [row for row in found.actions if row.address.kind is Kind.JOB]
    assert rows and {row.row for row in rows} == {Row.BLOCKED}, rows
    assert all(reason in row.reason for row in rows if row.address.profile == "default" or not config), rows
    assert found.hold is None or "of our jobs" not in found.hold.why


def test_a_store_that_was_left_behind_is_a_lost_one(site: Any, planned: Any) -> None:
    change(site, "UPDATE cron_jobs SET store_key = '/elsewhere/cron/jobs.json'")
    assert "is missing" in planned().hold.why


def test_at_first_contact_no_job_is_made_beside_those_that_were_left_behind(
    site: Any, planned: Any, tmp_path: Path
) -> None:
    """A moved home under its new path is one that the setup meets for the first time."""
    change(site, "UPDATE cron_jobs SET store_key = '/elsewhere/cron/jobs.json'")
    text = (
        f"version: 1\nname: solo\nhomes:\n  main: {{harness: openclaw, path: {site.root}, first_contact: adopt, "
        "profiles: {default: {jobs: {a: {schedule: {every: 2h}, prompt: Write., deliver: local}}}}}\n"
    )
    setup = load_text(text, "setup.yaml", tmp_path)
    space = Workspace(setup, LocalStore(tmp_path / "other"), {"openclaw": site.provider})
    (row,) = [action for action in plan(space).actions if action.address.kind is Kind.JOB]
    assert (row.row, row.guard) == (Row.CREATE, "rebuild")
    assert row.hold is not None and "kept for /elsewhere" in row.hold.why
    allowed = space.plan(Options(allow=frozenset({"rebuild"}))).homes[0]
    assert [a.address.key for a in allowed.open if a.address.kind is Kind.JOB] == ["a"]


@pytest.mark.parametrize("text", ["{agents: }", None, "{}"])
def test_a_config_that_is_lost_deletes_nothing(site: Any, planned: Any, text: str | None) -> None:
    path = site.root / "openclaw.json"
    path.unlink() if text is None else path.write_text(text)
    found = planned()
    assert found.hold is not None
    assert not found.open
