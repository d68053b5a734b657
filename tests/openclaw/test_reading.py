"""Our reading of a real home equals what OpenClaw itself says of it, running and stopped, in both versions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from openclaw.adopted import adopt, plan
from openclaw.lab import NODE, TOKEN, VERSIONS, Lab, make, program
from reconciler.observe import Observed, Store, Unknown, Wanted
from reconciler.testing.kit import tree
from reconciler_openclaw import jobs, jobwords
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.address import Address, Kind

pytestmark = pytest.mark.openclaw

HOUR = {"kind": "cron", "expr": "0 8 * * 1-5", "tz": "Europe/Vienna"}
FULL = {"kind": "cron", "expr": "0 * * * *"}
EVERY = {"kind": "every", "everyMs": 7_200_000}
TURN = {"kind": "agentTurn", "message": "Read my calendar."}
PLAIN: dict[str, Any] = {"sessionTarget": "isolated", "wakeMode": "now", "agentId": "main"}
JOBS: dict[str, dict[str, Any]] = {
    "brief": {**PLAIN, "schedule": HOUR, "payload": TURN, "delivery": {"mode": "none"}},
    "top": {**PLAIN, "schedule": FULL, "payload": {**TURN, "model": "openai/gpt-6-mini"}},
    "every": {**PLAIN, "schedule": EVERY, "payload": {**TURN, "toolsAllow": ["read", "exec"]}},
    "once": {**PLAIN, "schedule": {"kind": "at", "at": "2031-02-03T08:00:00+01:00"}, "payload": TURN},
    "event": {**PLAIN, "sessionTarget": "main", "schedule": EVERY, "payload": {"kind": "systemEvent", "text": "Tick."}},
    "session": {**PLAIN, "sessionTarget": "session:abc", "schedule": EVERY, "payload": TURN},
    "current": {**PLAIN, "sessionTarget": "current", "schedule": EVERY, "payload": TURN},
    "script": {**PLAIN, "schedule": EVERY, "payload": {"kind": "command", "argv": ["/bin/true"], "cwd": "/tmp"}},
    "sends": {
        **PLAIN,
        "schedule": EVERY,
        "payload": TURN,
        "delivery": {
            "mode": "announce", "channel": "telegram", "to": "1001", "threadId": "7", "accountId": "ops",
            "failureDestination": {"mode": "announce", "channel": "slack", "to": "C1"},
        },
    },
    "ops": {**PLAIN, "agentId": "ops", "schedule": EVERY, "payload": TURN, "enabled": False},
    "spaces": {**PLAIN, "schedule": EVERY, "payload": {**TURN, "message": "  Two lines.\nAnd an end.\n\n"}},
}  # fmt: skip


def words(job: dict[str, Any]) -> dict[str, Any]:
    return jobwords.observed(job)


@pytest.fixture
def filled(served: Lab) -> Lab:
    """The home with one job of each sort, and one of ours."""
    if "brief" not in {job["name"] for job in served.jobs().values()}:
        for name, job in JOBS.items():
            served.add_job(name=name, **job)
        served.add_job(name="ours", declarationKey=jobs.declaration_key("i1"), **JOBS["brief"])
    return served


def test_every_job_is_read_as_the_gateway_tells_it(filled: Lab) -> None:
    observation = filled.observe()
    told = {i: job for i, job in filled.jobs().items() if not jobs.own(job)}
    seen = {t.id: t for t in observation.all() if t.kind is Kind.JOB}
    assert seen.keys() == told.keys()
    for job_id, job in told.items():
        assert seen[job_id].fields == words(job), job["name"]
        assert seen[job_id].fingerprint == jobs.fingerprint(job, bytes.fromhex("11" * 32)), job["name"]
        assert seen[job_id].profile == ("ops" if job["name"] == "ops" else "default")
    ours = [t for t in seen.values() if t.marker]
    assert [(t.name, t.marker) for t in ours] == [("ours", "i1")]


def test_words_of_each_job(filled: Lab) -> None:
    found = {t.name: dict(t.fields) for t in filled.observe().all() if t.kind is Kind.JOB}
    assert found["brief"] == {
        "name": "brief",
        "schedule": {"cron": "0 8 * * 1-5", "tz": "Europe/Vienna"},
        "prompt": "Read my calendar.",
        "deliver": "local",
        "session": "isolated",
        "paused": False,
    }
    assert found["top"]["schedule"] == {"cron": "0 * * * *"}
    assert found["top"]["model"] == {"provider": "openai", "model": "gpt-6-mini"}
    assert found["top"]["deliver"] == "owner_chat"
    assert found["every"]["toolsets"] == ["read", "exec"]
    assert found["once"]["schedule"] == {"at": "2031-02-03T07:00:00Z"}
    assert (found["event"]["session"], found["event"]["prompt"]) == ("main", "Tick.")
    assert found["session"]["session"] == "session:abc"
    assert (found["script"]["run"], found["script"]["workdir"]) == ("/bin/true", "/tmp")
    assert found["sends"]["deliver"] == {"to": "telegram/ops", "chat": "1001", "thread": "7"}
    assert found["sends"]["failure_deliver"] == {"to": "slack", "chat": "C1"}
    assert found["ops"]["paused"] is True


@pytest.mark.parametrize("name", [name for name in JOBS if name != "current"])
def test_what_was_read_makes_the_same_job_again(filled: Lab, name: str) -> None:
    """`to_native` is the inverse of the reading: no field of the setup is lost on the way."""
    job = next(job for job in filled.jobs().values() if job["name"] == name)
    again = filled.add_job(**jobwords.to_native(words(job)), agentId=job["agentId"])
    try:
        assert words(again) == words(job)
        assert words(filled.jobs()[again["id"]]) == words(job)
    finally:
        filled.rpc("cron.remove", id=again["id"])


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("brief", {"prompt": "Two lines."}),
    ("brief", {"schedule": {"every": "30m"}}),
    ("brief", {"schedule": {"cron": "5 9 * * *"}}),
    ("brief", {"name": "renamed", "paused": True}),
    ("brief", {"deliver": {"to": "telegram", "chat": "1", "thread": "2"}}),
    ("brief", {"model": {"provider": "openai", "model": "gpt-6"}, "toolsets": ["read"]}),
    ("brief", {"session": "session:mine"}),
    ("brief", {"session": "main", "deliver": "local"}),
    ("brief", {"failure_deliver": {"to": "slack", "chat": "C9"}}),
    ("top", {"model": None, "deliver": "local"}),
    ("every", {"toolsets": None}),
    ("sends", {"failure_deliver": None, "deliver": {"to": "telegram", "chat": "1"}}),
    ("sends", {"deliver": "owner_chat"}),
    ("event", {"session": None, "prompt": "By itself."}),
    ("event", {"session": None, "deliver": {"to": "telegram", "chat": "1"}, "paused": True}),
    ("script", {"run": "/bin/false"}),
    ("ops", {"paused": None}),
]


@pytest.mark.parametrize(("name", "changes"), CHANGES, ids=[f"{n}-{'-'.join(c)}" for n, c in CHANGES])
def test_a_patch_changes_its_fields_and_no_other(filled: Lab, name: str, changes: dict[str, Any]) -> None:
    job = next(job for job in filled.jobs().values() if job["name"] == name)
    mine = filled.add_job(**jobwords.to_native(words(job)), agentId=job["agentId"])
    try:
        before = words(mine)
        filled.rpc("cron.update", id=mine["id"], patch=jobwords.patch(mine, changes))
        after = words(filled.jobs()[mine["id"]])
        left = {"session": "isolated", "paused": False, "deliver": "local"}
        wanted = {n: v if v is not None else left.get(n) for n, v in changes.items()}
        assert after == {n: v for n, v in {**before, **wanted}.items() if v is not None}
        seen = filled.observe().at("ops" if name == "ops" else "default", Kind.JOB, mine["id"])
        assert isinstance(seen, Observed)
        # The next change of it is compared with what the gateway tells.
        assert seen.fingerprint == jobs.fingerprint(filled.jobs()[mine["id"]], bytes.fromhex("11" * 32))
    finally:
        filled.rpc("cron.remove", id=mine["id"])


WEBHOOK = {"mode": "webhook", "to": "https://example.com/hook"}
OTHER_KINDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # A script has no prompt, no model and no session; what is not said of a job stays.
    ("script", {"prompt": "No script any more."}, {"run": None, "workdir": None}),
    ("script", {"prompt": "Here.", "session": "main"}, {"run": None, "workdir": None, "deliver": "local"}),
    ("brief", {"run": "/bin/true", "workdir": "/tmp", "paused": True}, {"prompt": None}),
    ("event", {"run": "/bin/true"}, {"prompt": None, "session": "isolated"}),
    ("top", {"run": "/bin/true", "model": None}, {"prompt": None}),
    ("top", {"run": "/bin/true"}, {"prompt": None, "model": None}),
    ("every", {"session": "main", "toolsets": None}, {"deliver": "local"}),
    ("every", {"run": "/bin/true", "toolsets": None}, {"prompt": None}),
    ("sends", {"run": "/bin/true", "failure_deliver": {"to": "telegram"}}, {"prompt": None}),
    ("sends", {"session": "main", "failure_deliver": None}, {"deliver": "local"}),
    ("script", {"prompt": "Write.", "paused": None}, {"run": None, "workdir": None}),
]


@pytest.mark.parametrize(
    ("name", "changes", "with_it"), OTHER_KINDS, ids=[f"{n}-{'-'.join(c)}" for n, c, _ in OTHER_KINDS]
)
def test_a_job_becomes_one_of_another_kind(
    filled: Lab, name: str, changes: dict[str, Any], with_it: dict[str, Any]
) -> None:
    mine = filled.add_job(name=f"{name}-changed", **{**JOBS[name], "enabled": "paused" not in changes})
    try:
        before = words(mine)
        filled.rpc("cron.update", id=mine["id"], patch=jobwords.patch(mine, changes))
        wanted = {**changes, **with_it} | ({"paused": False} if changes.get("paused", True) is None else {})
        assert words(filled.jobs()[mine["id"]]) == {n: v for n, v in {**before, **wanted}.items() if v is not None}
    finally:
        filled.rpc("cron.remove", id=mine["id"])


@pytest.mark.parametrize("changes", [{"run": "/bin/true"}, {"session": "main"}], ids=["run", "session"])
def test_what_a_setup_cannot_say_of_a_job_does_not_stop_it_from_changing_its_kind(
    filled: Lab, changes: dict[str, Any]
) -> None:
    """A webhook, a chat of the last channel."""
    mine = filled.add_job(name="hooked", **{**JOBS["brief"], "delivery": {**WEBHOOK, "failureDestination": WEBHOOK}})
    try:
        filled.rpc("cron.update", id=mine["id"], patch=jobwords.patch(mine, changes))
        after = filled.jobs()[mine["id"]]
        assert {**words(after), **changes} == words(after)
        assert "run" not in changes or after["delivery"] == mine["delivery"]
    finally:
        filled.rpc("cron.remove", id=mine["id"])


def test_looking_changes_no_byte(filled: Lab) -> None:
    before = tree(filled.root)
    for _ in range(3):
        filled.observe()
    after = tree(filled.root)
    # The gateway itself goes on writing; what we do to its database would show here.
    assert {n: d for n, d in after.items() if "sqlite" in n} == {n: d for n, d in before.items() if "sqlite" in n}


def test_the_running_gateway_is_found(filled: Lab) -> None:
    observation = filled.observe()
    assert filled.gateway is not None
    assert observation.facts["gateway"] == {"pid": filled.gateway.pid, "port": filled.port}
    assert observation.version == filled.version
    assert not observation.blocked
    assert any(f"pid {filled.gateway.pid}" in note for note in observation.notes)
    assert not any("token-of-the-tests" in str(part) for part in (observation, observation.facts))


def test_agents_are_profiles_with_their_workspaces(filled: Lab) -> None:
    observation = filled.observe()
    told = filled.rpc("agents.list")
    here = observation.facts["profiles"]
    assert {part["agent"] for part in here.values()} == {agent["id"] for agent in told["agents"]}
    for agent in told["agents"]:
        if agent.get("workspace"):
            profile = "default" if agent["id"] == "main" else agent["id"]
            assert here[profile]["workspace"] == agent["workspace"], agent["id"]
    ops = observation.at("", Kind.PROFILE, "ops")
    assert isinstance(ops, Observed)
    assert ops.fields == {"description": "Runs things."}


def test_a_new_agents_files_are_openclaws_own(filled: Lab) -> None:
    """What OpenClaw puts into a new workspace is nobody's text, and no difference to fear."""
    filled.add_agent("made")
    try:
        observation = filled.observe()
        found = observation.things["made", Kind.FILE]
        assert isinstance(found, dict)
        assert {"AGENTS.md", "SOUL.md"} <= found.keys()
        # Into its identity it may have put the name.
        assert {name for name, thing in found.items() if thing.defaults != {"text", "mode"}} <= {"IDENTITY.md"}
        assert isinstance(observation.at("", Kind.PROFILE, "made"), Observed)
    finally:
        filled.delete_agent("made")


def test_a_copy_and_a_moved_home_have_lost_their_jobs(filled: Lab, tmp_path: Path) -> None:
    """OpenClaw keys jobs by the path of their home: at another path it does not see them, and nor do we."""
    other = Lab(tmp_path, filled.version, filled.port)
    shutil.copytree(filled.root, other.root, ignore=shutil.ignore_patterns("tmp", "cache", "*.sock"))
    observation = other.observe()
    assert observation.stores["default", Kind.JOB] is Store.MISSING
    assert observation.things["default", Kind.JOB] == {}
    assert any("this is a copy of that home" in note for note in observation.notes)


def test_an_invalid_config_is_unknown_with_its_line(filled: Lab, tmp_path: Path) -> None:
    lab = make(tmp_path, filled.version)
    path = lab.root / "openclaw.json"
    path.write_text("{\n  meta: {lastTouchedVersion: '" + filled.version + "'},\n  agents: {,},\n}\n")
    observation = lab.observe()
    assert observation.blocked.startswith(f"{path}:3:12: ")
    assert filled.version in observation.blocked
    assert isinstance(observation.things["default", Kind.SETTING], Unknown)


def test_a_home_of_the_other_version_is_not_a_tested_one(filled: Lab) -> None:
    other = next(version for version in VERSIONS if version != filled.version)
    ref = Lab(filled.user, other, filled.port).ref()
    observation = OpenClawProvider().observe(ref, Wanted())
    assert observation.version == f"{other} over {filled.version}"
    assert f"the home is one of {filled.version}" in OpenClawProvider().supported(observation.version)


def test_the_config_is_read_as_the_gateway_has_it(filled: Lab) -> None:
    """Where the gateway hides nothing and adds nothing."""
    told = filled.rpc("config.get")["parsed"]
    seen = filled.observe(
        Wanted(
            frozenset(Address.parse(f"main/default/settings/{key}") for key in ("gateway.port", "gateway.auth.mode"))
        )
    )
    for key in ("gateway.port", "gateway.auth.mode"):
        thing = seen.at("default", Kind.SETTING, key)
        assert isinstance(thing, Observed)
        value = told
        for step in key.split("."):
            value = value[step]
        assert thing.fields == {"value": value}
    inference = seen.at("default", Kind.INFERENCE, "")
    assert isinstance(inference, Observed)
    default = inference.fields["default"]
    assert isinstance(default, dict)
    assert jobwords.ref(default) == told["agents"]["defaults"]["model"]["primary"]


def test_a_home_is_adopted_while_it_runs(filled: Lab, tmp_path: Path) -> None:
    door = {"openclaw": str(program(filled.version)), "node": str(NODE)}
    (tmp_path / "bin").mkdir()
    monkey = pytest.MonkeyPatch()
    launcher = tmp_path / "bin" / "openclaw"
    launcher.symlink_to(program(filled.version))
    with monkey.context() as patch:
        patch.setenv("PATH", f"{launcher.parent}:{NODE.parent}:/usr/bin:/bin")
        made, space = adopt(filled.root, tmp_path, OpenClawProvider(), door)
        found = plan(space)
    assert not found.failed and found.hold is None
    assert [(str(a.address), str(a.row), a.reason) for a in found.actions] == []
    assert set(made.block["profiles"]["default"]["jobs"]) == {*JOBS, "ours"} - {"ops"}
    assert TOKEN not in str(made)


def test_a_stopped_home_reads_as_a_running_one(filled: Lab) -> None:
    """Last of all: whoever comes after starts the gateway again."""
    running = {t.id: (t.fields, t.fingerprint) for t in filled.observe().all() if t.kind is Kind.JOB}
    filled.stop()
    before = tree(filled.root)
    observation = filled.observe()
    assert tree(filled.root) == before
    assert observation.facts["gateway"] is None
    assert {t.id: (t.fields, t.fingerprint) for t in observation.all() if t.kind is Kind.JOB} == running
