"""Apply: carries a plan out, and the only part of the engine that writes (L8, L9, L10, L12).

Called by the command line and by anyone from Python: without a `Consent` that permits a row, it writes nothing.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from reconciler_specs.address import Address
from reconciler_specs.errors import ReconcilerError
from reconciler_state.decisions import Decision, Decisions
from reconciler_state.errors import StateError

from .action import Action
from .consent import Consent, Refusal
from .decide import decided
from .event import Event, Outcome, Tell, untold
from .plan import HomePlan, Options, Plan, row_digest
from .run import HomeRun, Stop
from .secret import ASKED, SOURCE, UNCHECKED
from .verdict import waits_for_failed
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class _Ready:
    """A home that has something to do, locked and planned again under its lock."""

    plan: HomePlan
    run: HomeRun
    permitted: tuple[Action, ...]


def apply(
    plan: Plan,
    consent: Consent,
    workspace: Workspace,
    options: Options,
    *,
    parallel: int = 4,
    stop: Stop = lambda: False,
    tell: Tell = untold,
) -> Iterator[Event]:
    """Carries out the rows of `plan` that `consent` permits, and yields what happens.

    A generator: a caller who does not iterate applies nothing. Each home is locked and planned again first; a row
    that is no longer the one in `plan` is refused with the new one. `stop()` is asked between steps: once true,
    what is under way is finished, read back and recorded, and the rest is skipped. `tell` is called in the caller's
    thread with a `note` for each wait, while the door waits and no event can be yielded. Raises StateError before the
    first write when state, journal or lock cannot be written.
    """
    run = secrets.token_hex(6)
    workspace.store.catch_up()
    homes = [h for h in plan.homes if _permit(h, consent, workspace) or h.open]
    with ExitStack() as locks:
        ready: list[_Ready] = []
        for home in homes:
            yield from _prepare(home, consent, workspace, options, locks, ready, run)
        ready = [r for r in ready if r.permitted]
        if ready:
            workspace.probe()
        usable = []
        for item in ready:
            try:
                workspace.provider(item.plan.ref.harness).preflight(item.plan.ref, item.permitted)
            except ReconcilerError as error:
                yield _failed(item.plan, error)
            else:
                usable.append(item)
        if len(usable) > 1 and parallel > 1:
            yield from _side_by_side([partial(r.run.carry_out, r.permitted, stop) for r in usable], parallel, tell)
        else:
            for item in usable:
                yield from item.run.carry_out(item.permitted, stop, tell)


def decisions(workspace: Workspace) -> Decisions:
    """The record of what the gate has decided for the workspace's setup."""
    return Decisions(workspace.store.root, workspace.setup.name, workspace.store.files)


def _permit(home: HomePlan, consent: Consent, workspace: Workspace) -> bool:
    """Lets those sources of secrets be asked whose rows are agreed to; whether some are checks only."""
    sourced = [a for a in home.open if a.source]
    if not (sourced or home.checks):
        return False
    asked = _asked(home, consent, workspace)
    checks = [a for a in home.checks if asked.refusal(a, row_digest(home.ref, a), ()) is None]
    rows = [a for a in sourced if asked.refusal(a, home.digests[a.address], ()) is None]
    for action in (*checks, *rows):
        resource = home.resources.get(action.address)
        if resource is not None:
            workspace.vault.permit(resource.options[SOURCE])
    return bool(checks)


def _asked(home: HomePlan, consent: Consent, workspace: Workspace) -> Consent:
    """The consent as it counts for this home: one from inside its own process tree does not."""
    provider = workspace.provider(home.ref.harness)
    return replace(consent, insider=provider.insider(home.ref, workspace.ancestors()))


def _failed(home: HomePlan, error: ReconcilerError) -> Event:
    return Event("home-end", home.id, outcome=Outcome.FAILED, reason=str(error), command=error.hint or "")


def _prepare(
    home: HomePlan,
    consent: Consent,
    workspace: Workspace,
    options: Options,
    locks: ExitStack,
    ready: list[_Ready],
    run: str,
) -> Iterator[Event]:
    """Locks a home, plans it again, and tells which of its rows may go on."""
    try:
        guard = locks.enter_context(workspace.lock(home.ref))
        fresh = workspace.plan_home(home.id, options)
    except ReconcilerError as error:
        yield _failed(home, error)
        return
    if fresh.failed or fresh.hold:
        reason = fresh.failed or (fresh.hold.why if fresh.hold else "")
        command = fresh.hold.command if fresh.hold else ""
        outcome = Outcome.FAILED if fresh.failed else Outcome.HELD
        yield Event("home-end", home.id, outcome=outcome, reason=reason, command=command)
        return
    asked = _asked(home, consent, workspace)
    unattended = workspace.unattended(home.id)
    seen = {*home.digests.values(), *home.asked}
    who, moment, said = workspace.caller(), workspace.now(), list[Decision | None]()
    permitted: list[Action] = []
    refused: dict[Address, str] = {}
    for action in fresh.open:
        digest = fresh.digests[action.address]
        refusal = asked.refusal(action, digest, unattended)
        if refusal is None and digest not in seen:
            refusal = Refusal("changed since the plan that you saw", "reconciler plan", waits=False)
        said.append(decided(action, digest, refusal, asked, who, moment))
        waits_for = waits_for_failed(action, refused)
        if refusal is None and waits_for is not None:
            refused[action.address] = "skipped"
            yield Event("outcome", home.id, action.address, str(action.row), Outcome.SKIPPED, f"waits for {waits_for}")
        elif refusal is not None:
            refused[action.address] = refusal.why
            outcome = Outcome.WAITS if refusal.waits else Outcome.REFUSED
            yield Event("outcome", home.id, action.address, str(action.row), outcome, refusal.why, refusal.command)
        elif gave_nothing := _gave_nothing(fresh, action):
            refused[action.address] = gave_nothing
            yield Event("outcome", home.id, action.address, str(action.row), Outcome.HELD, gave_nothing)
        else:
            permitted.append(action)
    try:
        decisions(workspace).record([decision for decision in said if decision is not None])
    except StateError as error:
        # What could not be recorded of the gate stops nobody (S1-13); a run that writes asks for the state itself.
        yield Event("note", home.id, reason=f"what was decided is not recorded: {error}")
    still = {a.address for a in fresh.open}
    for action in home.open:
        if action.address not in still:
            now = next((a for a in fresh.actions if a.address == action.address), None)
            if now is not None and now.source and now.hold is not None:
                yield Event("outcome", home.id, action.address, str(action.row), Outcome.HELD, now.hold.why)
                continue
            reason = f"the home or the setup changed since the plan: now {_now(now)}"
            yield Event("outcome", home.id, action.address, str(action.row), Outcome.REFUSED, reason, "reconciler plan")
    for action in home.checks:
        if action.address not in still and (gave_nothing := _gave_nothing(fresh, action)):
            yield Event("outcome", home.id, action.address, str(action.row), Outcome.HELD, gave_nothing)
    ready.append(_Ready(fresh, HomeRun(fresh, workspace, guard, run), tuple(permitted)))


def _gave_nothing(fresh: HomePlan, action: Action) -> str:
    """Why the source of a secret that the home has, though somebody agreed to its being asked, gave no value."""
    resource = fresh.resources.get(action.address)
    if not action.source or resource is None or not resource.options.get(ASKED):
        return ""
    return f"{resource.options[UNCHECKED]}; the home's value stays"


def _now(action: Action | None) -> str:
    """What a row that was to be carried out has become, in words."""
    if action is None:
        return "nothing is to be done"
    if action.hold is not None:
        return f"{action.row}, held: {action.hold.why}"
    return ", ".join(f"{c.field}: {c.row}" for c in action.changes) or str(action.row)


def _side_by_side(runs: Sequence[Callable[[Tell], Iterator[Event]]], parallel: int, tell: Tell) -> Iterator[Event]:
    """Several homes at once, each serial in itself; events come in the order in which they happen."""
    events: queue.Queue[Event | BaseException | None] = queue.Queue()
    waiting = iter(runs)
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                run = next(waiting, None)
            if run is None:
                break
            try:
                for event in run(events.put):
                    events.put(event)
            except BaseException as error:  # noqa: BLE001 - carried to the caller's thread, which raises it
                events.put(error)
                break
        events.put(None)

    threads = [threading.Thread(target=work, daemon=False) for _ in range(min(parallel, len(runs)))]
    for thread in threads:
        thread.start()
    failure: BaseException | None = None
    open_threads = len(threads)
    while open_threads:
        event = events.get()
        if event is None:
            open_threads -= 1
        elif isinstance(event, BaseException):
            failure = failure or event
        elif event.what == "note":
            tell(event)
        else:
            yield event
    for thread in threads:
        thread.join()
    if failure is not None:
        raise failure


def summary(events: Sequence[Event]) -> Mapping[str, int]:
    """How many rows ended in which outcome."""
    counts: dict[str, int] = {}
    for event in events:
        if event.what == "outcome" and event.outcome is not None:
            counts[str(event.outcome)] = counts.get(str(event.outcome), 0) + 1
    return counts
