"""A run that is undone: from its journal, as a plan like any other; and what cannot be undone, with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import FieldRow, Row
from reconciler.cli.render.history import history_json
from reconciler.consent import Consent
from reconciler.errors import UsageError
from reconciler.past import past
from reconciler.plan import Options, Plan
from reconciler.undo import Undo, known, of
from reconciler_specs.address import Kind
from reconciler_state.history import told
from world import HEAD, World, home_text

BRIEF = "          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"
LESS = BRIEF.replace("Write.", "Less.")
EXTRA = "          extra: {schedule: {every: 1h}, prompt: More., deliver: local}\n"


def jobs(*lines: str) -> str:
    return HEAD + home_text("        jobs:\n" + "".join(lines))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.home()
    world.setup(jobs(BRIEF))
    world.apply()
    return world


def last(world: World) -> str:
    return past(world.space()).commands[0].run


def undo(world: World, run: str | None = None) -> Plan:
    return world.plan(Options(undo=run or last(world)))


def rows(plan: Plan) -> dict[str, str]:
    return {a.address.path: str(a.row) for h in plan.homes for a in h.actions}


def prompt(world: World, name: str = "brief") -> Any:
    [home] = world.plan().homes
    return next(t.fields["prompt"] for t in home.observation.all() if t.name == name and t.kind is Kind.JOB)


def test_what_lifts_a_hold_of_an_undo_is_an_apply_of_that_undo(world: World) -> None:
    world.setup(jobs(BRIEF, EXTRA, EXTRA.replace("extra", "more")))
    world.apply()
    world.setup(HEAD + "policy: {limits: {deletes: 1}}\n" + jobs(BRIEF, EXTRA).removeprefix(HEAD))
    run = last(world)
    commands = {a.hold.command for h in undo(world, run).homes for a in h.actions if a.hold is not None}
    assert commands == {f"reconciler apply --undo {run} --reviewed --allow many-deletes"}


def test_a_change_goes_back_and_forth(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    assert prompt(world) == "Less."
    world.apply(options=Options(undo=last(world)))
    assert prompt(world) == "Write."
    # The setup still says the other thing, and its plan says so; undoing the undo is that too.
    assert rows(world.plan()) == {"default/jobs/brief": "update"} == rows(undo(world))


def test_what_was_made_goes_with_a_review_and_what_was_deleted_comes_back(world: World) -> None:
    world.setup(jobs(EXTRA))
    world.apply()
    found = undo(world)
    assert rows(found) == {"default/jobs/brief": "create", "default/jobs/extra": "delete"}
    [gone] = [a for h in found.homes for a in h.actions if a.row is Row.DELETE]
    assert gone.reason == f"made by run {last(world)}" and gone.tier == "confirm"
    options = Options(undo=last(world))
    refused = world.apply(Consent(yes=True, terminal=True, approved=frozenset(found.homes[0].asked)), options)
    assert {str(e.outcome) for e in refused if e.address and e.row == "delete"} == {"waits for consent"}
    assert prompt(world) == "Write."


def test_only_what_the_run_wrote_is_planned(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    run = last(world)
    world.setup(jobs(LESS, EXTRA))
    assert rows(world.plan()) == {"default/jobs/extra": "create"}
    assert rows(undo(world, run)) == {"default/jobs/brief": "update"}


def test_what_has_left_the_setup_since_goes_back_in_that_field_alone(world: World) -> None:
    world.setup(jobs(BRIEF, EXTRA))
    world.apply()
    world.setup(jobs(LESS, EXTRA))
    world.apply()
    run = last(world)
    world.setup(jobs(EXTRA))
    [action] = undo(world, run).homes[0].actions
    assert {c.field: c.row for c in action.changes} == {"prompt": FieldRow.SET}
    world.apply(options=Options(undo=run))
    assert prompt(world) == "Write." and world.rows()["main/default/jobs/brief"].row is Row.DELETE


def test_what_the_setup_has_let_go_since_is_not_taken_again(world: World) -> None:
    world.setup(jobs(LESS, EXTRA))
    world.apply()
    run = last(world)
    world.setup(jobs(EXTRA) + "released: [main/default/jobs/brief]\n")
    world.apply()
    assert rows(undo(world, run)) == {"default/jobs/extra": "delete"}


def test_a_pause_is_undone_and_nothing_else_of_the_thing(world: World) -> None:
    pause = "policy: {on_removed: pause}\n"
    world.edit([{"set": "default/jobs/brief", "paused": False}])
    world.setup(jobs(EXTRA).replace("homes:", f"{pause}homes:"))
    world.apply()
    [action] = [a for a in undo(world).homes[0].actions if a.address.key == "brief"]
    assert {c.field: c.write for c in action.changes} == {"paused": False}


def test_what_counts_only_after_a_restart_is_undone_with_one(world: World) -> None:
    world.home().gateways["default"] = "s1"
    allow = frozenset({"restart"})
    for numbers in ("'1'", "'1', '2'"):
        channel = f"        channels:\n          telegram: {{enabled: true, allow: [{numbers}]}}\n"
        world.setup(HEAD + home_text(channel))
        world.apply(options=Options(allow=allow))
    run, start = last(world), world.home().gateways["default"]
    assert rows(undo(world, run)) == {"default/channels/telegram": "update", "": "restart"}
    world.apply(options=Options(undo=run, allow=allow))
    assert world.home().gateways["default"] != start


def test_protection_outlives_an_undo(world: World) -> None:
    kept = [BRIEF.replace("deliver", "protect: true, deliver"), LESS.replace("deliver", "protect: true, deliver")]
    for text in kept:
        world.setup(jobs(text, EXTRA))
        world.apply()
    run = last(world)
    world.setup(jobs(EXTRA))
    world.apply(options=Options(undo=run))
    row = world.rows()["main/default/jobs/brief"]
    assert row.hold is not None and "protected" in row.hold.why


def test_a_home_that_cannot_be_read_leaves_the_others_to_be_undone(world: World) -> None:
    world.home("second")
    text = jobs(LESS)
    world.setup(text + text.partition("homes:\n")[2].replace("main", "second"))
    world.apply()
    run = last(world)
    [damaged] = (world.root / "state" / "journal").glob("*second*")
    damaged.write_text("none of ours\n" + damaged.read_text())
    main, second = undo(world, run).homes
    assert second.failed and [a.row for a in main.actions] == [Row.UPDATE]


def test_what_the_home_changed_since_is_held(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    world.edit([{"set": "default/jobs/brief", "prompt": "The agent's."}])
    [action] = undo(world).homes[0].actions
    assert [str(c.row) for c in action.changes if c.field == "prompt"] == ["conflict"] and not action.writes


def test_what_a_later_run_wrote_again_is_not_undone(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    run = last(world)
    world.setup(jobs(BRIEF.replace("Write.", "Third.")))
    world.apply()
    plan = undo(world, run)
    assert rows(plan) == {}
    assert any(f"default/jobs/brief#prompt: run {last(world)} wrote it again" in n for n in plan.homes[0].notes)


def test_what_was_restored_gets_the_homes_value_back(world: World) -> None:
    world.edit([{"set": "default/jobs/brief", "prompt": "The agent's."}])
    world.apply(options=Options(restore=("main/default/jobs/brief",)))
    assert prompt(world) == "Write."
    world.apply(options=Options(undo=last(world)))
    assert prompt(world) == "The agent's."


def test_a_run_that_nobody_knows(world: World) -> None:
    with pytest.raises(UsageError, match="no run of this setup"):
        undo(world, "0123456789ab")


def test_a_run_of_another_home_is_told_with_its_home() -> None:
    runs = {"one": ["a", "b"], "two": ["b"]}
    known("one", runs, ["a"])
    known("two", runs, ["b", "c"])
    with pytest.raises(UsageError, match="--undo two: that run was in b") as caught:
        known("two", runs, ["a"])
    assert caught.value.hint == "reconciler plan b --undo two"


def test_a_run_of_another_setup_is_not_ours_to_undo(world: World) -> None:
    run = last(world)
    world.setup(jobs(BRIEF).replace("name: solo", "name: other"))
    with pytest.raises(UsageError):
        undo(world, run)


@pytest.mark.parametrize(
    ("row", "kind", "before", "why"),
    [
        ("provision", "home", {}, "never deleted"),
        ("missing", "jobs", {}, "made again"),
        ("follow", "jobs", {}, "does not own"),
        ("update", "secrets", {"value": {"$hidden": "aa"}}, "kept nowhere"),
        ("create", "secrets", {}, "kept nowhere"),
        ("update", "settings", {"value": {"a": [{"$hidden": "aa"}]}}, "kept nowhere"),
        ("delete", "jobs", {}, "is not recorded"),
        ("delete", "jobs", {"prompt": "x", "deliver": {"$hidden": "aa"}}, "kept nowhere"),
        ("update", "jobs", {}, "could not be read"),
        ("update", "files", {"value": {"$text": "aa"}}, "only the digest is kept"),
        ("frobnicate", "jobs", {}, "not known to this version"),
    ],
)
def test_what_cannot_be_undone_says_why(row: str, kind: str, before: dict[str, Any], why: str) -> None:
    path = "" if kind == "home" else f"default/{kind}/x"
    begin = {"what": "begin", "run": "r", "intent": "i", "path": path, "kind": kind, "row": row, "before": before}
    entries: list[dict[str, Any]] = [
        {"what": "run", "run": "r", "owner": "solo", "at": "t"},
        {**begin, "rows": {"value": "set"} if row == "update" else {}},
        {"what": "outcome", "run": "r", "intent": "i", "outcome": "applied"},
    ]
    found = of(told(entries), "r", {"solo"})
    assert not found.paths and why in "\n".join(found.notes())


@pytest.mark.parametrize("row", ["adopt", "moved", "released", "forget", "settled"])
def test_what_changed_state_only_needs_no_undo(row: str) -> None:
    entries: list[dict[str, Any]] = [
        {"what": "run", "run": "r", "owner": "solo", "at": "t"},
        {"what": "begin", "run": "r", "intent": "i", "path": "default/jobs/x", "kind": "jobs", "row": row},
        {"what": "outcome", "run": "r", "intent": "i", "outcome": "applied"},
    ]
    assert of(told(entries), "r", {"solo"}).notes() == []


def test_the_document_of_a_run(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    [run] = json.loads(history_json(past(world.space(), last(world))))["runs"]
    [row] = run["rows"]
    assert (row["address"], row["row"], row["outcome"]) == ("main/default/jobs/brief", "update", "applied")
    assert row["before"] == {"prompt": "Write."} and run["who"]["actor"] and row["door"]


def test_undo_of_a_field_of_what_has_left_the_setup_clears_no_other(world: World) -> None:
    world.setup(jobs(LESS))
    world.apply()
    run = last(world)
    world.setup(HEAD + home_text(""))
    [action] = undo(world, run).homes[0].actions
    assert {c.field: str(c.row) for c in action.changes if c.writes} == {"prompt": "set"}
    world.apply(options=Options(undo=run))
    assert prompt(world) == "Write."


def test_undo_of_a_pause_gives_back_what_pausing_took_and_no_more(world: World) -> None:
    world.edit([{"set": "default/jobs/brief", "paused": False}])
    world.setup(HEAD.replace("name: solo", "name: solo\npolicy: {on_removed: pause}") + home_text(""))
    world.apply()
    [action] = undo(world).homes[0].actions
    assert {c.field for c in action.changes if c.writes} == {"paused"}


ENTRY: dict[str, Any] = {"run": "r1", "path": "default/jobs/brief", "kind": "jobs", "profile": "default", "id": "j1"}


def cut_off(row: str, reason: str, **more: Any) -> list[dict[str, Any]]:
    """A run with one row whose end a second run has found out by looking, and recorded."""
    return [
        {"what": "run", "run": "r1", "owner": "solo", "at": "1"},
        {"what": "begin", **ENTRY, "intent": "i1", "row": row, "at": "1", **more},
        {"what": "run", "run": "r2", "owner": "solo", "at": "2"},
        {"what": "begin", **ENTRY, "run": "r2", "intent": "i2", "row": "update", "at": "2"},
        {"what": "outcome", "run": "r2", "intent": "i1", "outcome": "settled", "reason": reason, "at": "2"},
        {"what": "outcome", "run": "r2", "intent": "i2", "outcome": "applied", "at": "2"},
    ]


def test_a_run_that_was_cut_off_can_be_undone_once_it_is_settled() -> None:
    change = cut_off("update", "found", before={"prompt": "Write."}, rows={"prompt": "set"})
    assert of(told(change), "r1", {"solo"}).fields == {"default/jobs/brief": {"prompt": "Write."}}
    assert of(told(cut_off("create", "found")), "r1", {"solo"}).made == {"default/jobs/brief"}
    assert of(told(cut_off("create", "not found")), "r1", {"solo"}).paths == frozenset()
    gone = cut_off("delete", "not found", before={"prompt": "Write."})
    assert of(told(gone), "r1", {"solo"}).deleted == {"default/jobs/brief": {"prompt": "Write."}}


@pytest.mark.parametrize("entries", [2, 6])
def test_what_nobody_has_looked_at_yet_is_named(entries: int) -> None:
    found = of(told(cut_off("create", "found")[:entries]), "r1", {"solo"})
    assert bool(found.cannot) == (entries == 2) and any("not known yet" in n for n in found.notes()) == (entries == 2)


def test_what_is_partly_in_the_home_is_undone() -> None:
    entries = cut_off("update", "", before={"prompt": "Write.", "deliver": "local"}, rows={"prompt": "set"})
    entries[4] |= {"outcome": "not-applied", "fields": ["deliver"]}
    assert "default/jobs/brief" in of(told(entries), "r1", {"solo"}).fields


def test_a_thing_that_the_run_did_not_make_is_not_deleted(world: World) -> None:
    world.setup(jobs(BRIEF, EXTRA))
    world.apply()
    run = last(world)
    world.setup(jobs(BRIEF))
    plan = undo(world, run)
    assert rows(plan) == {"default/jobs/extra": "delete"}  # still ours, and made by it
    made = of(world.space().runs(world.space().ref("main")), run, {"solo"})
    [state] = [h.state for h in plan.homes]
    ours = state.owned("solo")["default/jobs/extra"]
    for other in (replace(ours, origin="adopted"), replace(ours, id="another")):
        stood = made.standing("main", {}, {"default/jobs/extra": other})
        assert not stood.made and "default/jobs/extra" in stood.cannot


@pytest.mark.parametrize(
    ("dirty", "said"),
    [
        (False, "still declares what it applied (commit 0123456789ab); revert that too"),
        (True, "still declares what it applied (changed since commit 0123456789ab); change it back too"),
    ],
)
def test_only_a_commit_that_holds_the_change_is_named_to_be_reverted(dirty: bool, said: str) -> None:
    run = Undo("r1", made=frozenset({"default/jobs/a"}), commit="0123456789abcdef", dirty=dirty)
    assert run.notes()[0].endswith(said)


def test_undo_follows_a_thing_to_its_new_address(world: World) -> None:
    """L1: by its harness id, with the move still to be recorded or long since; and never makes another one."""
    world.setup(jobs(BRIEF, EXTRA))
    world.apply()
    made = last(world)
    other = EXTRA.replace("More.", "Other.")
    world.setup(jobs(BRIEF, other))
    world.apply()
    changed = last(world)
    move = "moved: [{from: main/default/jobs/extra, to: main/default/jobs/more}]\n"
    world.setup(jobs(BRIEF, other.replace("extra:", "more:")) + move)
    wanted = {"default/jobs/more": "update"}
    assert rows(undo(world, changed)) == wanted
    world.apply()
    assert rows(undo(world, changed)) == wanted
    world.setup(world.text.replace(move, ""))
    assert rows(undo(world, changed)) == wanted
    assert any("changed it since" in n for n in undo(world, made).homes[0].notes), "what was written to it is found too"


def test_what_was_cleared_is_given_back(world: World) -> None:
    """What a run took all fields away of is owned no more by that."""
    settings = "        settings: {a.b: 1, c.d: 2}\n"
    world.setup(jobs(BRIEF) + settings)
    world.apply()
    world.setup(jobs(BRIEF))
    assert rows(world.plan()) == {"default/settings/a.b": "update", "default/settings/c.d": "update"}
    world.apply()
    run = last(world)
    assert rows(undo(world, run)) == {"default/settings/a.b": "update", "default/settings/c.d": "update"}
    world.apply(options=Options(undo=run))
    assert rows(undo(world, run)) == {}
    world.setup(jobs(BRIEF) + settings)
    assert not any(change.writes for home in world.plan().homes for a in home.actions for change in a.changes)


def test_what_is_not_ours_any_more_is_not_undone(world: World) -> None:
    """Nothing is made of the few fields that a run has written."""
    world.setup(jobs(BRIEF))
    world.apply()
    world.setup(jobs(BRIEF.replace("Write.", "Other.")))
    world.apply()
    run = last(world)
    for path in world.store.list():
        world.store.path(path).unlink()  # and its journal goes on
    world.setup(jobs(EXTRA))
    plan = undo(world, run)
    assert not plan.homes[0].open, rows(plan)
