"""What a review of the engine against the laws found, each as a test of its whole kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import Fact, Row
from reconciler.adopt import adopt_home
from reconciler.capture import release
from reconciler.consent import Consent
from reconciler.errors import UsageError
from reconciler.observe import Observation, Unknown, Wanted
from reconciler.past import past
from reconciler.plan import Options
from reconciler.provider import HomeRef
from reconciler.testing.faulty import Crash, Fault, FaultyProvider
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Address, Kind
from world import HEAD, World, home_text, outcomes

JOBS = """        jobs:
          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}
"""
CODER = """      coder:
        jobs:
          keep: {schedule: {every: 30m}, prompt: x, deliver: local%s}
          j1: {schedule: {every: 30m}, prompt: y, deliver: local}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text())
    return world


def with_coder(world: World, extra: str = "") -> None:
    """A profile with two jobs; the home in memory needs a second apply before a new profile's jobs exist."""
    world.setup(HEAD + home_text() + CODER % extra)
    world.apply()
    world.apply()
    assert world.rows() == {}


def test_a_profile_with_something_protected_in_it_is_not_deleted(world: World) -> None:
    with_coder(world, ", protect: true")
    world.setup(HEAD + home_text())
    assert world.rows()["main/coder"].hold is not None
    world.apply()
    assert "coder" in world.home().things["", Kind.PROFILE]
    assert "keep" in [j["name"] for j in world.home().jobs("coder").values()]


def test_a_profile_is_not_deleted_when_a_delete_in_it_was_refused(world: World) -> None:
    with_coder(world)
    world.setup(HEAD + home_text())
    world.provider = FaultyProvider(world.memory, Fault.REFUSES, lambda a: a.address.key == "j1")
    done = outcomes(world.apply())
    assert (done["main/coder/jobs/j1"], done["main/coder"]) == ("refused", "skipped")
    assert "coder" in world.home().things["", Kind.PROFILE]


def test_a_profile_with_another_setups_things_is_not_deleted(world: World) -> None:
    world.setup(HEAD + home_text() + "      coder: {description: x}\n")
    world.apply()
    two = HEAD.replace("solo", "two") + home_text("        {}\n") + "      coder: {settings: {c.d: 2}}\n"
    world.setup(two)
    world.apply()
    world.setup(HEAD + home_text())
    hold = world.rows()["main/coder"].hold
    assert hold is not None
    assert "setup two" in hold.why


@pytest.mark.parametrize("fact", [Fact.WIDENS_ACCESS, Fact.LOOSENS_SECURITY, Fact.NEW_CREDENTIAL, Fact.NEW_ADDRESS])
def test_unattended_never_covers_access_and_credentials(
    world: World, fact: Fact, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.setup(
        HEAD + "policy: {unattended: [set settings, update settings]}\n" + home_text("        settings: {a.b: 1}\n")
    )
    world.apply()
    monkeypatch.setattr(world.memory, "facts", lambda *_: frozenset({fact}))
    world.text = world.text.replace("a.b: 1", "a.b: 2")
    assert set(outcomes(world.apply(Consent())).values()) == {"waits for consent"}


def test_restoring_a_field_does_not_consent_to_the_rest_of_its_row(world: World) -> None:
    world.apply()
    world.edit([{"set": "default/jobs/brief", "prompt": "Mine."}])
    world.text = world.text.replace("deliver: local", "deliver: {to: telegram}")
    options = Options(restore=("main/default/jobs/brief#prompt",))
    assert set(outcomes(world.apply(Consent(), options)).values()) == {"waits for consent"}
    (job,) = world.home().jobs().values()
    assert (job["prompt"], job["deliver"]) == ("Mine.", "local")


def test_rebuild_does_not_consent_to_anything_in_a_home_that_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply()
    world.setup(HEAD + home_text(JOBS + "        settings: {a.b: 2}\n"))
    monkeypatch.setattr(world.memory, "facts", lambda *_: frozenset({Fact.WIDENS_ACCESS}))
    options = Options(allow=frozenset({"rebuild"}))
    assert set(outcomes(world.apply(Consent(), options)).values()) == {"waits for consent"}


def cut_off(world: World) -> None:
    world.provider = FaultyProvider(world.memory, Fault.CRASH_AFTER, lambda a: a.address.kind is Kind.JOB)
    with pytest.raises(Crash):
        world.apply()
    world.provider = world.memory


def test_an_intent_stays_open_while_its_store_cannot_be_read(world: World) -> None:
    cut_off(world)
    world.home().unreadable["default", Kind.JOB] = "cut off"
    world.setup(HEAD + home_text(JOBS + "        settings: {a.b: 2}\n"))
    world.apply()
    world.home().unreadable.clear()
    assert set(outcomes(world.apply()).values()) == {"applied"}
    assert world.rows() == {}
    assert len(world.home().jobs()) == 1


def test_what_a_cut_off_run_made_is_not_orphaned_by_leaving_the_setup(world: World) -> None:
    cut_off(world)
    world.setup(HEAD + home_text("        settings: {a.b: 2}\n"))
    rows = world.rows()
    assert Row.DELETE in {r.row for r in rows.values()}
    world.apply()
    assert world.home().jobs() == {}


def test_what_a_cut_off_run_made_is_found_after_a_rename_of_the_setup(world: World) -> None:
    cut_off(world)
    world.setup(HEAD.replace("solo", "duo") + "formerly: [solo]\n" + home_text())
    assert set(outcomes(world.apply()).values()) == {"applied"}
    assert world.rows() == {}


def test_adopting_something_else_leaves_open_intents_for_the_next_plan(world: World) -> None:
    cut_off(world)
    world.edit([{"place": "default/files/S.md", "text": "hi"}])
    world.setup(HEAD + home_text(JOBS + "        files: {S.md: {text: hi}}\n"))
    adopt_home(world.space(), "main", ["main/default/files/S.md"])
    assert set(outcomes(world.apply()).values()) == {"applied"}
    assert world.rows() == {}


def test_an_id_that_is_now_another_object_is_never_deleted(world: World) -> None:
    world.apply()
    (harness_id,) = world.home().jobs()
    world.home().jobs()[harness_id] = {
        "name": "theirs",
        "schedule": {"every": "7m"},
        "prompt": "Other.",
        "deliver": "x",
    }
    world.setup(HEAD + home_text("        {}\n"))
    assert [r.row for r in world.rows().values()] == [Row.FORGET]
    world.apply()
    assert list(world.home().jobs()) == [harness_id]


def test_a_map_to_what_is_owned_is_refused(world: World) -> None:
    world.apply()
    (harness_id,) = world.home().jobs()
    world.setup(HEAD.replace("solo", "two") + home_text(JOBS.replace("brief", "other")))
    with pytest.raises(UsageError, match="setup 'solo' owns it"):
        adopt_home(world.space(), "main", (), {Address.parse("main/default/jobs/other"): harness_id})
    world.setup(HEAD + home_text(JOBS.replace("brief", "other")))
    with pytest.raises(UsageError, match="is default/jobs/brief already"):
        adopt_home(world.space(), "main", (), {Address.parse("main/default/jobs/other"): harness_id})


def test_a_stamp_is_not_believed_when_the_read_back_differs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.testing.memory import MemoryDoor

    world.apply()
    world.edit([{"set": "default/jobs/brief", "prompt": "New."}])
    world.text = world.text.replace("Write.", "New.").replace("every: 30m", "every: 45m")
    perform = MemoryDoor.perform

    def and_somebody(self: MemoryDoor, step):  # type: ignore[no-untyped-def]
        answers = perform(self, step)
        for job in self.home.jobs().values():
            job["prompt"] = "Someone else."
        return answers

    monkeypatch.setattr(MemoryDoor, "perform", and_somebody)
    world.apply()
    monkeypatch.undo()
    assert [c.field for r in world.rows().values() for c in r.changes] == ["prompt"]


def test_what_another_setup_declares_stays_and_the_plan_is_quiet(world: World) -> None:
    """L3: a member that leaves this setup and stands in another is kept, and the read-back knows that."""
    settings = "        settings: {x.y: {%s}}\n"

    def declare(owner: str, members: str) -> None:
        world.setup(HEAD.replace("solo", owner) + home_text(settings % members))
        world.apply()
        assert world.rows() == {}

    declare("team", "b: 2")
    assert world.plan().homes[0].notes == ()
    declare("solo", "a: 1, b: 2")
    declare("solo", "a: 1")
    assert world.home().things["default", Kind.SETTING]["x.y"]["value"] == {"a": 1, "b": 2}
    [note] = world.plan().homes[0].notes
    assert "team" in note and "shared: true" in note
    world.setup(HEAD + home_text(settings % "a: 1").replace("first_contact", "shared: true\n    first_contact"))
    assert world.plan().homes[0].notes == ()
    declare("solo", "a: 1, c: 3")
    assert world.home().things["default", Kind.SETTING]["x.y"]["value"] == {"a": 1, "b": 2, "c": 3}


def test_a_delete_says_that_the_thing_was_edited_since(world: World) -> None:
    world.setup(HEAD + home_text(JOBS + "          other: {schedule: {every: 30m}, prompt: x, deliver: local}\n"))
    world.apply()
    world.setup(HEAD + home_text())
    assert world.rows()["main/default/jobs/other"].notes == ()
    world.edit([{"set": "default/jobs/other", "prompt": "Somebody's work."}])
    assert "since the last apply: prompt" in world.rows()["main/default/jobs/other"].notes[0]


TWO = """        jobs:
          source: {schedule: {every: 30m}, prompt: x, deliver: local}
          other: {schedule: {every: 30m}, prompt: x, deliver: local}
          user: {schedule: {every: 30m}, prompt: x, deliver: local%s}
"""
SOURCE = Address.parse("main/default/jobs/source")


def with_user(world: World, after: str) -> None:
    """A job that takes its context from another; then `source` leaves the setup, and the user says `after`."""
    world.setup(HEAD + home_text(TWO % ", context_from: [source]"))
    world.apply()
    left = [line for line in (TWO % after).splitlines(keepends=True) if "source:" not in line]
    world.setup(HEAD + home_text("".join(left)))


@pytest.mark.parametrize("after", ["", ", context_from: [other]"])
def test_a_delete_comes_after_its_user_has_let_go(world: World, after: str) -> None:
    with_user(world, after)
    done = outcomes(world.apply())
    assert done == {"main/default/jobs/user": "applied", str(SOURCE): "applied"}
    assert list(done)[-1] == str(SOURCE) and world.rows() == {}


@pytest.mark.parametrize("fault", [Fault.REFUSES, Fault.LIES])
def test_nothing_is_deleted_that_its_user_could_not_let_go_of(world: World, fault: Fault) -> None:
    """E32, L12."""
    with_user(world, ", context_from: [other]")
    world.provider = FaultyProvider(world.memory, fault, lambda a: a.address.key == "user")
    assert outcomes(world.apply())[str(SOURCE)] == "skipped"
    world.provider = world.memory
    world.apply()
    assert world.rows() == {}


def test_nothing_is_deleted_whose_user_is_not_agreed_to(world: World) -> None:
    """E32: `--plan` with the delete alone, or a target that is the delete alone."""
    with_user(world, ", context_from: [other]")
    [home] = world.plan().homes
    alone = Consent(approved=frozenset({home.digests[SOURCE]}), only_approved=True, reviewed=True, terminal=True)
    assert outcomes(world.apply(alone))[str(SOURCE)] == "skipped"
    assert set(world.rows(Options(targets=(str(SOURCE),)))) == {"main/default/jobs/user", str(SOURCE)}


@pytest.mark.parametrize(
    "who", ["conflict", "nobody's", "nobody's, unread", "another setup's", "both leave, one protected"]
)
def test_nothing_is_deleted_that_something_goes_on_naming(world: World, who: str) -> None:
    """E32: the user is held, or is none of ours."""
    with_user(world, ", context_from: [other]")
    source = world.id_of(SOURCE, world.home())
    if who == "conflict":
        world.edit([{"set": "default/jobs/user", "context_from": [source, "more"]}])
    elif who == "nobody's":
        world.edit([{"add": "theirs", "context_from": [source]}])
    elif who == "nobody's, unread":
        world.edit([{"add": "theirs", "context_from": Unknown("cut off")}])
    elif who == "another setup's":
        ours = world.text
        world.setup(HEAD.replace("solo", "two") + home_text(JOBS.replace("brief", "theirs")))
        world.apply()
        world.edit([{"set": "default/jobs/theirs", "context_from": [source]}])
        world.setup(ours)
    else:
        world.setup(HEAD + home_text(TWO % ", context_from: [source], protect: true"))
        world.apply()
        world.setup(HEAD + home_text("        {}\n"))
    hold = world.rows()[str(SOURCE)].hold
    assert hold is not None and hold.command == f"reconciler release {SOURCE}", hold
    world.apply()
    assert source in world.home().jobs()


def test_two_deletes_go_in_order_and_a_failed_one_keeps_the_other(world: World) -> None:
    with_user(world, "")
    world.setup(
        HEAD + home_text("        jobs:\n          other: {schedule: {every: 30m}, prompt: x, deliver: local}\n")
    )
    with_both = world.text
    world.setup(HEAD + home_text(TWO % ", context_from: [source]"))
    world.apply()
    world.setup(with_both)
    world.provider = FaultyProvider(world.memory, Fault.REFUSES, lambda a: a.address.key == "user")
    assert outcomes(world.apply()) == {"main/default/jobs/user": "refused", str(SOURCE): "skipped"}
    world.provider = world.memory
    assert list(outcomes(world.apply())) == ["main/default/jobs/user", str(SOURCE)]


def renamed(world: World, body: str = JOBS) -> None:
    """The setup applied as `solo`, and then called `duo`, formerly `solo`."""
    world.setup(HEAD + home_text(JOBS + "        files: {AGENTS.md: {text: Hello.}}\n"))
    world.apply()
    world.setup(HEAD.replace("solo", "duo\nformerly: [solo]") + home_text(body))


class Narrow:
    """The provider, showing of what is matched by place only what it is asked for, as readers of large homes do."""

    def __init__(self, inner: MemoryProvider) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        seen = self._inner.observe(home, wanted)
        things = {
            key: found
            if isinstance(found, Unknown) or key[1] is not Kind.FILE
            else {i: t for i, t in found.items() if i in wanted.keys(*key)}
            for key, found in seen.things.items()
        }
        return replace(seen, things=things)


def test_what_a_renamed_setup_no_longer_declares_is_looked_at(world: World) -> None:
    """E12, L10: what nobody asked for is not gone."""
    world.provider = Narrow(world.memory)
    renamed(world)
    assert world.rows()["main/default/files/AGENTS.md"].row is Row.DELETE


def test_what_a_cut_off_run_was_to_make_is_looked_at_though_it_left_the_setup(world: World) -> None:
    """L11: nothing of ours is orphaned."""
    world.apply()
    before = world.text
    world.setup(HEAD + home_text(JOBS + "        files: {AGENTS.md: {text: Hello.}}\n"))
    world.provider = FaultyProvider(world.memory, Fault.CRASH_AFTER, lambda a: a.address.kind is Kind.FILE)
    with pytest.raises(Crash):
        world.apply()
    world.provider = Narrow(world.memory)
    world.setup(before)
    assert world.rows()["main/default/files/AGENTS.md"].row is Row.DELETE


def test_a_renamed_setup_adopts_what_it_owned_under_its_former_name(world: World) -> None:
    """E12: and not as a stranger, to whom all of it would be foreign ever after."""
    renamed(world, JOBS + "          other: {schedule: {every: 30m}, prompt: x, deliver: local}\n")
    world.edit([{"add": "other", "prompt": "x"}])
    adopt_home(world.space(), "main")
    assert world.rows()["main/default/files/AGENTS.md"].row is Row.DELETE
    assert not [a for a in world.rows().values() if a.row is Row.FOREIGN]


def test_a_renamed_setup_lets_go_of_what_it_owned(world: World) -> None:
    renamed(world)
    path = "main/default/files/AGENTS.md"
    assert release(world.space(), [path]) == [Address.parse(path)]
    assert path not in world.rows()


def test_a_home_that_left_a_renamed_setup_is_held(world: World) -> None:
    renamed(world)
    world.home("other")
    world.setup(world.text.replace("  main:", "  other:").replace("/main\n", "/other\n"))
    held = {h.id: h.hold.command for h in world.plan().homes if h.hold is not None}
    assert held == {"main": "reconciler release main"}


def test_a_renamed_setup_undoes_its_runs(world: World) -> None:
    world.apply()
    renamed(world, JOBS + "        files: {AGENTS.md: {text: Hello.}}\n")
    run = past(world.space()).commands[0].run
    assert list(world.rows(Options(undo=run))) == ["main/default/files/AGENTS.md"]
