"""Rounds of the loop: what it carries out, and what it tells."""

from __future__ import annotations

import errno
import os
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
from reconciler.observe import Observation, Wanted
from reconciler.provider import Door, HomeRef
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Kind
from reconciler_state.errors import StateLocked
from reconciler_state.files import Files
from world import HEAD, home_text


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


def test_a_drift_is_told_once_for_as_long_as_it_lasts(following: Following) -> None:
    following.meet(brief("One."))
    assert following.round() == 0
    following.edit("Mine.\nAnd more.")
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
    following.edit("Yours.")
    following.round()
    assert [e["now"] for e in following.events("drift")] == ["Mine. And more.", "Yours."]
    following.edit("One.")
    assert following.round() == 0
    following.edit("Yours.")
    following.round()
    assert [e["now"] for e in following.events("drift")] == ["Mine. And more.", "Yours.", "Yours."]


def test_a_drift_is_only_told_between_revisions(following: Following) -> None:
    """Even one that policy lets a run restore: a round without a new revision writes no home."""
    policy = "policy: {on_drift: restore, unattended: [restore jobs]}\n"
    following.meet(brief("One.", HEAD + policy))
    following.round()
    following.edit("Mine.")
    assert following.round() == 3
    assert following.jobs() == ["Mine."] and following.events("drift")[0]["mode"] == "restore"
    following.push(brief("One.", HEAD + policy + "# next\n"))
    assert following.round() == 0 and following.jobs() == ["One."]


def test_a_home_that_cannot_be_seen_keeps_its_told_drifts(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    following.edit("Mine.")
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
