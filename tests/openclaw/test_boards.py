"""Planning kits as boards of Workboard: read from its database, written by its methods, archived and never deleted.

Its database here is a small copy of its own; the last test is on the real program.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openclaw.fake_gateway import Fake, No, reloading, served
from openclaw.life import House, Life
from openclaw.test_door import change, codes, perform
from openclaw.test_writing import told
from reconciler.action import CLEAR, Action, Row
from reconciler.errors import ProviderError
from reconciler.observe import ABSENT, Observation, Observed, Store, Unknown, Wanted
from reconciler.plan import Options
from reconciler.provider import Code
from reconciler.testing.kit import tree
from reconciler_openclaw import boards, door, door_boards, home
from reconciler_openclaw.provider import OpenClawProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.kit import ready_kit
from reconciler_specs.resource import Resource
from reconciler_specs.shape import shape_of

COLUMNS = (
    "id, name, description, icon, color, default_workspace_json, orchestration_json, "
    "created_at, updated_at, archived_at"
)
HOUSE = Address("main", "default", Kind.KIT, "house")
PLUGIN = Address("main", "default", Kind.PLUGIN, "workboard")


def database(root: Path, *rows: dict[str, Any]) -> Path:
    """Workboard's own, with these boards."""
    path = root / "plugins" / "workboard" / "workboard.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    names = [name.strip() for name in COLUMNS.split(",")]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE workboard_boards ({COLUMNS})")
        for row in rows:
            connection.execute(
                f"INSERT INTO workboard_boards VALUES ({', '.join('?' * 10)})", [row.get(n) for n in names]
            )
    return path


def seen(fake: Fake, slug: str = "house") -> Any:
    address = replace(HOUSE, key=slug)
    return OpenClawProvider().observe(fake.ref(), Wanted(frozenset({address}))).at("default", Kind.KIT, slug)


def row(fake: Fake, kind: Row, write: Any = None, seen_board: Any = ABSENT) -> Action:
    found = seen(fake)
    print_ = found.fingerprint if isinstance(found, Observed) else ""
    changes = () if kind is Row.DELETE else (change("board", write, seen_board),)
    return Action(kind, HOUSE, "house" if print_ else "", changes, fingerprint=print_)


def workboard(fake: Fake) -> None:
    """The methods that the plugin gives a gateway, on its database."""
    rows: dict[str, dict[str, Any]] = {}

    def upsert(params: dict[str, Any]) -> Any:
        found = rows.setdefault(params["id"], {"created_at": 1})
        found |= {name: params[name] for name in ("id", *boards.TEXTS) if params.get(name)}
        found |= dict.fromkeys(params.get("clearAppearance", ()))
        found["archived_at"] = 1 if params["archived"] else None
        if "defaultWorkspace" in params:
            found["default_workspace_json"] = json.dumps(params["defaultWorkspace"])
        database(fake.root, *rows.values())
        return {"board": params}

    fake.methods |= {"workboard.boards.upsert": upsert, "workboard.boards.archive": upsert}


def test_a_board_from_birth_to_the_archive_and_back(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        workboard(fake)
        said = {"slug": "house", "name": "House", "icon": "x", "workdir": "/srv"}
        assert seen(fake) is ABSENT
        assert codes(perform(fake, [row(fake, Row.CREATE, said)])) == ["ok"]
        assert seen(fake).fields == {"board": said}
        # Making it again would rename it: it is looked at first.
        again = replace(row(fake, Row.CREATE, {**said, "name": "Mine"}), id="", fingerprint="")
        assert codes(perform(fake, [again])) == ["stale"]
        less = {"slug": "house", "name": "Home", "workdir": "/srv"}
        assert codes(perform(fake, [row(fake, Row.UPDATE, less, said)])) == ["ok"]
        assert seen(fake).fields == {"board": less}
        assert fake.sent("workboard.boards.upsert")[-1]["clearAppearance"] == ["icon"]
        assert codes(perform(fake, [row(fake, Row.DELETE)])) == ["ok"]
        assert seen(fake) is ABSENT
        assert codes(perform(fake, [row(fake, Row.CREATE, said)])) == ["ok"]
        assert seen(fake).fields == {"board": said}


def test_a_board_that_changed_since_the_plan_is_stale(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        workboard(fake)
        database(fake.root, {"id": "house", "name": "House"})
        before = {"slug": "house", "name": "House"}
        rows = [row(fake, Row.UPDATE, {"slug": "house", "name": "Home"}, before), row(fake, Row.DELETE)]
        database(fake.root, {"id": "house", "name": "Theirs"})
        assert codes(perform(fake, rows)) == ["stale", "stale"]
        assert not fake.sent("workboard.boards.upsert") + fake.sent("workboard.boards.archive")


def test_a_refusal_is_in_its_words_and_a_failure_is_not_sent_again(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        workboard(fake)
        fake.faults["workboard.boards.upsert"] = [No("workboard_error", "board name must be shorter"), reloading()]
        create = row(fake, Row.CREATE, {"slug": "house", "name": "x"})
        for words in ("board name must be shorter", "was reloaded or disabled"):
            (answer,) = perform(fake, [create])
            assert answer.code is Code.REFUSED and words in answer.words
        assert len(fake.sent("workboard.boards.upsert")) == 2


@pytest.mark.parametrize("comes", [True, False])
def test_a_plugin_that_was_just_switched_on_is_waited_for(
    comes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_boards, "_LOADED", 0.2 if not comes else 30.0)
    monkeypatch.setattr(door_boards, "_POLL", 0.01)
    with served(tmp_path) as fake:
        greet = fake._hello

        def hello(params: dict[str, Any]) -> Any:
            if comes and fake.connections == 3:
                workboard(fake)
            return greet(params)

        monkeypatch.setattr(fake, "_hello", hello)
        (answer,) = perform(fake, [row(fake, Row.CREATE, {"slug": "house"})])
    assert answer.code is (Code.OK if comes else Code.REFUSED)
    assert comes or "has not loaded Workboard within" in answer.words


def test_boards_of_a_stopped_home_without_a_gateway_of_ours_are_refused_before_anything(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        for lock in (fake.root / "tmp").rglob("*.lock"):
            lock.unlink()
        create = row(fake, Row.CREATE, {"slug": "house"})
        with pytest.raises(ProviderError, match="takes planning kits only through a gateway"):
            door.check(fake.ref(quiet_gateway=False), [create])


@pytest.mark.parametrize(
    ("write", "fields"),
    [
        ({"id": "house"}, {"slug": "house"}),
        ({"id": "house", "name": "H", "color": "c"}, {"slug": "house", "name": "H", "color": "c"}),
        ({"id": "house", "default_workspace_json": '{"kind": "worktree", "path": "/x"}'}, {"slug": "house"}),
        ({"id": "house", "default_workspace_json": "no json"}, {"slug": "house"}),
        ({"id": "house", "archived_at": 1}, None),
        ({"id": "default", "name": "x"}, None),
    ],
)
def test_what_is_read(write: dict[str, Any], fields: dict[str, Any] | None, tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        database(fake.root, write)
        before = tree(fake.root)
        found = seen(fake, str(write["id"]))
        assert (found.fields if isinstance(found, Observed) else None) == (
            None if fields is None else {"board": fields}
        )
        assert tree(fake.root) == before


@pytest.mark.parametrize("what", ["folder", "no database", "another table"])
def test_what_cannot_be_read_is_unknown_or_nothing(what: str, tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        path = database(fake.root)
        path.unlink()
        if what == "folder":
            path.mkdir()
        elif what == "no database":
            path.write_bytes(b"nothing like it" * 100)
        else:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE other (id)")
        found = seen(fake)
        assert isinstance(found, Unknown) == (what != "another table"), found


def kit(key: str = "house", profile: str = "default", degrade: bool = True, **fields: Any) -> Resource:
    options = {"on_unsupported": "degrade"} if degrade else {}
    shapes = {name: shape_of(value) for name, value in fields.items()}
    return Resource(Address("main", profile, Kind.KIT, key), fields, shapes, options=options)


def refused(resource: Resource, plugin: bool | None = True, config: bool | None = None) -> dict[str, str]:
    provider = OpenClawProvider()
    entry = {} if config is None else {"plugins": {"entries": {"workboard": {"enabled": config}}}}
    beside = {} if plugin is None else {PLUGIN: Resource(PLUGIN, {"enabled": plugin}, {})}
    around = provider.prepare({resource.address: resource, **beside}, Observation(facts={"tree": entry}))
    return dict(provider.canon(resource, around, lambda path: None).refused)


def test_what_no_board_can_hold_is_refused_at_plan_time() -> None:
    kanban = ready_kit("kanban")
    assert refused(kit(kit=kanban)) == refused(kit(kit=kanban), plugin=None, config=True) == {}
    for why in (refused(kit(kit=kanban), plugin=None), refused(kit(kit=kanban), plugin=False, config=True)):
        assert why == {"": "Workboard is off in this home; add plugins: {workboard: {enabled: true}}"}
    assert refused(kit(kit=kanban), plugin=None, config=False).keys() == {""}
    assert "triage, backlog, todo" in refused(kit(kit=kanban, degrade=False))["kit"]
    assert "Workboard's own" in refused(kit("default", kit=kanban))[""]
    assert "declare it in the profile default" in refused(kit(profile="ops", kit=kanban))[""]
    assert "absolute" in refused(kit(board={"slug": "house", "workdir": "work"}))["board"]
    assert refused(kit(source="viable:x")).keys() == {"source"}


@pytest.mark.parametrize(
    ("version", "gone", "held"),
    [("2026.9.6", "icon", False), ("2026.7.1-2", "icon", True), ("2026.9.6", "name", True)],
)
def test_a_word_that_workboard_keeps_is_held_in_the_plan(version: str, gone: str, held: bool) -> None:
    before = {"slug": "house", "name": "House", "icon": "x"}
    write = {name: value for name, value in before.items() if name != gone}
    action = Action(Row.UPDATE, HOUSE, "house", (change("board", write, before),))
    (found,) = OpenClawProvider().review([action], Observation(version=version, facts={"ran": version}), {})
    assert (found.hold is not None) == held
    assert PLUGIN in found.needs
    if found.hold:
        assert found.hold.why == f"Workboard takes no {gone} away from a board: give it another one"
    clear = Action(Row.UPDATE, HOUSE, "house", (change("board", CLEAR, {"slug": "house"}),))
    assert boards.params(clear) == {"id": "house", "archived": False}


BODY = """
default:
  plugins: {workboard: {enabled: true}}
  planning_kits:
    house: {source: "kit:kanban", on_unsupported: degrade, board: {slug: house, description: Chores., workdir: /srv}}
"""


@pytest.mark.openclaw
@pytest.mark.timeout(600)
def test_kits_on_the_real_workboard(life: Life) -> None:
    """Switched on and given a board in one apply; drift, a change, archived after a review, and back."""
    lab: House = life.lab
    lab.up()

    def theirs() -> dict[str, dict[str, Any]]:
        return {board["id"]: board for board in lab.rpc("workboard.boards.list")["boards"]}

    life.converge(life.setup(BODY))
    board = theirs()["house"]
    assert (board["name"], board["description"]) == (ready_kit("kanban")["title"], "Chores.")
    assert board["defaultWorkspace"] == {"kind": "dir", "path": "/srv"}
    found = life.lab.observe(Wanted(frozenset({HOUSE}))).stores["default", Kind.KIT]
    assert found is Store.PROPER

    lab.rpc("workboard.boards.upsert", id="house", description="Theirs.")
    changed = life.rows(life.setup(BODY))["default/planning_kits/house"]
    assert [str(c.row) for c in changed.changes if c.held] == ["drift"]
    assert told(life.apply(life.setup(BODY), Options(restore=("main",)))) == {"default/planning_kits/house": "applied"}
    assert theirs()["house"]["description"] == "Chores."

    bare = life.setup("default:\n  plugins: {workboard: {enabled: true}}")
    allowed = Options(allow=frozenset({"last-of-kind"}))
    assert told(life.apply(bare, allowed)) == {"default/planning_kits/house": "applied"}
    assert theirs()["house"]["archivedAt"]
    life.converge(life.setup(BODY))
    assert "archivedAt" not in theirs()["house"]
    assert boards.file(home.locate(lab.ref().place, str(lab.root))).startswith(str(lab.root))
