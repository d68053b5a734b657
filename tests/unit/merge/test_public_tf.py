"""Terraform's rule for values read back after an apply."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.merge import show
from reconciler.verify import disagreements
from reconciler_specs.shape import SCALAR, Class, Json, Shape

TABLE = json.loads((Path(__file__).parents[2] / "cases/public/tf_object_compatible.json").read_text("utf-8"))


def plain(value: Json) -> Json:
    """Their encoding as our JSON: null is null, containers lose their type, an unknown keeps a scalar's."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    for mark in ("$map", "$set", "$tuple"):
        if mark in value:
            return plain(value[mark])
    return None if "$null" in value else {k: v if k == "$unknown" else plain(v) for k, v in value.items()}


def shape(value: Json) -> Shape:
    """Sets where the encoding says so; members have no sets below them in this table."""
    if isinstance(value, dict) and "$set" in value:
        return Shape(Class.SET)
    if isinstance(value, dict):
        return Shape(Class.MAP, fields={k: shape(v) for k, v in value.items()})
    return SCALAR


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda c: c["id"])
def test_compatible(case: dict[str, Any]) -> None:
    found = disagreements(plain(case["planned"]), plain(case["actual"]), shape(case["planned"]))
    assert bool(found) is bool(case["expected_errors"]), found
    for error in case["expected_errors"]:
        # Their path leads to the container, ours to the member that differs.
        path = re.sub(r'\["(.*)"\]', r".\1", error.partition(":")[0])
        assert any(show(p).startswith(path) for p in found), (path, found)


def test_all_cases_are_here() -> None:
    assert len(TABLE["cases"]) == TABLE["meta"]["case_count"] == 47
