"""`on_removed: pause`: what left the setup is paused, deletable once its time is over, and its return gives back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import CLEAR, Action, FieldChange, FieldRow, Row
from reconciler.consent import Consent
from reconciler.observe import ABSENT
from reconciler.plan import Options
from reconciler.retire import along
from reconciler_specs.address import Address
from reconciler_specs.shape import Shape
from reconciler_state.codec import decode, encode
from reconciler_state.record import Base, HomeState, Owned, Retired
from world import World, outcomes

BRIEF = "main/default/jobs/brief"
HEAD = "version: 1\nname: solo\npolicy: {on_removed: {pause: 2d}}\n"
KEEP = "          keep: {schedule: {every: 1d}, prompt: x, deliver: local}\n"
DECLARED = "          brief: {schedule: {every: 1d}, prompt: x, deliver: local}\n"
CONTACT = "first_contact: adopt\n    profiles:\n      default:\n        jobs:\n"


def setup(*jobs: str, head: str = HEAD) -> str:
    return f"{head}homes:\n  main:\n    harness: hermes\n    path: HOME/main\n    {CONTACT}{''.join(jobs)}"


class Life(World):
    """A world with a job that was made by us or found, and has left the setup."""

    def __init__(self, root: Path, declared: str = DECLARED, found: bool = False) -> None:
        super().__init__(root)
        self.home()
        if found:
            self.home().add_job("brief", schedule={"every": "1d"}, prompt="x", deliver="local", paused=False)
        self.setup(setup(KEEP, declared))
        assert set(outcomes(self.apply()).values()) == {"applied"}
        if not found:
            self.edit([{"set": "default/jobs/brief", "paused": "paused: true" in declared}])

    def row(self, options: Options | None = None) -> Action | None:
        return self.rows(options).get(BRIEF)

    @property
    def job(self) -> dict[str, Any]:
        return self.home().jobs()[self.id]

    @property
    def id(self) -> str:
        return next(i for i, job in self.home().jobs().items() if job["name"] == "brief")

    def leave(self) -> None:
        self.setup(setup(KEEP))
        assert outcomes(self.apply(Consent(yes=True))) == {BRIEF: "applied"}

    def held(self) -> str:
        row = self.row()
        assert row is not None and row.row is Row.DELETE
        return row.hold.why if row.hold else ""


def test_paused_then_held_then_deleted_after_a_review(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    assert life.job["paused"] is True
    assert life.held() == "left the setup at 2026-06-03 12:00+00:00; may be deleted from 2026-06-05 12:00+00:00"
    life.now += timedelta(days=1, hours=23, minutes=59)
    assert life.held()
    assert life.apply() == []
    life.now += timedelta(minutes=2)
    row = life.row()
    assert row is not None and row.writes and row.reason == "left the setup at 2026-06-03 12:00+00:00"
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "waits for consent"}
    assert outcomes(life.apply()) == {BRIEF: "applied"}
    assert life.row() is None


def test_waiting_writes_nothing(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    life.now += timedelta(hours=5)
    assert life.apply() == []
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("days", [1, 30])
def test_its_return_gives_back_what_pausing_took(tmp_path: Path, found: bool, days: int) -> None:
    life = Life(tmp_path, found=found)
    life.leave()
    life.now += timedelta(days=days)
    life.setup(setup(KEEP, DECLARED))
    row = life.row()
    assert row is not None and {c.field: c.write for c in row.changes} == {"paused": False}
    assert row.reason == "back in the setup"
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "applied"}
    assert life.job["paused"] is False
    assert life.row() is None, "and the setup says nothing of `paused` any more than before"
    life.edit([{"set": "default/jobs/brief", "paused": True}])
    assert life.row() is None, "L2: what is not declared is not managed"


@pytest.mark.parametrize("paused", [True, False])
def test_it_comes_back_as_the_setup_declares(tmp_path: Path, paused: bool) -> None:
    declared = DECLARED.replace("}\n", f", paused: {str(paused).lower()}}}\n")
    life = Life(tmp_path, declared)
    life.leave()
    assert life.job["paused"] is True
    life.setup(setup(KEEP, declared))
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "applied"}
    assert life.job["paused"] is paused
    assert life.row() is None
    life.leave()
    assert life.held().startswith("left the setup at 2026-06-03"), "the time counts from the last time it left"


def test_resumed_by_hand_it_is_not_fought_over(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    life.edit([{"set": "default/jobs/brief", "paused": False}])
    row = life.row()
    assert row is not None and row.hold is not None
    assert row.notes == ("changed in the home since the last apply: paused",)
    life.setup(setup(KEEP, DECLARED))
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "applied"}
    assert life.row() is None and life.job["paused"] is False


def test_gone_from_the_home_meanwhile(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    life.edit([{"delete": "default/jobs/brief"}])
    row = life.row()
    assert row is not None and row.row is Row.FORGET


def test_gone_from_the_home_and_back_in_the_setup(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    life.edit([{"delete": "default/jobs/brief"}])
    life.setup(setup(KEEP, DECLARED))
    assert outcomes(life.apply()) == {BRIEF: "applied"}
    assert life.row() is None
    life.setup(setup(KEEP))
    assert life.row() is not None and life.row().row is Row.UPDATE  # type: ignore[union-attr]


def test_without_the_policy_it_is_deletable_at_once(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.leave()
    life.setup(setup(KEEP, head="version: 1\nname: solo\n"))
    assert life.held() == ""


def test_a_pause_that_did_not_hold_starts_no_time(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.setup(setup(KEEP))

    class Deaf(dict):  # type: ignore[type-arg]
        """A record whose `paused` the harness does not keep."""

        def __setitem__(self, name: str, value: Any) -> None:
            if name != "paused":
                super().__setitem__(name, value)

    life.home().jobs()[life.id] = Deaf(life.job)
    assert outcomes(life.apply()) == {BRIEF: "not-applied"}
    row = life.row()
    assert row is not None and row.retires


def test_a_pause_waits_for_consent_like_any_write(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.setup(setup(KEEP, head=HEAD.replace("{on_removed", '{raise: {"set jobs": confirm}, on_removed')))
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "waits for consent"}
    row = life.row()
    assert row is not None and row.rule == "policy.raise: set jobs"


def test_one_plan_file_pauses_however_late_it_is_applied(tmp_path: Path) -> None:
    """The moment is no part of what is approved."""
    life = Life(tmp_path)
    life.setup(setup(KEEP))
    digest = life.plan().digest
    life.now += timedelta(hours=3)
    assert life.plan().digest == digest


def test_protection_that_is_declared_later_is_kept(tmp_path: Path) -> None:
    """`protect: true` of a thing that is otherwise in sync is recorded, so that it outlives its block."""
    life = Life(tmp_path)
    life.setup(setup(KEEP, DECLARED.replace("}\n", ", protect: true}\n")))
    assert outcomes(life.apply(Consent(yes=True))) == {BRIEF: "applied"}
    assert life.row() is None
    life.setup(setup(KEEP))
    assert life.held() == "protected (protect: true)"


STATE = HomeState("local", "hermes", "/home", "l", 1)


def test_state_keeps_since_when() -> None:
    thing = Owned("id1", "created", retired=Retired("2026-06-03T12:00:00+00:00", {"paused": False}))
    state = STATE.with_owned("solo", "default/jobs/brief", thing)
    assert decode(encode(state), Path("x")) == state
    assert b"retired" not in encode(STATE.with_owned("solo", "default/jobs/brief", Owned("id1", "created")))


@pytest.mark.parametrize(
    "retired",
    ["[]", "true", '{"at": "2026-06-03T12:00:00+00:00"}', '{"at": "soon", "was": {}}',
     '{"at": "2026-06-03T12:00:00", "was": {}}', '{"at": 3, "was": {}}', '{"at": "", "was": []}'],
)  # fmt: skip
def test_a_damaged_time_costs_its_own_thing_only(retired: str) -> None:
    thing = Owned("id1", "created", retired=Retired("2026-06-03T12:00:00+00:00"))
    text = encode(
        STATE.with_owned("solo", "default/jobs/brief", thing).with_owned(
            "solo", "default/jobs/x", Owned("i", "created")
        )
    )
    broken = text.replace(b'{"at": "2026-06-03T12:00:00+00:00", "was": {}}', retired.encode())
    assert broken != text
    found = decode(broken, Path("x"))
    assert set(found.owned("solo")) == {"default/jobs/x"}
    assert "retired" in found.damaged[0]


@pytest.mark.parametrize("goes", [True, False])
def test_what_stands_inside_goes_with_its_profile_and_is_not_cleared_before(goes: bool) -> None:
    base = Base(40, 40)
    change = FieldChange("value", FieldRow.UNSET, ABSENT, 40, base, Shape(), CLEAR)
    inside = Action(Row.UPDATE, Address.parse("main/coder/settings/agent.max_turns"), changes=(change,))
    beside = Action(Row.UPDATE, Address.parse("main/default/settings/agent.max_turns"), changes=(change,))
    profile = Action(Row.DELETE if goes else Row.IN_SYNC, Address.parse("main/coder"))
    _, first, second = along([profile, inside, beside])
    assert [str(c.row) for c in first.changes] == ["release" if goes else "unset"] and first.writes is not goes
    assert second == beside
