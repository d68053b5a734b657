"""Schedules, the next run, and delivery targets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]

from reconciler_native import cron, jobwords, schedule, target
from reconciler_native.errors import Refused

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
ZONES = ("Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo")
LINES = (
    "30 * * * *", "0 8 * * 1-5", "30 2 * * *", "0 0 13 * 5", "15 3 1 * *", "0 */6 * * *", "0 2 * * sun",
    "5 4 1-7 * mon", "0 0 1 jan *", "45 1-3 * * *", "0 0 */2 * 1", "*/20 1,2 * * *",
)  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("line", LINES)
def test_the_next_run_is_croniters_but_on_the_days_when_clocks_change(line: str, zone: str) -> None:
    tz = ZoneInfo(zone)
    moment, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    compared = 0
    while moment < end:
        mine = cron.after(line, moment, zone)
        assert mine is not None and mine > moment
        if _steady(moment, tz) and _steady(mine, tz):
            theirs = croniter(line, moment.astimezone(tz)).get_next(datetime).astimezone(UTC)
            assert mine == theirs, (moment, mine, theirs)
            compared += 1
        # Hourly lines are looked at in leaps, around the changes in full.
        moment = mine if compared % 7 else max(mine, moment + timedelta(hours=61))
    assert compared


def _steady(moment: datetime, tz: ZoneInfo) -> bool:
    """Whether the zone's offset does not change within a day of the moment."""
    return len({(moment + timedelta(days=d)).astimezone(tz).utcoffset() for d in (-1.1, 0, 1.1)}) == 1


@pytest.mark.parametrize(
    ("line", "zone", "after", "runs"),
    [
        # Spring: 02:30 is skipped, and runs when the clock has moved on, once.
        ("30 2 * * *", "Europe/Vienna", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ("30 2 * * *", "America/New_York", "2026-03-08T00:00Z", ["2026-03-08T07:00Z", "2026-03-09T06:30Z"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", ["2026-10-03T15:30Z", "2026-10-04T15:15Z"]),
        # Autumn: 02:30 comes twice, and runs once; a line that ticks goes on ticking.
        ("30 2 * * *", "Europe/Vienna", "2026-10-24T12:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
        (
            "30 * * * *",
            "Europe/Vienna",
            "2026-10-25T00:00Z",
            ["2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"],
        ),
        ("30 * * * *", "Europe/Vienna", "2026-03-29T00:00Z", ["2026-03-29T00:30Z", "2026-03-29T01:30Z"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", ["2026-04-04T14:45Z", "2026-04-05T15:15Z"]),
        ("0 0 29 2 *", "UTC", "2024-03-01T00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]),
    ],
)
def test_the_days_when_clocks_change(line: str, zone: str, after: str, runs: list[str]) -> None:
    moment = datetime.fromisoformat(after)
    for run in runs:
        found = cron.after(line, moment, zone)
        assert found == datetime.fromisoformat(run)
        moment = found


@pytest.mark.parametrize("line", ["0 0 L * *", "0 0 * * 1#2", "61 * * * *", "* * * *", "*/0 * * * *", "0 0 * xyz *"])
def test_a_line_beyond_the_five_plain_forms_is_no_line(line: str) -> None:
    with pytest.raises(ValueError):
        cron.Line(line)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("every 2h", {"kind": "interval", "minutes": 120}),
        ("30m", {"kind": "interval", "minutes": 30}),
        ("in 30m", {"kind": "once", "run_at": "2026-12-01T08:30:00+00:00"}),
        ("0 9 * * 1-5", {"kind": "cron", "expr": "0 9 * * 1-5"}),
        ("0  9 * * MON", {"kind": "cron", "expr": "0 9 * * MON"}),
        ("2027-01-01T09:00:00+01:00", {"kind": "once", "run_at": "2027-01-01T08:00:00+00:00"}),
        ('{"kind": "interval", "minutes": 120}', {"kind": "interval", "minutes": 120}),
        (
            {"kind": "cron", "expr": "0 0 29 2 *", "tz": "Europe/Vienna"},
            {"kind": "cron", "expr": "0 0 29 2 *", "tz": "Europe/Vienna"},
        ),
    ],
)
def test_the_forms_of_a_schedule(spec: Any, found: dict[str, Any]) -> None:
    parsed = schedule.parse(spec, NOW, "")
    assert {k: v for k, v in parsed.items() if k != "display"} == found
    assert schedule.next_run(parsed, NOW, "")
    again = schedule.parse(schedule.view(parsed), NOW, "")
    assert schedule.view(again) == schedule.view(parsed)


@pytest.mark.parametrize(
    "spec",
    [
        "0 0 30 2 *", "0 0 31 4 *", "@daily", "0 9 * * * *", "every monday 9am", "every 0m", "2020-01-01T00:00:00Z",
        "", None, "{broken", 7, ["0 9 * * *"], "in 99999999999d",
        {"kind": "cron", "expr": "0 9 * * *", "tz": "America/New_Yrok"},
        {"kind": "cron", "expr": "0 9 * * *", "tz": "EST5"}, {"kind": "cron", "expr": "R 9 * * *"},
        {"kind": "interval", "minutes": 0}, {"kind": "interval", "minutes": 1.5}, {"kind": "interval", "minutes": True},
        {"kind": "interval", "minutes": 10**9}, {"kind": "once", "run_at": "soon"}, {"kind": "never"},
        {"kind": "once", "run_at": "2026-12-01T08:00:00Z"}, {"kind": "cron", "expr": "* * * * *", "x": 1},
    ],
)  # fmt: skip
def test_what_no_clock_can_run_is_refused_by_name(spec: Any) -> None:
    with pytest.raises(Refused) as refused:
        schedule.parse(spec, NOW, "")
    assert "schedule" in str(refused.value)


@pytest.mark.parametrize(
    ("word", "parsed", "said"),
    [
        ("local", {"kind": "local"}, "local"),
        ("home", {"kind": "home"}, "owner_chat"),
        ("origin", {"kind": "origin"}, {"$native": "origin"}),
        ("slack", {"kind": "explicit", "platform": "slack"}, {"to": "slack"}),
        (
            "slack:C1:T1",
            {"kind": "explicit", "platform": "slack", "chat_id": "C1", "thread_id": "T1"},
            {"to": "slack", "chat": "C1", "thread": "T1"},
        ),
        (
            "matrix:!a:b.c:$t",
            {"kind": "explicit", "platform": "matrix", "chat_id": "!a:b.c", "thread_id": "$t"},
            {"to": "matrix", "chat": "!a:b.c", "thread": "$t"},
        ),
    ],
)
def test_a_target_in_its_three_forms(word: str, parsed: dict[str, Any], said: Any) -> None:
    assert target.parse(word) == parsed
    assert target.accept(parsed, "deliver") == word == target.accept(word, "deliver")
    assert target.declared(word) == said
    if said != {"$native": word}:
        assert target.word_of(said) == word


@pytest.mark.parametrize(
    "word",
    [
        "slack:C1:T1:extra",
        "slack:",
        "slack:C1:",
        ":C1",
        "",
        " ",
        5,
        "a b:c",
        {"kind": "explicit"},
        {"kind": "x"},
        {"kind": "local", "x": 1},
        {"kind": "explicit", "platform": "slack", "chat_id": "a:b"},
    ],
)
def test_a_target_that_would_lose_a_part_is_refused(word: Any) -> None:
    with pytest.raises(Refused):
        target.accept(word, "deliver")


def test_lines_that_mean_the_same_are_one() -> None:
    assert jobwords.canonical({"cron": "0  8 * JAN mon-Fri"}, "") == ({"cron": "0 8 * 1 1-5"}, "")
    assert jobwords.canonical({"cron": "0 8 * * *", "tz": "UTC"}, "") == ({"cron": "0 8 * * *"}, "")
    assert jobwords.canonical({"cron": "0 8 * * *"}, "", "Europe/Vienna") == (
        {"cron": "0 8 * * *", "tz": "Europe/Vienna"},
        "",
    )
    assert jobwords.canonical({"cron": "0 8 * * *", "tz": "UTC"}, "Europe/Vienna")[0] == {
        "cron": "0 8 * * *",
        "tz": "UTC",
    }
    assert jobwords.canonical({"every": "2h"}, "") == ({"every": "120m"}, "")
