"""Restart: the one row that restarts a home's running gateways, for what they take in only when they start. Pure.

A row of a provider's `review` says with `late` which gateway it waits for. What was written and still waits (the
restart was held, skipped, or cut off) is kept in state together with the start that the gateway ran with: once another
one serves the home, nothing waits any more, whoever restarted it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler_specs.address import Address, selects
from reconciler_state.record import HomeState, Late

from .action import Action, Fact, Hold, Row
from .event import Outcome
from .freeze import froze
from .gate import rule
from .observe import Gateway, Observation
from .plan import HomeInputs, Options
from .provider import Answer
from .verdict import Verdict, missed

BEFORE = "gateways"
"""In a restart row's `carries`: gateway → the start that it must no longer have."""


def planned(
    inputs: HomeInputs, rows: Sequence[Action], observation: Observation, state: HomeState, options: Options
) -> tuple[list[Action], tuple[str, ...]]:
    """The restart row that the home's chosen `rows` ask for, if any, and notes for the plan's head. What waits since
    earlier is no part of an undo."""
    home, running = inputs.ref.id, observation.gateways
    asking: dict[str, list[str]] = {}
    needs: list[Address] = []
    for action in rows:
        if action.writes and action.late in running:
            asking.setdefault(action.late, []).append(action.address.path)
            needs.append(action.address)
    for name, late in state.late.items():
        if name in running and running[name].start == late.start and not options.undo:
            paths = [p for p in late.paths if _chosen(Address.parse(f"{home}/{p}"), Address(home), options)]
            asking.setdefault(name, []).extend(p for p in paths if p not in asking.get(name, ()))
    asking = {name: paths for name, paths in asking.items() if paths}
    if not asking:
        return [], ()
    said = [f"{running[name].words}, for {', '.join(paths)}" for name, paths in sorted(asking.items())]
    if inputs.restart == "never":
        return [], tuple(f"restart: never: it counts after the next restart of {words}" for words in said)
    action = Action(
        Row.RESTART,
        Address(home),
        ",".join(sorted(asking)),
        reason="; ".join(said),
        needs=tuple(needs),
        facts=frozenset({Fact.RESTARTS}),
        carries={BEFORE: {name: running[name].start for name in sorted(asking)}},
    )
    action = _held(action, [running[name] for name in sorted(asking)], inputs.restart, options)
    action = froze(action, inputs.policy.windows, inputs.now)
    tier, why = rule(action, inputs.policy.raise_)
    return [replace(action, tier=tier, rule=why)], ()


def _chosen(waiting: Address, home: Address, options: Options) -> bool:
    return not options.targets or any(selects(t, waiting) or selects(t, home) for t in options.targets)


def _held(action: Action, gateways: Sequence[Gateway], may: str, options: Options) -> Action:
    shut = next((g for g in gateways if g.refused), None)
    if shut is not None:
        return replace(action, hold=Hold(f"{action.reason}: {shut.refused}", shut.command))
    if may != "when_needed" and "restart" not in options.allow:
        command = f"reconciler apply {' '.join((*options.targets, '--allow restart'))}"
        return replace(action, guard="restart", hold=Hold(f"{action.reason} (restart: {may})", command))
    return action


def of_home(action: Action, answer: Answer | None, observation: Observation, lost: str) -> Verdict:
    """A row of the home itself by its read-back: it is there, or is served by a gateway that has started anew."""
    if action.row is Row.RESTART:
        return _restarted(action, answer, observation, lost)
    if action.row is not Row.PROVISION or observation.exists:
        return Verdict(Outcome.APPLIED)
    return Verdict(Outcome.UNCERTAIN, observation.blocked) if observation.blocked else missed(answer, lost, None, ())


def _restarted(action: Action, answer: Answer | None, observation: Observation, lost: str) -> Verdict:
    """Every gateway that it was for serves the home again, with another start."""
    before: Mapping[str, str] = action.carries[BEFORE]
    still = [n for n, start in before.items() if n in observation.gateways and observation.gateways[n].start == start]
    if all(n in observation.gateways for n in before) and not still:
        return Verdict(Outcome.APPLIED)
    verdict = missed(answer, lost, None, ())
    if verdict.outcome is Outcome.NOT_APPLIED:
        away = "the gateway that ran before still serves the home" if still else "no gateway serves the home again yet"
        return replace(verdict, reason=away)
    return verdict


def ahead(state: HomeState, actions: Sequence[Action], observation: Observation) -> HomeState:
    """The state with what a step is about to write that waits for a restart: kept before the write, so that a run
    which is cut off after it forgets nothing."""
    late = dict(state.late)
    for action in actions:
        if action.late in observation.gateways:
            start = observation.gateways[action.late].start
            known = late.get(action.late)
            paths = known.paths if known is not None and known.start == start else ()
            late[action.late] = Late(start, tuple(sorted({*paths, action.address.path})))
    return replace(state, late=late) if late != state.late else state


def after(state: HomeState, verdicts: Sequence[tuple[Action, Verdict]], before: HomeState) -> HomeState:
    """The state without what was restarted, and without what the door refused and nothing had waited for before."""
    late = dict(state.late)
    for action, verdict in verdicts:
        if action.row is Row.RESTART and verdict.outcome is Outcome.APPLIED:
            for name in action.carries[BEFORE]:
                late.pop(name, None)
        elif action.late in late and verdict.outcome is Outcome.REFUSED:
            waited = before.late.get(action.late, Late("", ())).paths
            paths = tuple(p for p in late[action.late].paths if p != action.address.path or p in waited)
            late[action.late] = replace(late[action.late], paths=paths)
    late = {name: one for name, one in late.items() if one.paths}
    return replace(state, late=late) if late != state.late else state
