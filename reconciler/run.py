"""HomeRun: one home's rows carried out, step by step: journal → door → read back → state → outcome (L9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler_specs.address import Address, Kind
from reconciler_specs.errors import ReconcilerError
from reconciler_specs.shape import Class
from reconciler_state.journal import Intent, Planned
from reconciler_state.record import Base, HomeState, Owned

from . import restart
from .action import CLEAR, Action, FieldChange, FieldRow, Row
from .bind import as_json, rebase, references, resolve_refs
from .errors import DoorLost, ProviderError
from .event import STOPPING, Event, Outcome, Tell, untold
from .intent import ended, planned, settled, unmanaged
from .match import identity, place_id, remembered, sharing
from .merge import COMPOSITE, equal, merge
from .observe import ABSENT, Absent, Observation, Observed, Unknown, Wanted
from .plan import HomePlan
from .provider import Answer, Code, Door, Step, traits_of
from .retire import recorded
from .secret import with_former
from .steps import steps
from .values import from_base, members, same
from .verdict import Verdict, harmed, in_the_clear, look_row, missed, waits_for_failed
from .verify import disagreements

if TYPE_CHECKING:
    from .workspace import HomeGuard, Workspace

Stop = Callable[[], bool]
# How often a door's read is asked again while its stated deadline runs (seconds).
POLL = 0.2


class HomeRun:
    """The run of one home. `carry_out` is a generator and may be iterated once."""

    def __init__(self, plan: HomePlan, workspace: Workspace, guard: HomeGuard, run: str = "") -> None:
        self._plan = plan
        self._run = run
        self._workspace = workspace
        self._guard = guard
        self._provider = workspace.provider(plan.ref.harness)
        self._stored = plan.serial
        self._state: HomeState = plan.state
        self._journal = workspace.journal(plan.ref)
        self._made: dict[str, str] = {}  # what this step has created: address path → harness id
        self._open: Sequence[Intent] = plan.intents
        self._failed: dict[Address, str] = {}
        self._done: list[tuple[Action, Verdict]] = []
        self._harmed = ""
        self._clear = plan.observation.clear
        others = {owner: things for owner, things in plan.state.owners.items() if owner != plan.owner}
        self._shared = sharing(others, self._provider.traits)
        self._begun: set[Address] = set()  # journaled, so that the door may have been used for it

    def carry_out(self, actions: Sequence[Action], stop: Stop, tell: Tell = untold) -> Iterator[Event]:
        """Yields one `outcome` event per action, and a `home-end`. `tell` gets a `note` for each wait of the
        door, while it waits."""
        plan, started, limit = self._plan, time.monotonic(), self._workspace.seconds(self._plan.id)
        yield Event("home", plan.id, total=len(actions))
        with ExitStack() as stack:
            self._workspace.keep_key(plan.ref)
            found = plan.state if plan.serial else None
            who = self._workspace.provenance().to_json()
            self._journal.start(
                owner=plan.owner, home=plan.id, state=found, version=plan.version or "", run=self._run, who=who
            )
            door: Door | None = None
            try:
                self._journal.announce(self._planned(actions))
                for step in steps(actions, self._provider.batch):
                    if stop() and not self._harmed:
                        self._harmed = "stopped by the person"
                    elif time.monotonic() - started > limit and not self._harmed:
                        self._harmed = "the time of policy.limits.minutes is over"
                    writing = [a for a in step if a.writes]
                    if writing and door is None and not self._harmed:
                        door = stack.enter_context(self._door(tell, started + limit))
                    yield from self._step(door, step)
            except ReconcilerError as error:
                # What was begun is in the journal: the next run looks, and settles it (L11).
                told = {a.address for a, _ in self._done} | set(self._failed)
                for action in actions:
                    if action.address in told:
                        continue
                    if action.address in self._begun and action.writes:
                        why = "its write was begun, and what came of it could not be recorded; the next run looks"
                        yield self._outcome(action, Verdict(Outcome.UNCERTAIN, why), door)
                    else:
                        yield self._outcome(action, Verdict(Outcome.SKIPPED, "the home failed"), None)
                unsaid = self._workspace.publish(plan.ref) if self._journal.withdraw() else ""
                reason = f"{error}; {unsaid}" if unsaid else str(error)
                yield Event("home-end", plan.id, outcome=Outcome.FAILED, reason=reason, command=error.hint or "")
                return
            yield from self._last_look()
            self._journal.end(self._state, unmanaged(plan.observation, plan.state, self._state))  # ours: before, or now
        unsaid = self._workspace.publish(plan.ref)  # to every other runner it is uncertain then
        outcome, seconds = Outcome.UNCERTAIN if unsaid else None, time.monotonic() - started
        yield Event("home-end", plan.id, outcome=outcome, reason=unsaid, seconds=seconds)

    def _door(self, tell: Tell, until: float) -> AbstractContextManager[Door]:
        def note(words: str) -> None:
            tell(Event("note", self._plan.id, reason=words))

        return self._provider.open(self._plan.ref, self._guard.fd, note, until)

    def _step(self, door: Door | None, step: list[Action]) -> Iterator[Event]:
        ready: list[Action] = []
        for action in step:
            first = waits_for_failed(action, self._failed)
            if self._harmed or first is not None:
                reason = self._harmed or f"waits for {first}"
                yield self._outcome(action, Verdict(Outcome.SKIPPED, reason), door=None)
            else:
                ready.append(action)
        writing = [a for a in ready if a.writes]
        answers: dict[Address, Answer] = {}
        intents: dict[Address, str] = {}
        lost = ""
        if ready:
            intents = self._journal.begin(self._planned(ready))
            self._begun |= intents.keys()
        if any(a.late for a in writing):
            self._write(restart.ahead(self._state, writing, self._plan.observation))
        if writing and door is not None:
            yield Event("step", self._plan.id, total=len(writing), reason=door.name)
            try:
                answers = {a.address: a for a in door.perform(self._order(writing, intents))}
            except DoorLost as error:
                lost = str(error)
                self._harmed = "the door was lost"
        if not ready:
            return
        self._made = {a.path: answers[a].id for a in answers if answers[a].id}
        observation = self._read_back(door, writing, answers, intents)
        verdicts = [(a, self._judge(a, answers.get(a.address), observation, intents, lost)) for a in ready]
        verdicts, clear = in_the_clear(verdicts, observation.clear - self._clear)
        verdicts, harm = harmed(verdicts, answers)
        self._harmed = self._harmed or clear or harm
        self._clear |= observation.clear
        self._remember(verdicts)
        name = door.name if door is not None else ""
        closed, self._open = settled(self._open, self._plan, self._state, self._provider.traits)
        self._journal.done([*closed, *ended(verdicts, intents, name)])
        for action, verdict in verdicts:
            yield self._outcome(action, verdict, door)

    def _order(self, writing: Sequence[Action], intents: Mapping[Address, str]) -> Step:
        plan = self._plan
        wanted = {a.address: plan.canons[a.address].fields for a in writing if a.address in plan.canons}
        return Step(plan.ref, tuple(writing), intents, self._workspace.vault.values(plan.resources, writing), wanted)

    def _outcome(self, action: Action, verdict: Verdict, door: Door | None) -> Event:
        if verdict.outcome in STOPPING:
            self._failed[action.address] = verdict.reason
        else:
            self._done.append((action, verdict))
        return Event(
            "outcome",
            self._plan.id,
            action.address,
            str(action.row),
            verdict.outcome,
            verdict.reason,
            fields=verdict.fields,
            extra={"door": door.name} if door is not None and action.writes else {},
        )

    def _planned(self, actions: Sequence[Action]) -> list[Planned]:
        traits = self._provider.traits
        return [planned(self._plan, a, traits.get(a.address.kind)) for a in actions]

    # -- reading back ------------------------------------------------------------------------------------------

    def _read_back(
        self,
        door: Door | None,
        writing: Sequence[Action],
        answers: Mapping[Address, Answer],
        intents: Mapping[Address, str],
    ) -> Observation:
        """Reads until the written fields hold, or the door's stated deadline has passed."""
        if not writing:
            return self._plan.observation
        wait = door.deadline(Step(self._plan.ref, tuple(writing))) if door is not None else 0.0
        deadline = time.monotonic() + wait
        while True:
            observation = self._look()
            verdicts = [self._judge(a, answers.get(a.address), observation, intents, "") for a in writing]
            if time.monotonic() >= deadline or all(v.outcome is not Outcome.NOT_APPLIED for v in verdicts):
                return observation
            self._workspace.pause(POLL)

    def _look(self) -> Observation:
        wanted = Wanted(frozenset(a.address for a in self._plan.actions) | frozenset(self._plan.resources))
        try:
            seen = self._workspace.observe(self._plan.ref, wanted)
            return remembered(seen, self._state, self._provider.traits)
        except ProviderError as error:
            unseen = dict.fromkeys(self._plan.observation.things, Unknown(str(error)))
            return Observation(exists=False, things=unseen, blocked=str(error))

    def _find(
        self, action: Action, answer: Answer | None, observation: Observation, intents: Mapping[Address, str]
    ) -> Observed | Absent | Unknown:
        address = action.address
        store = ("" if address.kind is Kind.PROFILE else address.profile, address.kind)
        traits = traits_of(self._provider.traits, address.kind)
        if traits.write_only and answer is not None and answer.shown is not None:
            shown = answer.shown
            return Observed(address.kind, address.profile, place_id(address), shown) if shown else ABSENT
        if traits.by_place:
            return observation.at(*store, place_id(address))
        if action.id and action.row is not Row.MISSING:
            return observation.at(*store, action.id)
        if answer is not None and answer.id:
            return observation.at(*store, answer.id)
        things = observation.things.get(store, Unknown("not looked at"))
        if isinstance(things, Unknown):
            return things
        marker = intents.get(address)
        return next((t for t in things.values() if marker and t.marker == marker), ABSENT)

    def _judge(
        self,
        action: Action,
        answer: Answer | None,
        observation: Observation,
        intents: Mapping[Address, str],
        lost: str,
    ) -> Verdict:
        """Compares one action with the read-back (L9). `lost` says how the answer was lost, "" if it was not."""
        owned = self._state.owned(self._plan.owner).get(action.address.path)
        if action.address.kind is Kind.HOME:
            return restart.of_home(action, answer, observation, lost)
        if action.row in (Row.FORGET, Row.RELEASED):
            return Verdict(Outcome.APPLIED)
        if action.row in (Row.SETTLED, Row.MOVED):
            return Verdict(Outcome.APPLIED, owned=owned)
        seen = self._find(action, answer, observation, intents)
        if isinstance(seen, Unknown):
            return Verdict(Outcome.UNCERTAIN, seen.reason, owned=owned)
        if action.row is Row.DELETE:
            if seen is ABSENT:
                return Verdict(Outcome.APPLIED)
            return missed(answer, lost, owned, ())
        traits = traits_of(self._provider.traits, action.address.kind)
        stands = traits.stands(place_id(action.address)) or action.row is Row.UPDATE
        if seen is ABSENT and not stands:
            return missed(answer, lost, owned, ())
        return self._compare(action, answer, seen, owned, lost)

    def _compare(
        self, action: Action, answer: Answer | None, seen: Observed | Absent, owned: Owned | None, lost: str
    ) -> Verdict:
        bases: dict[str, Base] = {}
        dropped: set[str] = set()
        wrong: list[str] = []
        settling = traits_of(self._provider.traits, action.address.kind).settling
        defaults = seen.defaults if isinstance(seen, Observed) else frozenset()
        for change in action.changes:
            now = seen.get(change.field) if isinstance(seen, Observed) else ABSENT
            if change.row is FieldRow.RELEASE:
                dropped.add(change.field)
            elif change.row is FieldRow.STAMP:
                # Only what still is as declared: somebody may have changed it since it was looked at.
                wanted = replace(change, write=CLEAR if change.declared is ABSENT else change.declared)
                if self._holds(action.address, wanted, now, defaults):
                    bases[change.field] = Base(as_json(change.declared), as_json(now))
            elif change.writes:
                declared = resolve_refs(as_json(change.declared), self._resolve)
                if self._holds(action.address, change, now, defaults):
                    if change.declared is ABSENT and change.row is FieldRow.UNSET:
                        dropped.add(change.field)
                    else:
                        bases[change.field] = Base(declared, as_json(now))
                elif change.field in settling and not same(now, change.observed) and not isinstance(now, Unknown):
                    bases[change.field] = Base(declared, as_json(now))
                else:
                    wrong.append(change.field)
        if wrong and answer is not None and answer.code in (Code.REFUSED, Code.STALE):
            return missed(answer, lost, owned, tuple(wrong))
        if action.row is Row.FOLLOW:
            return Verdict(Outcome.NOT_APPLIED if wrong else Outcome.APPLIED, fields=tuple(wrong), owned=owned)
        owned = self._own(action, seen, owned, bases, frozenset(dropped), wrong)
        if wrong:
            verdict = missed(answer, lost, owned, tuple(wrong))
            return replace(verdict, owned=owned)
        inert = answer.inert if answer is not None else ""
        said = answer.said if answer is not None else ""
        return Verdict(Outcome.INERT if inert else Outcome.APPLIED, inert or said, owned=owned)

    def _own(
        self,
        action: Action,
        seen: Observed | Absent,
        owned: Owned | None,
        bases: Mapping[str, Base],
        dropped: frozenset[str],
        wrong: Sequence[str],
    ) -> Owned | None:
        resource = self._plan.resources.get(action.address)
        if owned is None or action.row in (Row.CREATE, Row.MISSING):
            harness_id = seen.id if isinstance(seen, Observed) else place_id(action.address)
            owned = Owned(harness_id, action.origin or "adopted")
        # Where a set becomes ours, what it holds is not by us: nor is it taken away without being asked.
        found = {
            c.field: tuple(members(c.observed))
            for c in action.changes
            if c.shape.cls is Class.SET and c.base is None and c.observed is not ABSENT and c.field in bases
        }
        owned = replace(owned, found={**owned.found, **found})
        owned = with_former(rebase(owned, bases, dropped, action.changes), action)
        owned = recorded(owned, action, wrong, self._plan.canons.get(action.address))
        if resource is None:
            return owned if owned.fields or owned.retired else None
        needs = [n.path for n in resource.needs]
        # What is not all applied goes on using what it has used.
        still = [n for n in owned.needs if n not in needs] if wrong or action.held_fields else []
        return replace(owned, needs=(*needs, *still), protect=resource.protect)

    def _holds(self, address: Address, change: FieldChange, now: object, defaults: frozenset[str]) -> bool:
        if isinstance(now, Unknown):
            return False
        if change.write is CLEAR:
            return now is ABSENT or change.field in defaults
        if change.shape.cls in COMPOSITE and change.shape.cls is not Class.TEXT:
            # Others may add members of their own at any time: what counts is that ours hold, and what we took is gone.
            was = from_base(change.base.declared) if change.base else ABSENT
            declared = change.declared if change.declared is ABSENT else resolve_refs(change.declared, self._resolve)
            others = [t.fields[change.field].declared for t in self._theirs(address) if change.field in t.fields]
            return equal(change.shape, merge(change.shape, was, declared, now, others), now)
        write = resolve_refs(change.write, self._resolve)
        return not references(write) and not disagreements(write, now, change.shape)

    def _theirs(self, address: Address) -> Collection[Owned]:
        """What other setups own of this very thing (L3)."""
        mine = self._state.owned(self._plan.owner).get(address.path)
        key = identity(address, mine.id if mine is not None else "", self._provider.traits)
        return self._shared.get(key, {}).values()

    def _resolve(self, path: str) -> str | None:
        thing = self._state.owned(self._plan.owner).get(path)
        return self._made.get(path) or (thing.id if thing else None)

    # -- state -------------------------------------------------------------------------------------------------

    def _remember(self, verdicts: Sequence[tuple[Action, Verdict]]) -> None:
        """One state write per step (one fsync), whatever the step held."""
        changes: dict[str, Owned | None] = {}
        owned = self._state.owned(self._plan.owner)
        for action, verdict in verdicts:
            path = action.address.path
            if action.address.kind is Kind.HOME or action.row is Row.FOLLOW:
                continue
            if verdict.owned is not None:
                changes[path] = verdict.owned
            elif verdict.outcome is Outcome.APPLIED and path in owned:
                changes[path] = None
        state = self._state.with_changes(self._plan.owner, changes) if changes else self._state
        if any(a.row is not Row.RELEASED for a, _ in verdicts):
            state = replace(state, labels={**state.labels, self._plan.owner: self._plan.id})
        state = restart.after(state, verdicts, self._plan.state)
        self._write(replace(state, version=self._plan.version or state.version))

    def _write(self, state: HomeState) -> None:
        self._state = self._workspace.store.write(state, expected_serial=self._stored)
        self._stored = self._state.serial

    def _last_look(self) -> Iterator[Event]:
        """L9: at the end of the run everything written is looked at once more."""
        written = [(a, v) for a, v in self._done if a.writes and v.outcome is Outcome.APPLIED]
        if not written:
            return
        observation = self._look()
        for action, verdict in written:
            seen = replace(action, id=verdict.owned.id) if verdict.owned is not None else action
            again = self._judge(replace(seen, row=look_row(action)), None, observation, {}, "")
            if again.outcome not in (Outcome.APPLIED, Outcome.INERT):
                reason = "it held after the write, and no longer does at the end of the run"
                unseen = again.outcome is Outcome.UNCERTAIN
                yield Event(
                    "outcome",
                    self._plan.id,
                    action.address,
                    str(action.row),
                    Outcome.UNCERTAIN if unseen else Outcome.NOT_APPLIED,
                    reason,
                    fields=again.fields,
                )
