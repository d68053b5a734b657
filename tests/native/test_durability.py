"""What is acknowledged is on the disk: random verbs, random kills, many writers, a full disk."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native.lab import AT, do, env, serving, tree
from reconciler_native.disk import Disk
from reconciler_native.errors import WriteFailed
from reconciler_native.folder import DiskSource, Folder
from reconciler_native.home import Home, init
from reconciler_native.operator import Line, apply_lines, apply_operator

ids = st.sampled_from(["a", "b", "c", "d"])
words = st.text(st.characters(codec="utf-8"), max_size=12)
verbs: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(
        st.just("jobs.create"),
        st.fixed_dictionaries(
            {
                "id": ids,
                "prompt": words,
                "schedule": st.sampled_from(["30m", "0 8 * * 1-5", "0 0 30 2 *", "in 1h", "x"]),
            },
            optional={"name": words, "metadata": st.dictionaries(words, words, max_size=2), "enabled": st.booleans()},
        ),
    ),
    st.tuples(
        st.just("jobs.update"),
        st.fixed_dictionaries(
            {"id": ids},
            optional={
                "prompt": words,
                "schedule": st.sampled_from(["1h", "*/5 * * * *", "nope"]),
                "deliver": st.sampled_from(["local", "slack:C1:T1", "slack:C1:T1:x", None]),
                "skills": st.lists(words, max_size=2),
                "repeat": st.none() | st.integers(-1, 3),
                "name": st.none() | words,
            },
        ),
    ),
    st.tuples(st.sampled_from(["jobs.pause", "jobs.resume", "jobs.run", "jobs.delete"]), st.builds(dict, id=ids)),
    st.tuples(
        st.just("settings.set"), st.builds(dict, path=st.sampled_from(["a.b", "a.c", "d"]), value=words | st.none())
    ),
    st.tuples(st.just("settings.unset"), st.builds(dict, path=st.sampled_from(["a.b", "a", "d"]))),
    st.tuples(st.sampled_from(["profiles.create", "profiles.delete", "profiles.restore"]), st.just({"name": "coder"})),
    st.tuples(st.just("profiles.update"), st.builds(dict, name=st.just("coder"), description=words)),
    st.tuples(
        st.sampled_from(["access.allow", "access.revoke", "access.admin_add", "access.admin_remove"]),
        st.builds(dict, platform=st.sampled_from(["slack", "telegram"]), user_id=st.sampled_from(["1", "2"])),
    ),
    st.tuples(st.just("files.set"), st.builds(dict, path=st.sampled_from(["SOUL.md", "scripts/x"]), text=words)),
    st.tuples(
        st.just("inference.set"),
        st.builds(dict, default=st.none() | st.builds(dict, provider=st.just("p"), model=st.sampled_from(["m", "n"]))),
    ),
    st.tuples(
        st.just("kits.apply"),
        st.fixed_dictionaries(
            {"name": ids, "title": words},
            optional={
                "types": st.lists(st.builds(dict, id=words), max_size=2),
                "source": st.sampled_from(["kit:x", "x"]),
            },
        ),
    ),
    st.tuples(st.just("kits.remove"), st.builds(dict, name=ids)),
    st.tuples(
        st.just("channels.set"),
        st.builds(dict, platform=st.just("slack"), extra=st.dictionaries(st.just("port"), st.integers())),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(verbs, max_size=14), st.booleans())
def test_random_verbs_keep_the_folder_loadable_and_byte_stable(sequence: Any, batch: bool) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "home"
        init(root)
        home = Home(root)
        lines = [Line(op, args) for op, args in sequence]
        answers = []
        for group in [lines] if batch else [[line] for line in lines]:
            before = tree(root)
            found = apply_lines(home, group, AT) if group else []
            if not any(answer["ok"] for answer in found):
                assert tree(root) == before  # a refusal changes no byte
            answers += found
        for answer in answers:
            assert answer["ok"] or answer["error"]
            json.dumps(answer)
        # It loads, and saving what was loaded is no write at all.
        before = tree(root)
        again = Folder(root, DiskSource(Disk()))
        again.check()
        for profile in again.profiles.values():
            for store in (profile.jobs, profile.config, profile.env, profile.webhooks, profile.meta):
                assert store.encode("later") == (store.original or b"")
        again.save(Disk(), "later")
        assert tree(root) == before
        state = do(root, "state.get")["state"]["profiles"]["default"]["jobs"]
        # Every job that is there can be evaluated.
        assert all(job["schedule"]["kind"] in ("cron", "interval", "once") for job in state.values())


_WRITER = """
import sys
from pathlib import Path
from reconciler_native.home import Home
from reconciler_native.operator import apply_operator
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for n in range(count):
    args = {"id": f"{name}-{n}", "prompt": "x" * 200, "schedule": "1h"}
    answer = apply_operator(Home(root, wait=60), "jobs.create", args)
    assert answer["ok"], answer
    print(n, flush=True)
"""


def writer(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", _WRITER, str(root), name, str(count)]
    return subprocess.Popen(argv, env=env(), stdout=subprocess.PIPE, text=True)


_MIXED = """
import sys
from pathlib import Path
from reconciler.errors import DoorLost
from reconciler_native import wire
from reconciler_native.errors import HomeHeld
from reconciler_native.home import Home
from reconciler_native.operator import apply_operator
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def cold(op, args):
    answer = apply_operator(Home(root, wait=60), op, args)
    return None if answer.get("held") else answer
def live(op, args):
    try:
        return wire.call(root, {"op": op, "args": args})
    except (HomeHeld, DoorLost):
        return None  # it is being stopped: what was asked for may be done, or not
for n in range(count):
    args = {"id": f"{name}-{n}", "prompt": "x", "schedule": "1h"}
    while True:
        door, answer = "cold", cold("jobs.create", args)
        if answer is None:
            door, answer = "live", live("jobs.create", args)
        if answer is not None and (answer["ok"] or "already exists" in answer["error"]):
            break
        assert answer is None, answer
    print(door, flush=True)
"""


def test_eight_writers_by_both_doors_lose_nothing(home: Path) -> None:
    """Each tries the cold door, and the live one where it is refused: a daemon comes and goes meanwhile."""
    argv = [sys.executable, "-c", _MIXED, str(home)]
    names = [f"w{n}" for n in range(8)]
    writers = [subprocess.Popen([*argv, name, "100"], env=env(), stdout=subprocess.PIPE, text=True) for name in names]
    doors: list[str] = []
    more = threading.Condition()

    def listen(each: subprocess.Popen[str]) -> None:
        assert each.stdout is not None
        for line in each.stdout:
            with more:
                doors.append(line.strip())
                more.notify_all()

    ears = [threading.Thread(target=listen, args=(each,)) for each in writers]
    for ear in ears:
        ear.start()
    with more:
        assert more.wait_for(lambda: len(doors) >= 100, timeout=200)
    with serving(home) as daemon:
        with more:
            assert more.wait_for(lambda: len(doors) >= 600, timeout=200)
        daemon.terminate()
        assert daemon.wait(30) == 0
    for ear, each in zip(ears, writers, strict=True):
        ear.join()
        assert each.wait() == 0
        assert each.stdout is not None
        each.stdout.close()
    assert len(doors) == 800 and set(doors) == {"cold", "live"}
    ids = [job["id"] for job in do(home, "jobs.list")["jobs"]]
    assert sorted(ids) == sorted(f"{name}-{n}" for name in names for n in range(100))


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(home: Path) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []
    for turn in range(12):
        each = writer(home, f"t{turn}", 10_000)
        assert each.stdout is not None
        first = each.stdout.readline()
        # A moment somewhere within the next few writes.
        deadline = time.monotonic() + chance.random() * 0.15
        while time.monotonic() < deadline:
            pass
        each.kill()
        rest = each.stdout.read()
        each.wait()
        each.stdout.close()
        whole = [line for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]
        acknowledged += [f"t{turn}-{line.strip()}" for line in whole]
        found = {job["id"] for job in do(home, "jobs.list")["jobs"]}
        assert set(acknowledged) <= found
        assert len(found) <= len(acknowledged) + turn + 1  # at most one per kill was written and not acknowledged
    do(home, "jobs.create", prompt="after", schedule="1h")
    left = [p.name for p in home.rglob("*.tmp")]
    assert left == []  # the next writer sweeps up what a kill has left


def test_a_killed_daemon_loses_nothing_that_was_acknowledged(home: Path) -> None:
    from reconciler.errors import DoorLost
    from reconciler_native import wire
    from reconciler_native.errors import HomeHeld

    chance = random.Random(3)
    acknowledged: list[str] = []
    for turn in range(3):
        with serving(home) as daemon:
            end = time.monotonic() + 0.2 + chance.random() * 0.3
            for n in range(10_000):
                if time.monotonic() > end:
                    daemon.kill()
                args = {"id": f"{turn}-{n}", "prompt": "x", "schedule": "1h"}
                try:
                    if wire.call(home, {"op": "jobs.create", "args": args})["ok"]:
                        acknowledged.append(f"{turn}-{n}")
                except (DoorLost, HomeHeld):
                    break
    assert acknowledged
    assert set(acknowledged) <= {job["id"] for job in do(home, "jobs.list")["jobs"]}


class FullDisk(Disk):
    """A disk that fails the `at`-th of the calls that can."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.calls = 0

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def put(self, fd: int, data: bytes) -> None:
        os.write(fd, data[: len(data) // 2])
        self._step()
        os.write(fd, data[len(data) // 2 :])

    def sync(self, fd: int) -> None:
        self._step()
        super().sync(fd)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("jobs.create", {"id": "new", "prompt": "x", "schedule": "1h"}),
        ("jobs.update", {"id": "old", "prompt": "y"}),
        ("jobs.delete", {"id": "old"}),
        ("settings.set", {"path": "a.b", "value": 1}),
        ("files.set", {"path": "SOUL.md", "text": "new"}),
        ("profiles.create", {"name": "coder"}),
        ("kits.apply", {"name": "new", "title": "New"}),
        ("kits.apply", {"name": "old", "title": "New"}),
        ("access.allow", {"platform": "slack", "user_id": "1"}),
    ],
)
def test_a_full_disk_leaves_the_old_file_and_says_so(home: Path, op: str, args: dict[str, Any]) -> None:
    do(home, "jobs.create", id="old", prompt="x", schedule="1h")
    do(home, "files.set", path="SOUL.md", text="old")
    do(home, "kits.apply", name="old", title="Old")
    failed = 0
    for at in range(1, 30):
        before = tree(home)
        disk = FullDisk(at)
        answer = apply_operator(Home(home, disk), op, args, at=AT)
        if disk.calls < at:
            assert answer["ok"]
            break
        failed += 1
        assert not answer["ok"]
        assert "No space left on device" in answer["error"]
        after = tree(home)
        assert set(before) <= set(after)
        # Each file is the old one or, where only the folder's own sync failed, the new one: never a part of one.
        for name, data in after.items():
            assert data == before.get(name) or (name.endswith((".json", ".yaml", ".md", ".env")) and len(data) > 1)
        assert not [name for name in after if name.endswith(".tmp")]
        Folder(home, DiskSource(Disk())).check()
        apply_operator(Home(home), "jobs.list")
        if tree(home) != before:
            break  # the write itself was through
    assert failed


def test_a_writer_waits_for_another_and_then_says_who_it_waits_for(home: Path) -> None:
    with Home(home).locked():
        answer = apply_operator(Home(home, wait=0.05), "jobs.create", {"prompt": "x", "schedule": "1h"})
    assert answer["held"] and "another process has written" in answer["error"]


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(home: Path) -> None:
    store = home / "cron" / "jobs.json"

    class Meddler(Disk):
        def read(self, path: Path, limit: int = 1 << 30) -> bytes | None:
            data = super().read(path, limit)
            if path == store and data is not None:
                store.write_bytes(data.replace(b'"jobs": []', b'"jobs": [{"id": "theirs"}]'))
            return data

    answer = apply_operator(Home(home, Meddler()), "jobs.create", {"prompt": "x", "schedule": "1h"})
    assert not answer["ok"] and "somebody changed it" in answer["error"]
    assert "theirs" in store.read_text()


def test_hermes_own_lock_is_respected_where_a_hermes_has_been(home: Path) -> None:
    import fcntl

    (home / "cron" / ".jobs.lock").touch()
    with open(home / "cron" / ".jobs.lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = apply_operator(Home(home, wait=0.05), "jobs.create", {"prompt": "x", "schedule": "1h"})
        assert answer["held"] and ".jobs.lock" in answer["error"]
    assert do(home, "jobs.create", prompt="x", schedule="1h")["job"]["next_run_at"]


def test_an_init_that_was_cut_off_is_finished_by_the_next(tmp_path: Path) -> None:
    for at in range(1, 30):
        root = tmp_path / f"home{at}"
        disk = FullDisk(at)
        try:
            init(root, disk)
        except (OSError, WriteFailed):
            init(root)
        assert apply_operator(Home(root), "jobs.create", {"prompt": "x", "schedule": "1h"})["ok"]
        if disk.calls < at:
            break
    else:
        raise AssertionError("the disk was never large enough")
