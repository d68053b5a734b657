"""No secret, digest of one or key is on the branch; what a runner does not know looks unchecked, never like drift."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.action import FieldRow, Row
from reconciler.plan import Options
from reconciler.redact import hide
from reconciler_specs.address import Kind
from reconciler_state.repository import Repository
from runners import Runner, two_of
from world import HEAD, outcomes

CANARY = "canary-4711-value"
OLD = "canary-0815-value"
ADDRESS = "main/secrets/BOT_TOKEN"
NAMED = "        settings: {a.token: {secret: BOT_TOKEN}}\n"


def setup(runner: Runner, source: object = None, rest: str = NAMED) -> None:
    said = f"secrets: {{BOT_TOKEN: {json.dumps(source or {'env': 'SOURCE'})}}}\n"
    runner.setup(
        f"{HEAD}{said}homes:\n  main:\n    harness: hermes\n    path: HOME/main\n    first_contact: adopt\n"
        f"    profiles:\n      default:\n{rest}"
    )


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setenv("SOURCE", CANARY)
    made = Runner(tmp_path, "one")
    made.home().secrets[""]["BOT_TOKEN"] = OLD
    setup(made)
    made.apply()
    return made


def everything(one: Runner) -> bytes:
    """All objects of the remote, whether something leads to them or not."""
    remote = Repository(one.remote)
    return remote.content("cat-file", "--batch-all-objects", "--batch", "--unordered")


def keys(one: Runner) -> list[bytes]:
    return [p.read_bytes() for p in one.root.rglob("keys/*") if p.is_file()]


def test_nothing_secret_is_in_any_object(one: Runner) -> None:
    two = two_of(one)
    two.plan()
    one.home().secrets[""]["BOT_TOKEN"] = OLD  # somebody puts the old one back
    two.apply()
    one.apply()
    data = everything(one)
    assert b"secrets/BOT_TOKEN" in data and b'"$hidden": "@' in data
    [*found] = keys(one)
    assert len(found) == 2
    for value in (CANARY, OLD):
        assert value.encode() not in data
        for key in found:
            assert hide(value, key)["$hidden"].encode() not in data
            assert key not in data and key.hex().encode() not in data


def test_on_a_runner_that_has_no_digest_it_is_neither_drift_nor_a_write(one: Runner) -> None:
    two = two_of(one)
    before = one.subjects()
    assert two.rows() == {} and two.apply() == []
    assert one.subjects() == before
    row = two.rows(Options(in_sync=True))[ADDRESS]
    assert row.row is Row.IN_SYNC


def test_drift_shows_where_the_digest_is_known_and_as_another_source_elsewhere(one: Runner) -> None:
    one.home().secrets[""]["BOT_TOKEN"] = OLD
    [change] = one.rows()[ADDRESS].changes
    assert change.row is FieldRow.DRIFT
    two = two_of(one)
    row = two.rows()[ADDRESS]
    assert [c.row for c in row.changes] == [FieldRow.SET] and "other than its source" in row.reason


def test_a_rotation_by_another_runner_is_no_drift_here(one: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE", "canary-0000-third")
    two = two_of(one)
    assert outcomes(two.apply()) == {ADDRESS: "applied"}
    assert one.rows() == {}, [(c.field, str(c.row)) for r in one.rows().values() for c in r.changes]
    # And what has not moved keeps its name: the next drift is seen as one.
    one.home().secrets[""]["BOT_TOKEN"] = OLD
    assert [c.row for c in two.rows()[ADDRESS].changes] == [FieldRow.DRIFT]


def test_what_another_runner_did_not_touch_stays_known(one: Runner) -> None:
    two = two_of(one)
    setup(two, rest=NAMED.replace("{a.token", "{b.c: 1, a.token"))
    assert outcomes(two.apply()) == {"main/default/settings/b.c": "applied"}
    setup(one, rest=NAMED.replace("{a.token", "{b.c: 1, a.token"))
    assert one.rows() == {}
    one.home().secrets[""]["BOT_TOKEN"] = OLD
    assert [c.row for c in one.rows()[ADDRESS].changes] == [FieldRow.DRIFT]
    assert [c.row for c in two.rows()[ADDRESS].changes] == [FieldRow.DRIFT]


def test_a_runner_without_its_keys_is_a_new_one(one: Runner) -> None:
    import shutil

    shutil.rmtree(one.root / "one")
    assert one.rows() == {} and one.apply() == []


# -- long texts ----------------------------------------------------------------------------------------------------

TEXT = "".join(f"Line {n}: be kind.\n" for n in range(40))


def with_file(runner: Runner, text: str) -> None:
    setup(runner, {"env": "SOURCE"}, f"        files:\n          SOUL.md: {{text: {json.dumps(text)}}}\n")


@pytest.mark.parametrize("texts", [True, False], ids=["full", "digests"])
def test_texts_in_full_or_as_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: bool) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    one = Runner(tmp_path, "one", texts=texts)
    one.home()
    with_file(one, TEXT)
    one.apply()
    assert (b"Line 39" in everything(one)) is texts
    two = Runner(tmp_path, "two", one, texts=texts)
    assert two.rows() == {} and two.apply() == []
    # Only the setup has changed: the home's text is the base's, so that the merge is whole.
    changed = TEXT.replace("Line 5:", "Rule 5:")
    with_file(two, changed)
    assert set(outcomes(two.apply()).values()) == {"applied"}
    with_file(one, changed)
    assert one.rows() == {}
    # What stood before is in the journal for undo; without texts it is not.
    assert ("Line 39" in one.show("journal/")) is texts
    assert (b"Line 39" in everything(one)) is texts


def test_a_base_that_is_only_a_digest_holds_what_it_cannot_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE", CANARY)
    one = Runner(tmp_path, "one", texts=False)
    one.home()
    with_file(one, TEXT)
    one.apply()
    seen = one.home().things["default", Kind.FILE]["SOUL.md"]
    [field] = [name for name, value in seen.items() if value == TEXT]
    seen[field] = TEXT.replace("Line 30:", "Mine 30:")
    two = Runner(tmp_path, "two", one, texts=False)
    # The runner that has the text merges; the one that has its digest cannot, and holds.
    assert [c.row for c in one.rows()["main/default/files/SOUL.md"].changes] == [FieldRow.DRIFT]
    assert [c.row for c in two.rows()["main/default/files/SOUL.md"].changes] == [FieldRow.DRIFT]
    changed = TEXT.replace("Line 5:", "Rule 5:")
    for runner in (one, two):
        with_file(runner, changed)
    assert [c.row for c in two.rows()["main/default/files/SOUL.md"].changes] == [FieldRow.CONFLICT]
    assert [c.row for c in one.rows()["main/default/files/SOUL.md"].changes] == [FieldRow.SET]
    assert two.apply() == [] or "applied" not in outcomes(two.apply()).values()
