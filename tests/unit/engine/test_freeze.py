"""Freeze windows: deny wins, allow leaves all else frozen, midnight, dates, and both changes of clocks in two zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.freeze import frozen
from reconciler_specs.address import Kind
from reconciler_specs.load import load_text
from reconciler_specs.window import Window

HEAD = "version: 1\nname: solo\nhomes: {main: {harness: hermes, path: /tmp/x}}\n"


def windows(text: str) -> tuple[Window, ...]:
    return load_text(f"{HEAD}policy: {{windows: [{text}]}}", "setup.yaml", Path("/")).policy_of("main").windows


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


NIGHT = '{deny: {from: "22:00", to: "06:00"}, zone: Europe/Vienna}'
FRIDAY_NIGHT = '{deny: {days: [fri], from: "22:00", to: "06:00"}, zone: UTC}'
OFFICE = '{allow: {days: [mon, tue, wed, thu, fri], from: "09:00", to: "17:00"}, zone: Europe/Vienna}'
HOLIDAYS = "{deny: {dates: 2026-12-20..2027-01-02}, zone: Europe/Vienna}"
# 2026: Vienna goes forward on 29 March at 02:00, back on 25 October at 03:00; New York on 8 March and 1 November.
SPRING = '{deny: {from: "01:30", to: "02:30"}, zone: ZONE}'
SPRING_ALLOW = '{allow: {from: "01:30", to: "02:30"}, zone: ZONE}'
VIENNA, NEW_YORK = "Europe/Vienna", "America/New_York"

# (what, windows, now, frozen until: "" not frozen, a moment, or "never")
CASES = [
    ("no window", "", "2026-06-03T12:00Z", ""),
    ("before", NIGHT, "2026-06-03T21:59:59+02:00", ""),
    ("it begins", NIGHT, "2026-06-03T22:00:00+02:00", "2026-06-04T06:00:00+02:00"),
    ("past midnight", NIGHT, "2026-06-04T03:00:00+02:00", "2026-06-04T06:00:00+02:00"),
    ("it ends", NIGHT, "2026-06-04T06:00:00+02:00", ""),
    ("now in another zone", NIGHT, "2026-06-03T20:30Z", "2026-06-04T06:00:00+02:00"),
    ("a night belongs to the day it begins on", FRIDAY_NIGHT, "2026-06-06T05:00Z", "2026-06-06T06:00Z"),
    ("and not to the day before", FRIDAY_NIGHT, "2026-06-05T05:00Z", ""),
    ("within allow", OFFICE, "2026-06-03T12:00:00+02:00", ""),
    ("outside of allow", OFFICE, "2026-06-03T18:00:00+02:00", "2026-06-04T09:00:00+02:00"),
    ("over the weekend", OFFICE, "2026-06-05T17:00:00+02:00", "2026-06-08T09:00:00+02:00"),
    ("dates, first moment", HOLIDAYS, "2026-12-20T00:00:00+01:00", "2027-01-03T00:00:00+01:00"),
    ("dates, last moment", HOLIDAYS, "2027-01-02T23:59:59+01:00", "2027-01-03T00:00:00+01:00"),
    ("dates, over", HOLIDAYS, "2027-01-03T00:00:00+01:00", ""),
    ("dates, before", HOLIDAYS, "2026-12-19T23:59:59+01:00", ""),
    ("deny wins", f"{OFFICE}, {HOLIDAYS}", "2026-12-22T12:00:00+01:00", "2027-01-04T09:00:00+01:00"),
    ("either allow will do", f"{OFFICE}, {{allow: {{days: [sun]}}, zone: UTC}}", "2026-06-07T12:00Z", ""),
    ("two that meet",
     '{deny: {from: "08:00", to: "12:00"}, zone: UTC}, {deny: {from: "12:00", to: "14:00"}, zone: UTC}',
     "2026-06-03T09:00Z", "2026-06-03T14:00Z"),
    ("always", "{deny: {days: [mon, tue, wed, thu, fri, sat, sun]}, zone: UTC}", "2026-06-03T09:00Z", "never"),
    ("allowed once, and over", "{allow: {dates: 2026-06-01}, zone: UTC}", "2026-06-03T09:00Z", "never"),
    ("far away", "{allow: {dates: 2027-05-01}, zone: UTC}", "2026-06-03T09:00Z", "2027-05-01T00:00Z"),
    ("to midnight", '{deny: {days: [wed], from: "16:00", to: "24:00"}, zone: UTC}', "2026-06-03T23:59:59+00:00",
     "2026-06-04T00:00Z"),
    # Clocks go forward: 02:30 never happens, and means the later of its two readings for a deny's end.
    ("Vienna, forward: it ends", SPRING.replace("ZONE", VIENNA), "2026-03-29T00:45Z", "2026-03-29T01:30Z"),
    ("Vienna, forward: still", SPRING.replace("ZONE", VIENNA), "2026-03-29T01:29Z", "2026-03-29T01:30Z"),
    ("Vienna, forward: over", SPRING.replace("ZONE", VIENNA), "2026-03-29T01:30Z", ""),
    ("New York, forward: still", SPRING.replace("ZONE", NEW_YORK), "2026-03-08T07:29Z", "2026-03-08T07:30Z"),
    ("New York, forward: over", SPRING.replace("ZONE", NEW_YORK), "2026-03-08T07:30Z", ""),
    # Clocks go back: 02:30 happens twice in Vienna, 01:30 twice in New York. A deny covers both, an allow neither.
    ("Vienna, back: the first", SPRING.replace("ZONE", VIENNA), "2026-10-25T00:15Z", "2026-10-25T01:30Z"),
    ("Vienna, back: between", SPRING.replace("ZONE", VIENNA), "2026-10-25T01:15Z", "2026-10-25T01:30Z"),
    ("Vienna, back: over", SPRING.replace("ZONE", VIENNA), "2026-10-25T01:30Z", ""),
    ("Vienna, back: allowed", SPRING_ALLOW.replace("ZONE", VIENNA), "2026-10-25T00:15Z", ""),
    ("Vienna, back: allowed once", SPRING_ALLOW.replace("ZONE", VIENNA), "2026-10-25T00:45Z",
     "2026-10-26T00:30Z"),
    ("New York, back: the first", SPRING.replace("ZONE", NEW_YORK), "2026-11-01T05:30Z", "2026-11-01T07:30Z"),
    ("New York, back: the second", SPRING.replace("ZONE", NEW_YORK), "2026-11-01T06:45Z", "2026-11-01T07:30Z"),
    ("New York, back: allowed from the second", SPRING_ALLOW.replace("ZONE", NEW_YORK), "2026-11-01T05:45Z",
     "2026-11-01T06:30Z"),
    # A day of 23 and one of 25 hours, whole.
    ("Vienna, the short day", "{deny: {dates: 2026-03-29}, zone: Europe/Vienna}", "2026-03-28T23:00Z",
     "2026-03-29T22:00Z"),
    ("Vienna, the long day", "{deny: {dates: 2026-10-25}, zone: Europe/Vienna}", "2026-10-24T22:00Z",
     "2026-10-25T23:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "now", "until"), CASES, ids=[c[0] for c in CASES])
def test_windows(what: str, text: str, now: str, until: str) -> None:
    found = frozen(windows(text), Kind.JOB, at(now))
    assert (found is not None) is bool(until), found
    if found is not None:
        said = found.until and found.until.astimezone(UTC)  # PEP 495: times that happen twice equal none elsewhere
        assert said == (None if until == "never" else at(until))


def test_the_end_is_the_first_moment_that_is_free() -> None:
    """By asking each minute: over the changes of clocks too, with windows that overlap and pass midnight."""
    text = f'{NIGHT}, {{deny: {{days: [sun], from: "01:15", to: "03:45"}}, zone: {NEW_YORK}}}, ' + OFFICE.replace(
        "mon, tue, wed, thu, fri", "sat, sun, mon"
    )
    made = windows(text)
    for day in ("2026-03-08", "2026-03-28", "2026-10-24", "2026-10-31"):
        start = at(f"{day}T00:00Z")
        minutes = [start + timedelta(minutes=m) for m in range(0, 4 * 24 * 60, 5)]
        free = [m for m in minutes if frozen(made, Kind.JOB, m) is None]
        for now in minutes[:: 7 * 3]:
            found = frozen(made, Kind.JOB, now)
            later = [m for m in free if m > now]
            if found is not None and later:
                assert found.until and found.until.astimezone(UTC) == later[0], (now, found)


def test_a_window_of_some_kinds_is_about_no_other() -> None:
    made = windows(
        "{deny: {days: [wed]}, zone: UTC, kinds: [jobs, home]}, {allow: {days: [wed]}, zone: UTC, kinds: [files]}"
    )
    wednesday, thursday = at("2026-06-03T12:00Z"), at("2026-06-04T12:00Z")
    assert frozen(made, Kind.JOB, wednesday) and frozen(made, Kind.HOME, wednesday)
    assert not frozen(made, Kind.FILE, wednesday) and not frozen(made, Kind.SETTING, wednesday)
    assert frozen(made, Kind.FILE, thursday) and not frozen(made, Kind.JOB, thursday)


def test_windows_of_setup_and_home_add_up() -> None:
    text = HEAD.replace("/tmp/x", f"/tmp/x, policy: {{windows: [{OFFICE}]}}") + f"policy: {{windows: [{HOLIDAYS}]}}"
    made = load_text(text, "setup.yaml", Path("/")).policy_of("main").windows
    assert [w.deny for w in made] == [True, False]


def test_it_says_why_and_by_which_clock() -> None:
    made = windows(HOLIDAYS.replace("}, zone", "}, why: nobody is there, zone"))
    found = frozen(made, Kind.JOB, datetime(2026, 12, 24, 12, tzinfo=UTC))
    assert found is not None and found.until is not None
    assert found.why == "nobody is there (policy.windows, deny 2026-12-20..2027-01-02 Europe/Vienna)"
    assert f"{found.until:%H:%M %Z}" == "00:00 CET"


def test_a_year_is_looked_through_in_no_time() -> None:
    """Counted, not timed: each span is worked out once."""
    made = windows(f"{HOLIDAYS}, {OFFICE}, {NIGHT}, {{deny: {{days: [mon, tue, wed, thu, fri]}}, zone: UTC}}")
    from reconciler.freeze import _span

    _span.cache_clear()
    assert frozen(made, Kind.JOB, at("2026-06-03T12:00Z")) is not None
    assert _span.cache_info().misses < 4 * 430
