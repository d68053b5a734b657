"""Loop: round after round: fetch, verify, plan, apply by policy, tell drift. What it remembers is on the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler_specs.edit import EditRefused
from reconciler_specs.errors import ReconcilerError, SpecError
from reconciler_state.files import Files
from reconciler_state.repository import GitError

from ..apply import apply, summary
from ..consent import Consent
from ..errors import UsageError
from ..event import Event, exit_code
from ..exits import of_apply
from ..plan import Options, Plan
from ..workspace import Workspace
from . import record as records
from . import waiting
from .approved import approved_rows
from .drift import drifts, puts_back
from .metrics import Standing, counted, unfinished
from .proposal import BRANCH, Proposed, propose
from .record import Record, wait
from .source import Source

Tell = Callable[[Mapping[str, Any]], None]
RECORD = "loop.json"
REASONS = 20  # of a setup that cannot be read, told one by one


@dataclass(frozen=True, slots=True)
class Terms:
    """How a loop was asked to work. `interval` in seconds; `here` is this machine's name if only homes whose place
    says `host: NAME` are its own, "" for all that can be reached."""

    interval: float = 60.0
    allow: frozenset[str] = frozenset()
    require_signed: bool = False
    here: str = ""


class Loop:
    """The rounds of one source.

    `open_` loads a setup file with its state (SpecError if it cannot). `tell` gets each event as a JSON object: its
    names are only added to within version 1. `now` is in seconds since 1970. `agreed` is what is consented to; it is
    given where to note what does not count. `notify` tells others, and gives a sentence for each that could not be
    told. `standing` is how the last round ended.
    """

    def __init__(
        self,
        source: Source,
        open_: Callable[[Path], Workspace],
        terms: Terms,
        tell: Tell,
        *,
        now: Callable[[], float],
        agreed: Callable[[Workspace, Plan, Callable[[str], None]], Consent],
        notify: Callable[[Workspace, Plan, Sequence[Event]], Sequence[str]] = lambda *_: (),
        stop: Callable[[], bool] = lambda: False,
        files: Files | None = None,
    ) -> None:
        self._source = source
        self._open = open_
        self._terms = terms
        self._tell = tell
        self._now = now
        self._agreed = agreed
        self._notify = notify
        self._stop = stop
        self._files = files or Files()
        self._path = source.folder / RECORD
        self._record = Record()
        self._codes = {0}
        self._said: set[str] = set()  # what the last round said, and this one does not say again
        self._again: set[str] = set()
        self._signed = ""
        self._fetch_at = 0.0
        self._may = True  # whether this round may carry out what it plans
        self.standing = Standing()

    def run(self, pause: Callable[[float], None], *, once: bool) -> int:
        """Rounds until `stop()`, with `pause` between them; one with `once`. The exit code: the round's with `once`,
        else 0: the loop was asked to end."""
        self.say("start", remote=self._source.remote, branch=self._source.branch, interval=self._terms.interval)
        code = 0
        while not self._stop():
            code = self.round()
            if once or self._stop():
                break
            pause(self._terms.interval)
        self.say("stop")
        return code if once else 0

    def round(self) -> int:
        """One round; its exit code (laws). What goes wrong with the repository, a setup or a home is told, and ends
        the round only."""
        started = self._now()
        self._codes = {0}
        self.standing = replace(self.standing, working=True)
        plan: Plan | None = None
        events: list[Event] = []
        try:
            self._record = records.read(self._path, self._files)
            plan = self._round(events)
        except ReconcilerError as error:
            self._codes.add(1)
            self._once("error", str(error), reason=str(error), hint=error.hint)
        self._said, self._again = self._again, set()
        code = exit_code(self._codes)
        self._stand(plan, events, code, started)
        rows = summary(events)
        self.say("round", revision=self.standing.revision, exit=code, seconds=self.standing.seconds, outcomes=rows)
        return code

    def say(self, what: str, **data: object) -> None:
        """One event; what is empty is left out."""
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")
        kept = {k: v for k, v in data.items() if v not in ("", None, (), {}, [])}
        self._tell({"version": 1, "at": at, "event": what, **kept})

    def _once(self, what: str, key: str, **data: object) -> None:
        """An event that is told again only if it was not so for a round."""
        mark = f"{what} {key}"
        if mark not in self._said | self._again:
            self.say(what, **data)
        self._again.add(mark)

    # -- a round -------------------------------------------------------------------------------------------------

    def _round(self, events: list[Event]) -> Plan | None:
        self._may = True
        self._files.mkdir(self._source.folder)
        self._source.prepare()
        revision = self._revision()
        if not revision:
            return None
        space = self._setup(revision)
        try:
            plan = space.plan(Options())
            self._drift(plan)
            self._standing_still(plan)
            self._codes.add(of_apply(plan, ()))
            consent = self._agreed(space, plan, lambda words: self._once("note", words, reason=words))
            approved = approved_rows(space, plan, consent)
            free = waiting.freed(plan, self._record.waiting)
            if self._may and self._due(revision):
                self._apply(space, plan, Options(), consent, waiting.held(plan), events)
            elif self._may and (free or approved) and self._rested(revision):
                # Of a revision that was carried out, only what was held then, or what somebody has agreed to since.
                options, asked = Options(targets=free or approved), consent if free else replace(consent, yes=False)
                left = waiting.still(plan, self._record.waiting) if free else self._record.waiting
                self._apply(space, space.plan(options), options, asked, left, events)
            else:
                self._left_open(plan)
            if self._may:
                self._propose(space, plan, revision)
            for sentence in self._notify(space, plan, events):
                self._once("not-told", sentence, reason=sentence)
            return plan
        finally:
            space.close()

    def _left_open(self, plan: Plan) -> None:
        """What is open and is not carried out now: a drift counts as held (and is told as one), the rest as it ended
        when it was tried. A row that was no part of that is somebody else's doing, and is told once."""
        for home in plan.homes:
            for action in (a for a in home.open if a.writes):
                if puts_back(action):
                    self._codes.add(3)
                    continue
                self._codes.add(self._record.code or 5)
                address = str(action.address)
                why = "the home is not as this revision declares, which was carried out already"
                command = f"reconciler history {address}"
                key = f"{address} {home.digests[action.address]}"
                self._once("open", key, home=home.id, address=address, row=str(action.row), reason=why, command=command)

    def _revision(self) -> str:
        """The revision to stand on: the branch's tip if it may be taken, else the last good one; "" if none."""
        last = self._record
        tip = self._fetched() or last.tip
        if not tip:
            return ""
        if (
            last.tip
            and tip != last.tip
            and not self._source.forward(last.tip, tip)
            and "rewind" not in self._terms.allow
        ):
            why = f"{self._source.branch} was rewound: {tip[:12]} does not come after {last.tip[:12]}"
            self._held(tip, why, "reconciler gitops run --once --allow rewind", 3)
            return last.good
        if self._terms.require_signed and tip != self._signed:
            why = self._source.unsigned(tip)
            if why:
                self._held(
                    tip, f"{tip[:12]} has no signature that git takes for good: {why}", f"git verify-commit {tip}", 4
                )
                return last.good
            self._signed = tip
        if tip != last.tip:
            self.say("revision", revision=tip, before=last.tip, **self._source.about(tip))
            self._save(replace(last, tip=tip, tried="", failures=0, retry_at=0.0, code=0))
        return tip

    def _held(self, tip: str, why: str, command: str, code: int) -> None:
        self._may = False
        self._codes.add(code)
        self._once("held", tip, revision=tip, reason=why, command=command)

    def _fetched(self) -> str:
        """The tip at the remote; "" where it cannot be asked, or not yet again."""
        if self._now() < self._fetch_at:
            self._codes.add(1)
            return ""
        try:
            tip = self._source.fetch()
        except GitError as error:
            failures = self.standing.unreachable + 1
            pause = wait(failures, self._terms.interval)
            self._fetch_at = self._now() + pause
            self.standing = replace(self.standing, unreachable=failures)
            self._codes.add(1)
            self.say("unreachable", remote=self._source.remote, reason=str(error), again_in=pause)
            return ""
        self._fetch_at = 0.0
        self.standing = replace(self.standing, unreachable=0)
        return tip

    def _setup(self, revision: str) -> Workspace:
        """The workspace of a revision, or, to look only, of the last good one where its setup cannot be read."""
        self._source.check_out(revision)
        try:
            space = self._open(self._source.setup)
        except SpecError as error:
            self._codes.add(1)
            self._may = False
            self._broken(revision, error)
            revision = self._record.good
            if not revision:
                raise UsageError("no revision has had a setup that can be read") from error
            self._source.check_out(revision)
            space = self._open(self._source.setup)
        else:
            self._save(replace(self._record, good=revision))
        if self._terms.here:
            homes = space.setup.homes.items()
            others = {k: h if h.host == self._terms.here else replace(h, host=h.host or "no host") for k, h in homes}
            space.setup = replace(space.setup, homes=others)
        return space

    def _broken(self, revision: str, error: SpecError) -> None:
        for reason in error.reasons[:REASONS]:
            where = reason.where
            self._once(
                "error",
                f"{revision} {reason}",
                revision=revision,
                file=self._source.said(where.file),
                line=where.line,
                column=where.column,
                reason=reason.message,
                hint=reason.hint,
            )
        if len(error.reasons) > REASONS:
            more = f"and {len(error.reasons) - REASONS} more"
            self._once("error", f"{revision} more", revision=revision, reason=more, hint="reconciler validate")

    # -- carrying out --------------------------------------------------------------------------------------------

    def _due(self, revision: str) -> bool:
        """Whether the revision is to be carried out now: not done yet, and no failure of it too near."""
        return self._record.done != revision and self._rested(revision)

    def _rested(self, revision: str) -> bool:
        return self._record.tried != revision or self._now() >= self._record.retry_at

    def _apply(
        self, space: Workspace, plan: Plan, options: Options, consent: Consent, left: Sequence[str], events: list[Event]
    ) -> None:
        """Exactly what `reconciler apply` does with this consent: the engine's own function. `left` goes on waiting."""
        before, revision = self._record, self._record.good
        failures = before.failures + 1 if before.tried == revision else 1
        again = self._now() + wait(failures, self._terms.interval)
        tried = replace(before, tried=revision, failures=failures, retry_at=again, code=6)
        if any(home.asked for home in plan.homes):
            self._save(tried)  # on the disk before the first write: a loop that dies from here on has tried
            for event in apply(plan, consent, space, options, stop=self._stop, tell=self._pass_on):
                events.append(event)
                self._pass_on(event)
        code = of_apply(plan, events)
        self._codes.add(code)
        if not unfinished(plan, events):
            done = replace(before, done=revision, tried="", failures=0, retry_at=0.0, code=code)
            self._save(replace(done, waiting=tuple(left)))
        elif self._stop():
            self._save(before)  # cut short by whoever stopped us: the next start goes on at once
        else:
            self._save(replace(tried, code=code))
            again_at = datetime.fromtimestamp(again, UTC).isoformat(timespec="seconds")
            self.say("failed", revision=revision, exit=code, tries=failures, again_at=again_at)

    def _pass_on(self, event: Event) -> None:
        said = event.to_json()
        self.say(said.pop("event"), **said)

    # -- drift ---------------------------------------------------------------------------------------------------

    def _drift(self, plan: Plan) -> None:
        """Tells each drift once for as long as it lasts. One of a home that cannot be seen now is not forgotten."""
        unseen = {home.id for home in plan.homes if home.failed}
        kept = {key for key in self._record.told if key.partition(":")[0] in unseen}
        found = drifts(plan)
        for drift in found:
            if drift.key not in self._record.told:
                self.say(
                    "drift",
                    home=drift.home,
                    address=drift.address,
                    field=drift.field,
                    row=drift.row,
                    mode=drift.mode,
                    was=drift.was,
                    now=drift.now,
                )
        self._save(replace(self._record, told=tuple(sorted(kept | {drift.key for drift in found}))))

    def _standing_still(self, plan: Plan) -> None:
        """Tells what is held, and which homes cannot be read."""
        for home in plan.homes:
            if home.failed:
                self._once("error", f"{home.id} {home.failed}", home=home.id, reason=home.failed)
            elif home.hold:
                why, command = home.hold.why, home.hold.command
                self._once("held", f"{home.id} {why}", home=home.id, reason=why, command=command)
            for action in home.actions:
                if action.hold is not None:
                    address, why = str(action.address), action.hold.why
                    said = {"row": str(action.row), "reason": why, "command": action.hold.command}
                    self._once("held", f"{address} {why}", home=home.id, address=address, **said)

    def _propose(self, space: Workspace, plan: Plan, revision: str) -> None:
        """Brings what homes have captured to a branch, for a person to merge."""
        last = self._record
        branch = f"{BRANCH}-{self._terms.here}" if self._terms.here else BRANCH
        try:
            now = propose(self._source, branch, space, plan, revision, Proposed(last.proposed, last.proposed_of))
        except (GitError, EditRefused, UsageError) as error:
            self._codes.add(4)
            if isinstance(error, UsageError):  # these values cannot be proposed, and the branch was withdrawn
                self._save(replace(self._record, proposed="", proposed_of=""))
            self._once("error", f"{branch} {error}", branch=branch, reason=str(error), hint=error.hint)
            return
        if now.held:
            self._once("held", f"{branch} {now.held}", branch=branch, reason=now.held)
            return
        for item in now.passed:
            self.say("not-captured", address=item.address, field=item.field, reason=item.why)
        if now.captured:
            addresses = [f"{item.address}#{item.field}" for item in now.captured]
            self.say("captured", branch=branch, revision=now.commit, addresses=addresses)
        elif last.proposed and not now.commit:
            self.say("withdrawn", branch=branch)
        self._save(replace(self._record, proposed=now.commit, proposed_of=now.of))

    # -- how it stands -------------------------------------------------------------------------------------------

    def _save(self, record: Record) -> None:
        if record != self._record:
            records.write(self._path, record, self._files)
            self._record = record

    def _stand(self, plan: Plan | None, events: list[Event], code: int, started: float) -> None:
        before, ended = self.standing, self._now()
        failing = (
            bool(self._codes & {1, 6})
            or (self._record.tried != "")
            or (plan is not None and any(home.failed for home in plan.homes))
        )
        homes = counted(plan, events, before.homes) if plan is not None else before.homes
        self.standing = replace(
            before,
            revision=self._record.good,
            code=code,
            rounds=before.rounds + 1,
            ended_at=ended,
            failing=failing,
            success_at=before.success_at if failing else ended,
            seconds=round(max(0.0, ended - started), 3),
            working=False,
            homes=homes,
        )
