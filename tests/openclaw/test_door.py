"""The door against a gateway on a bad day: what is sent, what is not, and what is said of each row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from openclaw.fake_gateway import KEY, TOKEN, Drop, Fake, No, limited, reloading, served
from reconciler.action import CLEAR, Action, FieldChange, FieldRow, Row
from reconciler.errors import ProviderError
from reconciler.observe import ABSENT, Observed, Wanted
from reconciler.provider import Answer, Code, Step
from reconciler_openclaw import door, door_line, jobs
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Class, Shape

SCALAR = Shape(Class.SCALAR)
FIELDS = {"name": "brief", "schedule": {"every": "120m"}, "prompt": "Write.", "deliver": "local"}


def change(name: str, write: Any, seen: Any = ABSENT) -> FieldChange:
    return FieldChange(name, FieldRow.SET, write, seen, None, SCALAR, write)


def made(key: str, **fields: Any) -> Action:
    address = Address("main", "default", Kind.JOB, key)
    return Action(Row.CREATE, address, changes=tuple(change(n, v) for n, v in {**FIELDS, **fields}.items()))


def there(fake: Fake, name: str) -> dict[str, Any]:
    """A job that is in the gateway already."""
    job = {"name": name, "schedule": {"kind": "every", "everyMs": 7_200_000}, "sessionTarget": "isolated"}
    return dict(fake._add({**job, "payload": {"kind": "agentTurn", "message": "Old."}, "agentId": "main"})["job"])


def changed(job: Mapping[str, Any], row: Row = Row.UPDATE, **fields: Any) -> Action:
    address = Address("main", "default", Kind.JOB, str(job["name"]))
    changes = tuple(change(n, v, "Old.") for n, v in fields.items())
    return Action(row, address, str(job["id"]), changes, fingerprint=jobs.fingerprint(job, bytes.fromhex(KEY)))


def perform(fake: Fake, actions: Sequence[Action], told: list[str] | None = None, **options: Any) -> list[Answer]:
    intents = {action.address: f"intent-{n}" for n, action in enumerate(actions)}
    note = (told if told is not None else []).append
    with door.opened(fake.ref(**options), None, note) as found:
        return list(found.perform(Step(fake.ref(), tuple(actions), intents)))


def codes(answers: Sequence[Answer]) -> list[str]:
    return [str(answer.code) for answer in answers]


# -- jobs


def test_a_job_is_made_under_our_key(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        (answer,) = perform(fake, [made("brief")])
        assert (answer.code, answer.id) == (Code.OK, "job-1")
        (sent,) = fake.sent("cron.add")
    assert sent["declarationKey"] == jobs.declaration_key("intent-0")
    assert (sent["agentId"], sent["payload"]) == ("main", {"kind": "agentTurn", "message": "Write."})


def test_a_lost_create_is_settled_by_our_key_and_the_others_go_on(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [(Drop(), True)]}) as fake:
        answers = perform(fake, [made("one"), made("two")])
        assert codes(answers) == ["ok", "ok"]
        assert [answer.id for answer in answers] == ["job-1", "job-2"]
        assert len(fake.sent("cron.add")) == 2


def test_a_lost_create_that_never_came_is_lost_and_what_is_behind_it_is_not_tried(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [Drop()]}) as fake:
        answers = perform(fake, [made("one"), made("two")])
        assert codes(answers) == ["lost", "refused"]
        assert answers[1].words.startswith("not tried: cron.add: the gateway closed the connection")
        assert len(fake.sent("cron.add")) == 1


@pytest.mark.parametrize("done", [True, False])
def test_a_create_at_which_the_gateway_fails_is_settled_by_our_key(done: bool, tmp_path: Path) -> None:
    """Whether it was done, only looking tells; it is not sent again."""
    with served(tmp_path, faults={"cron.add": [(reloading(), done)]}) as fake:
        answers = perform(fake, [made("one"), made("two")])
        assert codes(answers) == ["ok" if done else "refused", "ok"]
        assert answers[0].id == ("job-1" if done else "")
        assert done or "was reloaded or disabled" in answers[0].words
        assert len(fake.sent("cron.add")) == 2


@pytest.mark.parametrize("done", [True, False])
def test_an_agent_at_whose_making_the_gateway_fails_is_looked_for(done: bool, tmp_path: Path) -> None:
    def create(params: dict[str, Any]) -> Any:
        if done:
            config = f"{{gateway: {{auth: {{token: '{TOKEN}'}}}}, agents: {{entries: {{main: {{}}, ops: {{}}}}}}}}"
            (fake.root / "openclaw.json").write_text(config)
        raise reloading()

    agents = {"agents": [{"id": "main"}, {"id": "ops"}]}
    methods = {"agents.create": create, "agents.list": lambda _: agents}
    with served(tmp_path, methods=methods, faults={"agents.list": [reloading()]}) as fake:
        (answer,) = perform(fake, [Action(Row.CREATE, Address("main", "ops", Kind.PROFILE))])
        assert len(fake.sent("agents.create")) == 1
        assert len(fake.sent("agents.list")) == (2 if done else 0)
    assert answer.code is (Code.OK if done else Code.REFUSED), answer


def test_a_patch_at_which_the_gateway_fails_is_compared_with_its_base(tmp_path: Path) -> None:
    """Not written: its words, and the next run tries again."""
    with served(tmp_path, text=CONFIG, faults={"config.patch": [reloading()], "config.get": [reloading()]}) as fake:
        (answer,) = perform(fake, [setting(fake, "tools.profile", "full")])
        assert answer.code is Code.REFUSED and "was reloaded or disabled" in answer.words
        assert len(fake.sent("config.patch")) == 1


def test_what_an_earlier_try_made_is_not_made_again(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        fake._add({"name": "brief", "declarationKey": jobs.declaration_key("intent-0")})
        (answer,) = perform(fake, [made("brief")])
        assert (answer.code, answer.id) == (Code.OK, "job-1")
        assert fake.sent("cron.add") == []


def test_a_change_names_the_revision_that_was_looked_at(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        job = there(fake, "brief")
        assert codes(perform(fake, [changed(job, prompt="New.")])) == ["ok"]
        (sent,) = fake.sent("cron.update")
    assert sent["expectedConfigRevision"] == "r1"
    assert sent["patch"] == {"payload": {"kind": "agentTurn", "message": "New."}}


def test_without_revisions_the_job_is_asked_for_once_more(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        job = there(fake, "brief")
        del fake.jobs["job-1"]["configRevision"]
        fake.methods["cron.update"] = lambda params: {}
        fake.methods["cron.get"] = lambda params: {**fake.jobs["job-1"], "name": "somebody's"}
        assert codes(perform(fake, [changed(job, prompt="New.")])) == ["stale"]
        assert fake.sent("cron.update") == []


def test_what_changed_since_the_plan_is_stale(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        job, other = there(fake, "brief"), there(fake, "other")
        fake.jobs["job-1"]["payload"] = {"kind": "agentTurn", "message": "Somebody's."}
        answers = perform(fake, [changed(job, prompt="New."), changed(other, Row.DELETE)])
        assert codes(answers) == ["stale", "ok"]
        assert list(fake.jobs) == ["job-1"]


@pytest.mark.parametrize("code", ["CRON_JOB_CHANGED", "CRON_JOB_NOT_FOUND"])
def test_a_change_in_the_last_moment_is_stale_by_code(code: str, tmp_path: Path) -> None:
    error = No("INVALID_REQUEST", "whatever it says", details={"code": code})
    with served(tmp_path, faults={"cron.update": [error]}) as fake:
        job = there(fake, "brief")
        (answer,) = perform(fake, [changed(job, prompt="New.")])
        assert (answer.code, answer.words) == (Code.STALE, "whatever it says")


def test_a_job_of_somebody_else_is_never_touched(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        job = there(fake, "brief")
        job["owner"] = fake.jobs["job-1"]["owner"] = {"agentId": "main"}
        (answer,) = perform(fake, [changed(job, Row.DELETE)])
        assert answer.code is Code.REFUSED
        assert "never touched" in answer.words
        assert fake.sent("cron.remove") == []


def test_one_refusal_is_said_of_its_own_row(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [None, No("INVALID_REQUEST", "bad expr")]}) as fake:
        answers = perform(fake, [made("one"), made("two"), made("three")])
    assert codes(answers) == ["ok", "refused", "ok"]
    assert answers[1].words == "bad expr"


def test_the_limit_is_told_while_it_is_waited_for(tmp_path: Path) -> None:
    told: list[str] = []
    with served(tmp_path, faults={"cron.add": [limited(1)]}) as fake:
        assert codes(perform(fake, [made("one")], told)) == ["ok"]
    assert len(told) == 1


def test_a_value_that_cannot_be_written_back_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        answers = perform(fake, [made("one", prompt={"$hidden": "d"})])
        assert codes(answers) == ["refused"]
        assert fake.sent("cron.add") == []


def test_a_page_that_is_refused_refuses_the_step(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.list": [No("FORBIDDEN", "missing scope")]}) as fake:
        assert codes(perform(fake, [made("one")])) == ["refused"]


# -- the config


def observed(fake: Fake, address: Address) -> Any:
    found = OpenClawProvider().observe(fake.ref(), Wanted(frozenset({address})))
    return found.at(address.profile, address.kind, address.key)


def setting(fake: Fake, key: str, write: Any) -> Action:
    address = Address("main", "default", Kind.SETTING, key)
    seen = observed(fake, address)
    now = seen.get("value") if isinstance(seen, Observed) else ABSENT
    print_ = seen.fingerprint if isinstance(seen, Observed) else ""
    return Action(Row.UPDATE, address, key, (change("value", write, now),), fingerprint=print_)


CONFIG = f"""{{
  gateway: {{auth: {{token: '{TOKEN}'}}}},
  tools: {{allow: ['a', 'b'], profile: 'coding', exec: {{mode: 'ask', host: 'x'}}}},
}}"""


def test_all_of_a_step_is_one_patch_on_the_base_that_was_looked_at(tmp_path: Path) -> None:
    with served(tmp_path, text=CONFIG) as fake:
        rows = [
            setting(fake, "tools.allow", ["a"]),
            setting(fake, "tools.profile", CLEAR),
            setting(fake, "tools.exec", {"mode": "deny", "host": "x"}),
            setting(fake, "logging.level", "info"),
        ]
        assert codes(perform(fake, rows)) == ["ok"] * 4
        (sent,) = fake.sent("config.patch")
    assert json.loads(sent["raw"]) == {
        "tools": {"allow": ["a"], "profile": None, "exec": {"mode": "deny"}},
        "logging": {"level": "info"},
    }
    assert (sent["baseHash"], sent["replacePaths"]) == ("hash-1", ["tools.allow"])


def test_one_wrong_setting_spoils_only_its_own_row(tmp_path: Path) -> None:
    def patch(params: dict[str, Any]) -> Any:
        if "bad" in params["raw"]:
            raise No("INVALID_REQUEST", "tools.bad: unknown key")
        return {"ok": True}

    with served(tmp_path, text=CONFIG, methods={"config.patch": patch}) as fake:
        answers = perform(fake, [setting(fake, "tools.bad", 1), setting(fake, "tools.profile", "full")])
    assert codes(answers) == ["refused", "ok"]
    assert answers[0].words == "tools.bad: unknown key"


def test_few_patches_find_the_one_wrong_row(tmp_path: Path) -> None:
    """7.1 takes three a minute; nine rows by themselves would be ten of them."""

    def patch(params: dict[str, Any]) -> Any:
        if "bad" in params["raw"]:
            raise No("INVALID_REQUEST", "tools.bad: unknown key")
        return {"ok": True}

    with served(tmp_path, text=CONFIG, methods={"config.patch": patch}) as fake:
        rows = [setting(fake, f"tools.x{n}", n) for n in range(8)] + [setting(fake, "tools.bad", 1)]
        answers = perform(fake, rows)
        assert codes(answers) == ["ok"] * 8 + ["refused"]
        assert len(fake.sent("config.patch")) == 7


def test_a_patch_that_takes_too_much_away_goes_in_halves(tmp_path: Path) -> None:
    def patch(params: dict[str, Any]) -> Any:
        if len(json.loads(params["raw"])["tools"]) > 2:
            raise No("UNAVAILABLE", "Config write rejected: (size-drop:2268->946)")
        return {"ok": True}

    with served(tmp_path, text=CONFIG, methods={"config.patch": patch}) as fake:
        assert codes(perform(fake, [setting(fake, f"tools.x{n}", n) for n in range(4)])) == ["ok"] * 4
        assert len(fake.sent("config.patch")) == 3


def test_somebodys_edit_is_taken_in_before_ours_is_sent(tmp_path: Path) -> None:
    """A real 9.6 never answers a patch that undoes what it has not taken in yet."""
    answers = iter(["old", "old", "new"])
    methods = {
        "config.get": lambda _: {"hash": "h", "configRevisionHash": "new", "appliedConfigHash": next(answers, "new")}
    }
    with served(tmp_path, text=CONFIG, methods=methods) as fake:
        assert codes(perform(fake, [setting(fake, "tools.profile", "full")])) == ["ok"]
        before = [name for name, _ in fake.calls].index("config.patch")
    assert before == 3


def test_another_base_is_looked_at_anew_whatever_the_gateway_says(tmp_path: Path) -> None:
    hashes = iter(["hash-1", "hash-2", "hash-2"])
    methods = {"config.get": lambda _: {"hash": next(hashes, "hash-3")}}
    faults = {"config.patch": [No("INVALID_REQUEST", "anything")]}
    with served(tmp_path, text=CONFIG, methods=methods, faults=faults) as fake:
        assert codes(perform(fake, [setting(fake, "tools.profile", "full")])) == ["ok"]
        assert [sent["baseHash"] for sent in fake.sent("config.patch")] == ["hash-1", "hash-2"]


def test_a_base_that_is_never_the_same_is_stale_in_the_end(tmp_path: Path) -> None:
    count = iter(range(100))
    methods = {"config.get": lambda _: {"hash": f"hash-{next(count)}"}}
    faults = {"config.patch": [No("INVALID_REQUEST", "anything")] * 10}
    with served(tmp_path, text=CONFIG, methods=methods, faults=faults) as fake:
        assert codes(perform(fake, [setting(fake, "tools.profile", "full")])) == ["stale"]
        assert len(fake.sent("config.patch")) == 4


def test_a_setting_that_changed_since_the_plan_is_stale_and_its_neighbour_is_not(tmp_path: Path) -> None:
    with served(tmp_path, text=CONFIG) as fake:
        rows = [setting(fake, "tools.profile", "full"), setting(fake, "tools.allow", ["a"])]
        (fake.root / "openclaw.json").write_text(CONFIG.replace("coding", "minimal"))
        assert codes(perform(fake, rows)) == ["stale", "ok"]
        (sent,) = fake.sent("config.patch")
    assert json.loads(sent["raw"]) == {"tools": {"allow": ["a"]}}


def test_a_patch_without_an_answer_is_lost(tmp_path: Path) -> None:
    with served(tmp_path, text=CONFIG, faults={"config.patch": [Drop()]}) as fake:
        assert codes(perform(fake, [setting(fake, "tools.profile", "full")])) == ["lost"]


def test_a_gateway_that_has_ended_is_not_waited_for_as_one_that_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_line, "_GONE", 0.3)

    def ends(_: Mapping[str, Any]) -> Any:
        for lock in (fake.root / "tmp").rglob("*.lock"):
            lock.unlink()
        raise Drop

    with served(tmp_path, text=CONFIG, methods={"config.patch": ends}) as fake:
        (answer,) = perform(fake, [setting(fake, "tools.profile", "full")])
    assert answer.code is Code.LOST
    assert "the gateway ended, and was not started again within 0 s" in answer.words


def test_the_gateway_is_waited_for_until_it_has_taken_the_config_in(tmp_path: Path) -> None:
    answers = iter(["new", "old", "old", "new"])
    methods = {
        "config.get": lambda _: {"hash": "h", "configRevisionHash": "new", "appliedConfigHash": next(answers, "new")}
    }
    with served(tmp_path, text=CONFIG, methods=methods) as fake:
        assert codes(perform(fake, [setting(fake, "tools.profile", "full")])) == ["ok"]
        assert len(fake.sent("config.get")) == 4


# -- the way in


def test_no_word_of_the_door_shows_the_token(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [No("INVALID_REQUEST", f"not with {TOKEN}")]}) as fake:
        (answer,) = perform(fake, [made("one")])
    assert TOKEN not in answer.words
    assert answer.words.startswith("not with")


def test_a_gateway_of_another_home_gets_no_write(tmp_path: Path) -> None:
    with served(tmp_path, state_dir="/somebody/else") as fake:
        with pytest.raises(ProviderError, match="serves /somebody/else"):
            perform(fake, [made("one")])
        assert fake.calls == []


def test_a_stopped_home_whose_setup_forbids_a_gateway_is_refused_before_anything(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        for lock in (fake.root / "tmp").rglob("*.lock"):
            lock.unlink()
        with pytest.raises(ProviderError, match="quiet_gateway"):
            door.check(fake.ref(quiet_gateway=False), [made("one")])


# -- files, without a gateway's help


def file(key: str, row: Row = Row.CREATE, seen: str = "", origin: str = "", **fields: Any) -> Action:
    address = Address("main", "default", Kind.FILE, key)
    changes = tuple(change(n, v) for n, v in fields.items())
    return Action(row, address, key, changes, fingerprint=seen, origin=origin)


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Fake, Path]]:
    """A fake gateway's home whose files are written by the real Node, and its workspace."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with served(tmp_path) as fake:
        yield fake, fake.root / "workspace"


def print_of(fake: Fake, key: str) -> str:
    found = observed(fake, Address("main", "default", Kind.FILE, key))
    assert isinstance(found, Observed)
    return found.fingerprint


def node() -> str:
    return str(labs.NODE)


@pytest.mark.openclaw
def test_files_are_made_changed_and_deleted_at_the_place(real: tuple[Fake, Path]) -> None:
    fake, workspace = real
    answers = perform(
        fake, [file("SOUL.md", text="Be brief.\n"), file("scripts/a.sh", text="df\n", mode="0755")], node=node()
    )
    assert codes(answers) == ["ok", "ok"]
    assert (workspace / "scripts" / "a.sh").stat().st_mode & 0o777 == 0o755
    assert codes(perform(fake, [file("SOUL.md", text="twin")], node=node())) == ["stale"]
    block = file("SOUL.md", Row.UPDATE, print_of(fake, "SOUL.md"), block="ours\n")
    block = replace(block, changes=(replace(block.changes[0], row=FieldRow.SET),))
    fake.version = "2026.7.1-2"  # one that does not compare: the file is not given to it
    assert codes(perform(fake, [block], node=node())) == ["ok"]
    assert "ours" in (workspace / "SOUL.md").read_text()
    gone = file("SOUL.md", Row.DELETE, print_of(fake, "SOUL.md"), origin="created")
    assert codes(perform(fake, [gone], node=node())) == ["ok"]
    assert (workspace / "SOUL.md").read_text() == "Be brief.\n"
    gone = file("SOUL.md", Row.DELETE, print_of(fake, "SOUL.md"), origin="adopted")
    assert codes(perform(fake, [gone], node=node())) == ["refused"]
    assert codes(perform(fake, [replace(gone, origin="created")], node=node())) == ["ok"]
    assert not (workspace / "SOUL.md").exists()
    assert [name for name, _ in fake.calls if name.startswith("agents.files")] == []


@pytest.mark.openclaw
def test_nothing_is_written_through_a_link(real: tuple[Fake, Path], tmp_path: Path) -> None:
    fake, workspace = real
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    workspace.mkdir()
    (workspace / "scripts").symlink_to(elsewhere)
    (answer,) = perform(fake, [file("scripts/a.sh", text="df\n")], node=node())
    assert answer.code in (Code.REFUSED, Code.STALE)
    assert list(elsewhere.iterdir()) == []


def test_openclaws_own_files_go_through_it_with_the_hash_that_was_seen(real: tuple[Fake, Path]) -> None:
    fake, workspace = real
    workspace.mkdir()
    (workspace / "SOUL.md").write_text("Old.\n")
    fake.methods["agents.files.set"] = lambda params: {"ok": True}
    action = file("SOUL.md", Row.UPDATE, print_of(fake, "SOUL.md"), text="New.\n")
    assert codes(perform(fake, [action])) == ["ok"]
    (sent,) = fake.sent("agents.files.set")
    digest = hashlib.sha256(b"Old.\n").hexdigest()
    assert sent == {"agentId": "main", "name": "SOUL.md", "content": "New.\n", "expectedHash": digest}
    conflict = No("INVALID_REQUEST", "it changed", details={"type": "agent_file_conflict"})
    fake.faults["agents.files.set"] = [conflict]
    assert codes(perform(fake, [action])) == ["stale"]
