"""What a change of a channel, route or webhook means: facts for the gate, what holds a row, when it counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.action import CLEAR, Action, Clear, Fact, Hold, Row
from reconciler.observe import Observation, Observed, Unknown
from reconciler.values import members
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from .reach import KINDS


def facts(
    action: Action, desired: Mapping[str, Json], seen: Mapping[str, Json | Unknown], changed: set[str]
) -> set[Fact]:
    """What carrying out a row of these kinds would do. `changed` are the fields that it writes."""
    found: set[Fact] = set()
    if not changed:
        return found
    if action.address.kind is Kind.ROUTE:
        return {Fact.WIDENS_ACCESS}
    if action.address.kind is Kind.WEBHOOK:
        if action.row is not Row.UPDATE:
            found.add(Fact.WIDENS_ACCESS)
        if "secret" in changed:
            found.add(Fact.NEW_CREDENTIAL)
        events = next((c for c in action.changes if c.field == "events" and c.field in changed), None)
        if events is not None and action.row is Row.UPDATE and _wakes_more(events.write, seen.get("events")):
            found.add(Fact.WIDENS_ACCESS)
        if changed - {"description"} and desired.get("deliver", seen.get("deliver", "local")) != "local":
            found.add(Fact.REACHES_PEOPLE)
        return found
    for change in action.changes:
        if change.field in changed and _widens(change.field, change.write, seen.get(change.field)):
            found.add(Fact.WIDENS_ACCESS)
    if changed & {"extra", "adapter"}:
        found.add(Fact.LOOSENS_SECURITY)
    if "secrets" in changed:
        found.add(Fact.NEW_CREDENTIAL)
    if "owner_chat" in changed:
        found.add(Fact.REACHES_PEOPLE)
    return found


def _widens(field: str, write: Any, seen: Any) -> bool:
    """Whether somebody gets in who was not let in. Where nobody is an admin any more, everybody is one."""
    if field in ("enabled", "open"):
        return write is True
    if field not in ("allow", "admins"):
        return False
    now = set(members(seen)) if isinstance(seen, list | dict) else set()
    then = set() if write in (None, CLEAR) else set(members(write))
    return bool(then - now) or (field == "admins" and bool(now) and not then)


_AT_START = frozenset({"enabled", "secrets", "admins", "adapter", "extra", "owner_chat"})
"""Fields that a gateway reads when it starts; lists of users are read for each message."""


def review(action: Action, observation: Observation) -> Action:
    """A row with what follows from it: what would keep a channel on, and whether a running gateway has to restart."""
    address = action.address
    if address.kind is Kind.SECRET:
        return _credential(action, observation)
    if address.kind not in KINDS or action.hold is not None:
        return action
    if action.row is Row.DELETE and address.kind is Kind.CHANNEL:
        seen = observation.at(address.profile, address.kind, address.key)
        on = seen.about.get("enabling") if isinstance(seen, Observed) else None
        if on:
            why = f"{' and '.join(on)} in .env would keep {address.key} on: take it out of .env first"
            return replace(action, hold=Hold(why, f"reconciler release {address}"))
    if not action.writes or address.kind is Kind.WEBHOOK or not _gateway(address.profile, observation):
        return action
    late = address.kind is Kind.ROUTE or action.row is not Row.UPDATE
    late = late or any(change.writes and change.field in _AT_START for change in action.changes)
    if late:
        return waiting(action, observation)
    return replace(action, notes=(*action.notes, "takes effect with the next message"))


def waiting(action: Action, observation: Observation) -> Action:
    """A row that the running gateway of its profile takes in only when it starts; as it is where none runs."""
    name = _gateway(action.address.profile, observation)
    if not name or not action.writes:
        return action
    note = f"takes effect when {observation.gateways[name].words} restarts"
    return replace(action, late=name, notes=(*action.notes, note))


def _gateway(profile: str, observation: Observation) -> str:
    """Which running gateway serves a profile, "" if none does."""
    here = observation.facts.get("profiles", {}).get(profile or "default", {})
    name = str(here.get("gateway") or "")
    return name if name in observation.gateways else ""


def _credential(action: Action, observation: Observation) -> Action:
    """A secret that a channel logs in with is read when the gateway starts."""
    profile = action.address.profile or "default"
    things = observation.things.get((profile, Kind.CHANNEL), {})
    channels = [] if isinstance(things, Unknown) else [c.get("secrets") for c in things.values()]
    used = any(isinstance(names, dict) and action.address.key in names.values() for names in channels)
    return waiting(action, observation) if used and action.hold is None else action


def _wakes_more(write: Json | Clear, seen: Json) -> bool:
    """Whether more events wake the agent: without a list all do."""
    new = set(members(write)) if write is not CLEAR else set()
    old = set(members(seen)) if isinstance(seen, list) else set()
    return not new or (bool(old) and bool(new - old))
