"""The verbs: the orchestrator's answers, and each trap of its door closed (docs/providers/native.md)."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from native.lab import AT, do, refused, tree
from reconciler_native import lease
from reconciler_native.errors import HomeHeld
from reconciler_native.home import Home, init
from reconciler_native.operator import OPS, VERBS, apply_operator
from reconciler_native.server import holding

ELEVEN = (
    "jobs.create", "jobs.update", "jobs.pause", "jobs.resume", "jobs.run", "jobs.delete", "profiles.create",
    "profiles.delete", "sessions.new", "sessions.reset", "access.pair_approve",
)  # fmt: skip
MORE = (
    "state.get", "jobs.list", "jobs.get", "profiles.list", "profiles.update", "profiles.restore", "channels.set",
    "channels.unset", "inference.set", "webhooks.set", "webhooks.delete", "routes.set", "routes.put",
    "routes.delete", "access.allow", "access.revoke",
    "access.admin_add", "access.admin_remove", "settings.set", "settings.unset", "files.set", "files.delete",
    "kits.apply", "kits.list", "kits.remove", "secrets.set", "secrets.unset", "mcp_servers.set", "mcp_servers.delete",
    "toolsets.set", "toolsets.delete", "plugins.set", "plugins.delete", "skills.set", "skills.delete",
)  # fmt: skip
TOKEN = "sk-" + "0123456789abcdef" * 2


def make(home: Path, **args: Any) -> str:
    made = do(home, "jobs.create", **{"prompt": "Write.", "schedule": "every 2h", "deliver": "local", **args})
    return str(made["job_id"])


def job(home: Path, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = do(home, "jobs.get", id=job_id)["job"]
    return found


def stored(home: Path, job_id: str) -> dict[str, Any]:
    jobs = json.loads((home / "cron" / "jobs.json").read_text())["jobs"]
    return next(j for j in jobs if j["id"] == job_id)


def test_the_verbs_are_these(home: Path) -> None:
    assert set(OPS) == {*ELEVEN, *MORE}
    words = refused(home, "jobs.frobnicate")
    assert words == f'unknown operator op "jobs.frobnicate"; the orchestrator answers: {", ".join(OPS)}'
    assert refused(home, "jobs.list", "nobody") == 'unknown profile "nobody"; this home holds: default'


def test_a_job_as_the_orchestrator_answers_it(home: Path) -> None:
    answer = do(
        home,
        "jobs.create",
        id="brief",
        prompt="Write the brief.",
        schedule={"kind": "cron", "expr": "0 8 * * 1-5", "tz": "Europe/Vienna"},
        deliver="slack:C1:T1",
        failure_deliver="home",
        name="Brief",
        skills=["a", "b"],
        context_from=["self"],
        repeat=3,
        metadata={"owner": "me"},
        model="m",
        workdir="work",
        surface="slack|dm|C1||",
    )
    assert answer["ran"] == (
        "created cron job brief (cron 0 8 * * 1-5 Europe/Vienna) in profile default, delivering to slack:C1:T1"
    )
    assert answer["job"] == {
        "id": "brief",
        "schedule": {"kind": "cron", "expr": "0 8 * * 1-5", "tz": "Europe/Vienna"},
        "prompt": "Write the brief.",
        "workdir": "work",
        "model": "m",
        "skills": ["a", "b"],
        "context_from": ["self"],
        "deliver": {"kind": "explicit", "platform": "slack", "chat_id": "C1", "thread_id": "T1"},
        "failure_deliver": {"kind": "home"},
        "origin": {"platform": "slack", "chat_type": "dm", "chat_id": "C1", "thread_id": None},
        "attach_to_session": None,
        "repeat": {"times": 3, "completed": 0},
        "enabled": True,
        "next_run_at": "2026-12-02T07:00:00.000Z",
        "last_run_at": None,
        "last_status": None,
        "created_at": "2026-12-01T08:00:00.000Z",
        "residue": {"name": "Brief", "host": {"owner": "me"}},
    }
    assert job(home, "brief") == answer["job"] == do(home, "jobs.list")["jobs"][0]
    assert do(home, "jobs.delete", id="brief") == {
        "ran": "removed cron job brief from profile default",
        "job_id": "brief",
        "job": None,
        "deleted": True,
    }


def test_a_cron_line_is_shown_in_the_zone_that_it_runs_in(home: Path) -> None:
    job_id = make(home, schedule="0 8 * * *")
    for zone, path in (("UTC", ""), ("Asia/Tokyo", "timezone")):
        if path:
            do(home, "settings.set", path=path, value=zone)
        listed = do(home, "jobs.list")["jobs"]
        assert job(home, job_id)["schedule"]["tz"] == listed[0]["schedule"]["tz"] == zone


def test_an_id_is_a_file_name_and_is_not_drawn_twice(home: Path) -> None:
    for bad in ("../evil", "a/b", ".x", "x" * 65, "a b", 7):
        assert "file name" in refused(home, "jobs.create", prompt="x", schedule="30m", id=bad)
    first = make(home)
    do(home, "jobs.delete", id=first)
    assert make(home) != first
    make(home, id="a")
    assert refused(home, "jobs.create", prompt="x", schedule="30m", id="a") == "jobs_create: job a already exists"


@pytest.mark.parametrize(
    "args",
    [
        {"nonsense": 1}, {"dir": "/"}, {"prompt": " "}, {"prompt": None}, {"prompt": 5}, {"schedule": None},
        {"schedule": "0 0 30 2 *"}, {"schedule": "2020-01-01T00:00:00Z"}, {"schedule": "every monday 9am"},
        {"deliver": "slack:C1:T1:extra"}, {"repeat": 0}, {"repeat": True}, {"repeat": "3"}, {"skills": [1]},
        {"skills": {"a": 1}}, {"metadata": []}, {"metadata": {"a": "x" * 16384}}, {"enabled": "yes"}, {"surface": "x"},
        {"no_agent": True}, {"script": "../x.sh"}, {"script": "/bin/sh"}, {"model": 3}, {"attach_to_session": "main"},
        {"prompt": "\ud800"}, {"metadata": {"a": float("nan")}},
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_argument_is_refused_by_name_and_changes_nothing(home: Path, args: dict[str, Any]) -> None:
    whole = {"prompt": "x", "schedule": "30m", **args}
    assert refused(home, "jobs.create", **whole)
    job_id = make(home)
    if set(args) != {"surface"}:
        assert refused(home, "jobs.update", id=job_id, **args)


def test_a_prompt_takes_the_place_of_the_script_that_is_the_job(home: Path) -> None:
    job_id = make(home, script="x.sh", no_agent=True)
    do(home, "jobs.update", id=job_id, prompt="More.")
    assert [stored(home, job_id)[k] for k in ("prompt", "script", "no_agent")] == ["More.", None, False]
    do(home, "jobs.update", id=job_id, script="x.sh", no_agent=True)
    do(home, "jobs.update", id=job_id, prompt="More.", script="y.sh")
    assert [stored(home, job_id)[k] for k in ("prompt", "script", "no_agent")] == ["More.", "y.sh", False]
    do(home, "jobs.update", id=job_id, prompt="More.", no_agent=True)
    assert stored(home, job_id)["no_agent"] is True


def test_update_covers_every_field_and_null_unsets(home: Path) -> None:
    job_id = make(home)
    new: dict[str, Any] = {
        "prompt": "More.", "schedule": {"kind": "interval", "minutes": 5}, "deliver": "origin", "name": "n",
        "failure_deliver": "local", "workdir": "w", "model": "m", "provider": "p", "base_url": "http://x", "repeat": 2,
        "skills": ["s"], "context_from": ["self"], "enabled_toolsets": ["t"], "metadata": {"a": 1}, "script": "x.py",
        "monitor_url": "http://y", "attach_to_session": True,
    }  # fmt: skip
    for name, value in new.items():
        do(home, "jobs.update", id=job_id, **{name: value})
    found = stored(home, job_id)
    assert {k: v for k, v in found.items() if k in new and k not in ("schedule", "repeat")} == {
        k: v for k, v in new.items() if k not in ("schedule", "metadata", "repeat")
    }
    assert (found["schedule"]["minutes"], found["repeat"]["times"], found["host"]) == (5, 2, {"a": 1})
    for name in set(new) - {"prompt", "schedule", "deliver"}:
        unset: dict[str, Any] = {name: None}
        do(home, "jobs.update", id=job_id, **unset)
    plain = stored(home, make(home, prompt="More.", schedule="every 5m", deliver="origin"))
    same = set(plain) - {"id", "created_at", "next_run_at"}
    assert {k: stored(home, job_id).get(k) for k in same} == {k: plain[k] for k in same}
    assert "changes nothing" in refused(home, "jobs.update", id=job_id)
    assert refused(home, "jobs.update", id="gone", prompt="x") == "jobs_update: no job gone"
    assert refused(home, "jobs.update", prompt="x") == "jobs.update needs the job id to act on"


def test_a_paused_job_waits_and_enabling_arms_it(home: Path) -> None:
    job_id = make(home, enabled=False)
    assert job(home, job_id)["next_run_at"] is None
    assert "paused" in refused(home, "jobs.run", id=job_id)
    do(home, "jobs.update", id=job_id, schedule="every 1h")
    assert (job(home, job_id)["enabled"], job(home, job_id)["next_run_at"]) == (False, None)
    do(home, "jobs.update", id=job_id, enabled=True)
    assert job(home, job_id)["next_run_at"] == "2026-12-01T09:00:00.000Z"
    do(home, "jobs.pause", id=job_id)
    before = tree(home)
    do(home, "jobs.pause", id=job_id)
    assert tree(home) == before
    assert job(home, job_id)["next_run_at"] == "2026-12-01T09:00:00.000Z"
    do(home, "jobs.resume", id=job_id)
    do(home, "jobs.run", id=job_id)
    assert job(home, job_id)["next_run_at"] == "2026-12-01T08:00:00.000Z"


def test_the_same_schedule_moves_no_run_and_a_missed_run_is_not_made_up(home: Path) -> None:
    job_id = make(home)
    later = AT.replace(hour=9)
    assert apply_operator(Home(home), "jobs.update", {"id": job_id, "schedule": "every 2h"}, at=later)["ok"]
    assert job(home, job_id)["next_run_at"] == "2026-12-01T10:00:00.000Z"
    do(home, "jobs.pause", id=job_id)
    assert apply_operator(Home(home), "jobs.resume", {"id": job_id}, at=AT.replace(hour=20))["ok"]
    assert job(home, job_id)["next_run_at"] == "2026-12-01T22:00:00.000Z"


def test_a_one_shot_runs_once_and_cannot_resume_when_its_time_is_over(home: Path) -> None:
    job_id = make(home, schedule="in 30m")
    assert stored(home, job_id)["repeat"] == {"times": 1, "completed": 0}
    assert job(home, job_id)["repeat"] is None
    do(home, "jobs.pause", id=job_id)
    answer = apply_operator(Home(home), "jobs.resume", {"id": job_id}, at=AT.replace(hour=12))
    assert "has no run to come" in answer["error"]
    do(home, "jobs.update", id=job_id, schedule="every 2h", enabled=True)
    assert stored(home, job_id)["repeat"]["times"] is None


def test_deleting_keeps_the_history_aside(home: Path) -> None:
    job_id = make(home)
    output = home / "cron" / "output" / job_id
    output.mkdir(parents=True)
    (output / "20261201_080000.md").write_text("ran")
    do(home, "jobs.delete", id=job_id)
    [kept] = (home / "cron" / "output" / ".deleted").iterdir()
    assert (kept / "20261201_080000.md").read_text() == "ran"


def test_profiles_live_in_folders_and_never_vanish(home: Path) -> None:
    made = do(home, "profiles.create", name="coder", worker={"harness": "codex", "model": "m"}, description="Codes.")
    assert made["ran"] == f"created profile coder at {home}/profiles/coder"
    assert made["profile"]["worker"]["model"] == "m"
    assert stat.S_IMODE((home / "profiles" / "coder").stat().st_mode) == 0o700
    make_in = do(home, "jobs.create", "coder", prompt="x", schedule="30m")
    assert do(home, "jobs.list")["jobs"] == []
    do(home, "profiles.update", name="coder", worker={"harness": "pi"}, description=None)
    [shown, _] = do(home, "profiles.list")["profiles"]
    assert (shown["worker"]["harness"], shown["worker"]["model"], shown["jobs"]) == ("pi", None, 1)
    assert "description" not in shown
    for bad in ("default", "Coder", "a b", "..", ".trash", "x" * 65, "hermes", ""):
        refused(home, "profiles.create", name=bad)
    refused(home, "profiles.create", name="coder")
    refused(home, "profiles.create", name="other", dir="/tmp/elsewhere")
    refused(home, "profiles.create", name="other", worker={"harness": "x", "harnes": 1})
    refused(home, "profiles.delete", "coder", name="coder")
    assert "never removed" in refused(home, "profiles.delete", name="default")
    gone = do(home, "profiles.delete", name="coder")
    assert gone["trash"] == "coder-20261201080000"
    assert [p["name"] for p in do(home, "profiles.list")["profiles"]] == ["default"]
    assert do(home, "profiles.restore", name="coder")["profile"]["jobs"] == 1
    assert do(home, "jobs.get", "coder", id=make_in["job_id"])["job"]["prompt"] == "x"
    do(home, "profiles.delete", name="coder")
    do(home, "profiles.create", name="coder")
    do(home, "profiles.delete", name="coder")
    assert do(home, "profiles.list")["trash"] == ["coder-20261201080000-2", "coder-20261201080000"]
    assert "holds no" in refused(home, "profiles.restore", name="nobody")


def test_a_workers_env_and_permission_are_kept(home: Path) -> None:
    worker = {"harness": "pi", "env": {"A": "b"}, "permission": {"default": "allow", "timeout_seconds": 5}}
    shown = do(home, "profiles.create", name="coder", worker=worker)["profile"]["worker"]
    assert {key: shown[key] for key in worker} == worker
    for bad in ({"permission": {"defualt": "allow"}}, {"permission": {"default": "ask"}}, {"env": ["A"]}):
        refused(home, "profiles.update", name="coder", worker={"harness": "pi", **bad})


def test_sessions_are_the_runtimes_and_there_are_none(home: Path) -> None:
    for op in ("sessions.new", "sessions.reset"):
        assert "no live conversation on slack|dm|C1|| in profile default" in refused(home, op, surface="slack|dm|C1")
        assert "is not a surface key" in refused(home, op, surface="slack")


def test_inference_writes_its_own_keys_only(home: Path) -> None:
    (home / ".env").write_text(f"OPENROUTER_API_KEY={TOKEN}\n")
    (home / "config.yaml").write_text(
        "# mine\nmodel:\n  # which\n  default: a/b  # now\n  context_length: 9\nagent: {max_turns: 3}\n"
        "auxiliary:\n  vision: {timeout: 9}\n"
    )
    model = {"provider": "openrouter", "model": "c/d", "key": {"secret": "OPENROUTER_API_KEY"}}
    done = do(
        home, "inference.set", default=model, fallbacks=[model], auxiliary={"title": {"provider": "x", "model": "y"}}
    )
    assert TOKEN not in json.dumps(done)
    text = (home / "config.yaml").read_text()
    assert "# mine\nmodel:\n  # which\n  default: c/d  # now\n  context_length: 9\n" in text
    assert "api_key: ${OPENROUTER_API_KEY}" in text
    assert "agent: {max_turns: 3}" in text
    assert "vision: {timeout: 9}" in text
    do(home, "inference.set", fallbacks=None, auxiliary={})
    assert "fallback_providers" not in (home / "config.yaml").read_text()
    assert "vision: {timeout: 9}" in (home / "config.yaml").read_text()
    wrong: list[dict[str, Any]] = [
        {"default": {"provider": "x"}},
        {"default": {"provider": "x", "model": "y", "key": TOKEN}},
        {"default": {"provider": "x", "model": "y", "key": {"secret": "NOT_THERE"}}},
        {"default": {"provider": "x", "model": "y", "temperature": 1}},
        {"fallbacks": {}},
        {"auxiliary": []},
        {},
    ]
    for bad in wrong:
        assert TOKEN not in refused(home, "inference.set", **bad)


def test_channels_name_their_credentials(home: Path) -> None:
    (home / ".env").write_text("TELEGRAM_BOT_TOKEN=12345\n")
    named = {"secret": "TELEGRAM_BOT_TOKEN"}
    do(home, "channels.set", platform="telegram", credentials={"token": named}, extra={"port": 1})
    do(home, "channels.set", platform="slack", enabled=False, credentials={"botToken": named})
    channels = do(home, "state.get")["state"]["profiles"]["default"]["channels"]
    assert channels["telegram"] == {
        "platform": "telegram",
        "enabled": True,
        "credentials": {"token": {"dotenv": "TELEGRAM_BOT_TOKEN"}},
        "extra": {"port": 1},
    }
    assert channels["slack"]["credentials"] == {"botToken": {"dotenv": "TELEGRAM_BOT_TOKEN"}}
    assert "only named" in refused(home, "channels.set", platform="x", credentials={"token": TOKEN})
    assert "only named" in refused(home, "channels.set", platform="x", extra={"botToken": TOKEN})
    do(home, "channels.unset", platform="slack")
    assert "has no channel" in refused(home, "channels.unset", platform="slack")


def test_routes_are_a_whole_list_in_order(home: Path) -> None:
    do(home, "profiles.create", name="coder")
    match = {"platform": "discord", "chat_id": "1"}
    do(
        home,
        "routes.set",
        routes=[{"name": "a", "match": match, "profile": "coder"}, {"match": {"platform": "x"}, "profile": "default"}],
    )
    routes = do(home, "state.get")["state"]["profiles"]["default"]["routes"]
    assert [r["match"] for r in routes] == [match, {"platform": "x"}]
    assert "there is no profile" in refused(home, "routes.set", routes=[{"match": match, "profile": "nobody"}])
    refused(home, "routes.set", routes=[{"match": {"chat_id": "1"}, "profile": "coder"}])
    refused(home, "routes.set", routes=None)
    do(home, "routes.set", routes=[])
    assert do(home, "state.get")["state"]["profiles"]["default"]["routes"] == []


def test_webhooks_name_their_secret(home: Path) -> None:
    (home / ".env").write_text("HOOK=abcdef\n")
    do(home, "webhooks.set", name="gh", secret={"secret": "HOOK"}, events=["push"], prompt="{x}", deliver="slack:C1")
    do(home, "webhooks.set", name="gh", deliver_only=True)
    entry = json.loads((home / "webhook_subscriptions.json").read_text())["gh"]
    assert (entry["secret"], entry["deliver"], entry["deliver_only"]) == ("${HOOK}", "slack:C1", True)
    assert do(home, "state.get")["state"]["profiles"]["default"]["subscriptions"]["gh"]["secret"] == {"dotenv": "HOOK"}
    assert "secret is required" in refused(home, "webhooks.set", name="x")
    assert "deliver_only" in refused(home, "webhooks.set", name="x", secret={"secret": "HOOK"}, deliver_only=True)
    do(home, "webhooks.delete", name="gh")
    refused(home, "webhooks.delete", name="gh")


def test_access_is_hermes_own_stores(home: Path) -> None:
    (home / ".env").write_text("SLACK_ALLOWED_USERS=U1\n")
    assert do(home, "access.allow", platform="slack", user_id="U2")["allowlist"] == ["U1", "U2"]
    assert (home / ".env").read_text() == "SLACK_ALLOWED_USERS=U1,U2\n"
    do(home, "access.allow", platform="telegram", user_id="7")
    # Where no list is kept, none is begun: that would lock everybody else out.
    assert "TELEGRAM" not in (home / ".env").read_text()
    assert list(json.loads((home / "platforms/pairing/telegram-approved.json").read_text())) == ["7"]
    do(home, "access.admin_add", platform="telegram", user_id="7")
    access = do(home, "state.get")["state"]["profiles"]["default"]["access"]
    assert (access["allowlist"], access["admins"]) == ({"slack": ["U1", "U2"], "telegram": ["7"]}, {"telegram": ["7"]})
    do(home, "access.revoke", platform="slack", user_id="U1")
    do(home, "access.revoke", platform="telegram", user_id="7")
    do(home, "access.admin_remove", platform="telegram", user_id="7")
    assert "no admin" in refused(home, "access.admin_remove", platform="telegram", user_id="7")
    assert "is not allowed" in refused(home, "access.revoke", platform="telegram", user_id="7")
    refused(home, "access.allow", platform="a/b", user_id="7")
    refused(home, "access.allow", platform="slack", user_id="a,b")


def test_a_pairing_code_is_approved_once_and_in_time(home: Path) -> None:
    folder = home / "platforms" / "pairing"
    folder.mkdir(parents=True)
    salt = b"0123456789abcdef"

    def pending(issued: float) -> None:
        digest = hashlib.sha256(salt + b"ABCD2345").hexdigest()
        entry = {"hash": digest, "salt": salt.hex(), "user_id": "9", "user_name": "Ann", "created_at": issued}
        (folder / "telegram-pending.json").write_text(json.dumps({"e1": entry, "legacy": {"user_id": "x"}}))

    pending(AT.timestamp() - 3601)
    assert "expired" in refused(home, "access.pair_approve", code="ABCD2345")
    pending(AT.timestamp() - 60)
    (folder / "_rate_limits.json").write_text(json.dumps({"_lockout:telegram": AT.timestamp() + 5}))
    assert "locked" in refused(home, "access.pair_approve", code="ABCD2345")
    (folder / "_rate_limits.json").unlink()
    done = do(home, "access.pair_approve", code="abcd2345")
    assert done["ran"] == "approved pairing ABCD2345 in profile default (telegram 9)"
    assert done["allowlist"] == ["9"]
    assert json.loads((folder / "telegram-approved.json").read_text())["9"]["user_name"] == "Ann"
    assert refused(home, "access.pair_approve", code="ABCD2345") == "no pending pairing ‹hidden›"


def test_settings_and_files_have_their_own_verbs(home: Path) -> None:
    do(home, "settings.set", path="agent.max_turns", value=3)
    do(home, "settings.set", path='providers."my.host".x', value={"a": [1]})
    assert "max_turns: 3" in (home / "config.yaml").read_text()
    assert "belongs to inference" in refused(home, "settings.set", path="model.default", value="x")
    assert "only named" in refused(home, "settings.set", path="x.api_key", value="abc")
    assert "worker.harnes" in refused(home, "settings.set", path="worker.harnes", value="x")
    refused(home, "settings.set", path="a..b", value=1)
    refused(home, "settings.set", path="agent.max_turns.deeper", value=1)
    do(home, "settings.unset", path="agent.max_turns")
    refused(home, "settings.unset", path="agent.max_turns")
    do(home, "files.set", path="SOUL.md", text="I am.\n")
    do(home, "files.set", path="SOUL.md", block="ours\n", owner="me")
    do(home, "files.set", path="scripts/a.sh", text="x", mode="0755")
    assert stat.S_IMODE((home / "scripts/a.sh").stat().st_mode) == 0o755
    assert (home / "SOUL.md").read_text().startswith("I am.\n\n<!-- >>> reconciler:me >>> -->\nours\n")
    do(home, "files.delete", path="SOUL.md", what="block", owner="me")
    assert (home / "SOUL.md").read_text() == "I am.\n"
    for bad in ("../x", "/etc/passwd", "config.yaml", "cron/jobs.json", "scripts/../../x", ".env"):
        refused(home, "files.set", path=bad, text="x")
    (home / "memories").symlink_to(home.parent)
    assert "link" in refused(home, "files.set", path="memories/x.md", text="x")
    (home / "AGENTS.md").symlink_to("SOUL.md")
    refused(home, "files.set", path="AGENTS.md", text="x")


def test_an_unloadable_home_refuses_every_verb_naming_file_and_key(home: Path) -> None:
    do(home, "profiles.create", name="coder")
    path = home / "profiles" / "coder" / "config.yaml"
    path.write_text("worker: {harnes: codex}\n")
    for op in ("jobs.create", "jobs.list", "state.get"):
        words = refused(home, op, **({"prompt": "x", "schedule": "30m"} if op == "jobs.create" else {}))
        assert words.startswith(f"{path} [worker.harnes]: unknown key")
    (home / "elsewhere").mkdir()
    assert "not a home" in refused(home / "elsewhere", "jobs.list")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("webhook_subscriptions.json", b"{"),
        (".env", b"\xff"),
        ("config.yaml", b"- a\n"),
        ("config.yaml", b"a: [\n"),
    ],
)
def test_a_file_that_cannot_be_read_holds_the_home_and_is_not_written_over(home: Path, name: str, data: bytes) -> None:
    (home / name).write_bytes(data)
    for op, args in (("jobs.list", {}), ("jobs.create", {"prompt": "x", "schedule": "1h"}), ("profiles.list", {})):
        assert refused(home, op, **args).startswith(str(home / name))


def test_a_broken_job_store_holds_up_its_own_profile_only(home: Path) -> None:
    do(home, "profiles.create", name="coder")
    (home / "cron" / "jobs.json").write_text("{")
    assert refused(home, "jobs.create", prompt="x", schedule="1h").startswith(f"{home}/cron/jobs.json:1:2")
    assert do(home, "jobs.create", "coder", prompt="x", schedule="1h")["job_id"]
    assert do(home, "settings.set", path="a.b", value=1)


def test_a_pasted_secret_moves_to_env_on_the_first_write_and_is_never_shown(home: Path) -> None:
    (home / "config.yaml").write_text(f"model:\n  default: a/b\n  api_key: {TOKEN}  # pasted\n")
    before = tree(home)
    assert TOKEN not in json.dumps(do(home, "state.get"))
    assert tree(home) == before  # a reader moves nothing
    make(home)
    assert (home / "config.yaml").read_text() == "model:\n  default: a/b\n  api_key: ${MODEL_API_KEY}  # pasted\n"
    assert (home / ".env").read_text() == f"MODEL_API_KEY={TOKEN}\n"
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    leaky = make(home, prompt=f"Call it with {TOKEN}.")
    assert TOKEN not in json.dumps([job(home, leaky), do(home, "jobs.list"), do(home, "state.get")])


def test_what_is_not_modelled_is_never_touched(home: Path) -> None:
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text("mine")
    (home / "state.db").write_bytes(b"\0binary")
    (home / "link").symlink_to("nowhere")
    stats = {p: p.lstat().st_mtime_ns for p in (home / "memories/MEMORY.md", home / "state.db", home / "link")}
    for n in range(3):
        make(home, id=f"j{n}")
    do(home, "settings.set", path="a.b", value=1)
    assert {p: p.lstat().st_mtime_ns for p in stats} == stats
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in (home / "config.yaml", home / "cron/jobs.json"))


def test_a_home_of_another_user_is_read_and_never_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L17: what we would write there, its owner could not read."""
    kept = make(home)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    words = f"belongs to uid {uid}, and we are uid {uid + 1}"
    for op, verb in VERBS.items():
        if not verb.reads:
            assert words in refused(home, op), op
    with pytest.raises(HomeHeld, match=words), holding(home):
        pass
    assert not (home / lease.LOCK).exists()
    assert job(home, kept) and do(home, "jobs.list")["jobs"] and do(home, "state.get")
    empty = home.parent / "empty"
    empty.mkdir()
    with pytest.raises(HomeHeld, match=words):
        init(empty)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    "canary",
    ["Zq-canary-7h3 w9x", "Zq'can\"ary\\7", "Zq:7:8 9", "Zq 1 2 3 4", "Zq|a|b c|d", "Zq\u00e9\ncanary", "Zq-" * 60],
)
def test_no_error_repeats_the_value_of_an_argument(home: Path, canary: str) -> None:
    """Every argument of every verb, in every form: an error names what is wrong, and a log keeps no more."""
    make(home, id="a")
    forms: list[Any] = [
        canary, [canary], {"kind": canary}, {"kind": "cron", "expr": canary}, {"kind": "once", "run_at": canary},
        {"kind": "cron", "expr": f"{canary} * * *"}, {"kind": "explicit", "platform": canary}, {"secret": canary},
        {"id": canary}, [{"id": canary}], {"provider": canary, "key": canary}, [{"match": {"platform": canary}}],
        {"a": [{"b": canary}]}, f"every {canary}", f"slack:{canary}:{canary}:x", f"in 5{canary}",
    ]  # fmt: skip
    for op, verb in VERBS.items():
        full = {"prompt": "x", "schedule": "every 2h", "id": "a", "name": "n", "path": "SOUL.md", "platform": "slack"}
        given = {"prompt": "x"} if op == "jobs.create" else full
        for name in sorted(verb.args):
            for form in forms:
                args = {**{k: v for k, v in given.items() if k in verb.args}, name: form}
                answer = apply_operator(Home(home), op, args, "default", AT)
                if not answer["ok"]:
                    assert "Zq" not in answer["error"], (op, name, form, answer["error"])
    assert "no job zz" in refused(home, "jobs.pause", id="zz")
