"""Jobs of the state database in the setup's words, the state of their store, and whose they are."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

import pytest

from reconciler.action import CLEAR, Action, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Observed, Store, Unknown
from reconciler.testing.kit import tree
from reconciler_openclaw import jobs, jobwords
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import SCALAR
from unit.openclaw.conftest import job

KEY = bytes.fromhex("22" * 32)


def test_a_plain_job(site: Any) -> None:
    found = site.job(declarationKey="reconciler:i1")
    assert found.fields == {
        "name": "Brief",
        "schedule": {"every": "120m"},
        "prompt": "Write.",
        "deliver": "owner_chat",
        "session": "isolated",
        "paused": False,
    }
    assert found.defaults == {"deliver", "session", "paused"}
    assert found.marker == "i1"


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        ({"schedule": {"kind": "cron", "expr": "0  8 * * MON-FRI"}}, "schedule", {"cron": "0 8 * * 1-5"}),
        ({"schedule": {"kind": "cron", "expr": "0 8 * * *", "tz": "UTC", "staggerMs": 0}}, "schedule",
         {"cron": "0 8 * * *", "tz": "UTC"}),
        ({"schedule": {"kind": "at", "at": "2031-02-03T07:00:00.000Z"}}, "schedule", {"at": "2031-02-03T07:00:00Z"}),
        ({"schedule": {"kind": "every", "everyMs": 1500}}, "schedule", {"$native": {"kind": "every", "everyMs": 1500}}),
        ({"schedule": {"kind": "on-exit", "command": "x"}}, "schedule",
         {"$native": {"kind": "on-exit", "command": "x"}}),
        ({"schedule": {"kind": "cron", "expr": "0 0 8 * * *"}}, "schedule",
         {"$native": {"kind": "cron", "expr": "0 0 8 * * *"}}),
        ({"payload": {"kind": "systemEvent", "text": "Tick."}, "sessionTarget": "main"}, "prompt", "Tick."),
        ({"payload": {"kind": "script", "script": "1"}}, "prompt", {"$native": {"kind": "script"}}),
        ({"payload": {"kind": "command", "argv": ["/bin/x"]}}, "run", "/bin/x"),
        ({"payload": {"kind": "command", "argv": ["sh", "-c", "x"]}}, "run", {"$native": {"argv": ["sh", "-c", "x"]}}),
        ({"payload": {"kind": "agentTurn", "message": "x", "model": "a/b/c"}}, "model",
         {"provider": "a", "model": "b/c"}),
        ({"payload": {"kind": "agentTurn", "message": "x", "model": "opus"}}, "model",
         {"provider": "auto", "model": "opus"}),
        ({"payload": {"kind": "agentTurn", "message": "x", "toolsAllow": ["read"]}}, "toolsets", ["read"]),
        ({"payload": {"kind": "agentTurn", "message": "x", "toolsAllow": ["read"], "toolsAllowIsDefault": True}},
         "toolsets", None),
        ({"delivery": None}, "deliver", "local"),
        ({"delivery": {"mode": "none"}}, "deliver", "local"),
        ({"delivery": {"mode": "announce", "channel": "last"}}, "deliver", "owner_chat"),
        ({"delivery": {"mode": "announce", "channel": "slack", "to": "C1", "accountId": "T1", "threadId": 7}},
         "deliver", {"to": "slack/T1", "chat": "C1", "thread": "7"}),
        ({"delivery": {"mode": "announce", "failureDestination": {"channel": "slack", "to": "C2"}}}, "failure_deliver",
         {"to": "slack", "chat": "C2"}),
        ({"sessionTarget": "session:abc"}, "session", "session:abc"),
        ({"enabled": False}, "paused", True),
    ],
)  # fmt: skip
def test_words(site: Any, record: dict[str, Any], name: str, value: Any) -> None:
    assert site.job(**record).fields.get(name) == value


@pytest.mark.parametrize(
    ("record", "state", "why"),
    [
        ({}, {"autoDisabled": {"reason": "consecutive-failures", "consecutiveErrors": 10}}, "after 10 errors"),
        (
            {"schedule": {"kind": "at", "at": "2025-02-03T07:00:00Z"}},
            {"lastRunStatus": "ok"},
            "its only time has passed",
        ),
        ({"trigger": {"script": "x", "once": True}}, {"lastTriggerFireAtMs": 1}, "its trigger fired"),
        ({}, {"streamRestartExhausted": True}, "its stream ended"),
    ],
)
def test_what_openclaw_switched_off_is_not_paused(site: Any, record: Any, state: Any, why: str) -> None:
    found = site.job(enabled=False, state=state, **record)
    assert found.fields["paused"] is False
    assert why in str(found.about["state"])
    # Nor did anybody change it.
    assert found.fingerprint == jobs.fingerprint(job(**record), KEY)


def test_a_one_shot_that_ran_is_over(site: Any) -> None:
    when = {"kind": "at", "at": "2025-02-03T07:00:00Z"}
    site.job(enabled=False, schedule=when, state={"lastRunStatus": "ok"})
    assert site.observe().ended["default", Kind.JOB] == {"j1": "its only time has passed, and it ran"}


def test_what_a_run_has_left_is_said_in_openclaws_own_words(site: Any) -> None:
    state = {"lastRunAtMs": 1_767_225_600_000, "lastRunStatus": "skipped", "lastError": "no channel"}
    about = site.job(state=state).about
    assert (about["last_status"], about["last_error"]) == ("skipped", "no channel")
    assert about["last_run_at"] == "2026-01-01T00:00:00Z"


def test_a_run_changes_no_fingerprint_and_a_person_does(site: Any) -> None:
    before = jobs.fingerprint(job(), KEY)
    ran = job(state={"lastRunAtMs": 1, "nextRunAtMs": 2}, updatedAtMs=9, configRevision="sha256:x", nextRunAtMs=2)
    assert jobs.fingerprint(ran, KEY) == before
    assert jobs.fingerprint(job(description="changed"), KEY) != before
    assert jobs.fingerprint(job(enabled=False), KEY) != before


def test_nulls_that_the_database_keeps_are_no_change() -> None:
    """9.6 stores those of a patch (a failure destination's account), and tells none of them."""
    told = {"mode": "announce", "failureDestination": {"channel": "telegram", "to": "42"}}
    kept = {**told, "failureDestination": {**told["failureDestination"], "accountId": None}}  # type: ignore[dict-item]
    assert jobs.fingerprint(job(delivery=kept), KEY) == jobs.fingerprint(job(delivery=told), KEY)


@pytest.mark.parametrize(
    ("write", "held"),
    [
        ({"workdir": CLEAR}, True),
        ({"workdir": "/srv"}, False),
        ({"workdir": CLEAR, "run": CLEAR, "prompt": "Look."}, False),
        ({"workdir": CLEAR, "prompt": "Look."}, False),
    ],
)
def test_no_folder_is_taken_away_from_a_script(site: Any, write: dict[str, Any], held: bool) -> None:
    site.config()
    site.jobs(job(payload={"kind": "command", "argv": ["/bin/true"], "cwd": "/tmp"}))
    changes = tuple(
        FieldChange(name, FieldRow.UNSET if value is CLEAR else FieldRow.SET, ABSENT, ABSENT, None, SCALAR, value)
        for name, value in write.items()
    )
    row = Action(Row.UPDATE, Address.parse("main/default/jobs/brief"), id="j1", changes=changes)
    (found,) = site.provider.review([row], site.observe(), {})
    assert (found.hold is not None) is held


def test_a_webhooks_address_is_not_shown_and_its_change_is_seen(site: Any) -> None:
    site.config()
    url = "https://hooks.example.com/T0/canary"
    places = [{"mode": "webhook", "to": to} for to in (url, url, f"{url}?token=other")]
    site.jobs(*(job(id=str(at), delivery={**to, "failureDestination": to}) for at, to in enumerate(places)))
    things = site.observe().things["default", Kind.JOB]
    seen = [[things[str(at)].fields[name] for name in ("deliver", "failure_deliver")] for at in range(3)]
    assert seen[0] == seen[1] != seen[2]
    assert "webhook" in str(seen) and "example" not in str(seen) and "canary" not in str(seen)


def test_a_job_that_may_use_no_tool_is_no_job_that_may_use_all(site: Any) -> None:
    site.config()
    site.jobs(job(payload={"kind": "agentTurn", "message": "Write.", "toolsAllow": []}))
    observation = site.observe()
    (thing,) = (thing for thing in observation.all() if thing.kind is Kind.JOB)
    assert site.provider.express(thing, observation)["toolsets"] == {"only": []}
    again = jobwords.to_native({"prompt": "Write.", "toolsets": {"only": []}})
    assert again["payload"]["toolsAllow"] == []


def test_whose_job_it_is(site: Any) -> None:
    site.config()
    site.jobs(
        job(id="s", declarationKey="heartbeat:main"),
        job(id="p", declarationKey="memory-core:memory-dreaming-promotion"),
        job(id="c", declarationKey="claw:main:x"),
        job(id="a", owner={"agentId": "main", "sessionKey": "k"}),
        job(id="o", agentId="ops"),
        job(id="none", agentId="gone"),
        job(id="plain", agentId=None),
    )
    observation = site.observe()
    mine = observation.things["default", Kind.JOB]
    assert isinstance(mine, dict)
    assert mine.keys() == {"c", "a", "plain"}
    assert "an agent made it in a chat" in str(mine["a"].about["foreign"])
    assert "installed package" in str(mine["c"].about["foreign"])
    assert site.provider.express(mine["a"], observation) == {}
    assert "plain" in mine and site.provider.express(mine["plain"], observation)["prompt"] == "Write."
    ops = observation.things["ops", Kind.JOB]
    assert isinstance(ops, dict) and ops.keys() == {"o"}
    assert any("heartbeat:main, memory-core:" in note for note in observation.notes)
    assert any("an agent gone that is not in the config" in note for note in observation.notes)


def test_no_store_yet(site: Any) -> None:
    site.config()
    observation = site.observe()
    assert observation.stores["default", Kind.JOB] is Store.MISSING
    assert observation.things["default", Kind.JOB] == {}


def test_a_moved_home_has_lost_its_jobs(site: Any) -> None:
    site.config()
    site.jobs(job(id="old"), key="/somewhere/else/cron/jobs.json")
    site.jobs(job(id="s", declarationKey="heartbeat:main"))
    observation = site.observe()
    assert observation.stores["default", Kind.JOB] is Store.MISSING
    assert any("kept for /somewhere/else" in n and "the home was moved from there" in n for n in observation.notes)


def test_a_home_behind_a_link_has_its_jobs_under_the_links_name(site: Any) -> None:
    """OpenClaw takes the path as it was given: `~/.openclaw` may lead to `/data/openclaw`."""
    link = site.user / "link"
    link.symlink_to(site.root)
    site.config()
    site.jobs(job(), key=f"{link}/cron/jobs.json")
    observation = site.observe()
    assert isinstance(observation.at("default", Kind.JOB, "j1"), Observed)
    assert observation.stores["default", Kind.JOB] is Store.PROPER
    assert observation.facts["state_dir"] == str(link)
    site.jobs(job(id="s", declarationKey="heartbeat:main"))
    observation = site.observe()
    assert any("under several names of this home" in note for note in observation.notes)
    assert isinstance(observation.at("default", Kind.JOB, "j1"), Observed) or observation.facts["state_dir"] != str(
        link
    )


def test_a_fresh_home_has_an_empty_proper_store(site: Any) -> None:
    site.config()
    site.jobs()
    assert site.observe().stores["default", Kind.JOB] is Store.PROPER


@pytest.mark.parametrize("content", [b"", b"not a database at all, but longer than its head\n" * 200])
def test_a_broken_store_is_never_absent(site: Any, content: bytes) -> None:
    site.config()
    site.write("state/openclaw.sqlite", content)
    observation = site.observe()
    assert observation.stores["default", Kind.JOB] is (Store.IMPROPER if content else Store.EMPTY)
    assert isinstance(observation.things["default", Kind.JOB], Unknown) is bool(content)


def test_a_record_that_cannot_be_read_is_left_alone(site: Any) -> None:
    site.config()
    site.jobs(job())
    connection = sqlite3.connect(site.root / "state" / "openclaw.sqlite")
    with connection:
        connection.execute("UPDATE cron_jobs SET job_json = '[1'")
    connection.close()
    assert any("1 job record(s) cannot be read" in note for note in site.observe().notes)


@pytest.mark.parametrize("how", ["open", "killed", "no shm", "closed"])
def test_looking_touches_no_byte_of_the_database(site: Any, how: str) -> None:
    """A reader in WAL mode would write its marks; ours does not, whatever the writer has left."""
    site.config()
    site.jobs()
    path = site.root / "state" / "openclaw.sqlite"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.close()
    pid = os.fork()
    if pid == 0:
        writer = sqlite3.connect(path)
        site.jobs(job())  # in the log only: the first connection keeps it from being folded in
        os._exit(0 if writer.execute("SELECT count(*) FROM cron_jobs").fetchone() == (1,) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    if how == "no shm":
        path.with_name(path.name + "-shm").unlink()
    live = sqlite3.connect(path) if how in ("open", "closed") else None
    if live is not None:
        live.execute("SELECT count(*) FROM cron_jobs").fetchone()
    if how == "closed" and live is not None:
        live.close()
    before = tree(site.root)
    assert isinstance(site.observe().at("default", Kind.JOB, "j1"), Observed)
    assert tree(site.root) == before
    if live is not None:
        live.close()


def test_a_path_with_odd_letters(site: Any) -> None:
    odd = site.user / "a?mode=rwc#b %20"
    odd.mkdir()
    site.root = odd / ".openclaw"
    site.root.mkdir()
    assert site.job().name == "Brief"


@pytest.mark.parametrize(
    ("record", "changes", "patch"),
    [
        ({}, {"schedule": {"every": "60m"}},
         {"schedule": {"kind": "every", "everyMs": 3_600_000, "anchorMs": 1796071835474}}),
        ({"schedule": {"kind": "cron", "expr": "0 8 * * *", "staggerMs": 300_000}}, {"schedule": {"cron": "5 8 * * *"}},
         {"schedule": {"kind": "cron", "expr": "5 8 * * *"}}),
        ({"schedule": {"kind": "cron", "expr": "0 8 * * *", "staggerMs": 0}}, {"schedule": {"cron": "0 9 * * *"}},
         {"schedule": {"kind": "cron", "expr": "0 9 * * *", "staggerMs": 0}}),
        ({}, {"paused": None}, {"enabled": True}),
        ({}, {"toolsets": {"only": ["read"]}}, {"payload": {"kind": "agentTurn", "toolsAllow": ["read"]}}),
        ({}, {"model": None}, {"payload": {"kind": "agentTurn", "model": None}}),
        ({"enabled": False, "schedule": {"kind": "at", "at": "2025-01-01T00:00:00Z"}, "state": {"lastRunStatus": "ok"}},
         {"schedule": {"at": "2031-01-01T00:00:00Z"}},
         {"schedule": {"kind": "at", "at": "2031-01-01T00:00:00Z"}, "enabled": True}),
    ],
)  # fmt: skip
def test_patches(record: Any, changes: Any, patch: Any) -> None:
    assert jobwords.patch(job(**record), changes) == patch
