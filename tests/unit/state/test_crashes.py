"""State through crashes, full disks, any sequence of changes and any bytes."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler_state.codec import decode, encode
from reconciler_state.errors import StateError
from reconciler_state.files import Files
from reconciler_state.local import LocalStore
from reconciler_state.record import Base, HomeState, Owned
from reconciler_state.store import Physical

HOME = Physical("local", "hermes", "/srv/homes/main")
THING = Owned("j1", "created", {"prompt": Base("a", {"$absent": True})}, ("default",), True, {"toolsets": ("web",)})
EMPTY = HomeState(HOME.place, HOME.harness, HOME.path)
STATE = EMPTY.with_owned("team", "default/jobs/brief", THING)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "state")


# -- failures -----------------------------------------------------------------------------------------------------


class FullDisk(Files):
    """Fails from the n-th call on, after half of the bytes."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def put(self, fd: int, data: bytes) -> None:
        try:
            self._spend()
        except OSError:
            os.write(fd, data[: len(data) // 2])
            raise
        super().put(fd, data)

    def sync(self, fd: int) -> None:
        self._spend()
        super().sync(fd)


@pytest.mark.parametrize("after", range(3))
def test_a_full_disk_costs_nothing(store: LocalStore, after: int) -> None:
    one = store.write(STATE, 0)
    two = replace(one, version="2")
    with pytest.raises(StateError, match="No space left"):
        LocalStore(store.root, FullDisk(after)).write(two, 1)
    state = LocalStore(store.root).read(HOME)
    assert state is not None
    # The third call syncs the folder: by then the new file is in its place.
    assert (state.serial, state.version) == ((1, "") if after < 2 else (2, "2"))
    assert [p.name for p in store.path(HOME).parent.iterdir()] == [store.path(HOME).name]


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from reconciler_state.local import LocalStore
from reconciler_state.record import Base, Owned
from reconciler_state.store import Physical
store, home = LocalStore(Path(sys.argv[1])), Physical("local", "hermes", "/srv/homes/main")
state = store.read(home)
print("ready", flush=True)
while True:
    thing = Owned(str(state.serial), "created", {"text": Base("x" * 20000, state.serial)})
    state = store.write(state.with_owned("team", "default/jobs/brief", thing), state.serial)
    print(state.serial, flush=True)
"""


def test_sixty_kills_lose_nothing(store: LocalStore) -> None:
    store.write(STATE, 0)
    lucky, told = random.Random(7), 0
    for _ in range(60):
        with subprocess.Popen([sys.executable, "-c", WRITER, store.root], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            said = [process.stdout.readline() for _ in range(lucky.randrange(4))]
            time.sleep(lucky.uniform(0, 0.01))  # the moment of the kill is the point of the test
            process.send_signal(signal.SIGKILL)
            said += process.stdout.read().splitlines(keepends=True)
        state = LocalStore(store.root).read(HOME)
        assert state is not None and not state.damaged
        said = [line for line in said if line.endswith(b"\n")]  # the last one may be cut off itself
        told = int(said[-1]) if said else told
        # What was said is there; one more write may have been done and not been said.
        assert not said or state.serial in (told, told + 1)
        thing = state.owned("team")["default/jobs/brief"]
        assert state.serial == 1 or thing.id == str(state.serial - 1)
    assert told > 60
    # What the kills left half-written beside it goes with the next write.
    last = LocalStore(store.root).read(HOME)
    assert last is not None
    LocalStore(store.root).write(replace(last, version="last"), last.serial)
    assert [p.name for p in store.path(HOME).parent.iterdir()] == [store.path(HOME).name]


# -- any state, any bytes ----------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3),
    max_leaves=5,
)
owned = st.builds(
    Owned,
    st.text(),
    st.sampled_from(["created", "adopted"]),
    st.dictionaries(st.text(), st.builds(Base, json_values, json_values), max_size=2),
    st.lists(st.text(), max_size=2).map(tuple),
    st.booleans(),
    st.dictionaries(st.text(), st.lists(json_values, max_size=2).map(tuple), max_size=1),
)
steps = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.none() | owned), max_size=8)


@given(steps)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
def test_any_sequence_of_changes_survives(tmp_path: Path, changes: list[tuple[str, str, Owned | None]]) -> None:
    store = LocalStore(Path(tempfile.mkdtemp(dir=tmp_path)))
    state, expected = EMPTY, dict[tuple[str, str], Owned]()
    for owner, path, thing in changes:
        state = state.with_owned(owner, path, thing) if thing else state.without(owner, path)
        expected.pop((owner, path), None)
        if thing:
            expected[owner, path] = thing
        state = store.write(state, state.serial)
        read = LocalStore(store.root).read(HOME)
        assert read is not None and encode(read) == encode(state)
        assert {(o, p): t for o, ts in read.owners.items() for p, t in ts.items()} == expected


@given(st.binary(max_size=300) | json_values.map(lambda v: json.dumps(v).encode()))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(StateError):
        decode(data, Path("x"))


@given(st.data())
def test_any_damage_to_a_state(data: st.DataObject) -> None:
    """Cut off, overwritten or with a value replaced: a state or a StateError, never anything else."""
    good = encode(replace(STATE, lineage="l", serial=3))
    kind = data.draw(st.sampled_from(["cut", "bytes", "value"]))
    if kind == "value":
        tree = json.loads(good)
        where: Any = tree
        while True:
            key = data.draw(st.sampled_from(sorted(where)))
            if not (isinstance(where[key], dict) and where[key] and data.draw(st.booleans())):
                break
            where = where[key]
        where[key] = data.draw(json_values)
        bad = json.dumps(tree).encode()
    else:
        at = data.draw(st.integers(0, len(good)))
        bad = good[:at] if kind == "cut" else good[:at] + data.draw(st.binary(max_size=8)) + good[at:]
    try:
        state = decode(bad, Path("x"))
    except StateError:
        return
    assert isinstance(encode(state), bytes)
