"""The provider `native` through the engine: every kind, both doors, and the ways in which a door lets us down."""

from __future__ import annotations

import json
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from native.lab import do, serving, tree
from reconciler.action import Row
from reconciler.adopt import adopt_home
from reconciler.draft import draft, survey
from reconciler.errors import UsageError
from reconciler.plan import Options
from reconciler.provider import Code, Provider, Step
from reconciler.testing.conformance import CHECKS
from reconciler.testing.kit import Kit, World, job, outcomes
from reconciler.testing.kit import world as make_world
from reconciler.workspace import physical
from reconciler_hermes.provider import HermesProvider
from reconciler_native import lease, wire
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider
from reconciler_orchestrator.provider import OrchestratorProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.render import render_setup

TOKEN = "sk-" + "0123456789abcdef" * 2


class Nobody:
    """A home that nobody else touches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def jobs(self) -> dict[str, str]:
        return {j["id"]: j["residue"].get("name") or j["prompt"] for j in do(self.path, "jobs.list")["jobs"]}

    def add_job(self, name: str, prompt: str) -> str:
        made = do(self.path, "jobs.create", name=name, prompt=prompt, schedule="every 2h", deliver="local")
        return str(made["job_id"])

    def edit_job(self, harness_id: str, prompt: str) -> None:
        do(self.path, "jobs.update", id=harness_id, prompt=prompt)

    def delete_job(self, harness_id: str) -> None:
        do(self.path, "jobs.delete", id=harness_id)

    def break_jobs(self) -> None:
        (self.path / "cron" / "jobs.json").write_text("{")

    def put_secret(self, value: str) -> None:
        (self.path / ".env").write_text(f"KEY={value}\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    def make(path: Path) -> Nobody:
        init(path)
        (path / ".env").write_text(f"OPENROUTER_API_KEY={TOKEN}\n")
        return Nobody(path)

    (tmp_path / "ours.md").write_text("ours\n")
    return make_world(Kit(NativeProvider(), make), tmp_path)


ALL = """
inference:
  models:
    daily: {provider: openrouter, model: a/b, key: {secret: OPENROUTER_API_KEY}}
    quick: {provider: openrouter, model: c/d}
  default: daily
  fallbacks: [quick]
  auxiliary: {title: quick}
settings:
  agent.max_turns: 30
  timezone: Europe/Vienna
  'providers."my.host".tags': [a, b]
files:
  SOUL.md: {text: "I am.\\n"}
  scripts/disk.sh: {text: "df\\n", mode: "0755"}
  AGENTS.md: {block: ./ours.md}
"""
JOBS = (
    job("brief", schedule='{cron: "0 8 * * mon-fri", tz: UTC}', deliver="{to: slack, chat: C1, thread: T1}")
    + job(
        "watch",
        monitor="{url: 'https://example.com/x'}",
        failure_deliver="local",
        skills="[a, b]",
        toolsets="[web, files]",
        repeat="3",
        session="main",
        workdir="/srv/work",
        metadata="{team: ops}",
        model="quick",
        context_from="[brief, self]",
        id="watch-1",
    )
    + "  disk:\n    schedule: {every: 1d}\n    run: disk.sh\n    deliver: local\n"
    + job("once", schedule='{at: "2131-02-03T09:00:00+01:00"}', before="disk.sh")
)


def test_every_kind_is_created_converges_and_stays(world: World) -> None:
    (world.home.path / "AGENTS.md").write_text("theirs\n")
    text = world.text(JOBS, ALL, extra="      coder:\n        description: Codes.\n        jobs:\n" + _deeper(job("x")))
    world.converge(text)
    before = tree(world.home.path)
    assert world.apply(text) == []
    assert tree(world.home.path) == before
    root = world.home.path
    assert (root / "AGENTS.md").read_text().startswith("theirs\n\n<!-- >>> reconciler:solo >>> -->\nours\n")
    assert stat.S_IMODE((root / "scripts/disk.sh").stat().st_mode) == 0o755
    config = (root / "config.yaml").read_text()
    assert "api_key: ${OPENROUTER_API_KEY}" in config and TOKEN not in config
    jobs = {j["name"]: j for j in json.loads((root / "cron/jobs.json").read_text())["jobs"]}
    assert jobs["watch"]["id"] == "watch-1"
    assert jobs["watch"]["context_from"] == [jobs["brief"]["id"], "watch-1"]
    assert jobs["brief"]["schedule"]["tz"] == "UTC"
    assert (jobs["disk"]["script"], jobs["disk"]["no_agent"]) == ("disk.sh", True)
    assert json.loads((root / "profiles/coder/cron/jobs.json").read_text())["jobs"][0]["name"] == "x"


def _deeper(text: str) -> str:
    return "".join(f"        {line}\n" for line in text.splitlines())


def test_changes_and_removals_of_every_kind(world: World) -> None:
    world.converge(world.text(JOBS, ALL))
    less = ALL.replace("  fallbacks: [quick]\n  auxiliary: {title: quick}\n", "").replace(
        "default: daily", "default: quick"
    )
    less = less.replace("  agent.max_turns: 30\n", "").replace('"I am.\\n"', '"I was.\\n"')
    less = less.replace("  AGENTS.md: {block: ./ours.md}\n", "")
    text = world.text(job("brief", schedule="{every: 30m}") + job("disk"), less)
    world.converge(text)
    root = world.home.path
    config = (root / "config.yaml").read_text()
    assert "max_turns" not in config
    assert "fallback_providers" not in config  # we had put it there
    assert "default: c/d" in config and "api_key" not in config
    assert not (root / "AGENTS.md").exists()
    assert (root / "SOUL.md").read_text() == "I was.\n"
    assert sorted(Nobody(root).jobs().values()) == ["brief", "disk"]


@pytest.mark.parametrize("path", ["SOUL.md", "AGENTS.md", "memories/a.md", "scripts/x.sh"])
def test_a_whole_file_that_left_is_deleted_unless_somebody_edited_it(world: World, path: str) -> None:
    target, gone = world.home.path / path, world.text()
    world.converge(world.text(rest=f'files: {{{path}: {{text: "Ours.\\n"}}}}'))
    target.write_text(target.read_text() + "Theirs.\n")
    row = world.rows(gone)[f"default/files/{path}"]
    assert row.row is Row.DELETE and row.hold is not None and "edited since we wrote it" in row.hold.why
    assert row.hold.command == f"reconciler release main/default/files/{path}"
    assert outcomes(world.apply(gone)).get(f"default/files/{path}") in (None, "held")
    assert target.read_text() == "Ours.\nTheirs.\n"
    target.write_text("Ours.\n")
    world.converge(gone)
    assert not target.exists()


def test_a_jobs_id_is_for_life(world: World) -> None:
    """L15: what every apply would refuse is refused by the plan, by name; what the setup no longer says is let go."""
    world.converge(world.text(job("brief", id="one")))
    for changed, why in ((job("brief", id="two"), "cannot be changed"), (job("brief", unset="[id]"), "be cleared")):
        row = world.rows(world.text(changed))["default/jobs/brief"]
        assert row.row is Row.REFUSED and row.reason.startswith("id: ") and why in row.reason
    world.converge(world.text(job("brief")))
    assert world.home.jobs() == {"one": "brief"}
    world.converge(world.text(job("brief", id="one")))
    world.home.delete_job("one")
    world.converge(world.text(job("brief", id="two")))
    assert world.home.jobs() == {"two": "brief"}


def test_two_jobs_of_one_id_are_blocked_and_adopt_changes_nothing(world: World) -> None:
    """L10: which of the two is ours cannot be told, so nothing is said of it, and nothing taken or let go."""
    text = world.text(job("brief") + job("other"))
    world.converge(text)
    store = world.home.path / "cron" / "jobs.json"
    jobs = json.loads(store.read_text())["jobs"]
    brief = next(j for j in jobs if j["name"] == "brief")
    store.write_text(json.dumps({"jobs": [*jobs, {**brief, "prompt": "Another."}]}))
    why = f"two jobs have the id {brief['id']}"
    changed = world.text(job("brief", prompt="New.") + job("other"))
    for said in (text, changed, world.text(job("other"))):
        row = world.rows(said)["default/jobs/brief"]
        assert row.row is Row.BLOCKED and row.hold is not None and why in row.hold.why
    space = world.space(text)
    path = physical(space.ref("main"))
    before = space.store.read(path)
    assert not adopt_home(space, "main").took
    with pytest.raises(UsageError, match=why):
        adopt_home(space, "main", (), {Address.parse("main/default/jobs/brief"): brief["id"]})
    other = next(j for j in jobs if j["name"] == "other")
    assert not adopt_home(space, "main", (), {Address.parse("main/default/jobs/other"): other["id"]}).took
    assert space.store.read(path) == before
    found = world.space(text.replace("name: solo", "name: another"))
    assert "brief" not in str(adopt_home(found, "main").took)


def test_an_object_that_took_the_place_of_ours_is_taken_by_its_id(world: World) -> None:
    """`replaced` names `adopt --map`; what that takes is told."""
    text = world.text(job("brief", workdir="/a"))
    world.converge(text)
    store = world.home.path / "cron" / "jobs.json"
    made = json.loads(store.read_text())["jobs"][0]
    new = {**made, "prompt": "X.", "schedule": {"kind": "interval", "minutes": 7}, "deliver": "origin", "workdir": "/b"}
    store.write_text(json.dumps({"jobs": [{**new, "name": "other"}]}))
    assert world.rows(text)["default/jobs/brief"].row is Row.REPLACED
    address = Address.parse("main/default/jobs/brief")
    assert [a for a, _ in adopt_home(world.space(text), "main", (), {address: made["id"]}).took] == [address]
    assert world.rows(text)["default/jobs/brief"].row is Row.UPDATE


def test_a_profile_is_deleted_into_the_trash(world: World) -> None:
    both = "      coder: {}\n"
    world.converge(world.text(extra=both))
    world.converge(world.text())
    assert not (world.home.path / "profiles" / "coder").exists()
    assert [p.name[:6] for p in (world.home.path / "profiles" / ".trash").iterdir()] == ["coder-"]
    assert world.provider.examine(world.space(world.text()).ref("main"))[0].startswith(
        "trash: the profile folder coder-"
    )


def test_a_home_that_is_not_there_is_provisioned(world: World) -> None:
    text = world.text(JOBS, ALL.replace(", key: {secret: OPENROUTER_API_KEY}", "")).replace("/home\n", "/new/home\n")
    text = text.replace("first_contact: adopt", "first_contact: provision")
    done = outcomes(world.apply(text))
    assert set(done.values()) == {"applied"}, done
    assert stat.S_IMODE((world.root / "new" / "home").stat().st_mode) == 0o700
    assert not world.rows(text)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"session": "telegram"}, "isolated"),
        ({"toolsets": "[]"}, "all toolsets"),
        ({"id": "a/b"}, "file name"),
        ({"deliver": "{to: slack, chat: 'a:b'}"}, "another target"),
        ({"model": "{provider: p, model: m, key: {secret: OPENROUTER_API_KEY}}"}, "inference"),
    ],
)
def test_what_the_home_cannot_store_is_an_error_at_plan_time(world: World, fields: dict[str, str], why: str) -> None:
    row = world.rows(world.text(job("brief", **fields)))["default/jobs/brief"]
    assert row.row is Row.REFUSED and why in row.reason, row.reason


def test_what_the_home_lacks_holds_the_row(world: World) -> None:
    rows = world.rows(
        world.text(
            job("a", before="gone.py"),
            "inference: {models: {m: {provider: x, model: y, key: {secret: NOT_THERE}}}, default: m}",
        )
    )
    assert "neither in the home nor declared" in str(rows["default/jobs/a"].hold)
    assert "has no NOT_THERE" in str(rows["default/inference"].hold)


def test_an_unloadable_home_blocks_all_of_it_with_its_words(world: World) -> None:
    """S0-08."""
    text = world.text(job())
    world.converge(text)
    (world.home.path / "config.yaml").write_text("worker: {harnes: codex}\n")
    plan = world.plan(world.text(job(prompt="New."))).homes[0]
    assert not plan.open
    assert "worker.harnes" in plan.observation.blocked


def test_a_pasted_secret_is_hidden_and_moved_by_the_first_write(world: World) -> None:
    root = world.home.path
    (root / "config.yaml").write_text(f"_config_version: 33\nmodel: {{default: a/b, provider: p, api_key: {TOKEN}}}\n")
    (root / ".env").write_text("")
    setup = "inference: {models: {m: {provider: p, model: c/d}}, default: m}"
    text = world.text(job(), setup)
    assert TOKEN not in repr(world.plan(text).homes[0].observation)
    world.converge(text)
    assert TOKEN not in (root / "config.yaml").read_text()
    assert TOKEN in (root / ".env").read_text()


def test_a_live_daemon_is_spoken_to_and_a_dead_socket_holds_the_home(world: World) -> None:
    text = world.text(job())
    with serving(world.home.path):
        world.converge(text)
        assert any("written through its socket" in note for note in world.plan(text).homes[0].observation.notes)
        before = tree(world.home.path)
        assert world.apply(text) == []
        assert tree(world.home.path) == before
        (world.home.path / lease.SOCKET).unlink()
        done = outcomes(world.apply(world.text(job(prompt="New."))))
        assert set(done.values()) & {"refused", "failed", "skipped"} or "main" in done, done
        assert "New." not in (world.home.path / "cron/jobs.json").read_text()
    assert "default/jobs/brief" in world.rows(world.text(job(prompt="New.")))


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_the_conformance_suite_over_the_socket(check: Callable[[World], None], tmp_path: Path) -> None:
    class Caller(Nobody):
        def _do(self, op: str, **args: object) -> dict[str, object]:
            answer = wire.call(self.path, {"op": op, "args": args})
            assert answer["ok"], answer
            found: dict[str, object] = answer["result"]
            return found

        def add_job(self, name: str, prompt: str) -> str:
            made = self._do("jobs.create", name=name, prompt=prompt, schedule="every 2h", deliver="local")
            return str(made["job_id"])

        def edit_job(self, harness_id: str, prompt: str) -> None:
            self._do("jobs.update", id=harness_id, prompt=prompt)

        def delete_job(self, harness_id: str) -> None:
            self._do("jobs.delete", id=harness_id)

    path = tmp_path / "home"
    init(path)
    with serving(path):
        kit = Kit(NativeProvider(), Caller, "{mode: live}", volatile=("orchestrator.lock",), provisions=False)
        check(World(kit, tmp_path, Caller(path), kit.provider))


def test_a_lost_answer_is_uncertain_and_settled_by_looking(world: World) -> None:
    """S0-49: the line went out, the socket broke: nothing runs twice."""
    root = world.home.path
    text = world.text(job())
    world.converge(world.text())
    with serving(root) as daemon:
        real = root / "real.sock"
        (root / lease.SOCKET).rename(real)
        broken = socket.socket(socket.AF_UNIX)
        broken.bind(str(root / lease.SOCKET))
        broken.listen()

        def relay() -> None:
            """Passes the line on, and loses the answer."""
            for _ in range(2):  # preflight asks for the door, then the line comes
                caller, _ = broken.accept()
                data = b""
                while not data.endswith(b"\n"):
                    chunk = caller.recv(65536)
                    if not chunk:
                        break
                    data += chunk
                if data.endswith(b"\n"):
                    with socket.socket(socket.AF_UNIX) as behind:
                        behind.connect(str(real))
                        behind.sendall(data)
                        while behind.recv(65536):
                            pass
                caller.close()

        thread = threading.Thread(target=relay)
        thread.start()
        done = outcomes(world.apply(text))
        thread.join(10)
        broken.close()
        assert done["default/jobs/brief"] in ("uncertain", "applied"), done
        (root / lease.SOCKET).unlink()
        real.rename(root / lease.SOCKET)
        world.converge(text)
        assert list(Nobody(root).jobs().values()) == ["brief"]
        daemon.terminate()
        daemon.wait(5)


def test_what_is_adopted_from_the_path_is_the_same_setup_again(world: World) -> None:
    """`adopt PATH`: each thing in the setup's words, and the plan of that setup asks for nothing but to own it."""
    world.converge(world.text(JOBS, ALL))
    before = tree(world.home.path)
    found = survey(str(world.home.path), {"native": world.provider})
    made = draft(found, "main", str(world.home.path), everything=True)
    text = json.dumps({"version": 1, "name": "again", "homes": {"main": {**made.block, "first_contact": "adopt"}}})
    rows = world.rows(text)
    changes = {(k, c.field, str(c.row)) for k, a in rows.items() for c in a.changes}
    assert not {c for c in changes if c[2] not in ("claim", "stamp", "in-sync")}, changes
    for thing in found.observation.all():
        if thing.kind is Kind.JOB and thing.name == "watch":
            said = world.provider.express(thing, found.observation)
            assert (said["monitor"], said["session"], said["metadata"]) == (
                {"url": "https://example.com/x"},
                "main",
                {"team": "ops"},
            )
            assert (said["repeat"], said["toolsets"], said["workdir"]) == (3, ["web", "files"], "/srv/work")
    assert tree(world.home.path) == before


def test_what_a_plan_would_refuse_is_not_adopted_and_nothing_stands_on_it(world: World) -> None:
    """`adopt PATH` of a home that holds what no setup may say: it stays out with the reason, and the plan is quiet."""
    world.home.add_job("fine", "Odd \x85 \u2028 \ufeff text\r\n  and \u202e more \t\n ")
    store = world.home.path / "cron" / "jobs.json"
    jobs = json.loads(store.read_text())["jobs"]
    bad: list[dict[str, Any]] = [
        {"id": "up", "no_agent": True, "script": "../../x.sh", "prompt": ""},
        {"id": "before", "script": "/etc/x.sh"},
        {"id": "leaky", "prompt": TOKEN},
        {"id": "toolsets", "enabled_toolsets": []},
    ]
    odd = {"id": "odd", "provider": "custom", "model": "m", "base_url": "https://me:" + "hunter22" + "@llm.example"}
    late = [{"id": f"after-{j['id']}", "context_from": [j["id"]]} for j in bad]
    store.write_text(json.dumps({"jobs": [*jobs, *({**jobs[0], "name": j["id"], **j} for j in [*bad, *late, odd])]}))
    found = survey(str(world.home.path), {"native": world.provider})
    made = draft(found, "main", str(world.home.path))
    kept = made.block["profiles"]["default"]["jobs"]
    assert {"up", "before", "leaky"}.isdisjoint(kept) and {"fine", "after-up", "after-before", "after-leaky"} <= set(
        kept
    )
    assert "x.sh: scripts lie under scripts/" in str(made.left)
    assert all("context_from" not in kept[f"after-{name}"] for name in ("up", "before", "leaky"))
    assert sum("context_from" in line for line in made.look) == 3
    assert "main/default/jobs/odd: model holds a secret in the clear, which stays out" in made.look
    rows = world.rows(render_setup("solo", {"main": {**made.block, "first_contact": "adopt"}}))
    assert {str(c.row) for a in rows.values() for c in a.changes} <= {"stamp", "in-sync", "claim"}
    assert not [a.reason for a in rows.values() if a.row is Row.REFUSED]


def test_a_hidden_value_stays_when_its_neighbour_is_written(world: World) -> None:
    root = world.home.path
    (root / "config.yaml").write_text("x:\n  hint: use " + TOKEN + " here\n  n: 1\n")
    world.converge(world.text(rest="settings: {x: {n: 2}}"))
    assert (root / "config.yaml").read_text() == "x:\n  hint: use " + TOKEN + " here\n  n: 2\n"


def test_files_are_stale_torn_or_not_ours_and_then_left(world: World) -> None:
    root = world.home.path
    text = world.text(rest='files: {SOUL.md: {text: "I am.\\n"}, AGENTS.md: {block: ./ours.md}}')
    world.converge(text)
    plan = world.space(world.text(rest='files: {SOUL.md: {text: "New.\\n"}, AGENTS.md: {block: ./ours.md}}')).plan(
        Options()
    )
    (root / "SOUL.md").write_text("Theirs.\n")
    with world.provider.open(plan.homes[0].ref, None) as door:
        [answer] = door.perform(Step(plan.homes[0].ref, plan.homes[0].open))
    assert answer.code is Code.STALE
    assert (root / "SOUL.md").read_text() == "Theirs.\n"
    (root / "AGENTS.md").write_text("<!-- >>> reconciler:solo >>> -->\ntorn\n")
    row = world.rows(text)["default/files/AGENTS.md"]
    assert "do not pair up" in str([c.observed for c in row.changes])


def test_many_jobs_go_in_batches(world: World) -> None:
    jobs = "".join(job(f"j{n:03}", **({"context_from": f"[j{n - 1:03}]"} if n % 100 == 1 else {})) for n in range(450))
    world.converge(world.text(jobs))
    assert len(Nobody(world.home.path).jobs()) == 450


def test_options_are_closed() -> None:
    provider = NativeProvider()
    assert provider.options({"mode": "live"}) == []
    assert provider.options({"mode": "x", "python": "/y"}) == [
        "door: python is not known (only `mode`)",
        "door.mode: one of auto, live, cold",
    ]


def test_a_folder_that_is_something_else_is_no_home(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "README.md").write_text("x")
    plan = world.plan(world.text(job()).replace(str(world.home.path), str(other))).homes[0]
    assert "is not a native home" in plan.failed


def test_a_native_home_is_taken_for_one_whatever_else_is_installed(world: World) -> None:
    """It has Hermes's shape; its own lock file tells."""
    installed: dict[str, Provider] = {
        "hermes": HermesProvider(),
        "native": NativeProvider(),
        "orchestrator": OrchestratorProvider(),
    }
    assert survey(str(world.home.path), installed).ref.harness == "native"
