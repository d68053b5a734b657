"""The next run beside a second library: cronsim, which goes by Debian's cron on the days when clocks change.

croniter, which `values.cron` and Hermes use, is the first (test_when.py); it agrees but on those days, on which it has
a history of errors. Neither is our clock: cronsim leaves out runs where a zone moves by half an hour (below), and does
not come back at all for some lines in zones that change at midnight (Atlantic/Azores).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler_native import cron, schedule
from reconciler_native.errors import Refused
from reconciler_specs import values

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney", "America/Santiago")  # the last changes at midnight
DAILY = (
    "0 8 * * 1-5", "30 2 * * *", "0 0 13 * 5", "15 3 1 * *", "0 2 * * sun", "5 4 1-7 * mon", "0 0 1 jan *",
    "0 0 * * *", "30 0 * * *", "59 23 * * *", "0 1,2,3 * * *", "0-59/20 2 * * *", "10 1-2 * * 0", "0 0 29 2 *",
)  # fmt: skip
OFTEN = ("30 * * * *", "*/15 * * * *", "0 */6 * * *", "*/20 1,2 * * *", "*/30 2 * * *", "45 1-3 * * *", "* 2 * * *")
"""Looked at around the changes only: the rest of the year shows nothing more."""


def ours(line: str, zone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
    moment = cron.after(line, begin, zone)
    while moment is not None and moment < end:
        yield moment
        moment = cron.after(line, moment, zone)


def theirs(line: str, zone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
    for moment in CronSim(line, begin.astimezone(ZoneInfo(zone))):
        if moment >= end:
            return
        yield moment.astimezone(UTC)


def changes(zone: str) -> list[datetime]:
    """The days before which the zone's offset was another one."""
    tz = ZoneInfo(zone)
    days = [BEGIN + timedelta(days=n) for n in range((END - BEGIN).days)]
    return [b for a, b in pairwise(days) if a.astimezone(tz).utcoffset() != b.astimezone(tz).utcoffset()]


@pytest.mark.parametrize("zone", ZONES)
def test_two_years_agree(zone: str) -> None:
    assert len(changes(zone)) == 4
    for line in DAILY:
        assert list(ours(line, zone, BEGIN, END)) == list(theirs(line, zone, BEGIN, END)), line
    for change in changes(zone):
        for line in OFTEN:
            window = change - timedelta(days=2), change + timedelta(days=2)
            assert list(ours(line, zone, *window)) == list(theirs(line, zone, *window)), (line, change)


@pytest.mark.parametrize(
    ("line", "zone", "begin", "hours", "only_ours", "why"),
    [
        # Clocks go from 02:00 to 02:30 there, and back from 02:00 to 01:30.
        ("30 * * * *", "Australia/Lord_Howe", "2026-10-03T13:00Z", 6, ["2026-10-03T15:30Z"], "02:30 is shown"),
        ("0 */6 * * *", "Australia/Lord_Howe", "2026-10-03T13:00Z", 24, ["2026-10-03T19:00Z"], "06:00 is as ever"),
        ("30 * * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", 6, ["2026-04-04T15:00Z"], "01:30 is shown twice"),
        # A star with a step is a day like another: either day will do, as croniter has it for Hermes.
        ("0 0 */2 * 1", "UTC", "2026-06-01T12:00Z", 72, ["2026-06-03T00:00Z"], "an odd day, and no Monday"),
    ],
)
def test_where_they_differ_on_purpose(
    line: str, zone: str, begin: str, hours: int, only_ours: list[str], why: str
) -> None:
    window = datetime.fromisoformat(begin), datetime.fromisoformat(begin) + timedelta(hours=hours)
    mine, other = set(ours(line, zone, *window)), set(theirs(line, zone, *window))
    assert other <= mine
    assert mine - other == {datetime.fromisoformat(run) for run in only_ours}, why


number = st.integers(0, 65).map(str)
part = st.builds("".join, st.tuples(st.sampled_from(["*", "*", "0", "7", "12"]) | number | st.builds("{}-{}".format,
    number, number), st.sampled_from(["", "", "/2", "/0", "/30", "/61"])))  # fmt: skip
field = st.lists(part, min_size=1, max_size=2).map(",".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(field, min_size=5, max_size=5).map(" ".join))
def test_what_is_taken_at_sight_is_what_the_setup_takes(text: str) -> None:
    """`schedule` asks `values.cron`, which is slow to load, about unusual lines only."""
    runs = cron.is_usual(text) and cron.after(text, BEGIN, "UTC") is not None
    try:
        assert values.cron(text) == text
    except values.Refusal:
        assert not runs
    for name in ("Europe/Vienna", "UTC", "America/Argentina", "Europe/Nowhere", "EST5", "../x", "Etc/GMT+1"):
        if cron.is_zone(name):
            assert values.zone(name) == name


def test_the_last_of_february_is_accepted_and_the_thirtieth_is_not() -> None:
    now = datetime(2026, 12, 1, 8, tzinfo=UTC)
    found = schedule.parse("0 0 29 2 *", now, "")
    assert schedule.next_run(found, now, "") == datetime(2028, 2, 29, tzinfo=UTC)
    assert values.cron("0 0 29 2 *") == "0 0 29 2 *"
    with pytest.raises(Refused, match="no run within 8 years"):
        schedule.parse("0 0 30 2 *", now, "")
    with pytest.raises(values.Refusal, match="never fires within 8 years"):
        values.cron("0 0 30 2 *")
