"""Setting paths, durations and the few values whose form no case shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler_specs.setting import join_setting, split_setting
from reconciler_specs.values import Refusal, cron, duration, ident, moment, plain, seconds, target


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_setting_round_trip(path: list[str]) -> None:
    assert split_setting(join_setting(path)) == tuple(path)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ('a."b.c".d', ("a", "b.c", "d")),
        ('"a"', ("a",)),
        ('a."q\\"uote"', ("a", 'q"uote')),
        ("a.with space.b", ("a", "with space", "b")),
    ],
)
def test_split(key: str, path: tuple[str, ...]) -> None:
    assert split_setting(key) == path


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", '""', 'a.""', 'a."b', 'a."b"c', " a"])
def test_split_refuses(key: str) -> None:
    with pytest.raises(Refusal):
        split_setting(key)


def test_seconds() -> None:
    assert [seconds(duration(d)) for d in ("1m", "90m", "2h", "1d")] == [60, 5400, 7200, 86400]


def test_cron_spaces() -> None:
    assert cron(" 0   8 * *  1-5 ") == "0 8 * * 1-5"


@pytest.mark.parametrize(
    "line", ["* * * * *", "0 0 31 1,3 *", "0 0 30 2 1", "0 8 * * sun", "59 23 31 12 7", "0 0 L * *"]
)
def test_cron_accepts(line: str) -> None:
    assert cron(line) == line


@pytest.mark.parametrize("line", ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "0 0 31 4,6 *", "*/0 * * * *"])
def test_cron_refuses(line: str) -> None:
    with pytest.raises(Refusal):
        cron(line)


_PARTS = st.one_of(
    st.just("*"),
    st.integers(0, 60).map(str),
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda r: f"{r[0]}-{r[1]}"),
    st.integers(0, 61).map(lambda n: f"*/{n}"),
    st.tuples(st.integers(0, 31), st.integers(0, 31), st.integers(0, 12)).map(lambda r: f"{r[0]}-{r[1]}/{r[2]}"),
)
_FIELDS = st.lists(_PARTS, min_size=1, max_size=2).map(",".join)


@settings(deadline=None)
@given(st.lists(_FIELDS, min_size=5, max_size=5).map(" ".join))
def test_the_cheap_verdict_is_croniters(line: str) -> None:
    from reconciler_specs import values

    if values._never(line) == "":
        assert values._by_croniter(line) == ""


@pytest.mark.parametrize("text", ["2031-02-03T09:00:00Z", "2031-02-03t09:00+01:00", "2031-02-03 09:00:00.5-05:30"])
def test_moment(text: str) -> None:
    assert moment(text) == text


@pytest.mark.parametrize("value", [True, None, [], {}, "", 1.5, "  "])
def test_ident_refuses(value: object) -> None:
    with pytest.raises(Refusal):
        ident(value)


def test_ident() -> None:
    assert [ident(v) for v in ("a", 123, -100123)] == ["a", "123", "-100123"]


def test_plain_has_plain_types() -> None:
    from reconciler_specs.scalars import resolve

    value = plain({"a": [resolve("0x10"), resolve("1e3")]})
    assert value == {"a": [16, 1000.0]}
    assert [type(v) for v in value["a"]] == [int, float]


@pytest.mark.parametrize("value", [3, None, [], {"chat": "1"}, {"to": "slack", "chat": True}])
def test_target_refuses(value: object) -> None:
    with pytest.raises(Refusal):
        target(value)
