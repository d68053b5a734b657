"""The suite that every provider must pass on the real program: what the laws ask of any home.

A provider's test file makes a `Kit` around its harness and runs each of `CHECKS` on a fresh `world`. Nothing here
names a harness, and nothing needs pytest: a check raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler_specs.address import Kind

from ..action import Row
from ..adopt import adopt_home
from ..cli.render.json import plan_json
from ..consent import Consent
from ..observe import Unknown
from ..plan import Options
from ..provider import Code, Step
from .faulty import Crash, Fault
from .kit import CANARY, World, faulty, job, outcomes, tree


def reading_changes_nothing(world: World) -> None:
    """L18: a plan changes no byte of the home."""
    world.home.add_job("theirs", "Do it.")
    before = world.tree()
    world.plan(world.text(job()), Options(unmanaged=True))
    assert world.tree() == before


def what_is_declared_comes_to_be_and_stays(world: World) -> None:
    """L6, L7: created, converged, and then no byte of home or state changes."""
    text = world.text(job() + job("digest", context_from="[brief]"))
    world.converge(text)
    assert sorted(world.home.jobs().values()) == ["brief", "digest"]
    before, state = world.tree(), tree(world.root / "state")
    for _ in range(5):
        assert world.apply(text) == []
    assert (world.tree(), tree(world.root / "state")) == (before, state)


def each_change_of_the_setup_is_set(world: World) -> None:
    """Field row 7, one field after the other."""
    world.converge(world.text(job()))
    for change in (
        {"prompt": "Write more."},
        {"schedule": '{cron: "0 8 * * 1-5"}'},
        {"schedule": "{every: 30m}"},
        {"name": "renamed"},
        {"paused": "true"},
        {"paused": "false"},
    ):
        world.converge(world.text(job(**change)))


def a_field_that_left_is_unset(world: World) -> None:
    """Field row 2 on what we created."""
    world.converge(world.text(job(name="other", paused="true")))
    world.converge(world.text(job(name="other")))
    world.converge(world.text(job()))


def an_edit_in_the_home_is_held_and_can_be_restored(world: World) -> None:
    """Field row 6 (E2): never overwritten without being asked."""
    text = world.text(job())
    world.converge(text)
    (harness_id,) = world.home.jobs()
    world.home.edit_job(harness_id, "Somebody else's words.")
    before = world.tree()
    row = world.rows(text)["default/jobs/brief"]
    assert [str(c.row) for c in row.changes] == ["drift"], row
    assert world.apply(text) == []
    assert world.tree() == before
    options = Options(restore=("main/default/jobs/brief",))
    assert outcomes(world.apply(text, options)) == {"default/jobs/brief": "applied"}
    assert not world.rows(text)


def both_changed_is_a_conflict(world: World) -> None:
    """Field row 8 (E4)."""
    world.converge(world.text(job()))
    (harness_id,) = world.home.jobs()
    world.home.edit_job(harness_id, "Theirs.")
    text = world.text(job(prompt="Ours."))
    row = world.rows(text)["default/jobs/brief"]
    assert [str(c.row) for c in row.changes] == ["conflict"], row
    assert world.apply(text) == []


def the_same_edit_on_both_sides_is_a_stamp(world: World) -> None:
    """Field row 4 (E3): no door call."""
    world.converge(world.text(job()))
    (harness_id,) = world.home.jobs()
    world.home.edit_job(harness_id, "New words.")
    text = world.text(job(prompt="New words."))
    before = world.tree()
    assert [str(c.row) for c in world.rows(text)["default/jobs/brief"].changes] == ["stamp"]
    world.converge(text)
    assert world.tree() == before


def a_deleted_job_is_missing_and_comes_back_once(world: World) -> None:
    """E1."""
    text = world.text(job() + job("other"))
    world.converge(text)
    ids = {name: i for i, name in world.home.jobs().items()}
    world.home.delete_job(ids["brief"])
    assert world.rows(text)["default/jobs/brief"].row is Row.MISSING
    world.converge(text)
    assert sorted(world.home.jobs().values()) == ["brief", "other"]


def a_namesake_is_never_doubled(world: World) -> None:
    """Presence rows `unowned`, `ambiguous`, `replaced` (E1, E5)."""
    world.home.add_job("brief", "Theirs.")
    text = world.text()
    world.apply(text)
    text = world.text(job())
    assert world.rows(text)["default/jobs/brief"].row is Row.UNOWNED
    assert world.apply(text) == []
    world.home.add_job("brief", "Theirs too.")
    assert world.rows(text)["default/jobs/brief"].row is Row.AMBIGUOUS
    assert len(world.home.jobs()) == 2


def delete_and_make_again_by_hand_is_replaced(world: World) -> None:
    """E1: the owned id is gone, and a namesake has another."""
    text = world.text(job() + job("other"))
    world.converge(text)
    ids = {name: i for i, name in world.home.jobs().items()}
    world.home.delete_job(ids["brief"])
    world.home.add_job("brief", "Write the brief.")
    assert world.rows(text)["default/jobs/brief"].row is Row.REPLACED
    assert world.apply(text) == []
    assert len(world.home.jobs()) == 2


def a_delete_needs_a_review_and_spares_the_neighbours(world: World) -> None:
    """Presence 0 1 1, and F17: what is not ours survives."""
    theirs = world.home.add_job("theirs", "Do it.")
    world.converge(world.text(job() + job("other")))
    text = world.text(job("other"))
    assert world.rows(text)["default/jobs/brief"].row is Row.DELETE
    done = outcomes(world.apply(text, consent=Consent(yes=True, terminal=True)))
    assert done["default/jobs/brief"] == "waits for consent"
    world.converge(text)
    jobs = world.home.jobs()
    assert sorted(jobs.values()) == ["other", "theirs"]
    assert theirs in jobs


def every_other_kind_lives_as_a_job_does(world: World) -> None:
    """Created, converged, at rest, changed, held when somebody else edits it, restored, and deleted after a review."""
    for thing in world.kit.more:
        text = world.text(rest=thing.said)
        world.converge(text)
        before = world.tree()
        assert world.apply(text) == [] and world.tree() == before, thing.path
        world.converge(world.text(rest=thing.changed))
        world.converge(text)
        thing.edit(world.home.path)
        row = world.rows(text)[thing.path]
        assert {str(c.row) for c in row.changes} == {"drift"}, row
        assert world.apply(text) == []
        done = world.apply(text, Options(restore=(f"main/{thing.path}",)))
        assert outcomes(done) == {thing.path: "applied"} and not world.rows(text)
        assert world.rows(world.text())[thing.path].row is Row.DELETE
        done = world.apply(world.text(), consent=Consent(yes=True, terminal=True))
        assert outcomes(done)[thing.path] == "waits for consent"
        world.converge(world.text())


def adopt_writes_no_byte_and_the_next_plan_is_quiet(world: World) -> None:
    """E47, F20."""
    world.home.add_job("brief", "Write the brief.")
    before = world.tree()
    space = world.space(world.text(job(), first="ask"))
    adopt_home(space, "main")
    assert world.tree() == before
    rows = world.rows(world.text(job(), first="ask"))
    assert {str(c.row) for a in rows.values() for c in a.changes} <= {"claim"}
    assert not [a for a in rows.values() if a.row in (Row.CREATE, Row.UNOWNED)]


def first_contact_is_plan_only(world: World) -> None:
    """L4."""
    text = world.text(job(), first="ask")
    before = world.tree()
    assert world.plan(text).homes[0].hold is not None
    assert world.apply(text) == []
    assert world.tree() == before


def a_home_comes_from_nothing_in_one_run(world: World) -> None:
    """Provision, the profiles in it and what they hold; or, where no home can be made, not a byte of one (L15)."""
    if not world.kit.provisions:
        return
    new = world.root / "new"
    coder = "      coder:\n        jobs:\n" + "".join(f"        {line}\n" for line in job().splitlines())
    text = world.text(job(), first="provision", extra=coder).replace(f"path: {world.home.path}\n", f"path: {new}\n")
    plan = world.plan(text).homes[0]
    done = outcomes(world.apply(text))
    if plan.observation.blocked:
        assert not new.exists() and "applied" not in done.values()
        return
    assert set(done.values()) == {"applied"} and {"home", "coder", "coder/jobs/brief"} <= done.keys(), done
    assert not world.rows(text)


def an_unreadable_store_is_never_absent(world: World) -> None:
    """L10, F05: nothing is recreated, nothing deleted."""
    text = world.text(job())
    world.converge(text)
    world.home.break_jobs()
    before = world.tree()
    plan = world.plan(text).homes[0]
    assert plan.hold is not None or all(a.row is Row.BLOCKED for a in plan.actions if a.address.kind is Kind.JOB)
    assert not plan.open
    world.apply(text)
    assert world.tree() == before


def what_cannot_be_looked_at_is_not_gone(world: World) -> None:
    """L10: whichever look at the home fails, nothing that is in it is read as absent."""
    text = world.text(job() + job("digest"), extra="      coder: {}\n")
    world.apply(text)
    world.home.add_job("theirs", "Do it.")
    sight, whole = world.look(text)
    assert whole is not None and whole.exists
    for look in sight.looks:
        _, seen = world.look(text, look)
        if seen is None:
            continue  # the home as a whole: refused with the reason
        assert seen.exists, look
        for key, things in whole.things.items():
            now = seen.things.get(key, Unknown("not looked at"))
            if isinstance(things, Unknown) or isinstance(now, Unknown):
                continue
            assert things.keys() <= now.keys(), (look, key)
            for name, thing in things.items():
                assert thing.fields.keys() <= now[name].fields.keys(), (look, key, name)
                held, still = (t.about.get("holds", []) for t in (thing, now[name]))
                assert not held or still, (look, key, name)


def a_crash_is_settled_by_looking(world: World) -> None:
    """L11: before and after the write; one thing per address."""
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        key = f"crash-{fault.name.lower().replace('_', '-')}"
        text = world.text(job(key))
        with faulty(world, fault, lambda a: a.address.kind is Kind.JOB):
            try:
                world.apply(text)
            except Crash:
                pass
            else:
                raise AssertionError("the fault did not strike")
        world.converge(text)
        assert list(world.home.jobs().values()).count(key) == 1
        world.converge(world.text())


def a_lost_answer_makes_no_twin(world: World) -> None:
    """L10, L11."""
    text = world.text(job())
    with faulty(world, Fault.LOST_AFTER, lambda a: a.address.kind is Kind.JOB):
        world.apply(text)
    world.converge(text)
    assert list(world.home.jobs().values()) == ["brief"]


def a_door_that_lies_is_found_out(world: World) -> None:
    """L9, F08: success is what the read-back shows."""
    text = world.text(job())
    with faulty(world, Fault.LIES, lambda a: a.address.kind is Kind.JOB):
        done = outcomes(world.apply(text))
    assert done["default/jobs/brief"] == "not-applied"
    world.converge(text)


def a_stale_object_is_refused_by_the_door(world: World) -> None:
    """L8, F03: the door itself looks again before it writes."""
    world.converge(world.text(job()))
    (harness_id,) = world.home.jobs()
    text = world.text(job(prompt="Ours."))
    space = world.space(text)
    plan = space.plan(Options())
    world.home.edit_job(harness_id, "Theirs.")
    with space.lock(plan.homes[0].ref) as guard, world.kit.provider.open(plan.homes[0].ref, guard.fd) as door:
        answers = door.perform(Step(plan.homes[0].ref, plan.homes[0].open))
    assert [a.code for a in answers] == [Code.STALE], answers


def no_secret_leaves_the_home(world: World) -> None:
    """L5, F13."""
    world.home.put_secret(CANARY)
    text = world.text(job())
    plan = world.plan(text, Options(unmanaged=True, in_sync=True))
    assert CANARY not in plan_json(plan)
    assert CANARY not in repr(plan.homes[0].observation)
    world.apply(text)
    for path in (world.root / "state").rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path


def moved_and_release_touch_no_home(world: World) -> None:
    """E9, E49."""
    world.converge(world.text(job()))
    before = world.tree()
    moved = "moved: [{from: main/default/jobs/brief, to: main/default/jobs/morning}]\n"
    text = world.text(job("morning", name="brief"), extra=moved)
    world.converge(text)
    world.converge(text)
    world.converge(world.text(extra="released: [main/default/jobs/morning]\n"))
    assert world.tree() == before


def without_consent_nothing_is_written(world: World) -> None:
    """Gate: `apply()` from Python with no consent."""
    before = world.tree()
    world.apply(world.text(job()), consent=Consent())
    assert world.tree() == before


CHECKS: tuple[Callable[[World], None], ...] = (
    reading_changes_nothing,
    what_is_declared_comes_to_be_and_stays,
    each_change_of_the_setup_is_set,
    a_field_that_left_is_unset,
    an_edit_in_the_home_is_held_and_can_be_restored,
    both_changed_is_a_conflict,
    the_same_edit_on_both_sides_is_a_stamp,
    a_deleted_job_is_missing_and_comes_back_once,
    a_namesake_is_never_doubled,
    delete_and_make_again_by_hand_is_replaced,
    a_delete_needs_a_review_and_spares_the_neighbours,
    every_other_kind_lives_as_a_job_does,
    adopt_writes_no_byte_and_the_next_plan_is_quiet,
    first_contact_is_plan_only,
    a_home_comes_from_nothing_in_one_run,
    an_unreadable_store_is_never_absent,
    what_cannot_be_looked_at_is_not_gone,
    a_crash_is_settled_by_looking,
    a_lost_answer_makes_no_twin,
    a_door_that_lies_is_found_out,
    a_stale_object_is_refused_by_the_door,
    no_secret_leaves_the_home,
    moved_and_release_touch_no_home,
    without_consent_nothing_is_written,
)
