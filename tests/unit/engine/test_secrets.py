"""Secrets as rows: present, absent, other than the source, not checked; delivered, rotated, let go; never shown."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler import planfile
from reconciler.action import Action, FieldRow, Row
from reconciler.cli.render.ask import question
from reconciler.cli.render.json import plan_json
from reconciler.cli.render.report import report
from reconciler.cli.render.report_html import report_html
from reconciler.cli.render.report_md import report_md
from reconciler.consent import Consent
from reconciler.event import Outcome
from reconciler.plan import Options
from reconciler.secret import words
from world import HEAD, World

NOW = datetime(2031, 1, 1, tzinfo=UTC)
CANARY = "canary-4711-value"
OLD = "canary-0815-value"
ADDRESS = "main/secrets/BOT_TOKEN"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.home()
    return made


def setup(world: World, source: object, job: bool = True) -> None:
    """A home whose one setting names BOT_TOKEN, which comes from `source` (None: the setup says nothing of it)."""
    said = "" if source is None else f"secrets: {{BOT_TOKEN: {json.dumps(source)}}}\n"
    named = "        settings: {a.token: {secret: BOT_TOKEN}}\n" if job else "        settings: {a.b: 1}\n"
    world.setup(
        f"{HEAD}{said}homes:\n  main:\n    harness: hermes\n    path: HOME/main\n    first_contact: adopt\n"
        f"    profiles:\n      default:\n{named}"
    )


def row(world: World) -> Action | None:
    return world.rows(Options(in_sync=True)).get(ADDRESS)


def kept(world: World) -> str | None:
    return world.home().secrets[""].get("BOT_TOKEN")


def seen(world: World) -> str:
    """All that lies in the state's folder, as text."""
    files = [p for p in (world.root / "state").rglob("*") if p.is_file()]
    return "".join(p.read_text(errors="replace") for p in files)


def test_an_absent_one_is_delivered_before_what_names_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    setup(world, {"env": "SOURCE"})
    planned = world.plan().homes[0].actions
    assert [str(a.address) for a in planned if a.writes] == [ADDRESS, "main/default/settings/a.token"]
    assert CANARY not in repr(planned)
    events = world.apply()
    assert {e.outcome for e in events if e.what == "outcome"} == {Outcome.APPLIED}
    assert kept(world) == CANARY
    assert not world.plan().homes[0].open
    assert CANARY not in seen(world) and CANARY not in repr(events)


def test_what_the_home_has_is_taken_and_a_rotation_is_one_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    monkeypatch.setenv("SOURCE", OLD)
    setup(world, {"env": "SOURCE"})
    world.apply()
    assert world.home().writes == 1  # the setting; the secret was as it is to be
    monkeypatch.setenv("SOURCE", CANARY)
    found = row(world)
    assert found is not None and [c.row for c in found.changes] == [FieldRow.SET]
    world.apply()
    assert kept(world) == CANARY


def test_another_value_in_the_home_is_a_claim_and_later_drift(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    setup(world, {"env": "SOURCE"})
    found = row(world)
    assert found is not None and [c.row for c in found.changes if c.writes] == [FieldRow.CLAIM]
    world.apply()
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    found = row(world)
    assert found is not None and [c.row for c in found.changes] == [FieldRow.DRIFT] and not found.writes
    world.apply(options=Options(restore=(ADDRESS,)))
    assert kept(world) == CANARY


@pytest.mark.parametrize("there", [True, False])
def test_keep_asks_only_that_the_home_has_it(world: World, there: bool) -> None:
    if there:
        world.home().secrets[""]["BOT_TOKEN"] = OLD
    setup(world, "keep")
    world.apply()
    found = row(world)
    assert found is not None
    assert (found.row is Row.IN_SYNC) is there
    if not there:
        assert found.hold is not None and "put it where the home keeps its secrets" in found.hold.why
        setting = world.rows()["main/default/settings/a.token"]
        assert setting.hold is not None and ADDRESS in setting.hold.why
    assert kept(world) == (OLD if there else None)


def test_one_that_left_the_setup_goes_only_if_we_brought_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    setup(world, {"env": "SOURCE"})
    world.apply()
    setup(world, None, job=False)
    world.apply()
    assert kept(world) is None
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    setup(world, "keep")
    world.apply()
    setup(world, None, job=False)
    world.apply()
    assert kept(world) == OLD


def command(text: str) -> dict[str, list[str]]:
    return {"command": [sys.executable, "-c", f"print({text!r})"]}


def test_a_plan_starts_no_program_and_apply_asks_it(world: World, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    source = {"command": [sys.executable, "-c", f"open({str(ran)!r}, 'a').write('x'); print({CANARY!r})"]}
    setup(world, source)
    found = row(world)
    assert found is not None and found.writes and not ran.exists()
    world.apply()
    assert kept(world) == CANARY
    assert ran.read_text() == "x"  # once for the plan and the plan under the lock
    plan = world.plan().homes[0]
    assert not plan.open and any("not checked here" in note for note in plan.notes)


def test_a_plan_file_approves_a_rotation_that_only_apply_can_see(world: World, tmp_path: Path) -> None:
    setup(world, command(OLD))
    world.apply()
    # The program gives another value now: the words in the setup are the same.
    source = tmp_path / "value"
    source.write_text(CANARY)
    text = {"command": [sys.executable, "-c", f"print(open({str(source)!r}).read())"]}
    setup(world, text)
    world.apply()
    source.write_text(OLD)
    file = tmp_path / "plan.json"
    planfile.write(file, world.plan(), NOW)
    approved = planfile.read(file, "solo", NOW)
    events = world.apply(Consent(approved=frozenset(approved.rows), only_approved=True))
    assert [e.outcome for e in events if e.what == "outcome"] == [Outcome.APPLIED]
    assert kept(world) == OLD
    source.write_text(CANARY)
    assert not world.apply(Consent(only_approved=True))  # nobody agreed to ask its source
    assert kept(world) == OLD


@pytest.mark.parametrize("before", [None, OLD])
def test_no_report_and_no_plan_file_shows_a_value(
    world: World, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """Delivered, and rotated: named, with where the value comes from, and no digest of it either."""
    monkeypatch.setenv("SOURCE", before or CANARY)
    setup(world, {"env": "SOURCE"})
    if before:
        world.apply()
        monkeypatch.setenv("SOURCE", CANARY)
    plan = world.plan()
    digests = {str(c.write) for a in plan.homes[0].open if a.source for c in a.changes}
    view = report(plan)
    for made in (report_md(view), report_html(view), plan_json(plan), json.dumps(planfile.document(plan, NOW))):
        assert "BOT_TOKEN" in made and CANARY not in made and OLD not in made
    for made in (report_md(view), report_html(view), json.dumps(planfile.document(plan, NOW))):
        assert "from env SOURCE" in made or "from $SOURCE" in made
        assert not [d for d in digests if d in made] and "$hidden" not in made


def test_a_source_that_fails_holds_what_needs_it(world: World) -> None:
    setup(world, {"env": "NOWHERE_AT_ALL"})
    os.environ.pop("NOWHERE_AT_ALL", None)
    events = world.apply()
    assert kept(world) is None and world.home().writes == 0
    assert not [e for e in events if e.outcome is Outcome.APPLIED and e.row != Row.ADOPT]
    told = {str(e.address): (e.outcome, e.reason) for e in events if e.what == "outcome"}
    assert told[ADDRESS][0] is Outcome.HELD and "the environment has no NOWHERE_AT_ALL" in told[ADDRESS][1]


@pytest.mark.parametrize("known", [True, False], ids=["applied before", "found in the home"])
def test_a_source_that_fails_once_somebody_agreed_is_told(world: World, tmp_path: Path, known: bool) -> None:
    """The home has a value: it stays, and nobody may take that for a rotation that was carried out."""
    source = tmp_path / "value"
    text = {"command": [sys.executable, "-c", f"print(open({str(source)!r}).read(), end='')"]}
    setup(world, text)
    if known:
        source.write_text(OLD)
        world.apply()
        source.unlink()
    else:
        world.home().secrets[""] = {"BOT_TOKEN": OLD}
    told = [(str(e.address), e.outcome) for e in world.apply() if e.what == "outcome" and e.address]
    assert (ADDRESS, Outcome.HELD) in told and (ADDRESS, Outcome.APPLIED) not in told
    assert kept(world) == OLD


def test_a_reference_that_a_door_turned_literal_stops_the_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    setup(world, {"env": "SOURCE"})
    home = world.home()
    real = type(world.memory).observe

    def observe(self: object, *args: object) -> object:
        if home.writes:
            home.clear = frozenset({"config.yaml: mcp_servers.x.env.API_KEY"})
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(type(world.memory), "observe", observe)
    outcomes = [(str(e.address), e.outcome, e.reason) for e in world.apply() if e.what == "outcome"]
    assert (ADDRESS, Outcome.NOT_APPLIED) in [o[:2] for o in outcomes]
    assert any("config.yaml: mcp_servers.x.env.API_KEY" in o[2] for o in outcomes)
    assert ("main/default/settings/a.token", Outcome.SKIPPED) in [o[:2] for o in outcomes]


def test_a_plan_of_one_checkout_approves_in_another(tmp_path: Path) -> None:
    """A file in the setup's folder is said from there, and so are the rows that a plan file approves."""
    digests = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "value").write_text(CANARY)
        source = {"file": str(folder / "value")}
        digests.append(words(source, str(folder)))
        assert words(source, str(tmp_path / "else")) == f"file {folder / 'value'}"
    assert digests == ["file value"] * 2


def test_no_program_is_asked_before_somebody_has_agreed_to_it(world: World, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    setup(world, {"command": [sys.executable, "-c", f"open({str(ran)!r}, 'a').write('x'); print({CANARY!r})"]})
    world.apply(Consent())
    world.apply(Consent(yes=True))
    world.apply(Consent(approved=frozenset({"another"}), only_approved=True))
    assert not ran.exists() and kept(world) is None
    world.apply(Consent(yes=True, named=("main", "main/*")))
    assert ran.read_text() == "x" and kept(world) == CANARY
    # Nothing differs now, so that only a check of the source is left; it is not asked unasked for either.
    world.apply(Consent(yes=True))
    assert ran.read_text() == "x"
    world.apply()
    assert ran.read_text() == "xx"


@pytest.mark.parametrize("brought", [True, False])
def test_what_becomes_keep_stays_in_the_home(world: World, monkeypatch: pytest.MonkeyPatch, brought: bool) -> None:
    if not brought:
        world.home().secrets[""]["BOT_TOKEN"] = CANARY
    monkeypatch.setenv("SOURCE", CANARY)
    setup(world, {"env": "SOURCE"})
    world.apply()
    for source in ("keep", None):
        setup(world, source, job=source is not None)
        world.apply()
        assert kept(world) == CANARY
        assert not world.plan().homes[0].open
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    assert not world.plan().homes[0].open


def test_an_agent_in_the_home_makes_us_ask_no_program(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    setup(world, {"command": [sys.executable, "-c", f"open({str(ran)!r}, 'a').write('x'); print({CANARY!r})"]})
    monkeypatch.setattr(type(world.memory), "insider", lambda *_: "it runs below the gateway")
    world.apply()
    assert not ran.exists() and kept(world) is None


def test_a_source_that_leaves_takes_no_secret_from_what_still_names_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without a source is `keep`."""
    monkeypatch.setenv("SOURCE", CANARY)
    setup(world, {"env": "SOURCE"})
    world.apply()
    setup(world, None)
    world.apply()
    assert kept(world) == CANARY and not world.plan().homes[0].open


def test_the_question_says_what_will_be_asked(world: World) -> None:
    setup(world, command(CANARY))
    assert question(world.plan(), reviewed=False) == "Carry out 3 row(s), 2 of them need you to look?"
    world.apply()
    assert question(world.plan(), reviewed=False) == "Ask the source of BOT_TOKEN, and write what differs?"


_HOME = """homes:
  main:
    harness: hermes
    path: HOME/main
    first_contact: adopt
    profiles:
      default:
"""


def test_one_that_leaves_with_what_named_it_is_cleared_after_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel is deleted, the setting is unset, and only then the secret goes; if one stays, so does it."""
    monkeypatch.setenv("SOURCE", CANARY)
    head = f"{HEAD}secrets: {{BOT_TOKEN: {{env: SOURCE}}}}\n"
    home = _HOME
    named = "        settings: {a.token: {secret: BOT_TOKEN}}\n"
    channel = "        channels: {telegram: {enabled: true, secrets: {token: BOT_TOKEN}}}\n"
    world.setup(head + home + named + channel)
    assert {str(e.outcome) for e in world.apply() if e.outcome} == {"applied"}
    assert kept(world) == CANARY
    world.setup(HEAD + home + "        {}\n")
    rows = world.rows()
    order = [address.removeprefix("main/") for address in rows]
    assert order == ["default/settings/a.token", "default/channels/telegram", "secrets/BOT_TOKEN"]
    assert {a.path for a in rows[ADDRESS].needs} == {"default/settings/a.token", "default/channels/telegram"}
    # Without a review the channel stays, and goes on naming it.
    refused = world.apply(Consent(yes=True, approved=frozenset(), named=("main/*",)))
    told = {str(e.address): str(e.outcome) for e in refused if e.what == "outcome"}
    assert told["main/default/channels/telegram"] == "waits for consent"
    assert told[ADDRESS] in ("skipped", "waits for consent") and kept(world) == CANARY
    assert {str(e.outcome) for e in world.apply() if e.outcome} == {"applied"}
    assert kept(world) is None and not world.rows()


def test_one_whose_namer_is_held_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    head = f"{HEAD}secrets: {{BOT_TOKEN: {{env: SOURCE}}}}\n"
    home = _HOME
    channel = "        channels: {telegram: {enabled: true, secrets: {token: BOT_TOKEN}, protect: true}}\n"
    world.setup(head + home + channel)
    world.apply()
    world.setup(HEAD + home + "        {}\n")
    rows = world.rows()
    assert rows["main/default/channels/telegram"].hold is not None
    held = rows[ADDRESS].hold
    assert held is not None and "main/default/channels/telegram" in held.why
    world.apply()
    assert kept(world) == CANARY


def test_one_stays_with_a_namer_whose_own_user_is_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job still answers through the channel, and the channel goes on naming the secret (E32)."""
    monkeypatch.setenv("SOURCE", CANARY)
    head = f"{HEAD}secrets: {{BOT_TOKEN: {{env: SOURCE}}}}\n"
    channel = "        channels: {telegram: {enabled: true, secrets: {token: BOT_TOKEN}}}\n"
    job = "        jobs: {brief: {schedule: {every: 30m}, prompt: Write., deliver: TO}}\n"
    world.setup(head + _HOME + channel + job.replace("TO", "{to: telegram, chat: '1'}"))
    world.apply()
    world.edit([{"set": "default/jobs/brief", "prompt": "Theirs."}])
    world.setup(HEAD + _HOME + job.replace("TO", "local").replace("Write.", "More."))
    rows = world.rows()
    assert rows["main/default/channels/telegram"].hold is not None
    assert rows[ADDRESS].hold is not None
    world.apply()
    assert kept(world) == CANARY


def test_a_digest_binds_the_sources_that_apply_alone_asks(world: World) -> None:
    """L8: another command is another plan, though a plan asks neither."""
    world.home().secrets[""]["BOT_TOKEN"] = OLD
    digests = []
    for word in ("one", "two"):
        setup(world, {"command": ["/bin/echo", word]})
        plan = world.plan()
        digests.append(plan.digest)
        assert [c.source for c in plan.homes[0].checks] == [f"command /bin/echo {word}"]
    assert digests[0] != digests[1]
