"""Reading and writing state: what is kept, what is refused, and what a crash leaves."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler_state.errors import StateDamaged, StateError, StateMoved, StateTooNew
from reconciler_state.files import Files
from reconciler_state.local import LocalStore, default_root
from reconciler_state.record import Base, HomeState, Late, Owned
from reconciler_state.store import MemoryStore, Physical, StateStore

KEY = bytes(range(32))
HOME = Physical("local", "hermes", "/srv/homes/main")
THING = Owned("j1", "created", {"prompt": Base("a", {"$absent": True})}, ("default",), True, {"toolsets": ("web",)})
EMPTY = HomeState(HOME.place, HOME.harness, HOME.path)
STATE = EMPTY.with_owned("team", "default/jobs/brief", THING)


def test_what_waits_for_a_restart_is_kept_and_what_is_no_form_of_it_is_named(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "state")
    late = {"default": Late("12 2026", ("default/channels/telegram",))}
    assert store.write(replace(STATE, late=late), 0).late == late
    found = store.read(HOME)
    assert found is not None and found.late == late and not found.damaged
    path = store.path(HOME)
    path.write_text(path.read_text().replace('"12 2026"', "12"))
    found = store.read(HOME)
    assert found is not None and found.late == {} and found.damaged == ("late: default: not a start and its paths",)
    assert found.owned("team")  # the rest is not lost


def test_a_field_that_we_added_is_kept_and_an_older_file_reads_without(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "state")
    ours = replace(THING, origin="adopted", made=("prompt",))
    store.write(EMPTY.with_owned("team", "default/jobs/brief", ours), 0)
    found = store.read(HOME)
    assert found is not None and found.owned("team")["default/jobs/brief"] == ours
    path = store.path(HOME)
    path.write_text(path.read_text().replace(', "made": ["prompt"]', ""))
    found = store.read(HOME)
    assert found is not None and found.owned("team")["default/jobs/brief"] == replace(ours, made=())


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "state")


def stores(tmp_path: Path) -> list[StateStore]:
    return [LocalStore(tmp_path / "state"), MemoryStore()]


def test_write_and_read(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        assert store.read(HOME) is None and list(store.list()) == []
        written = store.write(STATE, 0)
        assert written.serial == 1 and len(written.lineage) == 32
        assert store.read(HOME) == written and list(store.list()) == [HOME]
        again = store.write(replace(written, version="2"), 1)
        assert (again.serial, again.lineage) == (2, written.lineage)


def test_the_same_content_is_not_written(tmp_path: Path) -> None:
    files = Files()
    store = LocalStore(tmp_path, files)
    written = store.write(STATE, 0)
    before = (files.writes, store.path(HOME).stat().st_ino)
    assert store.write(written, 1) == written == LocalStore(tmp_path, files).write(written, 1)
    # Laid out by other hands, the content is still the same.
    store.path(HOME).write_text(json.dumps(json.loads(store.path(HOME).read_bytes()), indent=4))
    assert LocalStore(tmp_path, files).write(written, 1) == written
    assert (files.writes, store.path(HOME).stat().st_ino) == before
    memory = MemoryStore()
    written = memory.write(STATE, 0)
    assert memory.write(written, 1) is written and memory.writes == 1


def test_true_is_not_one(tmp_path: Path) -> None:
    """Python's == would call this state unchanged."""
    for store in stores(tmp_path):
        thing = Owned("x", "created", {"value": Base(1, 1)})
        written = store.write(EMPTY.with_owned("t", "p/settings/a", thing), 0)
        other = replace(thing, fields={"value": Base(True, True)})
        assert store.write(written.with_owned("t", "p/settings/a", other), 1).serial == 2


def test_one_write_costs_two_fsyncs(store: LocalStore) -> None:
    written = store.write(STATE, 0)
    before = store.files.fsyncs
    store.write(replace(written, version="2"), 1)
    assert store.files.fsyncs - before == 2  # the file, and the folder that names it


def test_moved(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        one = store.write(STATE, 0)
        two = store.write(replace(one, version="2"), 1)
        with pytest.raises(StateMoved, match="another run wrote it"):
            store.write(replace(one, version="3"), 1)
        with pytest.raises(StateMoved, match="went back from serial 3 to 2"):
            store.write(replace(two, version="3"), 3)
        with pytest.raises(StateMoved, match="lineage"):
            store.write(replace(two, lineage="other"), 2)
        assert store.read(HOME) == two


def test_an_older_copy_within_a_run(store: LocalStore) -> None:
    one = store.write(STATE, 0)
    old = store.path(HOME).read_bytes()
    store.write(replace(one, version="2"), 1)
    store.path(HOME).write_bytes(old)
    with pytest.raises(StateMoved, match="serial 2 a moment ago"):
        store.read(HOME)


def test_modes(store: LocalStore) -> None:
    store.write(STATE, 0)
    store.keep_key(HOME, KEY)
    for path in [store.root, *store.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_nothing_is_made_by_reading(store: LocalStore) -> None:
    assert store.read(HOME) is None and not store.list() and store.key_for(HOME) is None and not store.broken()
    assert not store.root.exists()


def test_probe(store: LocalStore, tmp_path: Path) -> None:
    store.probe()
    assert [p.name for p in store.root.rglob("*")] == ["homes"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file"):
        LocalStore(tmp_path / "file" / "state").probe()


def test_digest_key(store: LocalStore) -> None:
    for where in (store, MemoryStore()):
        assert where.key_for(HOME) is None
        where.keep_key(HOME, KEY)
        where.keep_key(HOME, bytes(32))
        assert where.key_for(HOME) == KEY
    (store.root / "keys" / HOME.key).write_bytes(b"short")
    with pytest.raises(StateDamaged, match="5 bytes"):
        store.key_for(HOME)


def test_keys_tell_homes_apart() -> None:
    homes = [HOME, replace(HOME, harness="x"), replace(HOME, place="exec:y"), replace(HOME, path="/other/main")]
    assert len({h.key for h in homes}) == 4
    assert Physical("local", "h", "/x/../Ünï cödé\n" * 30).key.isascii() and len(HOME.key) < 70
    assert Physical.of(EMPTY) == HOME
    assert replace(HOME, path="/a/\udcff").key  # a path that is no UTF-8


# -- refused ------------------------------------------------------------------------------------------------------


def edit(store: LocalStore, change: Callable[[dict[str, Any]], object]) -> None:
    path = store.path(HOME)
    data = json.loads(path.read_bytes())
    change(data)
    path.write_text(json.dumps(data), "utf-8")


def test_a_later_format(store: LocalStore) -> None:
    store.write(STATE, 0)
    edit(store, lambda d: d.update(format=2))
    with pytest.raises(StateTooNew, match="format 2 is newer") as caught:
        store.read(HOME)
    assert caught.value.hint
    with pytest.raises(StateTooNew):
        store.write(STATE, 1)


@pytest.mark.parametrize("version", [0, None, "1", True, -1])
def test_a_format_that_never_was(store: LocalStore, version: object) -> None:
    store.write(STATE, 0)
    edit(store, lambda d: d.update(format=version))
    with pytest.raises(StateDamaged, match="none of ours"):
        store.read(HOME)


def test_a_file_from_before_there_were_formats(store: LocalStore) -> None:
    store.probe()
    store.path(HOME).write_text('{"version": 0, "resources": {"jobs/brief": {"id": "j1"}}}')
    with pytest.raises(StateDamaged, match="format None is none of ours") as caught:
        store.read(HOME)
    assert "reconciler state repair" in str(caught.value.hint)


def test_a_git_conflict_is_named_by_line(store: LocalStore) -> None:
    store.write(STATE, 0)
    lines = store.path(HOME).read_text().split("\n")
    lines[3:3] = ["<<<<<<< HEAD", ' "serial": 1,', "=======", ' "serial": 2,', ">>>>>>> other"]
    store.path(HOME).write_text("\n".join(lines))
    with pytest.raises(StateDamaged, match="line 4: a git conflict"):
        store.read(HOME)


def test_a_conflict_mark_within_a_value_is_none(store: LocalStore) -> None:
    text = "a\n<<<<<<< HEAD\n=======\n>>>>>>> x\n"
    thing = replace(THING, fields={"text": Base(text, text)})
    assert store.write(EMPTY.with_owned("t", "p/files/a", thing), 0) == store.read(HOME)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut off"),
        (b'{"format": 1, "own', "cut off"),
        (b"\x00\xff\xfe", "byte 1 is no text"),
        (b"[]", "no JSON object"),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"format": 1, "serial": NaN}', "NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": ' + b"1" * 5000 + b"}", "integer string"),
    ],
)
def test_damaged(store: LocalStore, data: bytes, why: str) -> None:
    store.probe()
    store.path(HOME).write_bytes(data)
    with pytest.raises(StateDamaged, match=why) as caught:
        store.read(HOME)
    assert str(store.path(HOME)) in str(caught.value) and "reconciler state repair" in str(caught.value.hint)


@pytest.mark.parametrize(
    "change",
    [
        {"place": 1},
        {"lineage": None},
        {"serial": "1"},
        {"serial": True},
        {"serial": 0},
        {"labels": []},
        {"labels": {"a": 1}},
        {"owners": []},
        {"owners": {"a": []}},
        {"path": "/another/home"},
    ],
)
def test_a_head_that_is_not_ours(store: LocalStore, change: dict[str, Any]) -> None:
    store.write(STATE, 0)
    edit(store, lambda d: d.update(change))
    with pytest.raises(StateDamaged):
        store.read(HOME)


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1},
        {"origin": "found"},
        {"fields": []},
        {"fields": {"prompt": {"declared": 1}}},
        {"fields": {"prompt": 1}},
        {"needs": "x"},
        {"needs": [1]},
        {"protect": "yes"},
        {"found": {"toolsets": "x"}},
    ],
)
def test_one_damaged_thing_is_left_out_and_named(store: LocalStore, change: dict[str, Any]) -> None:
    written = store.write(STATE.with_owned("team", "default/jobs/other", THING), 0)
    edit(store, lambda d: d["owners"]["team"]["default/jobs/brief"].update(change))
    state = store.read(HOME)
    assert state is not None
    assert list(state.owned("team")) == ["default/jobs/other"]
    assert [d.startswith("team: default/jobs/brief: ") for d in state.damaged] == [True]
    # It is kept beside the file by the next write, which no longer has it.
    damaged = store.path(HOME).read_bytes()
    after = store.write(replace(state, version="2"), written.serial)
    assert after.damaged == () and store.read(HOME) == after
    kept = [p for p in store.path(HOME).parent.iterdir() if "damaged" in p.name]
    assert [p.read_bytes() for p in kept] == [damaged] and store.list() == [HOME]


def test_a_link_a_pipe_and_a_folder_are_refused(store: LocalStore, tmp_path: Path) -> None:
    store.write(STATE, 0)
    path = store.path(HOME)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(StateDamaged, match="symbolic link"):
        store.read(HOME)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StateDamaged, match="no regular file"):
        store.read(HOME)
    path.unlink()
    path.mkdir()
    with pytest.raises(StateDamaged, match="no regular file"):
        store.read(HOME)


def test_another_users_file_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(STATE, 0)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(StateError, match=f"belongs to uid {uid}"):
        store.read(HOME)


def test_repair_puts_aside(store: LocalStore) -> None:
    store.write(STATE, 0)
    path = store.path(HOME)
    path.write_text("{")
    assert [type(e) for e in store.broken()] == [StateDamaged] and store.list() == []
    assert len(store.repair(do=False).aside) == 1 and path.read_text() == "{"
    assert store.repair("/srv/homes/another", do=True).aside == []
    assert len(store.repair(HOME.path, do=True).aside) == 1
    assert store.read(HOME) is None and store.repair(do=True).aside == []
    assert path.with_name(f"{path.stem}.damaged-1").read_text() == "{"
    assert store.write(STATE, 0).serial == 1


def test_default_root() -> None:
    assert default_root({"XDG_STATE_HOME": "/x"}) == Path("/x/reconciler")
    assert default_root({"XDG_STATE_HOME": "x", "HOME": "/h"}) == Path("/h/.local/state/reconciler")


def test_what_a_newer_program_wrote_keeps_no_other_from_repair(store: LocalStore) -> None:
    store.write(STATE, 0)
    newer = store.path(HOME).with_name("aaa.json")
    newer.write_text(store.path(HOME).read_text().replace('"format": 1', '"format": 99'))
    store.path(HOME).write_text("{")
    found = store.repair(do=True)
    assert len(found.aside) == len(found.left) == 1 and newer.name in found.left[0]
    assert newer.exists() and not store.path(HOME).exists()


@pytest.mark.parametrize("left", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_put_aside_by_repair(store: LocalStore, left: bytes) -> None:
    store.keep_key(HOME, b"k" * 32)
    path = store.root / "keys" / HOME.key
    assert not store.repair(do=True).aside
    path.write_bytes(left)
    with pytest.raises(StateDamaged):
        store.key_for(HOME)
    assert not store.repair("/srv/homes/another", do=True).aside
    assert len(store.repair(HOME.path, do=True).aside) == 1
    assert store.key_for(HOME) is None and not store.repair(do=True).aside
    assert [p.read_bytes() for p in path.parent.iterdir()] == [left]
