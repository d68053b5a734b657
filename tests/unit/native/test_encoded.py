"""An answer goes out as the JSON that it is, with listed jobs taken in the form they are kept in."""

from __future__ import annotations

import json

import pytest

from reconciler_native.shown import Shown, encoded

JOB = {"id": "a1", "name": "zürich \u2028 \ud83d\ude00", "prompt": 'say "]}}"', "schedule": {"kind": "interval"}}


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("hidden", [False, True])
def test_listed_jobs_are_as_if_encoded_now(count: int, hidden: bool) -> None:
    jobs = [Shown({**JOB, "id": f"a{n}"}, "") for n in range(count)]
    listed = [*jobs, {"id": "b", "prompt": {"$hidden": "x"}}] if hidden else jobs
    answer = {"ok": True, "result": {"ran": f"{count} cron jobs", "jobs": listed}}
    assert json.loads(encoded(answer)) == json.loads(json.dumps(answer))


@pytest.mark.parametrize(
    "answer", [{"ok": False, "error": "]}}"}, {"ok": True, "result": {"ran": "x"}}, {"ok": True, "result": {"jobs": 1}}]
)
def test_any_other_answer(answer: dict[str, object]) -> None:
    assert json.loads(encoded(answer)) == answer
