"""Rounds of the loop: what it takes from a branch, what it carries out, and what it tells."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from following import BRIEF, Following, brief
from reconciler.consent import Consent
from reconciler.errors import ProviderError
from reconciler.gitops.metrics import unhealthy
from reconciler.gitops.record import alone
from reconciler.gitops.source import Source
from reconciler.observe import Observation, Wanted
from reconciler.provider import Door, HomeRef
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Kind
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load
from reconciler_state.errors import StateLocked
from reconciler_state.files import Files
from world import HEAD, home_text


@pytest.fixture
def following(tmp_path: Path) -> Following:
    return Following(tmp_path.resolve())


class Failing(MemoryProvider):
    """A provider whose door breaks while `broken` is set, before it has written anything."""

    broken: BaseException | None = None

    @contextmanager
    def open(self, *args: Any) -> Iterator[Door]:
        if self.broken is not None:
            raise self.broken
        with super().open(*args) as door:
            yield door


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


# -- what it carries out -----------------------------------------------------------------------------------------


def test_a_new_revision_is_carried_out_once(following: Following) -> None:
    first = following.meet(brief("One."))
    assert following.round() == 0
    second = following.push(brief("Two."), "More\x1b[31m words")
    assert following.round() == 0
    assert following.jobs() == ["Two."]
    told = following.events("revision")
    assert [(e["revision"], e.get("before")) for e in told] == [(first, None), (second, first)]
    assert told[1]["subject"] == "More\\x1b[31m words" and told[1]["author"] == "ann"
    assert [e["outcome"] for e in following.events("outcome")] == ["applied"]


def test_a_round_without_news_writes_nothing(following: Following) -> None:
    following.meet(brief("One."))
    loop = following.loop()
    loop.round()
    before, told = tree(following.root / "state"), len(following.told)
    assert [loop.round(), loop.round(), following.round()] == [0, 0, 0]
    assert tree(following.root / "state") == before
    assert {e["event"] for e in following.told[told:]} == {"round"}


def test_a_persons_checkout_is_left_alone(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    mine = following.work.root / "setup.yaml"
    mine.write_text("version: 1\nunfinished: [\n")
    (following.work.root / "notes.txt").write_text("mine\n")
    other = following.root / "other"
    following.work.run("clone", "-q", str(following.hub.root), str(other))
    (other / "setup.yaml").write_text(brief("Two.").replace("HOME", str(following.root)))
    for words in (["commit", "-qam", "two"], ["push", "-q"]):
        following.work.run("-C", str(other), "-c", "user.name=bob", "-c", "user.email=bob@example.org", *words)
    seen = [following.work.run(*w) for w in (["status", "--porcelain"], ["for-each-ref"], ["rev-parse", "HEAD"])]
    assert following.round() == 0 and following.jobs() == ["Two."]
    assert [
        following.work.run(*w) for w in (["status", "--porcelain"], ["for-each-ref"], ["rev-parse", "HEAD"])
    ] == seen
    assert mine.read_text() == "version: 1\nunfinished: [\n"


def test_what_needs_a_person_waits_and_is_not_tried_again(following: Following) -> None:
    """As `apply --yes` without a terminal: first contact is agreed to by a person, or by policy.unattended."""
    following.push(brief("One."))
    assert following.round() == 4  # the job is skipped, as it waits for the home: exit 4 is stronger than 5
    following.time += 1_000_000
    loop = following.loop()
    assert loop.round() == 4 and not unhealthy(loop.standing, following.time, 60)
    told = {e["address"]: e["outcome"] for e in following.events("outcome")}
    assert told["main"] == "waits for consent" and told["main/default/jobs/brief"] == "skipped"
    assert len(following.events("outcome")) == len(told) and not following.events("failed")
    following.push(brief("One.", HEAD + "policy: {unattended: [adopt homes]}\n"))
    assert following.round() == 0
    assert following.jobs() == ["One."]


def test_what_policy_permits_is_what_apply_permits(following: Following) -> None:
    following.meet(brief("One."))
    following.push(HEAD + home_text("        jobs: {}\n"), "the job is gone")
    assert following.round() == 5  # a delete always needs a review
    assert following.jobs() == ["One."]


def test_what_is_approved_later_is_carried_out_and_nothing_else(following: Following) -> None:
    following.meet(brief("One."))
    following.push(HEAD + home_text("        jobs: {}\n"), "the job is gone")
    assert following.round() == 5 and following.jobs() == ["One."]
    following.world.setup(HEAD + home_text("        jobs: {}\n"))
    [home] = following.world.plan().homes
    other = following.world.home().add_job("other", prompt="Not ours.")
    rows = frozenset(home.asked)
    following.consent = Consent(yes=True, approved=rows, elsewhere=rows, reviewed=True)
    assert following.round() == 0
    assert following.jobs() == ["Not ours."] and other in following.world.home().jobs()
    assert [e["row"] for e in following.events("outcome")][-1] == "delete"
    before = len(following.told)
    assert following.round() == 0 and [e["event"] for e in following.told[before:]] == ["round"]


def test_an_approved_row_that_fails_backs_off_too(following: Following, failing: Failing) -> None:
    failing.broken = None
    following.round()
    following.push(HEAD + home_text("        jobs: {}\n"), "the job is gone")
    assert following.round() == 5
    following.world.setup(HEAD + home_text("        jobs: {}\n"))
    [home] = following.world.plan().homes
    rows = frozenset(home.asked)
    following.consent = Consent(yes=True, approved=rows, elsewhere=rows, reviewed=True)
    failing.broken = ProviderError("the door is shut")
    assert len(tries(following, 600)) == 4
    failing.broken = None
    following.time += 3600
    assert following.round() == 0 and following.jobs() == []


def test_who_could_not_be_told_is_told(following: Following) -> None:
    following.meet(brief("One."))
    following.untold = ["notify ops: 503"]
    loop = following.loop()
    assert [loop.round(), loop.round()] == [0, 0]
    assert [e["reason"] for e in following.events("not-told")] == ["notify ops: 503"]


# -- failures ----------------------------------------------------------------------------------------------------


@pytest.fixture
def failing(following: Following) -> Failing:
    """A home that is known and quiet, and a second revision that its door will not take."""
    following.meet(brief("One."))
    following.round()
    provider = Failing(following.world.memory.homes)
    following.provider, provider.broken = provider, ProviderError("the door is shut")
    following.push(brief("Two."))
    return provider


def tries(following: Following, seconds: int) -> list[float]:
    """When the revision was tried, with a round a minute, each of a new process."""
    start = following.time
    found = []
    while following.time - start <= seconds:
        before = len(following.events("failed"))
        assert following.round() == 4
        if len(following.events("failed")) > before:
            found.append(following.time - start)
        following.time += 60
    return found


def test_a_failure_backs_off_and_a_new_revision_does_not_wait(following: Following, failing: Failing) -> None:
    assert tries(following, 9000) == [0, 60, 180, 420, 900, 1860, 3780, 7380]  # doubled, an hour at most
    assert following.jobs() == ["One."]
    following.push(brief("Three."))
    failing.broken = None
    assert following.round() == 0
    assert following.jobs() == ["Three."]


def test_what_works_again_is_done_at_the_next_try(following: Following, failing: Failing) -> None:
    assert following.round() == 4
    failing.broken = None
    assert following.round() == 4 and following.jobs() == ["One."]  # too early
    following.time += 60
    assert following.round() == 0 and following.jobs() == ["Two."]


def test_a_loop_that_is_killed_has_tried(following: Following, failing: Failing) -> None:
    failing.broken = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        following.round()
    failing.broken = None
    assert following.round() == 6  # nobody knows what came of it, and it is not tried again at once
    assert following.jobs() == ["One."]
    following.time += 60
    assert following.round() == 0 and following.jobs() == ["Two."]


def test_a_loop_that_is_stopped_goes_on_at_its_next_start(following: Following, failing: Failing) -> None:
    failing.broken = None
    loop = following.loop()
    following.stopping = True
    loop.round()
    assert following.jobs() == ["One."]
    following.stopping = False
    assert following.round() == 0 and following.jobs() == ["Two."]


def test_the_loop_ends_when_it_is_asked_to(following: Following) -> None:
    following.meet(brief("One."))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        following.stopping = len(pauses) == 2

    assert following.loop(interval=7.0).run(pause, once=False) == 0
    assert pauses == [7.0, 7.0]
    assert [e["event"] for e in following.told] == ["start", "revision", "round", "round", "stop"]


def test_a_full_disk_is_said_and_nothing_is_tried(following: Following) -> None:
    """The try is recorded before the first write: where that cannot be, nothing is written."""
    following.meet(brief("One."))
    following.round()
    following.push(brief("Two."))
    following.world.store.files = Full()
    assert following.round() == 1
    assert "No space left on device" in following.events("error")[0]["reason"]
    assert following.jobs() == ["One."]
    following.world.store.files = Files()
    assert following.round() == 0 and following.jobs() == ["Two."]


class Full(Files):
    def put(self, fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -- drift -------------------------------------------------------------------------------------------------------


def edit(following: Following, prompt: str) -> None:
    [job] = following.world.home().jobs().values()
    job["prompt"] = prompt


def test_a_drift_is_told_once_for_as_long_as_it_lasts(following: Following) -> None:
    following.meet(brief("One."))
    assert following.round() == 0
    edit(following, "Mine.\nAnd more.")
    assert [following.round(), following.round()] == [3, 3]
    [told] = following.events("drift")
    assert {k: told[k] for k in ("address", "field", "row", "mode", "was", "now")} == {
        "address": "main/default/jobs/brief",
        "field": "prompt",
        "row": "drift",
        "mode": "hold",
        "was": "One.",
        "now": "Mine. And more.",
    }
    edit(following, "Yours.")
    following.round()
    assert [e["now"] for e in following.events("drift")] == ["Mine. And more.", "Yours."]
    edit(following, "One.")
    assert following.round() == 0
    edit(following, "Yours.")
    following.round()
    assert [e["now"] for e in following.events("drift")] == ["Mine. And more.", "Yours.", "Yours."]


def test_a_drift_is_only_told_between_revisions(following: Following) -> None:
    """Even one that policy lets a run restore: a round without a new revision writes no home."""
    policy = "policy: {on_drift: restore, unattended: [restore jobs]}\n"
    following.meet(brief("One.", HEAD + policy))
    following.round()
    edit(following, "Mine.")
    assert following.round() == 3
    assert following.jobs() == ["Mine."] and following.events("drift")[0]["mode"] == "restore"
    following.push(brief("One.", HEAD + policy + "# next\n"))
    assert following.round() == 0 and following.jobs() == ["One."]


def test_a_home_that_cannot_be_seen_keeps_its_told_drifts(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    edit(following, "Mine.")
    following.round()
    following.provider = Unreadable(following.world.memory.homes)
    assert following.round() == 4
    following.provider = following.world.memory
    following.round()
    assert len(following.events("drift")) == 1


class Unreadable(MemoryProvider):
    def observe(self, home: HomeRef, wanted: Wanted) -> Observation:
        raise ProviderError(f"{home.path}: cannot be read")


def test_no_secret_is_told(following: Following) -> None:
    following.meet(HEAD + home_text("        settings: {a.b: {c: 1, d: 2}}\n"))
    following.round()
    digest = "0123456789abcdef" * 2
    following.world.home().things["default", Kind.SETTING]["a.b"]["value"] = {"c": {"$hidden": digest}, "d": 2}
    assert following.round() == 3
    assert following.events("drift")[0]["now"] == '{"c": "‹hidden›", "d": 2}'


# -- what it takes from a branch ---------------------------------------------------------------------------------


def rewound(following: Following) -> tuple[str, str]:
    """Two revisions, of which the second is gone from the branch and another one is there."""
    following.meet(brief("One."))
    following.push(brief("Two."))
    following.round()
    old = following.work.run("rev-parse", "HEAD")
    following.work.run("reset", "-q", "--hard", "HEAD~1")
    return old, following.push(brief("Other."), force=True)


def test_a_branch_that_was_rewound_is_held(following: Following) -> None:
    old, new = rewound(following)
    edit(following, "Mine.")
    loop = following.loop()
    assert [loop.round(), loop.round()] == [3, 3]
    [held] = following.events("held")
    assert new[:12] in held["reason"] and old[:12] in held["reason"] and "--allow rewind" in held["command"]
    assert following.jobs() == ["Mine."]
    assert following.events("drift")[0]["was"] == "Two."  # the last good one is still what homes are compared with
    edit(following, "Two.")
    assert following.round(allow=frozenset({"rewind"})) == 0
    assert following.jobs() == ["Other."]


def test_a_revision_that_git_has_no_longer_is_a_rewind(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    path = following.source().folder / "loop.json"
    path.write_text(path.read_text().replace(following.work.run("rev-parse", "HEAD"), "0" * 40))
    assert following.round() == 1 and following.events("held") and following.jobs() == ["One."]
    assert following.round(allow=frozenset({"rewind"})) == 0


def test_a_broken_setup_is_told_with_its_line_and_the_last_good_one_stays(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    edit(following, "Mine.")
    bad = following.push(brief("Two.").replace("prompt", "promt"))
    loop = following.loop()
    assert [loop.round(), loop.round()] == [1, 1]
    told = following.events("error")
    assert told[0]["file"] == "setup.yaml" and told[0]["line"] == 11 and told[0]["revision"] == bad
    assert "promt" in str(told) and "prompt" in told[0]["hint"]
    assert len({str(e) for e in told}) == len(told)
    assert [e["was"] for e in following.events("drift")] == ["One."] and following.jobs() == ["Mine."]
    edit(following, "One.")
    following.push(brief("Three."))
    assert following.round() == 0 and following.jobs() == ["Three."]


@pytest.mark.parametrize("text", ["", "version: 1\nname: [\n", "\0", "version: 2\n", "include: [../*.yaml]\n"])
def test_whatever_a_revision_holds_the_loop_goes_on(following: Following, text: str) -> None:
    following.meet(brief("One."))
    following.round()
    following.push(text)
    assert following.round() == 1
    assert following.events("error")
    following.push(brief("Two."))
    assert following.round() == 0


def test_a_setup_that_is_gone_is_said(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    following.work.run("mv", "setup.yaml", "other.yaml")
    following.push("x\n", file="notes.txt")
    (following.work.root / "setup.yaml").write_text("here, for the person\n")
    assert following.round() == 1
    assert "no such file" in following.events("error")[0]["reason"]


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_setup_that_a_commit_puts_elsewhere_by_a_link_is_not_read(following: Following, linked: str) -> None:
    outside = following.root / "outside"
    outside.mkdir()
    (outside / "setup.yaml").write_text("ANOTHER_TOKEN=only-for-this-machine\n")
    following.push(brief("One."), file="conf/setup.yaml")
    source = Source.of(following.work.root / "conf/setup.yaml", following.root / "state" / "gitops")
    source.prepare()
    folder = following.work.root / "conf"
    if linked == "file":
        (folder / "setup.yaml").unlink()
        (folder / "setup.yaml").symlink_to(outside / "setup.yaml")
    else:
        shutil.rmtree(folder)
        folder.symlink_to(outside)
    source.check_out(following.push("x\n", file="notes.txt"))
    with pytest.raises(SpecError, match="link") as caught:
        load(source.setup)
    assert "only-for" not in str(caught.value)


def test_what_a_linked_setup_holds_is_not_told(following: Following) -> None:
    following.meet(brief("One."))
    loop = following.loop()
    assert loop.round() == 0
    (following.root / "outside").write_text("ANOTHER_TOKEN=only-for-this-machine\n")
    (following.work.root / "setup.yaml").unlink()
    (following.work.root / "setup.yaml").symlink_to(following.root / "outside")
    following.push("x\n", file="notes.txt")
    assert loop.round() == 1
    assert [e["file"] for e in following.events("error")] == ["setup.yaml"]
    assert "only-for" not in str(following.told)


def test_a_remote_that_cannot_be_reached(following: Following) -> None:
    following.meet(brief("One."))
    loop = following.loop()
    loop.round()
    away = following.hub.root.with_name("away.git")
    following.hub.root.rename(away)
    edit(following, "Mine.")
    times = []
    start = following.time
    while following.time - start < 1000:
        before = len(following.events("unreachable"))
        assert loop.round() == 1
        if len(following.events("unreachable")) > before:
            times.append(following.time - start)
        following.time += 60
    assert times == [0, 60, 180, 420, 900]
    assert len(following.events("drift")) == 1  # what can be looked at is
    edit(following, "One.")
    away.rename(following.hub.root)
    following.time += 2000
    assert loop.round() == 0


def test_a_remote_that_was_never_reached(following: Following) -> None:
    following.meet(brief("One."))
    following.hub.root.rename(following.hub.root.with_name("away.git"))
    assert following.round() == 1
    assert [e["event"] for e in following.told] == ["unreachable", "round"]


def test_a_url_shows_no_credential(following: Following) -> None:
    following.meet(brief("One."))
    following.work.run("remote", "set-url", "origin", "https://ann:hunter2hunter2@127.0.0.1:1/x.git")
    assert following.round() == 1
    assert "127.0.0.1" in str(following.told) and "hunter2" not in str(following.told)


def test_its_work_tree_is_made_again(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    root = following.source().tree.root
    shutil.rmtree(root)
    assert following.round() == 0
    (root / ".git").unlink()
    (root / "setup.yaml").write_text("edited\n")
    assert following.round() == 0
    (root / "setup.yaml").write_text("edited\n")
    (root / "new.yaml").write_text("new\n")
    following.push(brief("Two."))
    assert following.round() == 0 and following.jobs() == ["Two."]
    assert not (root / "new.yaml").exists()


def test_no_program_of_the_repository_runs(following: Following) -> None:
    ran = following.root / "ran"
    hooks = following.work.root / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "pre-push", "pre-commit", "post-merge"):
        hook = hooks / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    following.meet(brief("One."))
    following.push(".gitmodules\n", file="x")
    following.push(f'[submodule "x"]\n\tpath = sub\n\turl = ext::sh -c "touch {ran}"\n', file=".gitmodules")
    assert following.round() == 0
    assert not ran.exists()


def test_a_damaged_record_is_said(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    path = following.source().folder / "loop.json"
    for text in ("", "{", "[]", '{"format": "reconciler.gitops/9"}', '{"format": "reconciler.gitops/1", "tip": 7}'):
        path.write_text(text)
        following.told.clear()
        assert following.round() == 1, text
        assert "loop.json" in following.events("error")[0]["reason"] and following.events("error")[0]["hint"]


# -- signatures --------------------------------------------------------------------------------------------------


def signing(following: Following, *, trusted: bool = True) -> None:
    """Commits of the author are signed with an ssh key that git is told to trust."""
    key = following.root / "key"
    if not key.exists():
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", str(key)]
        subprocess.run(made, check=True, capture_output=True)
    signers = following.root / "signers"
    signers.write_text(f"ann@example.org {key.with_suffix('.pub').read_text()}" if trusted else "")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(key)),
        ("commit.gpgsign", "true"),
        ("gpg.ssh.allowedSignersFile", str(signers)),
    ):
        following.work.run("config", name, value)


def test_only_a_signed_tip_is_taken(following: Following) -> None:
    following.meet(brief("One."))
    assert following.round(require_signed=True) == 4
    assert "no signature that git takes for good" in following.events("held")[0]["reason"]
    signing(following)
    following.push(brief("Two."))
    assert following.round(require_signed=True) == 0 and following.jobs() == ["Two."]
    signing(following, trusted=False)
    following.push(brief("Three."))
    assert following.round(require_signed=True) == 4
    following.work.run("config", "commit.gpgsign", "false")
    signing(following)
    following.work.run("config", "commit.gpgsign", "false")
    following.push(brief("Four."))
    assert following.round(require_signed=True) == 4
    assert following.jobs() == ["Two."]


# -- places, and who else is there -------------------------------------------------------------------------------


def test_here_are_the_homes_whose_place_says_so(following: Following) -> None:
    text = brief("One.") + (
        "  far:\n    harness: hermes\n    path: HOME/far\n    at: theirs\n    first_contact: adopt\n"
        f"    profiles:\n      default:\n{BRIEF}"
    )
    text = text.replace("    path: HOME/main\n", "    path: HOME/main\n    at: ours\n")
    text += "places: {ours: {host: this-machine}, theirs: {host: that-machine}}\n"
    text = text.replace("version: 1\n", "version: 1\npolicy: {unattended: [adopt homes]}\n")
    following.push(text)
    loop = following.loop(here="that-machine")
    loop.round()
    assert set(loop.standing.homes) <= {"far"}


def test_without_a_place_a_home_is_of_no_machine(following: Following) -> None:
    following.push(brief("One.", HEAD + "policy: {unattended: [adopt homes]}\n"))
    loop = following.loop(here="this-machine")
    assert loop.round() == 0
    assert not loop.standing.homes and not following.jobs()


def test_one_loop_per_state_folder(tmp_path: Path) -> None:
    folder = tmp_path / "gitops"
    with alone(folder, Files()), pytest.raises(StateLocked, match="another loop"), alone(folder, Files()):
        raise AssertionError("two at once")
    with alone(tmp_path / "gitops", Files()):
        pass


def test_what_somebody_else_applied_is_told_once(following: Following) -> None:
    """A commit that was applied by hand and is not on the branch: the revision was carried out, and the home is not as
    it says."""
    following.meet(brief("One."))
    loop = following.loop()
    assert loop.round() == 0
    following.world.setup(brief("Ahead."))
    following.world.apply()
    codes = [loop.round(), loop.round()]
    told = following.events("open")
    assert [(e["address"], e["row"]) for e in told] == [("main/default/jobs/brief", "update")] and all(codes)
    assert following.jobs() == ["Ahead."]
