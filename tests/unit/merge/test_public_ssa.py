"""Server-side apply's table: result, conflicts and owned paths, for one setup and for two on one home (L3).

Another applier is another setup (`others`, `clashes`); a plain updater is the home moving by itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import FieldRow
from reconciler.fields import decide
from reconciler.merge import clashes, merge, owned_paths, show
from reconciler.observe import ABSENT
from reconciler.values import same
from reconciler_specs.shape import ATOMIC, SCALAR, Class, Json, Shape
from reconciler_state.record import Base

TABLE = json.loads((Path(__file__).parents[2] / "cases/public/ssa_three_way.json").read_text("utf-8"))
ALONE = [c for c in TABLE["cases"] if not c["other_owners"]]
SHARED = [c for c in TABLE["cases"] if c["other_owners"]]

REPEATED = "no base: a claim, which asks for consent because a value was found (row 5), not a conflict"
NULL = "null is a value to us: another setup that says null says something else (L3), so both are told"
DEVIATIONS = {
    "TestDuplicates/sets/merging/remove_duplicate#op1": "a repeated member of a set is one member: nothing to write",
    "TestDuplicates/list/merge/change_duplicated_item#op1": REPEATED,
    "TestDuplicates/list/merge/unchanged_duplicated_item#op1": REPEATED,
    "TestDuplicates/list/merge/apply_update_duplicates_apply_without#op2": (
        "our base is what was said, not who owns it since: the home repeated an item that the setup drops, so held"
    ),
    "TestExtractApply/extract_apply_empty_structure_add_later_list#op1": NULL,
    "TestExtractApply/extract_apply_empty_structure_add_later_map#op1": NULL,
    "TestMultipleAppliersNestedType/multiple_appliers_recursive_map#op1": NULL,
    "TestMultipleAppliersDeducedType/multiple_appliers_recursive_map_deduced#op1": NULL,
    "TestUpdateLeaf/update_apply_omits#op2": "row 2 comes first: what left the setup goes, whoever changed it since",
    "TestMultipleAppliersNestedType/remove_one_with_dangling_subitem_keep_one#op3": (
        "stricter: an item that the setup drops is held if the home added something below it"
    ),
}


def shape(schema: str, type_name: str) -> Shape:
    types = {t["name"]: t for t in TABLE["schemas"][schema]["types"]}

    def of(ref: dict[str, Any], depth: int) -> Shape:
        node = {**types[ref["namedType"]], **ref} if "namedType" in ref else ref
        override = ref.get("elementRelationship")
        if depth == 0 or ("scalar" in node and "map" not in node):
            return SCALAR
        # The deduced type is a scalar, a list or a map by its value; a map shape falls back to a whole value.
        if "map" in node:
            body = node["map"]
            if (override or body.get("elementRelationship")) == "atomic":
                return SCALAR
            fields = {f["name"]: of(f["type"], depth - 1) for f in body.get("fields", ())}
            inner = of(body["elementType"], depth - 1) if "elementType" in body else None
            return Shape(Class.MAP, of=inner, fields=fields)
        body = node["list"]
        if (override or body["elementRelationship"]) == "atomic":
            return ATOMIC
        if "keys" not in body:
            return Shape(Class.SET)
        item = types[body["elementType"]["namedType"]] if "namedType" in body["elementType"] else body["elementType"]
        defaults = {f["name"]: f["default"] for f in item["map"].get("fields", ()) if "default" in f}
        inner = of(body["elementType"], depth - 1)
        return Shape(Class.KEYED, of=inner, keys=tuple(body["keys"]), defaults=defaults)

    return of({"namedType": type_name}, 8)


def doc(value: Json) -> Any:
    """Their absent document is null."""
    return ABSENT if value is None else value


def extract(node: Shape, value: Any, paths: set[str], at: str = "") -> Any:
    """What an applier who owns `paths` had declared, as far as the live object still shows it."""
    below = any(p.startswith(at) and p != at for p in paths)
    if at in paths and not below:
        empty: dict[Class, Any] = {Class.MAP: {}, Class.SET: [], Class.KEYED: []}
        return value if value is None else empty.get(node.cls, value)
    if node.cls is Class.MAP and isinstance(value, dict):
        inner = {k: extract(node.fields.get(k, node.of or SCALAR), v, paths, f"{at}.{k}") for k, v in value.items()}
        return {k: v for k, v in inner.items() if v is not ABSENT} or ABSENT
    if node.cls in (Class.SET, Class.KEYED) and isinstance(value, list):
        keys = [at + min(map(show, owned_paths(node, [item])), key=len) for item in value]
        mine = [(key, item) for key, item in zip(keys, value, strict=True) if key in paths]
        if node.cls is Class.SET:
            return [item for _, item in mine] or ABSENT
        return [extract(node.of or SCALAR, item, paths, key) for key, item in mine] or ABSENT
    return value if at in paths else ABSENT


def others(case: dict[str, Any]) -> list[Any]:
    node = shape(case["schema"], case["type"])
    found = [
        extract(node, doc(case["observed"]), set(owner["paths"]))
        for owner in case["other_owners"].values()
        if owner["applied"]
    ]
    return [f for f in found if f is not ABSENT]


def conflict(case: dict[str, Any]) -> bool:
    node, desired, observed = shape(case["schema"], case["type"]), doc(case["desired"]), doc(case["observed"])
    if any(clashes(node, desired, other) for other in others(case)):
        return True
    # What we saw after our last write is what we had said: the table's other owners wrote after that.
    base = None if case["base"] is None else Base(case["base"], case["base"])
    change = decide("f", node, desired, base, observed, created=True, others=others(case))
    return change.row is FieldRow.CONFLICT


@pytest.mark.parametrize("case", ALONE, ids=lambda c: c["id"])
def test_alone(case: dict[str, Any]) -> None:
    node = shape(case["schema"], case["type"])
    base = doc(case["base"])
    if base is ABSENT and case["base_owned_paths"]:
        base = extract(node, doc(case["observed"]), set(case["base_owned_paths"]))  # their base came by `extract`
    result = merge(node, base, doc(case["desired"]), doc(case["observed"]))
    assert same(result, doc(case["expected"]["result"]))
    assert conflict(case) is bool(case["expected"]["conflicts"]) is False
    owned = {show(p) for p in owned_paths(node, doc(case["desired"]))} - {""}
    assert owned == set(case["expected"]["owned_paths_after"].get(case["manager"], ()))


def deviates(case: dict[str, Any]) -> bool:
    """What we would do is not what the table says: held against carried out, or another value written."""
    if case["expected"]["conflicts"]:
        return not conflict(case)
    if not case["force"] and conflict(case):
        return True
    node = shape(case["schema"], case["type"])
    result = merge(node, doc(case["base"]), doc(case["desired"]), doc(case["observed"]), others(case))
    return not same(result, doc(case["expected"]["result"]))


@pytest.mark.parametrize("case", SHARED, ids=lambda c: c["id"])
def test_shared(case: dict[str, Any]) -> None:
    assert deviates(case) is (case["id"] in DEVIATIONS)


def test_all_cases_are_here() -> None:
    assert len(TABLE["cases"]) == TABLE["meta"]["case_count"] == 65
    assert (len(ALONE), len(SHARED)) == (35, 30)
    assert DEVIATIONS.keys() <= {c["id"] for c in SHARED}
