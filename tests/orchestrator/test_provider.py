"""The orchestrator provider on real homes: what its door reaches, and what is refused by name before it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator import fake, lab
from orchestrator.lab import BRIEF
from reconciler.action import Row
from reconciler.adopt import adopt_home
from reconciler.plan import Options
from reconciler.provider import Portable
from reconciler.testing.kit import World, job, outcomes

pytestmark = pytest.mark.orchestrator


def record(world: World, name: str = "brief", profile: str = "default") -> dict[str, Any]:
    (found,) = [job for job in lab.stored(world.home.path, profile) if job.get("name") == name]
    return found


def test_a_job_with_everything(root: Path) -> None:
    world = lab.planning(root)
    world.converge(world.text(job("first")))
    whole = job(
        schedule='{cron: "30 7 * * mon-fri", tz: Europe/Vienna}',
        deliver='{to: slack, chat: C1, thread: "170.1"}',
        failure_deliver="owner_chat",
        model="{provider: auto, model: opus}",
        skills="[calendar, news]",
        context_from="[first, self]",
        workdir="/srv/work/",
        repeat="3",
        paused="true",
        metadata="{team: ops, weight: 1.0, share: 0.1, on: true}",
    )
    world.converge(world.text(job("first") + whole))
    made, first = record(world), record(world, "first")
    assert made["deliver"] == "slack:C1:170.1" and made["failure_deliver"] == "home"
    assert made["schedule"] == {"kind": "cron", "expr": "30 7 * * 1-5", "tz": "Europe/Vienna"}
    assert made["context_from"] == [first["id"], made["id"]]
    assert (made["model"], made["skills"], made["workdir"]) == ("opus", ["calendar", "news"], "/srv/work")
    assert made["repeat"] == {"times": 3, "completed": 0}
    assert made["enabled"] is False and made["next_run_at"] is None
    assert made["host"] | {"reconciler": 0} == {"team": "ops", "weight": 1, "share": 0.1, "on": True, "reconciler": 0}
    assert made["host"]["reconciler"] | {"intent": ""} == {"owner": "solo", "address": BRIEF, "intent": ""}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("before", "disk.sh"),
        ("toolsets", "[web]"),
        ("session", "main"),
        ("monitor", "{url: https://example.org}"),
        ("model", "{provider: openrouter, model: x}"),
        ("model", '{provider: auto, model: x, base_url: "https://example.org"}'),
        ("deliver", '{to: matrix, chat: "!room:example.org"}'),
        ("failure_deliver", '{to: slack, chat: C1, thread: "a:b"}'),
        ("schedule", '{cron: "0 0 L * *"}'),
        ("metadata", "{reconciler: mine}"),
        ("metadata", f"{{big: {'x' * 16000}}}"),
        ("metadata", "{big: 12345678901234567890}"),
        ("repeat", "12345678901234567890"),
        ("id", "../evil"),
    ],
)
def test_what_the_door_would_drop_is_refused_by_name(root: Path, field: str, value: str) -> None:
    world = lab.met(root)
    before = world.tree()
    row = world.rows(world.text(job(**{field: value})))[BRIEF]
    assert row.row is Row.REFUSED, row
    assert row.reason.startswith(f"{field}: "), row.reason
    assert world.apply(world.text(job(**{field: value}))) == []
    assert world.tree() == before


def test_a_script_job_is_refused(root: Path) -> None:
    world = lab.planning(root)
    text = world.text("  brief:\n    schedule: {every: 2h}\n    run: disk.sh\n    deliver: local\n")
    assert world.rows(text)[BRIEF].row is Row.REFUSED


def test_kinds_without_a_verb_are_refused(root: Path) -> None:
    world = lab.met(root)
    (world.root / "soul.md").write_text("Be kind.\n")
    rest = (
        "description: The one.\nsettings: {agent.max_turns: 120}\nfiles: {SOUL.md: {source: soul.md}}\n"
        "inference: {models: {a: {provider: p, model: m}}, default: a}"
    )
    rows = world.rows(world.text(rest=rest))
    assert {path: row.row for path, row in rows.items()} == dict.fromkeys(
        ("default", "default/settings/agent.max_turns", "default/files/SOUL.md", "default/inference"), Row.REFUSED
    )
    assert all("orchestrator" in row.reason for row in rows.values())


def test_a_home_is_never_provisioned(root: Path) -> None:
    (root / "home" / "config.yaml").unlink()
    world = lab.planning(root)
    plan = world.plan(world.text(job(), first="provision")).homes[0]
    assert plan.hold is not None and "made by the orchestrator itself" in plan.hold.why
    assert world.apply(world.text(job(), first="provision")) == []
    assert not world.tree()


@pytest.mark.parametrize("served", [False, True], ids=["cold", "live"])
def test_each_field_that_the_door_changes(root: Path, served: bool) -> None:
    world = lab.planning(root)
    with lab.serving(root / "home") if served else lab.nothing():
        world.converge(world.text(job()))
        made = record(world)["id"]
        for change in (
            {"prompt": "Write more."},
            {"schedule": '{cron: "0 8 * * 1-5", tz: Asia/Tokyo}'},
            {"schedule": '{at: "2031-02-03T08:00:00+01:00"}'},
            {"deliver": "{to: telegram}"},
            {"failure_deliver": "local", "workdir": "/srv", "model": "{provider: auto, model: opus}"},
            {},  # and away with them again
            {"name": "another"},
            {"paused": "true", "prompt": "Both at once.", "schedule": "{every: 1d}"},
            {"paused": "false", "schedule": "{every: 3h}"},
        ):
            world.converge(world.text(job(**change)))
        (found,) = lab.stored(root / "home")
        assert found["id"] == made
        assert found["next_run_at"] is not None


@pytest.mark.parametrize(
    ("field", "first", "then"),
    [
        ("skills", "[a]", "[a, b]"),
        ("skills", "[a]", ""),
        ("repeat", "3", "4"),
        ("metadata", "{a: b}", "{a: c}"),
        ("context_from", "[self]", ""),
    ],
)
def test_what_no_verb_changes_is_refused_whole(root: Path, field: str, first: str, then: str) -> None:
    """A row is not carried out in part either: its other fields wait."""
    world = lab.planning(root)
    world.converge(world.text(job(**{field: first})))
    before = world.tree()
    text = world.text(job(prompt="New words.", **({field: then} if then else {})))
    row = world.rows(text)[BRIEF]
    assert row.row is Row.REFUSED and row.reason.startswith(f"{field}: the door cannot change it"), row
    assert world.apply(text) == []
    assert world.tree() == before


def test_what_an_adopted_job_has_already_may_be_declared(root: Path) -> None:
    world = lab.planning(root)
    lab.cold(root / "home", "jobs.create", id="a", name="brief", prompt="P", schedule="every 2h", deliver="local")
    store = root / "home" / "cron" / "jobs.json"
    data = json.loads(store.read_text())
    data["jobs"][0] |= {"enabled_toolsets": ["web"], "provider": "openrouter", "model": "x"}
    store.write_text(json.dumps(data))
    said = {"prompt": "P", "toolsets": "[web]", "model": "{provider: openrouter, model: x}"}
    world.converge(world.text(job(**said)))
    refused = world.rows(world.text(job(**{**said, "toolsets": "[web, files]"})))[BRIEF]
    assert refused.row is Row.REFUSED and refused.reason.startswith("toolsets: ")


def test_profiles_come_and_go(root: Path) -> None:
    world = lab.planning(root)
    coder = "      coder:\n        jobs:\n" + "".join(f"        {line}\n" for line in job("lint").splitlines())
    world.converge(world.text(job(), extra=coder))
    assert record(world, "lint", "coder")
    (root / "home" / "profiles" / "coder" / "notes.md").write_text("Mine.\n")
    row = world.rows(world.text(job()))["coder"]
    assert row.hold is not None and "notes.md" in row.hold.why
    (root / "home" / "profiles" / "coder" / "notes.md").unlink()
    done = outcomes(world.apply(world.text(job())))
    assert done == {"coder/jobs/lint": "applied", "coder": "applied"}
    assert not world.rows(world.text(job()))
    (trashed,) = world.kit.provider.examine(lab.ref(root / "home"))
    assert "profiles/.trash/coder-" in trashed


def test_a_missed_run_is_not_made_up_for_on_resume(root: Path) -> None:
    """The door resumes with the run that was missed; sent its own schedule again, the job is armed anew."""
    home = root / "home"
    made = {"id": "a", "name": "brief", "prompt": "Write the brief.", "schedule": "every 2h", "deliver": "local"}
    lab.cold(home, "jobs.create", at="2026-01-01T08:00:00Z", **made)
    lab.cold(home, "jobs.pause", id="a")
    world = lab.planning(root)
    world.converge(world.text(job(paused="true")))
    assert record(world)["next_run_at"] == "2026-01-01T10:00:00.000Z"
    world.converge(world.text(job(paused="false")))
    found = record(world)
    assert found["enabled"] is True and found["next_run_at"] > "2026-06"


@pytest.mark.parametrize(("next_run", "outcome"), [(None, "inert"), ("2032-02-29T00:00:00.000Z", "applied")])
def test_a_schedule_without_a_run_is_inert(root: Path, next_run: str | None, outcome: str) -> None:
    """The door looks one year ahead, and says yes to what it finds no run for."""
    world = lab.met(root)
    jobs: list[dict[str, Any]] = []

    def say(result: dict[str, Any]) -> bytes:
        return json.dumps({"ok": True, "result": result}).encode() + b"\n"

    def create(line: dict[str, Any]) -> bytes:
        args = line["args"]
        told = {key: args[key] for key in ("name", "prompt", "deliver")}
        jobs.append({**told, "job_id": args["id"], "schedule": "cron 0 0 29 2 * UTC", "enabled": True})
        return say({"job_id": args["id"], "job": {"id": args["id"], "enabled": True, "next_run_at": next_run}})

    with fake.daemon(world.home.path, create, lambda: say({"jobs": jobs})):
        events = world.apply(world.text(job(schedule='{cron: "0 0 29 2 *"}')))
    assert outcomes(events) == {BRIEF: outcome}
    assert ("finds no run" in lab.said(events)[1]) is (next_run is None)


def test_adopting_all_of_a_home(root: Path) -> None:
    home = root / "home"
    lab.cold(home, "jobs.create", id="a", name="one", prompt="P", schedule="0 8 * * *", deliver="slack:C1")
    lab.cold(home, "jobs.create", id="b", prompt="Q", schedule="every 2h", skills=["s"], metadata={"k": "v"})
    lab.cold(home, "profiles.create", name="coder")
    world = lab.planning(root)
    before = world.tree()
    adopt_home(world.space(world.text(first="ask")), "main")
    plan = world.plan(world.text(first="ask"), Options(unmanaged=True))
    assert world.tree() == before
    assert {a.address.path: a.row for a in plan.homes[0].actions} == dict.fromkeys(
        ("coder", "default/jobs/a", "default/jobs/b"), Row.UNMANAGED
    )
    things = {thing.id: thing for thing in plan.homes[0].observation.all()}
    express = world.kit.provider.express
    assert express(things["a"], plan.homes[0].observation) == {
        "name": "one", "schedule": {"cron": "0 8 * * *"}, "prompt": "P", "deliver": {"to": "slack", "chat": "C1"}
    }  # fmt: skip
    # What came from a conversation has no word in a setup: `deliver` has to be chosen.
    assert express(things["b"], plan.homes[0].observation) == {
        "name": "Q", "schedule": {"every": "2h"}, "prompt": "Q", "skills": ["s"], "metadata": {"k": "v"}
    }  # fmt: skip


def test_where_the_daemon_and_the_folder_differ_the_daemon_counts(root: Path) -> None:
    world, home = lab.planning(root), root / "home"
    with lab.serving(home):
        world.converge(world.text(job() + job("other")))
        data = json.loads((home / "cron" / "jobs.json").read_text())
        brief, other = data["jobs"]
        brief |= {"prompt": "Edited beside the daemon.", "enabled": False, "state": "paused"}
        stray = {**other, "id": "stray", "name": "stray"}
        (home / "cron" / "jobs.json").write_text(json.dumps({"jobs": [brief, stray]}))
        plan = world.plan(world.text(job() + job("other"))).homes[0]
        notes = "\n".join(plan.notes)
        assert f"job {brief['id']}: the running daemon has another paused, prompt" in notes
        assert "job stray is in the folder, and the running daemon has none" in notes
        assert f"job {other['id']} is in the running daemon, and not in the folder" in notes
        assert not plan.open, plan.open
        # The next write of the daemon's own sets the folder right.
        lab.live(home, "jobs.run", id=brief["id"])
        assert not world.rows(world.text(job() + job("other")))
    assert not world.rows(world.text(job() + job("other")))


def test_a_plan_says_who_serves(root: Path) -> None:
    world = lab.planning(root)
    assert not world.plan(world.text()).homes[0].notes
    with lab.serving(root / "home") as daemon:
        (note,) = world.plan(world.text()).homes[0].notes
        assert f"pid {daemon.pid}" in note and "through its socket" in note
        inside = world.kit.provider.insider(lab.ref(root / "home"), [1, daemon.pid])
        assert f"pid {daemon.pid}" in inside


def test_what_a_copy_has_to_know(root: Path) -> None:
    home, world = root / "home", lab.planning(root)
    world.converge(world.text(job(schedule='{cron: "0 8 * * *"}')))
    (home / "state.db").write_bytes(b"1234")
    provider = world.kit.provider
    assert isinstance(provider, Portable)
    assert [(part.path, part.size) for part in provider.behind(lab.ref(home))] == [("state.db", 4)]
    plan = world.plan(world.text(job(schedule='{cron: "0 8 * * *"}'))).homes[0]
    (brief,) = [r for r in plan.resources.values() if r.address.path == BRIEF]
    assert provider.implied(brief, plan.observation) == {"time zone": "UTC"}


def test_an_untested_version_is_plan_only(root: Path) -> None:
    """Read from the package's own manifest; no process is started for it."""
    package = root / "package"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@volter-ai-dev/supercode-orchestrator", "version": "0.9.0"}')
    (package / "bin" / "orchestrator.mjs").write_text("")
    world = lab.planning(root)
    text = world.text(job()).replace(lab.flow(), json.dumps({"command": ["node", f"{package}/bin/orchestrator.mjs"]}))
    plan = world.plan(text).homes[0]
    assert plan.hold is not None and plan.guard == "unknown-version" and "0.9.0 is not tested" in plan.hold.why
    nowhere = world.text(job()).replace(lab.flow(), json.dumps({"command": ["no-such-program"]}))
    held = world.plan(nowhere).homes[0].hold
    assert held is not None and "version cannot be told" in held.why


@pytest.mark.parametrize(
    ("door", "wrong"),
    [
        ("{mode: hot}", "door.mode: one of auto, live, cold"),
        ("{command: node}", "door.command: a list of words"),
        ("{command: []}", "door.command: a list of words"),
        ("{python: /usr/bin/python3}", "python is not known"),
    ],
)
def test_a_door_block_is_closed(root: Path, door: str, wrong: str) -> None:
    world = lab.planning(root)
    assert wrong in world.plan(world.text(job()).replace(lab.flow(), door)).homes[0].failed


def test_other_folders_are_told_apart(root: Path) -> None:
    world = lab.planning(root)
    (root / "home" / ".orchestrator.write").touch()
    assert "say `harness: native`" in world.plan(world.text()).homes[0].failed
    (root / "home" / ".orchestrator.write").rename(root / "home" / "letters.txt")
    (root / "home" / "config.yaml").unlink()
    assert "not a home of the orchestrator: it holds letters.txt" in world.plan(world.text()).homes[0].failed


def test_a_worker_is_said_when_the_profile_is_made_and_refused_by_name_after(root: Path) -> None:
    world = lab.planning(root)
    text = world.text(extra="      coder: {worker: {harness: codex, model: o}}\n")
    world.converge(text)
    config = (world.home.path / "profiles" / "coder" / "config.yaml").read_text()
    assert "codex" in config
    changed = world.rows(text.replace("model: o", "model: p"))["coder"]
    assert changed.row is Row.REFUSED and "no verb that changes one" in changed.reason
    for more in ("env: {A: b}", "permission: {default: allow}"):
        row = world.rows(world.text(extra=f"      other: {{worker: {{harness: pi, {more}}}}}\n"))["other"]
        assert row.row is Row.REFUSED and more.partition(":")[0] in row.reason
    (world.home.path / "profiles" / "coder" / "config.yaml").write_text(config.replace("codex", "pi"))
    drift = world.rows(text)["coder"]
    assert [c.field for c in drift.held_fields] == ["worker"]
