"""Planning kits of a native home: one file each, strict, idempotent, and with room for what others keep in it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from native.lab import AT, do, refused, serving, tree
from reconciler_native import wire
from reconciler_native.context import Expect
from reconciler_native.home import Home
from reconciler_native.operator import Line, apply_lines, apply_operator
from reconciler_shape.plain import digest

FLOW: dict[str, Any] = {
    "id": "work",
    "label": "Work",
    "statuses": [
        {"id": "todo", "label": "To do", "intrinsic": "planned", "initial": True},
        {"id": "doing", "intrinsic": "in-progress"},
        {"id": "done", "intrinsic": "closed"},
    ],
    "transitions": [{"from": "todo", "to": "doing"}, {"from": "doing", "to": "done"}],
}
KIT: dict[str, Any] = {
    "name": "delivery",
    "kind": "project",
    "title": "Delivery",
    "purpose": "One card per piece of work.",
    "container": {"id": "workspace", "label": "Workspace"},
    "types": [{"id": "task", "label": "Task", "flow": "work"}],
    "flows": [FLOW],
    "board": {"slug": "house", "name": "House"},
}


def kits(home: Path, profile: str = "default") -> dict[str, Any]:
    return {kit["name"]: kit for kit in do(home, "kits.list", profile)["kits"]}


def test_a_kit_is_kept_in_a_file_of_its_own(home: Path) -> None:
    before = tree(home)
    made = do(home, "kits.apply", **KIT)
    assert made["kit"] == KIT
    path = home / "kits" / "delivery.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert set(tree(home)) - set(before) == {"kits/delivery.yaml"}
    assert kits(home) == {"delivery": KIT}
    written = tree(home)
    again = do(home, "kits.apply", **KIT)
    assert tree(home) == written and again["ran"].endswith("(as it was)")
    # Only what is given changes; null takes a field away.
    done = do(home, "kits.apply", name="delivery", title="Deliveries", board=None)
    assert done["ran"] == "applied kit delivery in profile default (title, board)"
    expected = {**{k: v for k, v in KIT.items() if k != "board"}, "title": "Deliveries"}
    assert kits(home) == {"delivery": expected}
    assert do(home, "kits.remove", name="delivery")["deleted"]
    assert kits(home) == {} and not path.exists()
    assert refused(home, "kits.remove", name="delivery") == "kits_remove: no kit delivery"


def test_a_kit_of_a_source_keeps_the_types_that_are_named(home: Path) -> None:
    do(home, "profiles.create", name="coder")
    do(home, "kits.apply", "coder", name="house", source="viable:project", types=["task", "bug"])
    assert kits(home, "coder")["house"] == {"name": "house", "source": "viable:project", "types": ["task", "bug"]}
    assert kits(home) == {}
    assert (home / "profiles" / "coder" / "kits" / "house.yaml").exists()


def test_what_others_keep_in_the_file_stays(home: Path) -> None:
    do(home, "kits.apply", **KIT)
    path = home / "kits" / "delivery.yaml"
    text = path.read_text().replace("  label: Task\n", "  label: Task\n  colour: red\n")
    path.write_text("# by hand\n" + text + "theirs: {a: 1}\n")
    do(home, "kits.apply", name="delivery", purpose="Another.")
    do(home, "kits.apply", name="delivery", types=[{"id": "bug"}, {"id": "task", "label": "Job", "flow": "work"}])
    assert path.read_text().startswith("# by hand\n") and "theirs: {a: 1}\n" in path.read_text()
    kit = kits(home)["delivery"]
    assert kit["types"] == [{"id": "bug"}, {"id": "task", "label": "Job", "flow": "work", "colour": "red"}]
    assert (kit["theirs"], kit["purpose"]) == ({"a": 1}, "Another.")


def statuses(*found: dict[str, Any]) -> dict[str, Any]:
    return {"flows": [{"id": "work", "statuses": list(found)}]}


TODO = {"id": "todo", "intrinsic": "planned"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "../x"}, "no name of a kit"),
        ({"name": "House"}, "no name of a kit"),
        ({"name": ""}, "name is required"),
        ({"force": True}, "unknown argument 'force'"),
        ({"source": "npm:x"}, "source 'npm:x' is none"),
        ({"title": 5}, "title must be a text"),
        ({"container": {"label": "x"}}, "container.id is required"),
        ({"container": {"id": "a", "x": 1}}, "container.x is not known"),
        ({"board": {"name": "House"}}, "board.slug is required"),
        ({"board": {"slug": "a b"}}, "board.slug '‹hidden›' is not one"),
        ({"types": "task"}, "types: a list is expected"),
        ({"types": []}, "types: a list is expected"),
        ({"types": ["task"]}, "only named"),
        ({"types": [{"id": "task"}, {"id": "task"}]}, "types[1]: the id 'task' stands there twice"),
        ({"types": [{"label": "x"}]}, "types[0]: id is needed"),
        ({"types": [{"id": "task", "flow": "nope"}]}, "names the flow 'nope'"),
        ({"types": [5]}, "types[0]: a map is expected"),
        ({"flows": [{"id": "work"}]}, "flows[0].statuses: a list is expected"),
        (statuses({"id": "todo"}), "flows[0].statuses[0]: intrinsic is needed: one of planned, in-progress, closed"),
        (statuses({**TODO, "initial": 1}), "flows[0].statuses[0].initial: true or false is expected"),
        (statuses(TODO, TODO), "flows[0].statuses[1]: the id 'todo' stands there twice"),
        (statuses({**TODO, "initial": True}, {**TODO, "id": "b", "initial": True}), "more than one status is initial"),
        (
            {"flows": [{**FLOW, "transitions": [{"from": "todo", "to": "gone"}]}]},
            'flows[0].transitions[0].to: the flow has no status the text "gone"',
        ),
        ({"flows": [{**FLOW, "id": "other"}]}, "names the flow 'work'"),
        ({"purpose": "x" * (1 << 18)}, "larger than 256 KiB"),
    ],
    ids=str,
)
def test_a_wrong_kit_is_refused_by_name_and_changes_nothing(home: Path, change: dict[str, Any], said: str) -> None:
    assert said in refused(home, "kits.apply", **{**KIT, **change})


def test_a_kit_has_to_say_something(home: Path) -> None:
    assert "changes nothing" in refused(home, "kits.apply", name="a")
    assert "would be empty" in refused(home, "kits.apply", name="a", title=None)
    assert not (home / "kits").exists()


def test_lines_of_one_batch_see_each_other_and_a_refused_one_leaves_nothing(home: Path) -> None:
    lines: list[tuple[str, dict[str, Any]]] = [
        ("kits.apply", {"name": "a", "title": "A"}),
        ("kits.apply", {"name": "a", "purpose": "x", "types": ["t"]}),
        ("kits.list", {}),
        ("kits.apply", {"name": "b", "title": "B"}),
        ("kits.remove", {"name": "b"}),
        ("kits.remove", {"name": "b"}),
    ]
    answers = apply_lines(Home(home), [Line(op, args) for op, args in lines], AT)
    assert [answer["ok"] for answer in answers] == [True, False, True, True, True, False]
    assert answers[2]["result"]["kits"] == [{"name": "a", "title": "A"}]
    assert [path.name for path in (home / "kits").iterdir()] == ["a.yaml"]


def test_a_kit_that_changed_since_it_was_seen_is_stale(home: Path) -> None:
    do(home, "kits.apply", name="a", title="A")
    seen = Expect(b"k", digest({"title": "A"}, b"k"))
    assert apply_operator(Home(home), "kits.apply", {"name": "a", "title": "B"}, expect=seen)["ok"]
    for op, args in (("kits.apply", {"name": "a", "title": "C"}), ("kits.remove", {"name": "a"})):
        assert apply_operator(Home(home), op, args, expect=seen)["stale"]


def test_a_broken_kit_holds_up_its_own_verbs_only(home: Path) -> None:
    (home / "kits").mkdir()
    (home / "kits" / "a.yaml").write_text("- no mapping\n")
    (home / "kits" / "Not A Kit.yaml").write_text("[")
    assert refused(home, "kits.list").startswith(f"{home}/kits/a.yaml:1:1")
    assert refused(home, "kits.apply", name="a", title="A").startswith(f"{home}/kits/a.yaml:1:1")
    assert do(home, "kits.apply", name="b", title="B")
    (home / "kits" / "a.yaml").unlink()
    assert set(kits(home)) == {"b"}


def test_a_linked_folder_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / "kits").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused(home, "kits.apply", name="a", title="A")
    assert kits(home) == {}


def test_the_live_door_keeps_kits_too(home: Path) -> None:
    with serving(home):
        assert wire.call(home, {"op": "kits.apply", "args": KIT})["ok"]
        listed = wire.call(home, {"op": "kits.list"})["result"]["kits"]
        assert json.loads(json.dumps(listed)) == [KIT]
        assert wire.call(home, {"op": "kits.remove", "args": {"name": "delivery"}})["ok"]
    assert kits(home) == {}
