"""What must hold of a running home: killed at each step, edited by whoever can, and held to OpenClaw's own limits."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from openclaw import lab as labs
from openclaw.life import RUNNING, Life, nothing_starts, reasons
from openclaw.test_life_at_rest import COMMON, at_each_write, children, killed_with_its_answer, set_by_hand
from openclaw.test_writing import told
from reconciler.plan import Options
from reconciler.testing.kit import tree
from reconciler_openclaw import door_line, rpc

pytestmark = [pytest.mark.openclaw, pytest.mark.timeout(900)]


@contextmanager
def calls() -> Iterator[list[str]]:
    """The methods that we call meanwhile, in order."""
    seen: list[str] = []
    ask = rpc.Connection._ask

    def asked(connection: rpc.Connection, method: str, *more: Any) -> Any:
        seen.append(method)
        return ask(connection, method, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc.Connection, "_ask", asked)
        yield seen


def definitions(life: Life) -> dict[str, str]:
    """Every job as its gateway tells it, with its next run and its revision."""
    return {i: json.dumps(job, sort_keys=True) for i, job in life.lab.jobs().items()}


def job_of(life: Life, name: str) -> dict[str, Any]:
    (found,) = [job for job in life.lab.jobs().values() if job["name"] == f"{life.setup_name}-{name}"]
    return found


def test_a_home_that_starts_between_plan_and_apply_and_is_edited_there(life: Life) -> None:
    """Planned while it was stopped, applied while it runs: what somebody did by RPC meanwhile (as the UI does) is
    refused, object by object, and the rest is written."""
    life.lab.down()
    life.converge(life.setup(COMMON))  # the jobs that are there, if another test has made them

    def job(name: str) -> dict[str, Any]:
        return next(job for job in life.lab.jobs().values() if job["name"] == name)

    def by_the_ui() -> None:
        life.lab.up()
        life.lab.rpc(
            "cron.update", id=job("brief")["id"], patch={"payload": {"kind": "agentTurn", "message": "Theirs."}}
        )

    text = COMMON.replace("Write the brief.", "Write more.").replace("Water.", "Water more.")
    events = life.late(life.setup(text), by_the_ui)
    assert told(events) == {"default/jobs/brief": "refused", "default/jobs/plants": "applied"}
    assert job("brief")["payload"]["message"] == "Theirs."
    assert job("plants")["payload"]["message"] == "Water more."
    life.apply(life.setup(COMMON), Options(restore=("main",)))  # as others find them


def test_edits_of_a_running_home_in_the_last_moment(life: Life) -> None:
    """L8: by RPC, by the command line and by an editor, after we have looked for the last time but one."""
    life.lab.up()
    base = "default:\n  settings: {{logging.level: {0}, logging.consoleLevel: {0}}}\n"
    base += "  files: {{scripts/late.sh: {{text: {0}}}, SOUL.md: {{text: {0}}}}}\n  jobs:"
    names = ("one", "two", "three")
    life.converge(life.setup(base.format("warn") + life.jobs_text(*names)))
    workspace = life.lab.workspace
    done: list[str] = []

    def edits() -> None:
        if done:
            return
        done.append("once")
        life.lab.rpc("cron.remove", id=job_of(life, "one")["id"])
        found = life.lab.cli("cron", "edit", job_of(life, "two")["id"], "--message", "Theirs.", "--token", labs.TOKEN)
        assert found.returncode == 0, found.stderr
        base_hash = life.lab.rpc("config.get")["hash"]
        life.lab.rpc("config.patch", raw=json.dumps({"logging": {"level": "trace"}}), baseHash=base_hash)
        (workspace / "scripts" / "late.sh").write_text("Theirs.")
        (workspace / "SOUL.md").write_text("Theirs.")

    with at_each_write(edits):
        events = life.apply(life.setup(base.format("error") + life.jobs_text(*names, prompt="More.")))
    outcomes = told(events)
    assert {path: outcome for path, outcome in outcomes.items() if outcome != "refused"} == {
        "default/settings/logging.consoleLevel": "applied",
        "default/jobs/three": "applied",
    }, events
    assert life.config()["logging"] == {"level": "trace", "consoleLevel": "error"}
    assert (workspace / "SOUL.md").read_text() == (workspace / "scripts" / "late.sh").read_text() == "Theirs."
    assert job_of(life, "two")["payload"]["message"] == "Theirs."
    assert life.named() == ["three", "two"]


def test_an_editor_and_the_command_line_beside_a_running_gateway(life: Life) -> None:
    """A direct edit of the file, which the gateway takes in by itself, and `config set`: each in the last moment."""
    life.lab.up()
    life.converge(life.setup("default:\n  settings: {logging.level: warn, logging.consoleLevel: warn}"))

    def by_hand() -> None:
        set_by_hand(life, {"level": "fatal", "consoleLevel": "warn"})

    with at_each_write(by_hand):
        events = life.apply(life.setup("default:\n  settings: {logging.level: error, logging.consoleLevel: error}"))
    assert told(events) == {
        "default/settings/logging.level": "refused",
        "default/settings/logging.consoleLevel": "applied",
    }
    assert life.config()["logging"] == {"level": "fatal", "consoleLevel": "error"}

    def by_the_program() -> None:
        done = life.lab.cli("config", "set", "logging.consoleLevel", "trace")
        assert done.returncode == 0, done.stderr

    text = life.setup("default:\n  settings: {logging.consoleLevel: silent}", door=", mode: rpc")
    with at_each_write(by_the_program):
        assert told(life.apply(text))["default/settings/logging.consoleLevel"] == "refused"
    assert life.config()["logging"]["consoleLevel"] == "trace"


def test_mode_cli_writes_the_config_of_a_running_home_by_the_command_line(life: Life) -> None:
    life.lab.up()
    text = life.setup(
        "default:\n  settings: {logging.level: info}\n  jobs:" + life.jobs_text("one"), door=", mode: cli"
    )
    with children() as started, calls() as asked:
        life.converge(text)
    assert started.count("config patch") == 1
    assert "config.patch" not in asked
    assert "cron.add" in asked  # jobs have no other door
    assert life.config()["logging"]["level"] == "info"


def test_each_refusal_is_in_openclaws_words_at_its_own_address(life: Life) -> None:
    """Two settings, and a job whose agent somebody takes away in the last moment; what is right beside them is
    written."""
    life.lab.up()
    life.lab.add_agent("temp")

    def taken_away() -> None:
        if "temp" in life.agents():
            life.lab.delete_agent("temp")

    wrong = {"logging.nonsense": {"logging": {"nonsense": 1}}, "gateway.bind": {"gateway": {"bind": "nowhere"}}}
    if life.lab.version == labs.OLD:  # it takes three patches a minute, and its limit has a test of its own
        del wrong["gateway.bind"]
    bind = ", gateway.bind: nowhere" if "gateway.bind" in wrong else ""
    body = f"default:\n  settings: {{logging.level: warn, logging.nonsense: 1{bind}}}\n  jobs:"
    body += life.jobs_text("good") + "\ntemp:\n  jobs:" + life.jobs_text("lost")
    with at_each_write(taken_away):
        events = life.apply(life.setup(body))
    why, outcomes = reasons(events), told(events)
    assert outcomes["default/settings/logging.level"] == outcomes["default/jobs/good"] == "applied", events
    for key, patch in wrong.items():
        path = f"default/settings/{key}"
        said = life.lab.refused("config.patch", raw=json.dumps(patch), baseHash=life.lab.rpc("config.get")["hash"])
        assert (outcomes[path], why[path]) == ("refused", said)
    lost = "temp/jobs/lost"
    if life.lab.version == labs.NEW:
        assert (outcomes[lost], why[lost]) == ("refused", "Error: cron job agent is unavailable: temp")
    else:  # it takes a job of any agent; the read-back tells that the job is there, and nobody's
        assert outcomes[lost] == "uncertain" and "agent temp that is not in the config" in why[lost], events
        life.lab.rpc("cron.remove", id=job_of(life, "lost")["id"])


# Where we are killed, and what the gateway may still be at then.
KILLED = {
    "<journal.begin:1": "",
    ">openclaw.answer@config.patch:1": "default/settings/logging.level",
    ">openclaw.answer@cron.update:1": "default/jobs/brief",
    ">openclaw.answer@cron.add:1": "default/jobs/new",
    "<openclaw.answer@cron.add:1": "",
    ">openclaw.answer@cron.remove:1": "default/jobs/old",
    "<store.write:2": "",
    ">journal.end:1": "",
}


def test_we_are_killed_at_each_step(life: Life) -> None:
    """L11: whichever call had been sent, the next run settles it by looking; one job per address, nothing orphaned.

    What the gateway is still at while that run plans may be done before it writes: then it is refused as changed.
    """
    life.lab.up()
    first = life.setup("default:\n  settings: {logging.level: warn}\n  jobs:" + life.jobs_text("old", "brief"))
    second = "default:\n  settings: {logging.level: error}\n  jobs:" + life.jobs_text("brief", "new", prompt="More.")
    for fault, under_way in KILLED.items():
        life.converge(first)
        life.cut_off(life.setup(second), fault)
        outcomes = told(life.apply(life.setup(second)))
        assert {outcome for path, outcome in outcomes.items() if path != under_way} <= {"applied"}, (fault, outcomes)
        assert outcomes.get(under_way, "applied") in ("applied", "refused"), (fault, outcomes)
        life.converge(life.setup(second))
        assert life.named() == ["brief", "new"], fault
        assert {job_of(life, name)["payload"]["message"] for name in ("brief", "new")} == {"More."}
        assert life.config()["logging"]["level"] == "error"


def test_more_than_a_minutes_writes_and_then_a_hundred_applies(life: Life) -> None:
    """9.6 takes 30 writes of a kind a minute: told in the plan, waited for, no error. And of all that is there, no
    hundred applies write anything, nor move a job's next run or revision (L7)."""
    life.lab.up()
    many = 31 if life.lab.version == labs.NEW else 3
    text = life.setup(COMMON + life.jobs_text(*(f"n{number}" for number in range(many))))
    slow = [note for row in life.rows(text).values() for note in row.notes if "a minute" in note]
    assert len(slow) == (life.lab.version == labs.NEW), slow
    began = time.monotonic()
    life.converge(text)
    if life.lab.version == labs.NEW:
        assert time.monotonic() - began > 20, "no limit was met: the test shows nothing"
    assert len(life.named()) == many

    def files() -> list[dict[str, str]]:
        return [tree(life.lab.root, RUNNING), tree(life.lab.workspace), tree(life.root / "state")]

    before, told_before = files(), definitions(life)
    with nothing_starts():
        for _ in range(100):
            assert life.apply(text) == []
    assert definitions(life) == told_before
    assert files() == before


def test_the_gateway_is_killed_while_it_writes(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer to a patch is lost: what it has done is seen by looking. The jobs behind it go through a quiet gateway
    of ours, since the home is stopped now; the next run finds all done, or does the rest, once."""
    life.lab.up()
    life.converge(life.setup("default:\n  settings: {logging.level: warn}"))
    text = life.setup("default:\n  settings: {logging.level: debug}\n  jobs:" + life.jobs_text("one"))
    monkeypatch.setattr(door_line, "_GONE", 2.0)  # nobody starts it again
    with killed_with_its_answer(life.lab, "config.patch") as killed:
        events = life.apply(text)
    assert killed and life.lab.gateway is not None
    assert life.lab.gateway.wait(10) == -signal.SIGKILL
    assert told(events)["default/settings/logging.level"] in ("applied", "uncertain"), events
    life.converge(text)
    assert life.named() == ["one"]
    assert life.config()["logging"]["level"] == "debug"
