"""The door when things go wrong: killed, silent, garbled or late workers, locks, neighbours, and other places."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest

from hermes.lab import Lab, create, resource, step, tree, update
from reconciler.action import Action, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.place_exec import ExecPlace
from reconciler.provider import Code, HomeRef
from reconciler_hermes import door as doors
from reconciler_hermes import interpreter
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

pytestmark = pytest.mark.hermes

JOB: dict[str, Json] = {"schedule": {"every": "30m"}, "prompt": "x", "deliver": "local"}


def _fake(lab: Lab, tmp_path: Path, body: str) -> HomeRef:
    """A home whose interpreter is a script of ours, beside Hermes's version mark."""
    fake = tmp_path / "fake"
    shutil.rmtree(fake, ignore_errors=True)
    (fake / "bin").mkdir(parents=True)
    (fake / "lib" / "python3.11" / "site-packages" / "hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    script = fake / "bin" / "python"
    script.write_text(f"#!{sys.executable}\n{body}")
    script.chmod(0o755)
    return HomeRef("main", "hermes", lab.place, str(lab.root), {**lab.ref.options, "python": str(script)})


def test_the_program_fits_into_a_pipe() -> None:
    assert len(zlib.compress(doors.sources())) < 48 << 10


# What it said is what counts, and not that it has ended by the time that we ask.
WAITS = "; import sys; sys.stdin.read()"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"print('Traceback: sk-1234567890abcdefghij', flush=True){WAITS}", "no JSON"),
        ("import sys; sys.stderr.write('no such module\\n'); sys.exit(1)", "it ended.*no such module"),
        (f"print('[]', flush=True){WAITS}", "another form"),
        (f'print(\'{{"error": "it broke"}}\', flush=True){WAITS}', "it broke"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
    ids=["garbage", "early end", "other form", "error", "silence"],
)
def test_a_worker_that_does_not_answer(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    monkeypatch.setattr(doors, "HELLO", 1.0)
    monkeypatch.setattr(doors, "_GRACE", 0.2)
    ref = _fake(lab, tmp_path, body)
    with pytest.raises(ProviderError, match=words) as lost, lab.provider.open(ref, None):
        pass
    assert not isinstance(lost.value, DoorLost)  # nothing was asked yet
    assert "sk-123" not in str(lost.value)


def test_an_answer_that_comes_too_late_is_lost(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with lab.provider.open(lab.ref, None) as door:
        monkeypatch.setattr(doors, "STEP", 0.0)
        monkeypatch.setattr(doors, "PER_OP", 0.001)
        with pytest.raises(DoorLost, match="no answer within"):
            door.perform(step(lab.ref, [create("default/jobs/a", JOB)]))
    assert len(lab.jobs()) == 1  # it was done all the same: only looking can tell


def test_killed_in_the_middle_of_a_batch(lab: Lab) -> None:
    """Whenever the worker dies, the store is readable and holds whole jobs only."""
    pinned = {**JOB, "model": {"provider": "openrouter", "model": "m/x"}}
    for delay in (0.5, 0.7, 0.9, 1.1):
        actions = [create(f"default/jobs/j{n}", pinned) for n in range(200)]
        with lab.provider.open(lab.ref, None) as door:
            door.perform(step(lab.ref, [create("default/jobs/first", pinned)]))
            [worker] = door._workers.values()  # type: ignore[attr-defined]
            killer = threading.Timer(delay - 0.4, os.kill, (worker.pid, signal.SIGKILL))
            killer.start()
            try:
                door.perform(step(lab.ref, actions))
            except DoorLost as lost:
                assert "it ended" in str(lost)
            killer.cancel()
            killer.join()
        things = lab.observe().things["default", Kind.JOB]
        assert isinstance(things, dict)
        assert all(thing.marker for thing in things.values())
        assert (len(lab.jobs()) - 1) % 200 in range(4)


def test_hermes_may_print_and_ask(lab: Lab) -> None:
    """fd 1 belongs to the answers alone, and who reads stdin gets its end."""
    with lab.provider.open(lab.ref, None) as door:
        door.perform(step(lab.ref, [create("coder", {})]))
        answers = door.perform(step(lab.ref, [_delete("coder", lab)]))  # delete_profile prints a page
    assert answers[0].code is Code.OK


def _delete(name: str, lab: Lab):  # type: ignore[no-untyped-def]
    from hermes.lab import delete

    seen = lab.observe().at("", Kind.PROFILE, name)
    return delete(name, seen)  # type: ignore[arg-type]


def test_a_neighbour_that_changes_stops_the_write(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = lab.create("theirs", JOB).id
    sources = doors.sources().decode()
    # A Hermes whose update touches another job too.
    evil = (
        "self.records = [dict(r, prompt='harmed') if r.get('id') != job_id else r for r in self.records]; return job_id"
    )
    broken = sources.replace('self.ids[op[\\"ref\\"]] = job_id\\n        return job_id', evil)
    assert broken != sources
    monkeypatch.setattr(doors, "sources", broken.encode)
    before = lab.jobs()
    answer = lab.create("mine", JOB)
    assert (answer.code, theirs in answer.words) == (Code.HARMED, True)
    assert lab.jobs() == before


def test_a_held_job_store_is_not_written_without_its_lock(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes goes on without its lock after 30 s (here: 0.3 s); nothing of ours does."""
    lab.create("a", JOB)
    before = (lab.root / "cron" / "jobs.json").read_bytes()
    line = 'jobs = importlib.import_module(\\"cron.jobs\\")'
    original = doors.sources().decode()
    patched = original.replace(line, line + "; jobs._JOBS_LOCK_TIMEOUT_SECONDS = 0.3")
    assert patched != original
    monkeypatch.setattr(doors, "sources", patched.encode)
    with (lab.root / "cron" / ".jobs.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = lab.create("b", JOB)
    assert (answer.code, "has held the lock" in answer.words) == (Code.REFUSED, True)
    assert (lab.root / "cron" / "jobs.json").read_bytes() == before


def test_two_writers_lose_nothing(lab: Lab) -> None:
    """Hermes's own writer beside ours, as a gateway would be."""
    pinned = {**JOB, "model": {"provider": "openrouter", "model": "m/x"}}
    lab.create("first", pinned)
    code = "import cron.jobs as c\nfor n in range(40): c.create_job('x', 'every 5m', model='m', provider='p')\nprint(1)"
    other = threading.Thread(target=lab.hermes, args=(code,))
    other.start()
    with lab.provider.open(lab.ref, None) as door:
        for n in range(20):
            [answer] = door.perform(step(lab.ref, [create(f"default/jobs/j{n}", pinned)]))
            assert answer.code is Code.OK
    other.join()
    assert len(lab.jobs()) == 61


def test_the_worker_holds_the_lock_that_it_was_given(lab: Lab) -> None:
    fd = os.open(lab.root, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with lab.provider.open(lab.ref, fd) as door:
        door.perform(step(lab.ref, [create("default/jobs/a", JOB)]))
        os.close(fd)
        other = os.open(lab.root, os.O_RDONLY | os.O_DIRECTORY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_without_a_lock_it_takes_one(lab: Lab) -> None:
    fd = os.open(lab.root, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    start = time.monotonic()
    with pytest.raises(ProviderError, match="locked by another writer"):
        lab.create("a", JOB)
    assert 9 < time.monotonic() - start < 20
    os.close(fd)


def test_a_home_that_is_only_being_made_is_locked_once_it_is_there(lab: Lab, tmp_path: Path) -> None:
    """L13, at another place: nobody could hand a lock over, and when the worker greets there is nothing to lock."""
    new = Lab(tmp_path / "new")
    made = Action(Row.PROVISION, Address("main"), origin="created")
    with new.provider.open(new.ref, None) as door:
        door.perform(step(new.ref, [made]))
        door.perform(step(new.ref, [create("default/jobs/a", JOB)]))
        fd = os.open(new.root, os.O_RDONLY | os.O_DIRECTORY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


def test_a_clean_environment(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of ours reaches Hermes: no key, no other home, no module of the folder we stand in."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "leaked-0123456789")
    monkeypatch.setenv("HERMES_SESSION_PLATFORM", "telegram")
    monkeypatch.setenv("HERMES_SESSION_CHAT_ID", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "utils.py").write_text("raise SystemExit('shadowed')\n")
    (tmp_path / "yaml.py").write_text("raise SystemExit('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    lab.create("a", JOB)
    assert lab.jobs()[0]["origin"] is None
    home = doors.environment(lab.ref, str(lab.root))
    assert set(home) - {"TZ"} == {"HOME", "PATH", "HERMES_HOME", "LANG"}
    assert home["HOME"] == str(lab.root.parent)


def test_hermes_makes_nothing_by_the_way(each: Lab) -> None:
    """Only the store, its lock, and what Hermes keeps of credentials; no SOUL.md, no empty folders."""
    before = set(each.root.rglob("*"))
    each.create("a", JOB)
    made = {str(path.relative_to(each.root)).split("/")[0] for path in set(each.root.rglob("*")) - before}
    assert made <= {"cron", "auth.json", "auth.lock", "logs"}


def test_only_one_home_changes(lab: Lab, tmp_path: Path) -> None:
    decoy = tmp_path / "home" / ".hermes"
    shutil.copytree(lab.root, decoy)
    before = tree(decoy.parent)
    lab.perform(create("coder", {}))
    lab.create("a", JOB)
    lab.create("b", JOB, "coder")
    assert tree(decoy.parent) == before


def test_an_interpreter_that_others_may_write_is_refused(lab: Lab, tmp_path: Path) -> None:
    ref = _fake(lab, tmp_path, "")
    lab.provider.preflight(ref, [])
    folder = tmp_path / "fake" / "bin"
    folder.chmod(0o777)
    with pytest.raises(ProviderError, match="written by everybody"):
        lab.provider.preflight(ref, [])
    with pytest.raises(ProviderError, match="written by everybody"), lab.provider.open(ref, None):
        pass


def test_preflight_says_what_stands_against_it(lab: Lab, tmp_path: Path) -> None:
    nowhere = HomeRef("main", "hermes", lab.place, str(lab.root), {"python": str(tmp_path / "none")})
    with pytest.raises(ProviderError, match=r"door\.python: there is no"):
        lab.provider.preflight(nowhere, [])
    lab.root.chmod(0o777)
    with pytest.raises(ProviderError, match="chmod 700"):
        lab.provider.preflight(lab.ref, [])
    lab.root.chmod(stat.S_IRWXU)
    lab.provider.preflight(lab.ref, [create("default/jobs/a", JOB)])


def test_hermes_is_found_on_path(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{lab.python.parent}:{os.environ['PATH']}")
    assert interpreter.find(lab.place, {}).version == "0.19.0"
    wrapper = tmp_path / "bin" / "hermes"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec "{lab.python}" -m hermes_cli.main "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent))
    assert interpreter.find(lab.place, {}).python == str(lab.python)


PREFIXES = {
    "env": ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin"],
    "shell": ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "sh", "-c"],
    "shell with arguments": ["env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", 'exec "$@"', "there"],
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_behind_a_prefix(lab: Lab, prefix: list[str]) -> None:
    """Everything goes the same way where a command prefix leads."""
    here = lab.observe("default/settings/agent.max_turns", everything=True)
    place = ExecPlace(prefix, str(lab.python))
    try:
        there = Lab(lab.root, lab.version, place)
        assert there.observe("default/settings/agent.max_turns", everything=True).things == here.things
        assert there.create("a", {**JOB, "prompt": 'it\'s "quoted" $HOME\n'}).code is Code.OK
        seen = there.observe("default/files/SOUL.md", "default/settings/x.y")
        answers = there.perform(create("default/files/SOUL.md", {"text": "ü\n"}))
        answers += there.perform(create("default/settings/x.y", {"value": "off"}))
        assert {a.code for a in answers} == {Code.OK}
        assert seen.version == "0.19.0"
        there.provider.preflight(there.ref, [])
        assert place.name == "exec:" + " ".join(__import__("shlex").quote(word) for word in prefix)
    finally:
        place.close()
    assert lab.jobs()[0]["prompt"] == 'it\'s "quoted" $HOME\n'


def test_a_prefix_that_leads_nowhere() -> None:
    place = ExecPlace(["sh", "-c", "echo no such container >&2; exit 1", "x"])
    with pytest.raises(ProviderError, match="no such container"):
        place.stat("/")
    place.close()
    gone = ExecPlace(["/no/such/program"])
    with pytest.raises(ProviderError, match="No such file") as caught:
        gone.read("/etc/passwd", 10)
    assert caught.value.hint is not None and caught.value.hint.startswith("/no/such/program python3 -V")


def test_review_names_and_follows_the_jobs_that_a_model_would_stop(lab: Lab) -> None:
    ours = lab.create("ours", {**JOB, "name": "Ours"}).id
    theirs = lab.create("theirs", {**JOB, "name": "Theirs"}).id
    new = {"provider": "openrouter", "model": "c/d"}
    observation = lab.observe()
    inference = observation.at("default", Kind.INFERENCE, "")
    job = observation.at("default", Kind.JOB, ours)
    rows = [
        update("default/inference", inference, {"default": new}),  # type: ignore[arg-type]
        update("default/jobs/ours", job, {"follows": new}),  # type: ignore[arg-type]
    ]
    for rebase, count in (("ours", 2), ("all", 3)):
        declared = resource("default/inference", {"default": new}, options={"rebase": rebase})
        reviewed = lab.provider.review(rows, observation, {declared.address: declared})
        assert len(reviewed) == count
        assert any(f"Ours ({ours})" in note for note in reviewed[0].notes)
        assert any(f"Theirs ({theirs})" in note for note in reviewed[0].notes)
    for action in reviewed:
        assert lab.perform(action)[0].code is Code.OK
    records = {job["id"]: job["model_snapshot"] for job in lab.jobs()}
    assert records == {ours: "c/d", theirs: "c/d"}
    assert "x_reconciler" in json.dumps(lab.jobs())


def test_a_gateway_of_the_home_is_an_insider(lab: Lab) -> None:
    assert lab.provider.insider(lab.ref, [os.getpid()]) == ""
    started = int(Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19])
    (lab.root / "gateway.pid").write_text(json.dumps({"pid": os.getpid(), "start_time": started}))
    assert "gateway" in lab.provider.insider(lab.ref, [1, os.getpid()])
    (lab.root / "gateway.pid").write_text(json.dumps({"pid": os.getpid(), "start_time": started + 1}))
    assert lab.provider.insider(lab.ref, [os.getpid()]) == ""
    script = lab.root.parent / "hermes"
    script.write_text("import time; time.sleep(30)")
    with subprocess.Popen([sys.executable, str(script)], env={"HERMES_HOME": str(lab.root)}) as process:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        time.sleep(0.2)
        assert "it runs below" in lab.provider.insider(lab.ref, [process.pid])
        process.kill()
