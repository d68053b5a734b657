"""Workspace: what is read for a plan, homes that left the setup, and who may write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.capture import release
from reconciler.consent import Consent
from reconciler.exits import of_apply
from reconciler.left import held
from reconciler.observe import Store
from reconciler.plan import Options
from reconciler.workspace import physical
from reconciler_specs.address import Address, Kind
from reconciler_state.lock import lock_home
from reconciler_state.record import HomeState
from reconciler_state.store import Physical
from world import HEAD, World, home_text, outcomes


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text())
    return world


def test_a_home_whose_block_is_gone_is_held_whole(world: World) -> None:
    world.apply()
    world.home("other")
    world.setup(HEAD + home_text().replace("main", "other"))
    plan = world.plan()
    left = next(h for h in plan.homes if h.id == "main")
    assert left.hold is not None
    assert left.actions == ()
    assert left.hold.command == "reconciler release main"
    assert world.home().jobs()


@pytest.mark.parametrize("targets", [["main"], ["main/default/jobs/brief"]], ids=["whole", "one thing"])
def test_a_home_whose_block_is_gone_is_let_go_of(world: World, targets: list[str]) -> None:
    """What its plan says to type works: state forgets, and no home is written."""
    world.apply()
    world.home("other")
    world.setup(HEAD + home_text().replace("main", "other"))
    before = world.home().writes
    assert "main/default/jobs/brief" in [str(address) for address in release(world.space(), targets)]
    held = [h for h in world.plan().homes if h.id == "main"]
    assert not held or "main/default/jobs/brief" not in held[0].state.owned("solo")
    assert world.home().writes == before and world.home().jobs()


@pytest.mark.parametrize("place", ["local", "exec:docker compose exec -T 'a b'", "host:nas"])
def test_the_state_of_a_home_that_is_gone_stays_at_its_place(place: str) -> None:
    state = HomeState(place, "hermes", "/opt/data", "lineage", 3)
    assert physical(held("solo", state, "main").ref) == Physical(place, "hermes", "/opt/data")


def test_a_relabelled_home_is_the_same_home(world: World) -> None:
    world.apply()
    world.setup(HEAD + home_text().replace("  main:", "  box:"))
    assert [(h.id, h.actions, h.hold) for h in world.plan().homes] == [("box", (), None)]


def test_two_ids_of_one_physical_home_are_refused(world: World) -> None:
    (world.root / "link").symlink_to(world.root / "main")
    world.setup(HEAD + home_text() + home_text().replace("main", "link").replace("homes:\n", ""))
    failed = [h.failed for h in world.plan().homes]
    assert failed[0] == ""
    assert "one physical home" in failed[1]


def test_a_home_on_another_machine_is_elsewhere(world: World) -> None:
    text = HEAD + "places: {far: {host: nowhere.example}}\n" + home_text().replace("path:", "at: far\n    path:")
    world.setup(text)
    (home,) = world.plan().homes
    assert (home.elsewhere, home.failed, home.open) == ("nowhere.example", "", ())


def test_a_locked_home_says_who_holds_it(world: World) -> None:
    physical = Physical("local", "hermes", os.path.realpath(world.root / "main"))
    space = world.space()
    space.lock_wait = 0.0
    plan = space.plan(Options())
    from reconciler.apply import apply

    with lock_home(Path(physical.path), physical, world.root / "state", command="reconciler apply"):
        events = list(apply(plan, Consent(yes=True, named=("main",)), space, Options()))
    assert [str(e.outcome) for e in events] == ["failed"]
    assert f"pid {os.getpid()}" in events[0].reason
    assert world.home().writes == 0


def test_a_missing_home_is_never_read_as_all_deleted(world: World) -> None:
    world.apply()
    world.home().exists = False
    (home,) = world.plan().homes
    assert home.hold is not None
    assert "gone" in home.hold.why
    assert home.actions == ()


def test_a_missing_home_is_made_again_by_name(world: World) -> None:
    world.apply()
    world.home().exists = False
    world.home().things.clear()
    world.home().__post_init__()
    options = Options(allow=frozenset({"rebuild"}))
    done = outcomes(world.apply(options=options))
    assert set(done.values()) == {"applied"}, done
    assert [j["name"] for j in world.home().jobs().values()] == ["brief"]


def test_provision_of_what_is_there_is_refused(world: World) -> None:
    (home,) = world.plan(Options(provision=frozenset({"main"}))).homes
    assert home.hold is not None
    assert home.hold.command == "reconciler adopt main"


def test_provision_owns_what_it_makes(world: World) -> None:
    world.home().exists = False
    world.setup(HEAD + home_text().replace("adopt", "provision"))
    done = outcomes(world.apply())
    assert set(done.values()) == {"applied"}, done
    assert world.rows() == {}


def test_a_version_pin_holds_the_home(world: World) -> None:
    world.setup(HEAD + home_text().replace("path:", 'harness_version: ">=2"\n    path:'))
    (home,) = world.plan().homes
    assert home.hold is not None
    assert home.guard == "unknown-version"
    (home,) = world.plan(Options(allow=frozenset({"unknown-version"}))).homes
    assert home.hold is None


def test_an_upgraded_harness_is_noted(world: World) -> None:
    """E39."""
    world.apply()
    world.home().version = "2.0"
    (home,) = world.plan(Options(allow=frozenset({"unknown-version"}))).homes
    assert any("was 1.0 when we last wrote" in note for note in home.notes)


def test_a_target_takes_what_it_needs_along(world: World) -> None:
    world.apply()
    jobs = (
        "        jobs:\n"
        "          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"
        "          sum: {schedule: {every: 1d}, prompt: x, deliver: local, context_from: [new]}\n"
        "          new: {schedule: {every: 1d}, prompt: y, deliver: local}\n"
        "          other: {schedule: {every: 1d}, prompt: z, deliver: local}\n"
    )
    world.setup(HEAD + home_text(jobs))
    rows = world.rows(Options(targets=("main/default/jobs/sum",)))
    assert set(rows) == {"main/default/jobs/sum", "main/default/jobs/new"}


def test_homes_side_by_side(world: World) -> None:
    text = HEAD + "homes:\n"
    for name in ("a", "b", "c"):
        world.home(name)
        text += home_text().replace("main", name).replace("homes:\n", "")
    world.setup(text)
    done = outcomes(world.apply())
    assert set(done.values()) == {"applied"}
    assert all(len(world.home(n).jobs()) == 1 for n in ("a", "b", "c"))
    assert Address.parse("a") in [Address.parse(k) for k in done]


def test_a_lost_config_holds_the_home_and_is_made_again_by_name(world: World) -> None:
    """L14 for a store whose things are matched by place: gone with the file is not gone by hand."""
    world.setup(HEAD + home_text("        settings: {a.b: 1}\n"))
    world.apply()
    settings = ("default", Kind.SETTING)
    world.home().things[settings] = {}
    world.home().stores[settings] = Store.MISSING
    (home,) = world.plan().homes
    assert home.hold is not None
    assert "settings of profile default is missing" in home.hold.why
    assert home.open == ()
    options = Options(allow=frozenset({"rebuild"}))
    done = outcomes(world.apply(Consent(), options))
    assert done == {"main/default/settings/a.b": "applied"}


def test_what_cannot_be_seen_where_it_was_is_not_moved(world: World) -> None:
    """E9, L10: an unreadable old place may still hold the thing."""
    world.setup(HEAD + home_text("        files: {a.md: {text: Hello.}}\n"))
    world.apply()
    world.home().unreadable["default", Kind.FILE] = "it cannot be read"
    moved = "moved: [{from: main/default/files/a.md, to: main/default/files/b.md}]\n"
    world.setup(HEAD + home_text("        files: {b.md: {text: Hello.}}\n") + moved)
    [home] = world.plan().homes
    assert home.hold is not None and home.hold.why.endswith("it cannot be read"), home.hold


ONE_SHOT = '          brief: {schedule: {at: "2020-01-01T00:00:00Z"}, prompt: Write., deliver: local}\n'
DAILY = "          other: {schedule: {every: 30m}, prompt: x, deliver: local}\n"


@pytest.mark.parametrize(
    "options", [Options(), Options(restore=("main",)), Options(allow=frozenset({"rebuild"}))], ids=str
)
@pytest.mark.parametrize("ended", [True, False], ids=["the home says so", "its time has passed"])
def test_what_has_run_out_is_never_made_again(world: World, ended: bool, options: Options) -> None:
    """E36: `spent`, which asks for nothing and holds nothing; all of a store may end so without being lost (L14)."""
    home = world.home()
    if not ended:
        home.add_job("brief", schedule={"at": "2020-01-01T00:00:00Z"}, prompt="Write.", deliver="local")
    jobs = ONE_SHOT if not ended else ONE_SHOT.replace('at: "2020-01-01T00:00:00Z"', "every: 30m")
    world.setup(HEAD + home_text(f"        jobs:\n{jobs}{DAILY}"))
    world.apply()
    one = Address.parse("main/default/jobs/brief")
    ids = list(home.jobs()) if ended else [world.id_of(one, home)]
    if ended:
        home.ended["default", Kind.JOB] = dict.fromkeys(ids, "it ran twice, as often as it was to")
    for harness_id in ids:
        del home.jobs()[harness_id]
    writes = home.writes
    [plan] = world.plan(options).homes
    assert plan.hold is None
    assert {str(a.row) for a in plan.actions} == {"spent"} and not plan.open
    world.apply(options=options)
    assert home.writes == writes and of_apply(world.plan(options), ()) == 0
    world.setup(HEAD + home_text("        {}\n"))
    assert str(world.rows()[str(one)].row) == "forget"


@pytest.mark.parametrize("what", ["an older copy", "another lineage"])
def test_a_state_that_is_not_the_last_one_stops_its_home(world: World, what: str) -> None:
    """E21: a copy that was put back, or another home's, owns by an older word; nothing is planned on it."""
    world.apply()
    [path] = [world.store.path(p) for p in world.store.list()]
    older = path.read_bytes()
    world.setup(world.text.replace("Write.", "More."))
    world.apply()
    writes = world.home().writes
    if what == "an older copy":
        path.write_bytes(older)
    else:
        [state] = [world.space().store.read(p) for p in world.store.list()]
        assert state is not None
        path.write_bytes(path.read_bytes().replace(state.lineage.encode(), state.lineage[::-1].encode()))
    [home] = world.plan().homes
    assert "went back" in home.failed or "lineage" in home.failed, home.failed
    assert outcomes(world.apply()) == {} and world.home().writes == writes
