"""`cron/jobs.json` as a text: unchanged bytes stay, a change re-encodes one record in Hermes's order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler_native import record
from reconciler_native.errors import LoadFailed
from reconciler_native.jobsfile import JobsFile

NOW = "2026-12-01T08:00:00+00:00"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
records = st.dictionaries(st.sampled_from(["prompt", "name", "x", "schedule"]), values, max_size=3)
stores = st.lists(records, max_size=5).map(lambda items: [{"id": f"j{n}", **r} for n, r in enumerate(items)])


def encoded(jobs: list[dict[str, Any]], indent: int | None, ascii_only: bool, stamp: str) -> bytes:
    data: dict[str, Any] = {"jobs": jobs, "updated_at": NOW}
    if stamp == "first":
        data = {"updated_at": NOW, "x": [1], "jobs": jobs}
    elif stamp == "none":
        data = {"jobs": jobs, "x": {"jobs": []}}
    return json.dumps(data, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@given(stores, st.sampled_from([None, 0, 1, 2, 4]), st.booleans(), st.sampled_from(["last", "first", "none"]))
def test_save_of_load_is_the_same_bytes(jobs: Any, indent: int | None, ascii_only: bool, stamp: str) -> None:
    data = encoded(jobs, indent, True if not _utf8(jobs) else ascii_only, stamp)
    found = JobsFile(data, "jobs.json")
    assert found.records() == jobs
    assert found.encode("later") == data
    for item in jobs:
        found.put(dict(item))  # an equal record is no change
    assert found.encode("later") == data


def _utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(stores, st.sampled_from([None, 1, 2]), st.sampled_from(["last", "first", "none"]), st.data())
def test_a_change_leaves_the_other_records_bytes(jobs: Any, indent: int | None, stamp: str, data: Any) -> None:
    before = encoded(jobs, indent, True, stamp)
    found = JobsFile(before, "jobs.json")
    want = [dict(j) for j in jobs]
    for _ in range(data.draw(st.integers(1, 4))):
        what = data.draw(st.sampled_from(["put", "add", "remove"]))
        if what == "add" or not want:
            want.append({"id": f"new{len(want)}-{data.draw(st.integers(0, 9))}{len(want)}", "prompt": 'ä\n"x"'})
            if sum(w["id"] == want[-1]["id"] for w in want) > 1:
                want.pop()
                continue
            found.put(want[-1])
        elif what == "put":
            index = data.draw(st.integers(0, len(want) - 1))
            want[index] = {**want[index], "prompt": data.draw(st.text(st.characters(codec="utf-8")))}
            found.put(want[index])
        else:
            index = data.draw(st.integers(0, len(want) - 1))
            found.remove(want.pop(index)["id"])
    after = found.encode("later")
    loaded = json.loads(after)
    assert loaded["jobs"] == want
    assert JobsFile(after, "jobs.json").encode("x") == after
    untouched = [j for j in jobs if j in want]
    for item in untouched:
        text = json.dumps(item, indent=indent)
        assert text.replace("\n", "\n" + " " * 2 * (indent or 0)).encode() in after
    if stamp != "none" and found.changed:
        assert loaded["updated_at"] == "later"


def test_a_changed_record_is_in_hermes_order_and_unknown_fields_stay() -> None:
    old = {"zzz": {"a": 1}, "prompt": "x", "id": "a", "deliver": "local", "name": "n", "workdir": None}
    found = JobsFile(json.dumps({"jobs": [old]}).encode(), "jobs.json")
    found.put({**old, "prompt": "y"})
    [now] = json.loads(found.encode(NOW))["jobs"]
    assert list(now) == ["id", "name", "prompt", "deliver", "workdir", "zzz"]
    assert record.ordered(now) == now


def test_a_new_store_is_what_hermes_writes() -> None:
    found = JobsFile(None, "jobs.json")
    assert found.encode(NOW) == b""
    found.put({"id": "a", "prompt": "x"})
    hermes = json.dumps({"jobs": [{"id": "a", "prompt": "x"}], "updated_at": NOW}, indent=2)
    assert found.encode(NOW).decode() == hermes
    found.remove("a")
    assert found.encode(NOW).decode() == json.dumps({"jobs": [], "updated_at": NOW}, indent=2)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"jobs": [{"id": "a"}', "jobs.json:1:22"),
        ("[]", "jobs.json"),
        ('{"jobs": {}}', "jobs.json"),
        ('{"jobs": [1]}', "jobs.json"),
        ('{"jobs": [], "jobs": []}', "jobs.json"),
        ('{"other": 1}', "jobs.json"),
        ('{"jobs": []} x', "jobs.json:1:14"),
        ("nonsense", "jobs.json:1:1"),
        ('{"jobs": ' + "[" * 100_000, "jobs.json"),
    ],
)
def test_what_is_no_store_fails_the_load_naming_the_place(text: str, where: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        JobsFile(text.encode(), "jobs.json")
    assert str(failed.value).startswith(where)


@pytest.mark.parametrize(("data", "state"), [(None, "missing"), (b"", "empty"), (b"{}", "empty"), (b" ", "empty")])
def test_the_state_of_a_store(data: bytes | None, state: str) -> None:
    found = JobsFile(data, "jobs.json")
    assert found.state == state
    found.put({"id": "a"})
    assert json.loads(found.encode(NOW))["jobs"] == [{"id": "a"}]


def test_two_of_one_id_are_named_and_a_bom_stays() -> None:
    data = "\ufeff".encode() + b'{"jobs": [{"id": "a"}, {"id": "a"}, {"x": 1}], "updated_at": null}'
    found = JobsFile(data, "jobs.json")
    assert found.twice == {"a"}
    found.put({"id": "b"})
    after = found.encode(NOW)
    assert after.startswith("\ufeff".encode())
    assert b'{"id": "a"}, {"id": "a"}, {"x": 1}' in after
