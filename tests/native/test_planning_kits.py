"""Planning kits of native homes through the engine: made, changed, drifted, captured, adopted and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from native.lab import do
from reconciler.action import FieldRow, Row
from reconciler.capture import capture
from reconciler.draft import draft, survey
from reconciler.plan import Options
from reconciler.testing.kit import Kit, World, outcomes, tree
from reconciler.testing.kit import world as make_world
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider
from reconciler_specs.edit import EditRefused
from reconciler_specs.kit import ready, ready_kit
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup

DELIVERY = """title: Delivery
types: [{id: task, label: Task, flow: work}, {id: bug, flow: work}]
flows:
  - id: work
    statuses:
      - {id: todo, intrinsic: planned}
      - {id: done, intrinsic: closed}
    transitions: [{from: todo, to: done}]
"""
SAID = """
planning_kits:
  delivery: {source: "file:kits/delivery.yaml", board: {slug: house, workdir: /srv}}
  shop: {source: "viable:project", types: [task]}
"""
INLINE = """
planning_kits:
  own:
    kit: {title: Own, types: [{id: t, flow: f}], flows: [{id: f, statuses: [{id: a, intrinsic: planned}]}]}
"""


class Plain:
    """A home that nobody else edits but by its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@pytest.fixture
def world(tmp_path: Path) -> World:
    def make(path: Path) -> Any:
        init(path)
        return Plain(path)

    (tmp_path / "kits").mkdir()
    (tmp_path / "kits" / "delivery.yaml").write_text(DELIVERY)
    return make_world(Kit(NativeProvider(), make), tmp_path)


def stored(world: World, name: str) -> Any:
    return yaml.safe_load((world.home.path / "kits" / f"{name}.yaml").read_text())


def test_kits_are_made_converge_and_stay(world: World) -> None:
    text = world.text(rest=SAID)
    world.converge(text)
    before = tree(world.home.path)
    assert world.apply(text) == [] and tree(world.home.path) == before
    made = stored(world, "delivery")
    assert made["flows"][0]["statuses"][0] == {"id": "todo", "intrinsic": "planned", "initial": True}
    assert made["board"] == {"slug": "house", "workdir": "/srv"} and "source" not in made
    assert stored(world, "shop") == {"source": "viable:project", "types": ["task"]}


@pytest.mark.parametrize("name", ready())
def test_a_ready_kit(world: World, name: str) -> None:
    world.converge(world.text(rest=f'planning_kits: {{own: {{source: "kit:{name}"}}}}'))
    assert stored(world, "own") == ready_kit(name)


def test_what_others_keep_in_a_kit_is_no_drift_and_stays(world: World) -> None:
    text = world.text(rest=SAID)
    world.converge(text)
    path = world.home.path / "kits" / "delivery.yaml"
    path.write_text("# by hand\n" + path.read_text().replace("  flow: work\n", "  flow: work\n  colour: red\n", 1))
    path.write_text(path.read_text() + "purpose: Theirs.\n")
    row = world.rows(text)["default/planning_kits/delivery"]
    assert [c.row for c in row.changes] == [FieldRow.STAMP]  # covered: nothing to write
    (world.root / "kits" / "delivery.yaml").write_text(DELIVERY.replace("label: Task", "label: Job"))
    world.converge(text)
    made = stored(world, "delivery")
    assert made["types"][0] == {"id": "task", "label": "Job", "flow": "work", "colour": "red"}
    assert made["purpose"] == "Theirs." and path.read_text().startswith("# by hand\n")


def test_an_edit_in_the_home_is_drift_and_can_be_restored(world: World) -> None:
    text = world.text(rest=SAID)
    world.converge(text)
    do(world.home.path, "kits.apply", name="delivery", title="Theirs")
    row = world.rows(text)["default/planning_kits/delivery"]
    assert [(c.field, c.row) for c in row.changes] == [("kit", FieldRow.DRIFT)]
    done = outcomes(world.apply(text, Options(restore=("main/default/planning_kits/delivery",))))
    assert done == {"default/planning_kits/delivery": "applied"}
    assert stored(world, "delivery")["title"] == "Delivery"


def test_a_kit_that_left_is_deleted_and_its_fields_are_taken_away(world: World) -> None:
    world.converge(world.text(rest=SAID))
    less = SAID.replace(", board: {slug: house, workdir: /srv}", "").replace(", types: [task]", "")
    world.converge(world.text(rest=less))
    assert "board" not in stored(world, "delivery") and stored(world, "shop") == {"source": "viable:project"}
    done = outcomes(world.apply(world.text(), Options(allow=frozenset({"last-of-kind"}))))
    assert set(done.values()) == {"applied"}
    assert list((world.home.path / "kits").iterdir()) == []


def test_a_profile_with_kits_of_ours_goes_and_with_somebodys_stays(world: World) -> None:
    both = world.text(extra='      coder:\n        planning_kits: {own: {source: "kit:kanban"}}\n')
    world.converge(both)
    do(world.home.path, "kits.apply", "coder", name="theirs", title="T")
    row = world.rows(world.text())["coder"]
    assert row.row is Row.DELETE and row.hold is not None and "planning_kits/theirs" in row.hold.why
    do(world.home.path, "kits.remove", "coder", name="theirs")
    world.converge(world.text())
    assert not (world.home.path / "profiles" / "coder").exists()


def test_a_broken_kit_blocks_its_own_row_and_no_other(world: World) -> None:
    text = world.text(rest=SAID)
    world.converge(text)
    (world.home.path / "kits" / "delivery.yaml").write_text("- no mapping\n")
    changed = text.replace("types: [task]", "types: [task, bug]")
    rows = world.rows(changed)
    assert {c.row for c in rows["default/planning_kits/delivery"].changes} == {FieldRow.BLOCKED}
    assert outcomes(world.apply(changed))["default/planning_kits/shop"] == "applied"


def test_a_linked_folder_of_kits_is_unknown(world: World, tmp_path: Path) -> None:
    (world.home.path / "kits").symlink_to(tmp_path)
    row = world.rows(world.text(rest=SAID))["default/planning_kits/shop"]
    assert row.row is Row.BLOCKED and "is a link" in row.reason


def test_what_is_adopted_is_the_same_setup_again(world: World) -> None:
    world.converge(world.text(rest=SAID))
    provider = NativeProvider()
    made = draft(survey(str(world.home.path), {"native": provider}), "main", str(world.home.path))
    kits = made.block["profiles"]["default"]["planning_kits"]
    assert NativeProvider().behind(world.space(world.text()).ref("main")) == []  # a copy takes them along
    assert kits["shop"] == {"source": "viable:project", "types": ["task"]}
    setup = load_text(render_setup("solo", {"main": made.block}), base_dir=world.root)
    want = load_text(world.text(rest=SAID), base_dir=world.root)
    assert {a: r.fields for a, r in setup.desired("main").items()} == {
        a: r.fields for a, r in want.desired("main").items()
    }


def test_capture_writes_a_kit_that_stands_in_the_setup_and_no_file_beside_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    for rest, name in ((INLINE, "own"), (SAID, "delivery")):
        text = world.text(rest=rest)
        (world.root / "setup.yaml").write_text(text)
        world.converge(text)
        do(world.home.path, "kits.apply", name=name, title="Theirs")
        target = [f"main/default/planning_kits/{name}"]
        if name == "delivery":
            with pytest.raises(EditRefused, match="source"):
                capture(world.space(text), target, lambda: world.space(""))
            continue
        taken = capture(world.space(text), target, lambda: world.space((world.root / "setup.yaml").read_text()))
        assert [item.field for item in taken] == ["kit"]
        assert world.rows((world.root / "setup.yaml").read_text()) == {}
