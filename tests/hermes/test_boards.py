"""Kanban boards by Hermes's own functions: looked at first, never renamed by accident, archived and never deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.lab import Lab, create, delete, resource, tree, update
from reconciler.action import FieldRow, Row
from reconciler.observe import ABSENT, Observed, Unknown
from reconciler.plan import Options
from reconciler.provider import Code
from reconciler.testing.kit import Kit, outcomes
from reconciler.testing.kit import world as make_world
from reconciler_hermes.provider import HermesProvider
from reconciler_specs.address import Kind
from reconciler_specs.kit import ready_kit
from reconciler_specs.planning_kit import BOARD

HOUSE = "default/planning_kits/house"


def board(lab: Lab, slug: str = "house") -> Observed:
    found = lab.observe(f"default/planning_kits/{slug}").at("default", Kind.KIT, slug)
    assert isinstance(found, Observed), found
    return found


def theirs(lab: Lab) -> dict[str, dict[str, Any]]:
    """The boards as Hermes lists them."""
    said = lab.hermes("import json; from hermes_cli.kanban_db import list_boards as l; print(json.dumps(l()))")
    return {found["slug"]: found for found in said}


@pytest.mark.hermes
def test_a_board_from_birth_to_the_archive(each: Lab) -> None:
    said = {"slug": "house", "name": "House", "description": "Chores.", "icon": "🏠", "workdir": str(each.root)}
    assert each.perform(create(HOUSE, {"board": said}))[0].code is Code.OK
    assert board(each).fields == {"board": said} and theirs(each)["house"]["name"] == "House"
    before = tree(each.root)
    assert board(each).fingerprint and tree(each.root) == before  # reading writes nothing
    less = {"slug": "house", "name": "The house"}
    assert each.perform(update(HOUSE, board(each), {"board": less}))[0].code is Code.OK
    assert board(each).fields == {"board": less}
    # Making it again would rename it: it is looked at first.
    assert each.perform(create(HOUSE, {"board": said}))[0].code is Code.STALE
    assert theirs(each)["house"]["name"] == "The house"
    seen = board(each)
    each.hermes("from hermes_cli.kanban_db import write_board_metadata as w; w('house', name='Theirs'); print(0)")
    for action in (update(HOUSE, seen, {"board": said}), delete(HOUSE, seen)):
        assert each.perform(action)[0].code is Code.STALE
    assert each.perform(delete(HOUSE, board(each)))[0].code is Code.OK
    assert set(theirs(each)) == {"default"}
    assert each.observe(HOUSE).at("default", Kind.KIT, "house") is ABSENT
    [kept] = (each.root / "kanban" / "boards" / "_archived").iterdir()
    assert json.loads((kept / "board.json").read_text())["name"] == "Theirs"


@pytest.mark.hermes
def test_hermess_own_board_is_not_seen_and_never_removed(lab: Lab) -> None:
    lab.hermes("from hermes_cli.kanban_db import write_board_metadata as w; w('default', name='Mine'); print(0)")
    assert lab.observe(everything=True).things["default", Kind.KIT] == {}
    own = Observed(Kind.KIT, "default", "default")
    assert lab.perform(delete("default/planning_kits/default", own))[0].code is not Code.OK
    assert theirs(lab)["default"]["name"] == "Mine"


@pytest.mark.hermes
def test_a_board_that_cannot_be_read_is_unknown(lab: Lab) -> None:
    lab.perform(create(HOUSE, {"board": {"slug": "house"}}))
    path = lab.root / "kanban" / "boards" / "house" / "board.json"
    path.write_text("{")
    assert isinstance(board(lab).fields["board"], Unknown)
    (path.parent.parent / "linked").symlink_to(path.parent)
    assert isinstance(board(lab, "linked").fields["board"], Unknown)


@pytest.mark.hermes
def test_what_a_board_cannot_hold_is_refused_or_said(lab: Lab) -> None:
    kit = ready_kit("kanban")
    canon = lab.canon(resource(HOUSE, {"kit": kit}))
    assert canon.refused["kit"].startswith("Hermes has fixed statuses: triage, todo,")
    assert canon.refused["kit"].endswith("write on_unsupported: degrade")
    canon = lab.canon(resource(HOUSE, {"kit": kit}, options={"on_unsupported": "degrade"}))
    assert canon.fields == {"board": {"slug": "house", "name": "Kanban"}} and not canon.refused
    assert canon.notes == ("Work: Backlog → todo, Ready → todo, Doing → running, Review → running, Done → done",)
    for path, fields, field in (
        (HOUSE, {"source": "viable:project"}, "source"),
        (HOUSE, {"board": {"slug": "other"}}, "board"),
        ("coder/planning_kits/house", {"board": {"slug": "house"}}, ""),
        ("default/planning_kits/default", {"board": {"slug": "default"}}, ""),
        ("default/planning_kits/a.b", {"board": {"slug": "a"}}, ""),
    ):
        assert field in lab.canon(resource(path, fields)).refused, path


@pytest.mark.hermes
def test_every_field_of_a_board_has_its_word_in_hermes(lab: Lab) -> None:
    from reconciler_hermes.boards import WORDS

    code = "import inspect, json; from hermes_cli.kanban_db import create_board as c"
    taken = lab.hermes(f"{code}; print(json.dumps(list(inspect.signature(c).parameters)))")
    assert {WORDS.get(key, key) for key in BOARD} <= set(taken)


@pytest.mark.hermes
def test_boards_through_the_engine(lab: Lab, tmp_path: Path) -> None:
    """Made, quiet, changed, drifted, restored, held where somebody else made one, and archived with a review."""
    world = make_world(
        Kit(HermesProvider(), lambda _path: _At(lab.root), f"{{python: {lab.python}}}"),  # type: ignore[arg-type,return-value]
        tmp_path,
    )
    said = 'planning_kits:\n  house: {source: "kit:kanban", on_unsupported: degrade, board: {slug: house, icon: A}}\n'
    text = world.text(rest=said)
    world.converge(text)
    before = tree(lab.root)
    assert world.apply(text) == [] and tree(lab.root) == before
    world.converge(text.replace("icon: A", "icon: B"))
    assert theirs(lab)["house"]["icon"] == "B" and theirs(lab)["house"]["name"] == "Kanban"
    text = text.replace("icon: A", "icon: B")
    lab.hermes("from hermes_cli.kanban_db import write_board_metadata as w; w('house', name='Theirs'); print(0)")
    row = world.rows(text)["default/planning_kits/house"]
    assert [(c.field, c.row) for c in row.changes] == [("board", FieldRow.DRIFT)]
    world.apply(text, Options(restore=("main/default/planning_kits/house",)))
    assert theirs(lab)["house"]["name"] == "Kanban" and world.rows(text) == {}
    lab.hermes("from hermes_cli.kanban_db import create_board as c; c('garden'); print(0)")
    two = text.replace(
        "planning_kits:\n", 'planning_kits:\n          garden: {source: "kit:kanban", on_unsupported: degrade}\n'
    )
    row = world.rows(two)["default/planning_kits/garden"]
    assert row.row is Row.UNOWNED and row.hold is not None
    done = outcomes(world.apply(world.text()))
    assert done == {"default/planning_kits/house": "applied"} and set(theirs(lab)) == {"default", "garden"}


class _At:
    def __init__(self, path: Path) -> None:
        self.path = path
