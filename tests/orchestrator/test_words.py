"""A job's words, there and back; and the cron lines that the door itself would read."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import lab
from reconciler.observe import Observed, Store, Unknown
from reconciler_orchestrator import store, words
from reconciler_shape import schedule
from reconciler_shape.hiding import Hider

PARTS = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1)


@given(to=st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True), chat=PARTS, thread=st.none() | PARTS)
def test_a_target_is_read_as_it_was_written(to: str, chat: str, thread: str | None) -> None:
    if to in ("local", "home", "origin"):
        to += "x"
    value = {"to": to, "chat": chat, **({"thread": thread} if thread else {})}
    assert words.unfit(value) == ""
    assert words.target(words.word_of(value)) == value


@pytest.mark.parametrize("value", [{"to": "slack", "thread": "T"}, {"to": "slack", "chat": "C:1"}, {"to": "origin"}])
def test_a_target_that_would_be_read_as_another(value: Any) -> None:
    assert "read as another target" in words.unfit(value)


def test_origin_is_nothing_that_a_setup_can_say() -> None:
    assert words.target("origin") == {"$native": "origin"}
    assert words.target("a:b:c:d") == {"$native": "a:b:c:d"}


LINES = (
    "* * * * *", "*/5 * * * *", "0 8 * * 1-5", "0 8 * * mon-fri", "0 0 29 2 *", "0 0 1,15 * *", "5/10 * * * *",
    "0-30/5 * * * *", "0 0 * * 7", "0 0 * * 0", "0 0 * jan,jul *", "59 23 31 12 7", "0 0 L * *", "0 0 * * 5L",
    "0 0 * * 1#2", "0 0 ? * 1", "0 0 15W * *", "*/0 * * * *", "0 0 * * 5-2", "0 0 * * fri-mon", "60 * * * *",
    "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "*/70 * * * *", "1,2,3-9/2 4 * * *", "1-3,5 * * * *",
    "0 0 * * sun", "0 0 * * sat,sun", "-5 * * * *", "1- * * * *", "1,,2 * * * *", "*/5/2 * * * *", "007 * * * *",
    "H * * * *", "R * * * *", "* * * * * ",
)  # fmt: skip


@pytest.mark.orchestrator
def test_cron_lines_are_judged_as_the_door_judges_them() -> None:
    """What the door would refuse is refused at plan time. Stricter is fine, and listed."""
    script = lab.command()[1].replace("bin/orchestrator.mjs", "cron.mjs")
    code = (
        f"import {{ parseCron }} from {json.dumps(script)};"
        "const read = (l) => { try { parseCron(l); return true; } catch { return false; } };"
        f"console.log(JSON.stringify({json.dumps([schedule.cron(line) for line in LINES])}.map(read)));"
    )
    done = subprocess.run(
        [lab.command()[0], "--input-type=module", "-e", code], capture_output=True, text=True, check=True
    )
    theirs = dict(zip(LINES, json.loads(done.stdout), strict=True))
    ours = {line: not words.canonical({"cron": line}, "")[1] for line in LINES}
    assert {line for line in LINES if ours[line] != theirs[line]} == {"007 * * * *"}
    assert not ours["007 * * * *"]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("every 120 min", {"every": "120m"}),
        ("cron 0 8 * * mon Europe/Vienna", {"cron": "0 8 * * 1", "tz": "Europe/Vienna"}),
        ("cron 0 8 * * 1 UTC", {"cron": "0 8 * * 1"}),
        ("once at 2031-02-03T07:00:00.000Z", {"at": "2031-02-03T07:00:00Z"}),
        ("every 0.5 min", {"$native": "every 0.5 min"}),
        ("soon", {"$native": "soon"}),
        (None, {"$native": None}),
    ],
)
def test_the_daemon_tells_a_schedule_as_text(text: Any, form: Any) -> None:
    assert words.listed({"schedule": text, "prompt": "p"})["schedule"] == form


@pytest.mark.parametrize("data", [b"[]", b'{"jobs": {}}', b'{"jobs": [1]}', b"{", b"\xff", b'"x"', b"[" * 100_000])
def test_a_store_that_is_none(data: bytes) -> None:
    with pytest.raises(store.Unreadable, match=r"^jobs\.json: "):
        store.parse(data, "jobs.json")


def test_states_of_a_store() -> None:
    assert store.parse(None, "f").state is Store.MISSING
    assert store.parse(b" {} ", "f").state is store.parse(b"", "f").state is Store.EMPTY
    assert store.parse(b'{"jobs": []}', "f").state is Store.PROPER


def test_odd_records_are_told_and_left_alone() -> None:
    records = [{"id": "a", "prompt": "1"}, {"id": "a", "prompt": "2"}, {"prompt": "3"}, {"id": 4}, {"id": "b"}]
    notes: list[str] = []
    file = store.parse(json.dumps({"jobs": records}).encode(), "f")
    things = store.observed("default", file, None, Hider(b"k"), notes)
    assert sorted(things) == ["a", "b"]
    assert all(isinstance(value, Unknown) for value in things["a"].fields.values())
    assert notes == ["default: two jobs have the id a", "default: 2 job record(s) without an id are left alone"]
    assert isinstance(things["b"], Observed)


@pytest.mark.parametrize(
    ("item", "paused"),
    [
        ({"enabled": False}, True),
        ({"enabled": True}, False),
        ({"enabled": False, "schedule": {"kind": "once"}, "last_run_at": "2026-01-01T00:00:00Z"}, False),
        ({"enabled": False, "repeat": {"times": 2, "completed": 2}}, False),
        ({"enabled": False, "repeat": {"times": 2, "completed": 1}}, True),
        ({"enabled": False, "repeat": {"times": None, "completed": 9}}, True),
    ],
)
def test_a_job_that_is_over_is_not_paused(item: dict[str, Any], paused: bool) -> None:
    assert words.observed({"id": "a", **item})["paused"] is paused
