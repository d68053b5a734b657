"""What a home's rows mean beyond themselves: facts for the gate, and what a write of the config brings along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.action import WRITING_FIELDS, Action, Fact, Hold, Row
from reconciler.observe import Observation, Observed
from reconciler_shape import review as shape
from reconciler_specs.address import Kind
from reconciler_specs.secrets import looks_secret, secret_key
from reconciler_specs.shape import Json

from . import boards, comments, files, jobs, kinds, profiles, reloads, roster, settings

_LIMIT = 30  # per minute and verb (9.6)
_VERBS = {Row.CREATE: "creates", Row.MISSING: "creates", Row.UPDATE: "changes", Row.DELETE: "deletes"}


def _in_clear(under: str, value: Json) -> bool:
    if not isinstance(value, str) or not value or value.startswith("${"):
        return False
    return looks_secret(value) or secret_key(under)


_RULES = shape.Rules(files.CODE, _in_clear, settings.SECURITY)


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What carrying out `action` would do to the world."""
    address = action.address
    found = set(shape.facts(action, desired, observation, _RULES))
    if address.kind is Kind.PROFILE and action.row is Row.DELETE:
        agent = str(observation.facts.get("default", ""))
        if profiles.permanent(address.profile, agent):
            found.add(Fact.PERMANENT)
    in_config = address.kind is Kind.SETTING or address.kind in kinds.PARTS
    if in_config and action.row in _VERBS and _restarts(action, observation):
        found.add(Fact.RESTARTS)
    if address.kind in kinds.PARTS:
        found |= kinds.facts(action, desired, observation)
    if address.kind is Kind.INFERENCE and action.row in _VERBS:
        found |= _providers(action, desired, observation)
    return frozenset(found)


def _restarts(action: Action, observation: Observation) -> bool:
    """Whether a gateway runs, and takes the row in by restarting itself."""
    facts = observation.facts
    agents = roster.read(facts.get("tree", {}), facts.get("ran"))
    address = action.address
    if address.kind is Kind.SETTING:
        paths = [settings.split(address.key, agents, address.profile)]
    else:
        paths = kinds.PARTS[address.kind].paths(address.key, agents.agent(address.profile).path)
    version = facts.get("ran") or observation.version
    return bool(facts.get("gateway")) and any(reloads.restarts(path, version) for path in paths)


def _providers(action: Action, desired: Mapping[str, Json], observation: Observation) -> set[Fact]:
    """A provider's address or key that changes."""
    changed = {c.field for c in action.changes if action.row is not Row.UPDATE or c.row in WRITING_FIELDS}
    if "providers" not in changed:
        return set()
    seen = observation.at(action.address.profile, Kind.INFERENCE, "")
    known = seen.get("providers") if isinstance(seen, Observed) else {}
    found: set[Fact] = set()
    for name, entry in (desired.get("providers") or {}).items():
        old = known.get(name, {}) if isinstance(known, Mapping) else {}
        if entry.get("base_url") and entry["base_url"] != old.get("base_url"):
            found.add(Fact.NEW_ADDRESS)
        if entry.get("key") and entry["key"] != old.get("key"):
            found.add(Fact.NEW_CREDENTIAL)
    return found


def review(actions: Sequence[Action], observation: Observation) -> list[Action]:
    """The rows with what OpenClaw does besides: it drops a config's comments, and takes so many writes a minute."""
    rows = [_kept(_left_behind(_spared(action, observation), observation), observation) for action in actions]
    rows = [jobs.reviewed(boards.reviewed(row, observation), observation) for row in rows]
    rows = comments.held(rows, observation)
    verbs = Counter(
        _VERBS[row.row] for row in rows if row.writes and row.address.kind is Kind.JOB and row.row in _VERBS
    )
    slow = [
        # The first thirty go at once.
        f"{count} {verb} take about {(count - 1) // _LIMIT} min"
        for verb, count in verbs.items()
        if count > _LIMIT
    ]
    if slow and str(observation.version).startswith("2026.9"):
        at = next(i for i, row in enumerate(rows) if row.writes and row.address.kind is Kind.JOB)
        rows[at] = _noted(rows[at], f"OpenClaw takes {_LIMIT} job writes of a sort a minute: {', '.join(slow)}")
    return rows


def _spared(action: Action, observation: Observation) -> Action:
    """A job that is OpenClaw's, a plugin's or an agent's is never touched, whatever a setup says of it."""
    if action.address.kind is not Kind.JOB or not action.id:
        return action
    thing = observation.at(action.address.profile, Kind.JOB, action.id)
    foreign = str(thing.about.get("foreign", "")) if isinstance(thing, Observed) else ""
    if not foreign or action.row in (Row.UNMANAGED, Row.FORGET, Row.RELEASED):
        return action
    why = f"{thing.name if isinstance(thing, Observed) else action.id}: {foreign}; it is never touched"
    return replace(action, row=Row.REFUSED, reason=why, hold=Hold(why))


def _left_behind(action: Action, observation: Observation) -> Action:
    """No job is made beside those that a moved or copied home has left behind, until somebody says so: at the old path
    they may still run."""
    why = str(observation.facts.get("orphaned", ""))
    if not why or action.address.kind is not Kind.JOB or action.row is not Row.CREATE or action.hold is not None:
        return action
    return replace(action, hold=Hold(why, f"reconciler apply {action.address.home} --allow rebuild"), guard="rebuild")


def _kept(action: Action, observation: Observation) -> Action:
    """A gateway has its environment from when it was started: a secret that changes there counts after the next."""
    if action.address.kind is not Kind.SECRET or not action.writes or not observation.facts.get("gateway"):
        return action
    seen = observation.at("", Kind.SECRET, action.address.key)
    late = isinstance(seen, Observed)
    return _noted(action, "the gateway keeps the value that it has until it is started again") if late else action


def _noted(action: Action, note: str) -> Action:
    return replace(action, notes=(*action.notes, note))
