"""Approvals: what they permit, for how long, from which run, given by whom; and the trailer of a commit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler import planfile
from reconciler.apply import apply, decisions
from reconciler.cli import approve as command
from reconciler.cli.agreed import agreed, plan_file
from reconciler.errors import UsageError
from reconciler.plan import Options, sha
from reconciler.provenance import Provenance
from reconciler.trailer import of_head
from reconciler.workspace import Workspace
from reconciler_state.decisions import Said
from reconciler_state.errors import StateError
from reconciler_state.repository import Repository
from repositories import WHO, made
from world import World, outcomes

ANN = Provenance(actor="ann", host="desk", run="session desk 1 2")
CRON = Provenance(actor="runner", host="server", run="session server 3 4")
HEAD = "version: 1\nname: solo\n"
HOME = "homes:\n  main:\n    harness: hermes\n    path: HOME/main\n    first_contact: adopt\n"
HOME += "    profiles:\n      default:\n"
KEEP = "        jobs:\n          keep: {schedule: {every: 1d}, prompt: x, deliver: local}\n"
GOES = "          goes: {schedule: {every: 1d}, prompt: x, deliver: local}\n"
TELLS = "          tells: {schedule: {every: 1d}, prompt: x, deliver: {to: owner}}\n"
DELETE, CONFIRM = "main/default/jobs/goes", "main/default/jobs/tells"


class Desk(World):
    """A home with a job to delete and one that reaches people to make; who asks, and in which run, is `who`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.home()
        self.who = ANN
        self.setup(HEAD + HOME + KEEP + GOES)
        assert set(outcomes(self.apply()).values()) == {"applied"}
        self.setup(HEAD + HOME + KEEP + TELLS.replace("{to: owner}", "owner_chat"))
        self.path = root / "plan.json"

    def space(self) -> Workspace:
        space = super().space()
        space.caller = lambda: self.who  # type: ignore[method-assign]
        return space

    def save(self) -> None:
        self.path.unlink(missing_ok=True)
        planfile.write(self.path, self.plan(), self.now, self.who.run)

    def approve(self, *targets: str) -> int:
        return command._approve(self.space(), self.path, targets, json=False)

    def run(self, *, saved: bool = False, reviewed: bool = True, yes: bool = False, expect: str = "") -> dict[str, str]:
        """What an apply without a terminal does, by the last word of each outcome."""
        space, options = self.space(), Options()
        file = plan_file(self.path, space) if saved else None
        plan = space.plan(options)
        consent = agreed(plan, space, options, file=file, expect=expect or None, reviewed=reviewed, yes=yes, json=False)
        assert consent is not None
        self.events = list(apply(plan, consent, space, options))
        return {path.rpartition("/")[2]: said for path, said in outcomes(self.events).items()}

    def decided(self) -> list[tuple[Said, str, str]]:
        return [(d.said, d.address, d.by) for d in decisions(self.space()).read()]


WAIT, DONE = "waits for consent", "applied"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_nothing_is_approved_by_itself(desk: Desk) -> None:
    desk.who = CRON
    assert desk.run(yes=True) == {"goes": WAIT, "tells": WAIT}


def test_approved_rows_are_carried_out_by_another_run(desk: Desk) -> None:
    desk.save()
    assert desk.approve() == 0
    desk.who = CRON
    assert desk.run() == {"goes": DONE, "tells": DONE}
    assert (Said.PERMITTED, DELETE, "runner") in desk.decided()
    last = decisions(desk.space()).read()[-1]
    assert last.why == "approved by ann (desk) at 2026-06-03 12:00 UTC"


def test_a_home_that_is_reached_otherwise_is_not_what_was_approved(desk: Desk) -> None:
    desk.save()
    desk.approve()
    text = desk.text
    desk.text = text.replace("first_contact: adopt", "first_contact: adopt\n    timezone: Europe/Vienna")
    assert desk.text != text
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    desk.who = ANN
    desk.save()
    desk.approve()
    desk.who = CRON
    assert desk.run() == {"goes": DONE, "tells": DONE}


def test_an_approved_delete_needs_reviewed_all_the_same(desk: Desk) -> None:
    desk.save()
    desk.approve()
    desk.who = CRON
    assert desk.run(reviewed=False) == {"goes": WAIT, "tells": DONE}


def test_only_what_the_targets_take_in(desk: Desk) -> None:
    desk.save()
    desk.approve(CONFIRM)
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": DONE}
    with pytest.raises(UsageError, match="selects nothing"):
        desk.approve("main/other")


def test_the_run_that_applies_reviews_nothing_itself(desk: Desk) -> None:
    """Neither its own plan file nor its own approval; a plan of another run does."""
    desk.save()
    assert desk.run(saved=True)["goes"] == WAIT
    desk.approve()
    assert desk.run(saved=True)["goes"] == WAIT
    assert desk.run()["goes"] == WAIT
    desk.who = CRON
    desk.approve()
    desk.who = ANN
    assert desk.run(saved=True)["goes"] == DONE


def test_a_plan_of_another_run_is_a_review(desk: Desk) -> None:
    desk.save()
    desk.who = CRON
    assert desk.run(saved=True, reviewed=False) == {"goes": WAIT, "tells": DONE}
    desk.save()
    desk.who = ANN
    assert desk.run(saved=True) == {"goes": DONE}


def test_a_plan_file_gets_no_row_from_an_approval(desk: Desk) -> None:
    """L8: of what was approved otherwise, only the rows that are in the file."""
    desk.save()
    desk.approve()
    desk.setup(HEAD + HOME + KEEP + GOES)
    desk.save()
    desk.setup(HEAD + HOME + KEEP + TELLS.replace("{to: owner}", "owner_chat"))
    desk.who = CRON
    assert desk.run(saved=True) == {"goes": "refused", "tells": "refused"}


def test_a_digest_under_another_things_name_approves_nothing(desk: Desk) -> None:
    """Who is shown one address has not agreed to another, however the plan file's own digest was made."""
    desk.save()
    document = json.loads(desk.path.read_bytes())
    rows = {row["address"]: row for row in document["rows"]}
    rows[CONFIRM]["digest"], rows[CONFIRM]["row"] = rows[DELETE]["digest"], "delete"
    document["rows"] = [rows[CONFIRM]]
    del document["content"]
    desk.path.write_text(json.dumps({**document, "content": sha(document)}))
    assert desk.approve() == 0
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    assert desk.run(saved=True) == {"goes": "refused", "tells": "refused"}
    desk.save()
    assert desk.run(saved=True)["goes"] == WAIT  # nor does it make a row of a file a review


@pytest.mark.parametrize("run", ["", "session server 3 4"])
def test_of_a_run_that_is_not_known_nothing_is_sure(desk: Desk, run: str) -> None:
    desk.who = replace(ANN, run=run)
    desk.save()
    desk.who = replace(CRON, run="" if run else CRON.run)
    assert desk.run(saved=True)["goes"] == WAIT


def test_a_digest_is_a_review(desk: Desk) -> None:
    digest = desk.plan().digest
    desk.who = CRON
    assert desk.run(expect=digest) == {"goes": DONE, "tells": DONE}


@pytest.mark.parametrize(("later", "outcome"), [((3, 59), DONE), ((4, 0), DONE), ((4, 1), WAIT)])
def test_an_approval_is_over_after_four_hours(desk: Desk, later: tuple[int, int], outcome: str) -> None:
    """S1-02, with a clock that stands."""
    desk.save()
    desk.approve()
    desk.who = CRON
    desk.now += timedelta(hours=later[0], minutes=later[1])
    assert desk.run() == {"goes": outcome, "tells": outcome}
    expired = outcome == WAIT
    assert ((Said.EXPIRED, DELETE, "runner") in desk.decided()) is expired
    assert any("approved by ann" in e.reason and "which is over" in e.reason for e in desk.events) is expired


def test_confirm_within_says_how_long(desk: Desk) -> None:
    desk.text = desk.text.replace("name: solo\n", "name: solo\npolicy: {confirm_within: 30m}\n")
    desk.save()
    desk.approve()
    desk.who = CRON
    desk.now += timedelta(minutes=31)
    assert desk.run()["tells"] == WAIT


def test_one_from_the_future_counts_for_nothing(desk: Desk) -> None:
    desk.save()
    desk.approve()
    desk.who = CRON
    desk.now -= timedelta(minutes=6)
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    assert not any("which is over" in e.reason for e in desk.events)


def test_a_plan_file_too_old_cannot_be_approved(desk: Desk) -> None:
    desk.save()
    desk.now += timedelta(hours=4, minutes=1)
    with pytest.raises(UsageError, match="too old"):
        desk.approve()


def test_what_changed_since_is_approved_no_more(desk: Desk) -> None:
    desk.save()
    desk.approve()
    desk.edit([{"set": "default/jobs/goes", "prompt": "kept for its new words"}])
    desk.text = desk.text.replace("tells: {schedule: {every: 1d}", "tells: {schedule: {every: 2d}")
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}


def test_the_rest_of_the_plan_may_have_changed(desk: Desk) -> None:
    """Approved are rows: a new job beside them is no reason to ask again."""
    desk.save()
    desk.approve()
    desk.setup(desk.text + "          more: {schedule: {every: 1d}, prompt: x, deliver: local}\n")
    desk.who = CRON
    assert desk.run() == {"goes": DONE, "tells": DONE, "more": WAIT}


def test_approving_again_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.save()
    desk.approve()
    before = {p: p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file()}
    desk.now += timedelta(minutes=9)
    assert desk.approve() == 0
    assert {p: p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file()} == before


def test_one_from_inside_a_home_is_refused_and_recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.save()
    monkeypatch.setattr(desk.memory, "insider", lambda _home, _above: "it runs below the gateway (pid 7)")
    with pytest.raises(UsageError, match="pid 7"):
        desk.approve()
    assert not (desk.root / "state" / "approvals").exists()
    assert {*desk.decided()[-2:]} == {(Said.REFUSED, CONFIRM, "ann"), (Said.REFUSED, DELETE, "ann")}


def test_what_an_insider_runs_uses_no_approval(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.save()
    desk.approve()
    desk.who = CRON
    monkeypatch.setattr(desk.memory, "insider", lambda _home, _above: "it runs below the gateway (pid 7)")
    assert desk.run() == {"goes": "refused", "tells": "refused"}


def test_a_plan_of_another_setup_is_refused(desk: Desk) -> None:
    desk.save()
    desk.text = desk.text.replace("name: solo", "name: other")
    with pytest.raises(UsageError, match="another setup"):
        desk.approve()


@pytest.mark.parametrize(
    "change",
    [{"digest": 3}, {"run": None}, {"rows": [{"digest": "x", "address": "//"}]}, {"rows": [{"digest": "x"}]},
     {"rows": []}, {"made": "soon"}, {"format": "reconciler.planfile/9"}],
)  # fmt: skip
def test_a_file_that_is_no_plan_is_refused(desk: Desk, change: dict[str, object]) -> None:
    desk.save()
    desk.path.write_text(json.dumps({**json.loads(desk.path.read_text()), **change}))
    with pytest.raises((UsageError, StateError)):
        desk.approve()
    assert not list((desk.root / "state").glob("approvals/*"))


@pytest.mark.parametrize("plan", ["../../x", "A" * 32, "", "a" * 31])
def test_a_digest_that_would_be_another_file_is_refused(desk: Desk, plan: str) -> None:
    desk.save()
    desk.path.write_text(json.dumps({**json.loads(desk.path.read_text()), "digest": plan}))
    with pytest.raises((UsageError, StateError)):
        desk.approve()
    assert not list(desk.root.rglob("x.json")) and not list((desk.root / "state").glob("approvals/*"))


def test_a_damaged_approval_stops_nobody_and_is_told(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.save()
    desk.approve()
    (file,) = (desk.root / "state" / "approvals").iterdir()
    file.write_text(file.read_text()[:-20])
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    assert "approves nothing" in capsys.readouterr().err


def test_the_list_says_what_waits_and_what_is_approved(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.save()
    desk.approve(CONFIRM)
    capsys.readouterr()
    assert command._list(desk.space(), json=False) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"  ✓ {CONFIRM}  create  [confirm: reaches people]  approved by ann (desk) at 2026-06-03 12:00 UTC, "
        "until 2026-06-03 16:00 UTC",
        f"  … {DELETE}  delete  [confirm: deletes]  waits",
        "1 row(s) wait for a person.",
    ]
    desk.now += timedelta(hours=5)
    command._list(desk.space(), json=True)
    rows = {r["address"]: r for r in json.loads(capsys.readouterr().out)["rows"]}
    assert rows[CONFIRM]["expired"]["by"] == "ann" and "approved" not in rows[CONFIRM]
    assert not {"approved", "expired"} & rows[DELETE].keys()


def test_a_state_that_cannot_be_written_lets_the_rest_go_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-13: what cannot be recorded of the gate is told, and stops nobody."""
    append = type(desk.store.files).append

    def full(self: object, path: Path, data: bytes, sync: bool) -> None:
        if path.parent.name == "decisions":
            raise StateError("No space left on device")
        append(self, path, data, sync)  # type: ignore[arg-type]

    monkeypatch.setattr(type(desk.store.files), "append", full)
    desk.save()
    desk.who = CRON
    assert desk.run(saved=True) == {"goes": DONE, "tells": DONE}
    assert [e.reason for e in desk.events if e.what == "note"] == [
        "what was decided is not recorded: No space left on device"
    ]


# -- trailers ---------------------------------------------------------------------------------------------------------

DIGEST = "0123456789abcdef" * 2


def commit(repository: Repository, *trailers: str, old: bool = False) -> str:
    """`old`: made before this session began."""
    message = "Fewer jobs\n\nBecause.\n\n" + "\n".join(trailers)
    env = WHO | ({"GIT_COMMITTER_DATE": "2001-02-03T04:05:06Z"} if old else {})
    repository.run("commit", "-q", "--allow-empty", "-m", message, env=env)
    return repository.run("rev-parse", "HEAD")


def fetched(repository: Repository) -> None:
    repository.run("update-ref", "refs/remotes/origin/main", "HEAD")


def test_a_trailer_of_a_commit_that_was_fetched_counts(tmp_path: Path) -> None:
    repository = made(tmp_path)
    head = commit(repository, f"Reviewed-plan: {DIGEST}", "Signed-off-by: ann", f"reviewed-plan: {'f' * 32}")
    fetched(repository)
    assert "older than this login session" in of_head(tmp_path / "setup.yaml", {}).why, "made and pushed by us"
    assert "older" in of_head(tmp_path / "setup.yaml", {}, lambda: 0.0).why, "nobody knows when we began"
    found = of_head(tmp_path / "setup.yaml", {}, lambda: math.inf)
    assert (found.digests, found.commit, found.why) == ((DIGEST, "f" * 32), head, "")


def test_one_that_this_run_may_have_made_does_not(tmp_path: Path) -> None:
    repository = made(tmp_path)
    fetched(repository)
    commit(repository, f"Reviewed-plan: {DIGEST}")
    assert "may be of this run" in of_head(tmp_path / "setup.yaml", {}).why


@pytest.mark.parametrize(("system", "name"), [("GITHUB_ACTIONS", "GITHUB_SHA"), ("GITLAB_CI", "CI_COMMIT_SHA")])
def test_in_a_pipeline_it_must_be_the_commit_that_the_run_is_for(tmp_path: Path, system: str, name: str) -> None:
    repository = made(tmp_path)
    head = commit(repository, f"Reviewed-plan: {DIGEST}")
    assert of_head(tmp_path / "setup.yaml", {system: "true", name: head}).why == ""
    fetched(repository)
    assert name in of_head(tmp_path / "setup.yaml", {system: "true", name: "0" * 40}).why
    assert name in of_head(tmp_path / "setup.yaml", {system: "true"}).why


@pytest.mark.parametrize(
    "line", ["Reviewed-plan:", "Reviewed-plan: all", f"Reviewed-plan: {DIGEST}x", f"Reviewed: {DIGEST}"]
)
def test_what_names_no_plan_is_none(tmp_path: Path, line: str) -> None:
    repository = made(tmp_path)
    commit(repository, line)
    assert of_head(tmp_path / "setup.yaml", {}).digests == ()


def test_words_in_the_text_are_no_trailer(tmp_path: Path) -> None:
    repository = made(tmp_path)
    text = f"Reviewed-plan: {DIGEST}\n\nThat was the plan, and this is only text."
    repository.run("commit", "-q", "--allow-empty", "-m", text, env=WHO)
    assert of_head(tmp_path / "setup.yaml", {}).digests == ()


def test_without_a_repository_or_a_commit_there_is_none(tmp_path: Path) -> None:
    assert of_head(tmp_path / "setup.yaml", {}).digests == ()
    (tmp_path / ".git").mkdir()
    assert of_head(tmp_path / "setup.yaml", {}).digests == ()


def test_a_merge_that_reviewed_the_plan_is_enough(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    repository = made(desk.root)
    digest = desk.plan().digest
    commit(repository, f"Reviewed-plan: {digest}", old=True)
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    assert "does not count" in capsys.readouterr().err
    fetched(repository)
    assert desk.run(reviewed=False) == {"goes": WAIT, "tells": WAIT}
    assert desk.run() == {"goes": DONE, "tells": DONE}
    assert decisions(desk.space()).read()[-1].why.startswith("Reviewed-plan of commit ")


def test_a_trailer_of_another_plan_reviews_nothing(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    repository = made(desk.root)
    commit(repository, f"Reviewed-plan: {DIGEST}")
    fetched(repository)
    desk.who = CRON
    assert desk.run() == {"goes": WAIT, "tells": WAIT}
    assert "is not of this plan" in capsys.readouterr().err
