"""What is held when the loop carries a revision out: it is still to come, and comes once nothing holds it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from following import Following, brief
from reconciler.consent import Consent
from reconciler.observe import Unknown
from reconciler.testing.faulty import Fault, FaultyProvider
from reconciler.workspace import Workspace
from world import HEAD

FREEZE = HEAD + "policy: {windows: [{deny: {dates: 2026-12-20..2027-01-02}, zone: UTC}]}\n"
DURING, AFTER = datetime(2026, 12, 24, tzinfo=UTC), datetime(2027, 1, 5, tzinfo=UTC)


@pytest.fixture
def following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Following:
    """A home that has met the setup; it is Christmas."""
    following = Following(tmp_path.resolve())
    clock(monkeypatch, DURING)
    following.meet(brief("One."))
    assert following.round() == 0
    return following


def clock(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr(Workspace, "now", staticmethod(lambda: now))


def edit(following: Following, **fields: Any) -> None:
    following.world.edit([{"set": "default/jobs/brief", **fields}])


def quiet(following: Following) -> bool:
    """Whether the next round has nothing to tell."""
    before = len(following.told)
    following.round()
    return [e["event"] for e in following.told[before:]] == ["round"]


def test_what_was_merged_in_a_freeze_is_carried_out_after_it(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.push(brief("Two.", FREEZE))
    assert following.round() == 3 and following.round() == 3 and following.jobs() == ["One."]
    clock(monkeypatch, AFTER)
    assert following.round() == 0 and following.jobs() == ["Two."] and quiet(following)
    assert not following.events("open")


def test_what_was_held_with_its_home_is_carried_out_once_it_is_free(following: Following) -> None:
    following.world.home().blocked = "managed by another system"
    following.push(brief("Two."))
    assert following.round() == 3 and following.jobs() == ["One."]
    following.world.home().blocked = ""
    assert following.round() == 0 and following.jobs() == ["Two."] and quiet(following)


@pytest.mark.parametrize("theirs", ["Theirs.", Unknown("it is behind a curtain")], ids=str)
def test_a_conflict_that_is_over_is_carried_out(following: Following, theirs: Any) -> None:
    edit(following, prompt=theirs)
    following.push(brief("Two."))
    assert following.round() == 3
    edit(following, prompt="One.")
    assert following.round() == 0 and following.jobs() == ["Two."] and quiet(following)


def test_what_somebody_changes_later_is_put_back_by_nobody(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0034: between revisions no drift is restored, neither of what has waited."""
    restoring = FREEZE.replace("{windows", "{on_drift: restore, unattended: [restore jobs, recreate jobs], windows")
    following.push(brief("One.", restoring))
    assert following.round() == 0, "there is nothing to hold"
    edit(following, prompt="Theirs.")
    clock(monkeypatch, AFTER)
    assert following.round() == 3 and following.jobs() == ["Theirs."]


def test_a_drift_that_a_freeze_held_is_none_of_the_revisions(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    restoring = FREEZE.replace("{windows", "{on_drift: restore, unattended: [restore jobs, recreate jobs], windows")
    edit(following, prompt="Theirs.")
    following.push(brief("One.", restoring))
    assert following.round() == 3
    clock(monkeypatch, AFTER)
    assert following.round() == 3 and following.jobs() == ["Theirs."]


def test_a_restart_that_is_held_stands_for_nothing_else(following: Following) -> None:
    """Its row is the home's, whose name as a target is all that is in it."""
    following.world.home().gateways["default"] = "s1"
    text = brief("One.", HEAD + "policy: {unattended: [create channels, set channels]}\n")
    for allow in ("1", "2"):
        revision = text + f"        channels: {{telegram: {{enabled: true, allow: ['{allow}']}}}}\n"
        following.push(revision)
        following.round()
    assert {e["row"] for e in following.events("held") if e.get("address") == "main"} == {"restart"}
    following.world.setup(revision.replace("One.", "Ahead."))
    following.world.apply()
    following.round()
    assert [e["address"] for e in following.events("open")] == ["main/default/jobs/brief"]
    assert following.jobs() == ["Ahead."]


def test_a_new_revision_forgets_what_another_has_held(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.push(brief("Two.", FREEZE))
    following.round()
    following.push(brief("One.", FREEZE))
    assert following.round() == 0
    clock(monkeypatch, AFTER)
    edit(following, prompt="Two.")
    assert following.round() == 3 and following.jobs() == ["Two."], "that is drift"


def test_what_fails_when_it_is_free_is_tried_again(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.push(brief("Two.", FREEZE))
    following.round()
    clock(monkeypatch, AFTER)
    following.provider = FaultyProvider(following.world.memory, Fault.REFUSES)
    assert following.round() == 4 and following.events("failed")
    following.provider = following.world.memory
    assert following.round() != 0 and following.jobs() == ["One."], "not at once"
    following.time += 1_000_000
    assert following.round() == 0 and following.jobs() == ["Two."]


def test_a_delete_that_becomes_free_waits_for_its_review(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.push(FREEZE + brief("x").split(HEAD)[1].split("        jobs:")[0] + "        {}\n")
    assert following.round() == 3
    clock(monkeypatch, AFTER)
    assert following.round() == 5 and following.jobs() == ["One."]
    assert [e["outcome"] for e in following.events("outcome")][-1] == "waits for consent"
    following.consent = Consent(yes=True)
    assert following.round() == 5 and following.jobs() == ["One."]
