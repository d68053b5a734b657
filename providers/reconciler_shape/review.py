"""What carrying out a row would do to the world, for the gate: facts, never words in a name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reconciler.action import CLEAR, WRITING_FIELDS, Action, Fact, FieldRow, Hold, Row
from reconciler.observe import ABSENT, Observation, Observed, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import dotted, models, paths, reachreview, security, toolfacts, worker

_DEFAULT = ("", "default")
_WHOLE = frozenset({Kind.FILE, Kind.SKILL})
_QUIET = frozenset({"name", "paused", "metadata", "id", "follows"})


@dataclass(frozen=True, slots=True)
class Rules:
    """What a provider adds: the folders whose files are run, whether a value under a key is a secret in the clear, and
    its own settings of the security class."""

    code: frozenset[str]
    in_clear: Callable[[str, Json], bool]
    security: tuple[str, ...] = ()


def noted(action: Action, observation: Observation, more: tuple[str, ...] = ()) -> Action:
    """A row with all that a Hermes-shaped home has to say of it; `more` are its own settings of the security class."""
    return alarmed(kept(tools(seen(action, observation))), more)


def kept(action: Action) -> Action:
    """The deletion of a file that somebody edited since we wrote it is held: a whole file has no marks that would tell
    their lines from ours. (A block never gets here: it is taken out of its file, and the rest stays.)"""
    # The engine's rows note on a delete what was changed since, and nothing else.
    if action.row is not Row.DELETE or action.address.kind not in _WHOLE or action.hold or not action.notes:
        return action
    hold = Hold(
        "edited since we wrote it, and a deletion would take the edits with it", f"reconciler release {action.address}"
    )
    return replace(action, hold=hold)


def seen(action: Action, observation: Observation) -> Action:
    """A job of which nothing can be told (two have its id) is blocked, whatever the row would have made of it."""
    if action.address.kind is not Kind.JOB or not action.id or action.row is Row.REFUSED:
        return action
    thing = observation.at(action.address.profile, Kind.JOB, action.id)
    if not isinstance(thing, Observed):
        return action
    unknown = [value for value in thing.fields.values() if isinstance(value, Unknown)]
    if not unknown or len(unknown) < len(thing.fields):
        return action
    why = unknown[0].reason
    return Action(Row.BLOCKED, action.address, action.id, reason=why, hold=Hold(why))


def tools(action: Action) -> Action:
    """A skill's folder goes only with a skill that we made; a found one is let go of, and its switch stays as it is.
    What was brought from a source stays when the source leaves the setup. A first toolset ends the defaults."""
    if action.address.kind is Kind.TOOLSET and action.row is Row.CREATE:
        return replace(action, notes=(*action.notes, "exactly these are on from then; the harness's defaults are not"))
    if action.address.kind is not Kind.SKILL:
        return action
    if action.row is Row.DELETE and action.origin != "created" and not action.hold:
        return Action(Row.FORGET, action.address, action.id, reason="left the setup; a skill that was found stays")
    changes = tuple(
        replace(c, row=FieldRow.RELEASE, write=None) if c.field == "content" and c.row is FieldRow.UNSET else c
        for c in action.changes
    )
    return replace(action, changes=changes) if changes != action.changes else action


def alarmed(action: Action, more: tuple[str, ...] = ()) -> Action:
    """Drift on what decides who may do what says so, and which way it went where that can be told."""
    kind, key = action.address.kind, action.address.key
    moved = [c for c in action.changes if c.row in (FieldRow.DRIFT, FieldRow.CONFLICT)]
    if not moved or not (kind in toolfacts.SECURITY or (kind is Kind.SETTING and security.is_security(key, more))):
        return action
    way = "the home has changed what decides who may do what"
    if kind is Kind.SETTING:
        was = [ABSENT if c.base is None or c.base.observed == {"$absent": True} else c.base.observed for c in moved]
        seen = [ABSENT if c.observed is ABSENT or isinstance(c.observed, Unknown) else c.observed for c in moved]
        if any(security.loosens(key, old, new, more) for old, new in zip(was, seen, strict=True)):
            way = "the home's value may be looser"
        else:
            way = "the home's value is stricter"
    return replace(action, notes=(*action.notes, f"security: {way}"))


def facts(action: Action, desired: Mapping[str, Json], observation: Observation, rules: Rules) -> frozenset[Fact]:
    """What `action` would do."""
    address = action.address
    seen = observation.at(address.profile, address.kind, action.id or address.key)
    about = seen.about if isinstance(seen, Observed) and address.kind is Kind.JOB else {}
    running = {Fact.RUNNING} if about.get("running") else set()
    if action.row is Row.DELETE:
        permanent = address.kind is Kind.PROFILE and address.profile in _DEFAULT
        return frozenset(running | ({Fact.PERMANENT} if permanent else set()))
    if action.row not in (Row.CREATE, Row.MISSING, Row.UPDATE):
        return frozenset()
    update = action.row is Row.UPDATE
    changed = {c.field for c in action.changes if not update or c.row in WRITING_FIELDS}
    changed = changed or (set() if update else set(desired))
    observed = seen.fields if isinstance(seen, Observed) else {}
    match address.kind:
        case Kind.JOB:
            return frozenset(running | _job(changed, {**observed, **desired}, action))
        case Kind.PROFILE:
            return frozenset(worker.facts(action))
        case Kind.INFERENCE:
            return frozenset(_inference(changed, desired, observed))
        case Kind.SETTING if changed:
            return frozenset(_setting(action, desired.get("value"), rules))
        case Kind.CHANNEL | Kind.ROUTE | Kind.WEBHOOK:
            return frozenset(reachreview.facts(action, desired, observed, changed))
        case Kind.FILE if changed:
            mode = str(desired.get("mode") or observed.get("mode") or "")
            runs = paths.executable(mode) or address.key.split("/")[0] in rules.code
            return frozenset({Fact.RUNS_CODE} if runs else ())
        case Kind.MCP_SERVER | Kind.TOOLSET | Kind.PLUGIN | Kind.SKILL if changed:
            in_clear = any(_in_clear(desired.get(name), name, rules) for name in changed)
            found = toolfacts.facts(action, {**observed, **desired})
            return frozenset(found | ({Fact.SECRET_IN_CLEAR} if in_clear else set()))
    return frozenset()


def _job(changed: set[str], effective: Mapping[str, Json | Unknown], action: Action) -> set[Fact]:
    wakes = any(c.field == "paused" and c.writes and c.write in (False, CLEAR) for c in action.changes)
    if changed <= _QUIET and not wakes:
        return set()
    found = set()
    monitor = effective.get("monitor")
    if effective.get("run") or effective.get("before") or (isinstance(monitor, dict) and "script" in monitor):
        found.add(Fact.RUNS_CODE)
    if isinstance(monitor, dict) and "url" in monitor:
        found.add(Fact.NEW_ADDRESS)
    if any(effective.get(name, "local") != "local" for name in ("deliver", "failure_deliver")):
        found.add(Fact.REACHES_PEOPLE)
    return found


def _inference(changed: set[str], desired: Mapping[str, Json], observed: Mapping[str, Json | Unknown]) -> set[Fact]:
    where, keys = models.addresses({name: desired[name] for name in changed & desired.keys()})
    known_where, known_keys = models.addresses(observed)
    found = {Fact.NEW_ADDRESS} if where - known_where else set()
    return found | ({Fact.NEW_CREDENTIAL} if keys - known_keys else set())


def _setting(action: Action, value: Json, rules: Rules) -> set[Fact]:
    key = action.address.key
    sides = [(c.observed, c.write) for c in action.changes if action.row is not Row.UPDATE or c.writes]
    loosens = any(security.loosens(key, old, new, rules.security) for old, new in sides or [(ABSENT, value)])
    found = {Fact.LOOSENS_SECURITY} if loosens else set()
    if _in_clear(value, dotted.last(key), rules):
        found.add(Fact.SECRET_IN_CLEAR)
    if dotted.is_address(key):
        found.add(Fact.NEW_ADDRESS)
    return found


def _in_clear(value: Json, under: str, rules: Rules) -> bool:
    if isinstance(value, dict):
        if set(value) == {"secret"}:
            return False  # it is only named
        return any(_in_clear(item, str(key), rules) for key, item in value.items())
    if isinstance(value, list):
        return any(_in_clear(item, under, rules) for item in value)
    return rules.in_clear(under, value)
