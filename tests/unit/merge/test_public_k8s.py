"""kubectl's three-way table for untyped objects: maps by key, lists whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.merge import covers, merge, shape_over
from reconciler.observe import ABSENT
from reconciler.values import same

TABLE = json.loads((Path(__file__).parents[2] / "cases/public/k8s_json_three_way.json").read_text("utf-8"))


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda c: c["id"])
def test_result(case: dict[str, Any]) -> None:
    base = ABSENT if case["base"] is None else case["base"]
    shape = shape_over(case["desired"], base)
    result = merge(shape, base, case["desired"], case["observed"])
    assert same(result, case["expected_result"])
    assert covers(shape, result, case["desired"])
    assert same(merge(shape, case["desired"], case["desired"], result), result)


def test_all_cases_are_here() -> None:
    assert len(TABLE["cases"]) == TABLE["meta"]["case_count"] == 23
