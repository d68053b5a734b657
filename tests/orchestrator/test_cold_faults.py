"""What goes wrong with a cold verb of the orchestrator, and words that try to be more than words."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import fake, lab
from orchestrator.lab import BRIEF
from reconciler.action import Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.place import LocalPlace, Stat
from reconciler.testing.kit import World, job, outcomes
from reconciler_orchestrator import cold, reading, wire
from reconciler_shape import lease, line
from reconciler_specs.address import Kind

pytestmark = pytest.mark.orchestrator

WRAPPER = """#!/bin/sh
for word in "$@"; do if [ "$word" = --version ]; then exec "$@"; fi; done
"""


def misbehaving(root: Path, what: str) -> World:
    """A home whose cold verbs do `what` (shell; "$@" is the real command); `--version` answers as it should."""
    script = root / "wrapper.sh"
    script.write_text(WRAPPER + what + "\n")
    return lab.met(root, "sh", str(script))


@pytest.mark.parametrize(
    ("what", "outcome", "why"),
    [
        ("""echo '{"event":"error","message":"unknown argument"}'; exit 2""", "refused", "unknown argument"),
        ("""echo '{"ok":false,"error":"not today"}'; exit 1""", "refused", "not today"),
        ("exit 127", "refused", "could not be started (exit 127)"),
        ("echo Segmentation fault; exit 139", "uncertain", "it ended with 139"),
        ("exit 1", "uncertain", "it ended with 1"),
        ("kill -9 $$", "uncertain", "it ended with -9"),
        ("""echo '{"ok":true,"result":{}}'; exit 1""", "uncertain", "what it printed is no answer"),
        ("""echo '{"ok":false,"error":"x"}'; exit 0""", "uncertain", "what it printed is no answer"),
        ("""printf '{"ok":true'; exit 0""", "uncertain", "what it printed is no answer"),
        ("""printf '\\377\\376'; exit 2""", "uncertain", "what it printed is no answer"),
        ("""echo '{"ok":true,"result":{}}'; exit 0""", "not-applied", "the read-back does not show it"),
        ("""echo log; "$@" """, "applied", ""),
    ],
)
def test_a_cold_verb_that_misbehaves(root: Path, what: str, outcome: str, why: str) -> None:
    world = misbehaving(root, what)
    found, reason = lab.said(world.apply(world.text(job())))
    assert found == outcome and why in reason, reason


def test_a_cold_verb_that_wrote_and_lost_its_voice(root: Path) -> None:
    world = misbehaving(root, '"$@" > /dev/null; echo oh; exit 70')
    text = world.text(job() + job("other"))
    events = world.apply(text)
    assert lab.said(events)[0] == "applied"  # the read-back shows it
    assert lab.said(events, "default/jobs/other")[0] == "skipped"
    (root / "wrapper.sh").write_text(WRAPPER + '"$@"\n')
    world.converge(text)
    assert sorted(lab.names(root / "home")) == ["brief", "other"]


def test_a_cold_verb_that_hangs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "TIMEOUT", 4.0)
    world = misbehaving(root, f"echo $$ > {root}/pid; exec sleep 600")
    outcome, why = lab.said(world.apply(world.text(job())))
    assert outcome == "uncertain" and "no answer within 4 s; it was ended" in why
    assert not lease.start_time(int((root / "pid").read_text()))


def test_a_daemon_that_starts_while_a_cold_verb_writes(root: Path) -> None:
    """It may have read the folder before the write: what it holds is asked, not believed."""
    home = root / "home"
    lock = json.dumps({"pid": os.getpid(), "started_at": "2026-12-01T08:00:00Z"})
    world = misbehaving(root, f"""said=$("$@"); echo '{lock}' > '{home}/orchestrator.lock'; echo "$said" """)
    text = world.text(job())
    assert lab.said(world.apply(text))[0] == "uncertain"
    (home / "orchestrator.lock").unlink()
    assert outcomes(world.apply(text)) == {BRIEF: "applied"}
    assert lab.names(home) == ["brief"]


def test_no_node(root: Path) -> None:
    world = lab.met(root)
    script = lab.command()[1]
    for door, why in (
        ({"command": ["/no/such/node", script]}, "/no/such/node: it could not be started"),
        ({"command": [str(root / "home"), script]}, "could not be started"),
        ({"command": ["false", script]}, "does not answer as the orchestrator does (exit 1)"),
    ):
        text = world.text(job()).replace(lab.flow(), json.dumps(door))
        before = world.tree()
        assert why in lab.ended(world.apply(text))
        assert world.tree() == before


@pytest.mark.parametrize(
    ("open_to_all", "why"),
    [
        ("bin/wrapper.sh", "bin/wrapper.sh may be written by everybody"),
        ("bin", "bin may be written by everybody"),
        ("real", "real may be written by everybody"),  # where the link leads to
        ("real/wrapper.sh", "real/wrapper.sh may be written by everybody"),
        ("supercode", "supercode may be written by everybody"),  # named after an `=`
        ("node_modules/@v/orc/bin/orchestrator.mjs", "orchestrator.mjs may be written by everybody"),
        ("node_modules/@v/orc", "orc may be written by everybody"),
        ("node_modules/@v", "@v may be written by everybody"),
        ("node_modules", "node_modules may be written by everybody"),
    ],
)
def test_a_program_of_everybody_is_not_started(root: Path, open_to_all: str, why: str) -> None:
    """L17: whoever may write it, or a folder that it is run from, runs as us."""
    package = root / "node_modules" / "@v" / "orc"
    for folder in (package / "bin", root / "real"):
        folder.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": cold.PACKAGE, "version": lab.VERSION}))
    started = root / "started"
    for path in (root / "real" / "wrapper.sh", root / "supercode", package / "bin" / "orchestrator.mjs"):
        path.write_text(f"#!/bin/sh\ntouch {started}\n")
        path.chmod(0o755)
    inside = open_to_all.startswith("bin")
    (root / "bin").mkdir()
    wrapper = root / "bin" / "wrapper.sh"
    if inside:
        wrapper.write_text(f"#!/bin/sh\ntouch {started}\n")
    else:
        wrapper.symlink_to(root / "real" / "wrapper.sh")
    words = ["env", f"SUPERCODE_BIN={root}/supercode", "sh", str(wrapper), str(package / "bin" / "orchestrator.mjs")]
    (root / open_to_all).chmod(0o777)
    with pytest.raises(ProviderError, match=re.escape(why)):
        cold.check(lab.ref(root / "home", command=words))
    assert not started.exists()


def test_a_program_of_somebody_else_is_not_started(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = misbehaving(root, '"$@"')
    stat = LocalPlace.stat

    def theirs(self: LocalPlace, path: str) -> Stat | None:
        found = stat(self, path)
        return replace(found, uid=4711) if found and path.endswith("wrapper.sh") else found

    monkeypatch.setattr(LocalPlace, "stat", theirs)
    assert "wrapper.sh belongs to uid 4711" in lab.ended(world.apply(world.text(job())))


def test_a_prompt_that_no_command_line_holds(root: Path) -> None:
    """It is refused in the plan, by its name, and not when other rows are written (L15)."""
    world = lab.met(root)
    text = world.text(job(prompt="x" * 150_000) + job("other"))
    row = world.rows(text)[BRIEF]
    assert row.row is Row.REFUSED, row.row
    assert row.reason.startswith("prompt: more than 120000 bytes do not fit on a command line; start the daemon")
    assert outcomes(world.apply(text)) == {"default/jobs/other": "applied"}
    with lab.serving(root / "home"):
        world.converge(text)
    changed = world.rows(world.text(job(prompt="y" * 150_000) + job("other")))[BRIEF]
    assert changed.row is Row.REFUSED and changed.reason.startswith("prompt: ")
    assert not world.rows(text)  # what is there already is not written


def test_a_prompt_that_outgrows_the_command_line_after_the_plan(root: Path) -> None:
    """The daemon was there when it was planned, and is gone now: nothing is sent."""
    line = {"op": "jobs.create", "profile": "default", "args": {"prompt": "x" * 150_000}}
    with pytest.raises(ProviderError, match="start the daemon"):
        cold.call(lab.ref(root / "home"), line, None)


def test_letters_count_as_they_are_sent(root: Path) -> None:
    """An escape is three times as long as the letter; half of one can only be sent as an escape."""
    world = lab.met(root)
    prompt = "ж“😀" * 10_000
    world.converge(world.text(job(prompt=prompt)))
    (made,) = lab.stored(root / "home")
    assert made["prompt"] == prompt
    for args in ({"prompt": prompt}, {"prompt": '\ud800ä\udc80\n\0"\u2028'}):
        word = cold.argument(args)
        assert json.loads(word.encode()) == args
        assert "\0" not in word


@pytest.mark.parametrize(
    ("before", "after", "stops", "why"),
    [
        ("false", "true", "jobs.update", "that is jobs.update; done before it: jobs.pause"),
        ("true", "false", "jobs.resume", "that is jobs.resume; done before it: jobs.update"),
    ],
)
@pytest.mark.parametrize(
    ("how", "outcome"),
    [('echo \'{"ok":false,"error":"not today"}\'; exit 1', "refused"), ("exit 70", "uncertain")],
)
def test_a_row_that_stops_half_way_says_what_was_done(
    root: Path, before: str, after: str, stops: str, why: str, how: str, outcome: str
) -> None:
    world = misbehaving(root, '"$@"')
    world.converge(world.text(job(paused=before)))
    case = f'case "$*" in *{stops}*) {how};; esac; "$@"'
    (root / "wrapper.sh").write_text(f"{WRAPPER}{case}\n")
    text = world.text(job(paused=after, prompt="New words."))
    found, reason = lab.said(world.apply(text))
    assert found == outcome and why in reason, (found, reason)
    assert ("not today" in reason) is (outcome == "refused")
    (root / "wrapper.sh").write_text(WRAPPER + '"$@"\n')
    world.apply(text)


def test_an_unreadable_home(root: Path) -> None:
    world, home = lab.met(root), root / "home"
    (home / "cron").mkdir()
    (home / "cron" / "jobs.json").symlink_to(root / "elsewhere.json")
    plan = world.plan(world.text(job())).homes[0]
    assert not plan.open and "jobs.json" in str(plan.actions)


@pytest.mark.parametrize("served", [False, True], ids=["cold", "live"])
def test_hostile_words_stay_words(root: Path, served: bool) -> None:
    """Nothing of them is a shell's, an option's or another line's."""
    world = lab.planning(root)
    words = ["--root=/etc", "$$(touch x); `id`", '"}\n{"op": "jobs.delete"}', "…\u2028\u0007\\", "-", "'; --json {}"]
    jobs = "".join(job(f"j{i}", name=json.dumps(w), prompt=json.dumps(w)) for i, w in enumerate(words))
    with lab.serving(root / "home") if served else lab.nothing():
        world.converge(world.text(jobs))
    assert [(j["name"], j["prompt"]) for j in lab.stored(root / "home")] == [(w.replace("$$", "$"),) * 2 for w in words]


def test_a_home_at_an_odd_place(root: Path) -> None:
    odd = root / 'it\'s a "home" --root'
    (root / "home").rename(odd)
    (root / "home").symlink_to(odd)
    world = lab.planning(root)
    world.converge(world.text(job()))
    assert lab.names(odd) == ["brief"]


TOKEN = "8888888888:" + "A" * 35
REFUSAL = json.dumps({"ok": False, "error": f"no: {TOKEN} is wrong"})


@pytest.mark.parametrize(
    "served",
    [True, f"echo '{REFUSAL}'; exit 1", f"""echo '{{"event":"error","message":"no: {TOKEN} is wrong"}}'; exit 2"""],
    ids=["live", "cold", "another-shape"],
)
def test_no_secret_in_an_error(root: Path, served: bool | str) -> None:
    (root / "home" / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    world = lab.met(root) if served is True else misbehaving(root, str(served))
    with fake.daemon(world.home.path, lambda _line: REFUSAL.encode() + b"\n") if served is True else lab.nothing():
        assert lab.said(world.apply(world.text(job()))) == ("refused", "no: ‹hidden› is wrong")


def test_no_secret_in_a_list(root: Path) -> None:
    """Neither in the daemon's refusal of one, nor in what it tells of a job."""
    world, home = lab.met(root), root / "home"
    (home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    text = world.text(job())
    with fake.daemon(home, lambda _line: None, lambda: REFUSAL.encode() + b"\n"):
        plan = world.plan(text).homes[0]
        assert "‹hidden› is wrong" in str(plan.actions)
        assert TOKEN not in repr(plan)
        unseen = reading.listing(lab.ref(home), "default", reading.hider(lab.ref(home), ["default"]))
        assert TOKEN not in repr(unseen)
    told = {"name": TOKEN, "prompt": f"Say {TOKEN}.", "schedule": TOKEN, "deliver": f"slack:{TOKEN}"}
    listed = json.dumps({"ok": True, "result": {"jobs": [{"job_id": TOKEN, "enabled": True, **told}]}})
    lab.cold(home, "jobs.create", id=f"x{TOKEN}", prompt="P", schedule="every 2h")
    with fake.daemon(home, lambda _line: None, lambda: listed.encode() + b"\n"):
        plan = world.plan(text).homes[0]
        assert len([note for note in plan.notes if "‹hidden›" in note]) == 2
        assert TOKEN not in "\n".join(plan.notes)
        (thing,) = plan.observation.things["default", Kind.JOB].values()  # type: ignore[union-attr]
        assert TOKEN not in repr((thing.fields, thing.name, thing.about))


def test_no_secret_in_a_lease(root: Path) -> None:
    world = lab.met(root)
    for lease_of in ({"started_at": TOKEN}, {"started_at": TOKEN, "hostname": "ghp_" + "a" * 36}):
        fake.lease(root / "home", **lease_of)
        hold = world.plan(world.text(job())).homes[0].hold
        assert hold is not None and f"pid {os.getpid()}" in hold.why
        assert TOKEN not in hold.why and "ghp_" not in hold.why


@pytest.mark.parametrize("inside", [True, False])
def test_an_env_that_is_a_link_is_followed(root: Path, inside: bool) -> None:
    """As the orchestrator follows it: what it keeps is hidden."""
    world, home = lab.met(root), root / "home"
    kept = (home if inside else root) / "secrets.env"
    kept.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    (home / ".env").symlink_to(kept)
    with fake.daemon(home, lambda _line: REFUSAL.encode() + b"\n"):
        assert lab.said(world.apply(world.text(job()))) == ("refused", "no: ‹hidden› is wrong")
    kept.unlink()  # a link to nothing keeps nothing
    world.converge(world.text(job()))


def spoil(env: Path, how: str) -> None:
    if how == "loop":
        env.symlink_to(env)
    elif how == "to-a-folder":
        env.symlink_to(env.parent)
    elif how == "folder":
        env.mkdir()
    elif how == "large":
        env.write_bytes(b"#" * (2 << 20))
    else:
        os.mkfifo(env)


SPOILT = {
    "loop": "a link to",
    "to-a-folder": "a link to",
    "folder": "Is a directory",
    "large": "larger than",
    "pipe": "not a regular file",
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("when", ["before the plan", "after it"])
def test_an_env_that_cannot_be_read(root: Path, how: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it keeps could not be hidden: the home is not read, and not written; in words, with the file."""
    world, home = lab.met(root), root / "home"
    text = world.text(job())
    if when == "before the plan":
        spoil(home / ".env", how)
        why = world.plan(text).homes[0].failed
    else:
        monkeypatch.setattr(cold, "check", lambda _ref: spoil(home / ".env", how))
        why = lab.ended(world.apply(text))
    assert f"{home / '.env'}" in why and SPOILT[how] in why and "could not be hidden" in why, why
    assert not lab.stored(home)


def test_a_line_too_long(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "LONGEST", 1000)
    with (
        fake.daemon(root / "home", lambda _line: b"x" * 5000),
        pytest.raises(DoorLost, match="it is too long"),
    ):
        wire.call(root / "home", {"op": "jobs.run"})
