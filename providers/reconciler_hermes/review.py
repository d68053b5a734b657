"""What a home's rows mean beyond themselves: facts for the gate, and jobs that a change of model would stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.action import CLEAR, WRITING_FIELDS, Action, Fact, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Observation, Observed, Unknown
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secrets import looks_secret, secret_key
from reconciler_specs.shape import Json

from . import files, home, inference, settings, versions

_STANDING = frozenset({Row.UPDATE, Row.IN_SYNC, Row.CREATE, Row.MISSING, Row.ADOPT, Row.MOVED})
_QUIET = frozenset({"follows", "name", "paused"})


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What carrying out `action` would do to the world."""
    address = action.address
    thing = observation.at(address.profile, address.kind, action.id) if address.kind is Kind.JOB else None
    running = frozenset({Fact.RUNNING}) if isinstance(thing, Observed) and thing.about.get("running") else frozenset()
    if action.row is Row.DELETE:
        permanent = address.kind is Kind.PROFILE and address.profile in ("", home.DEFAULT)
        return running | (frozenset({Fact.PERMANENT}) if permanent else frozenset())
    if action.row not in (Row.CREATE, Row.MISSING, Row.UPDATE):
        return frozenset()
    changed = {c.field for c in action.changes if action.row is not Row.UPDATE or c.row in WRITING_FIELDS} or set(
        desired if action.row is not Row.UPDATE else ()
    )
    seen = observation.at(address.profile, address.kind, action.id or address.key)
    observed = seen.fields if isinstance(seen, Observed) else {}
    match address.kind:
        case Kind.JOB:
            return running | _job(changed, {**observed, **desired}, action)
        case Kind.INFERENCE:
            return _inference(changed, desired, observed)
        case Kind.SETTING:
            return _setting(address.key, desired.get("value")) if changed else frozenset()
        case Kind.FILE:
            mode = str(desired.get("mode") or observed.get("mode") or "")
            code = bool(changed) and files.runs_code(address.key, mode)
            return frozenset({Fact.RUNS_CODE}) if code else frozenset()
    return frozenset()


def _job(changed: set[str], effective: Mapping[str, Json | Unknown], action: Action) -> frozenset[Fact]:
    wakes = any(c.field == "paused" and c.writes and c.write in (False, CLEAR) for c in action.changes)
    if changed <= _QUIET and not wakes:
        return frozenset()
    found = set()
    if effective.get("run") or effective.get("before"):
        found.add(Fact.RUNS_CODE)
    if effective.get("deliver", "local") != "local":
        found.add(Fact.REACHES_PEOPLE)
    return frozenset(found)


def _inference(
    changed: set[str], desired: Mapping[str, Json], observed: Mapping[str, Json | Unknown]
) -> frozenset[Fact]:
    urls, keys = inference.addresses({name: desired[name] for name in changed & desired.keys()})
    known_urls, known_keys = inference.addresses(observed)
    found = set()
    if urls - known_urls:
        found.add(Fact.NEW_ADDRESS)
    if keys - known_keys:
        found.add(Fact.NEW_CREDENTIAL)
    return frozenset(found)


def _setting(key: str, value: Json) -> frozenset[Fact]:
    found = set()
    if settings.loosens(key):
        found.add(Fact.LOOSENS_SECURITY)
    if _in_clear(value, key.rpartition(".")[2]):
        found.add(Fact.SECRET_IN_CLEAR)
    if key.lower().endswith(("url", "endpoint", "host", "proxy")):
        found.add(Fact.NEW_ADDRESS)
    return frozenset(found)


def _in_clear(value: Json, under: str) -> bool:
    if isinstance(value, dict):
        return any(_in_clear(item, str(key)) for key, item in value.items())
    if isinstance(value, list):
        return any(_in_clear(item, under) for item in value)
    if not isinstance(value, str) or not value or value.startswith("${"):
        return False
    return looks_secret(value) or secret_key(under)


def review(actions: Sequence[Action], observation: Observation, resources: Sequence[Resource]) -> list[Action]:
    """The rows with the consequences of a change of model: ours follow, the user's are named or followed too."""
    rows = [_running(_tidy(action), observation) for action in actions]
    if not versions.snapshots(observation.version):
        return rows
    rebase = {r.address.profile for r in resources if r.options.get("rebase") == "all"}
    listed = [a for a in rows if a.address.kind is Kind.JOB and a.id]
    ours = {(a.address.profile, a.id) for a in listed if a.row in _STANDING}
    gone = {(a.address.profile, a.id) for a in listed if a.row is Row.DELETE and not a.hold}
    added: list[Action] = []
    for index, row in enumerate(rows):
        if row.address.kind is not Kind.INFERENCE or not row.writes:
            continue
        model = _new_default(row)
        if model is None:
            continue
        profile = row.address.profile
        stopped = _stopped(observation, profile, inference.snapshot_of(model))
        stopped = [job for job in stopped if (profile, job.id) not in gone]
        theirs = [job for job in stopped if (profile, job.id) not in ours]
        notes = [f"re-based in this plan: {_title(job)}" for job in stopped if (profile, job.id) in ours]
        if profile in rebase:
            notes += [f"re-based in this plan (rebase: all): {_title(job)}" for job in theirs]
            added += [_follow(row.address, job) for job in theirs]
        else:
            notes += [
                f"would stop {_title(job)}: it is held to {_model(job)} and not ours; pin its model, or say "
                "`rebase: all`"
                for job in theirs
            ]
        rows[index] = replace(row, notes=(*row.notes, *notes))
    return rows + added


def _tidy(action: Action) -> Action:
    """`follows` is ours, not the author's: it is never cleared, and a job that is pinned by hand has none."""
    if action.address.kind is not Kind.JOB or not any(c.field == "follows" for c in action.changes):
        return action
    if action.row is not Row.UPDATE:
        return action
    changes: list[FieldChange] = []
    for change in action.changes:
        if change.field != "follows":
            changes.append(change)
        elif change.row is FieldRow.UNSET:
            changes.append(replace(change, row=FieldRow.RELEASE, write=None))
        elif not (change.observed is ABSENT and change.writes):
            changes.append(change)
    still = any(c.row is not FieldRow.IN_SYNC for c in changes)
    return replace(action, changes=tuple(changes), row=Row.UPDATE if still else Row.IN_SYNC)


def _running(action: Action, observation: Observation) -> Action:
    """A run that is under way goes on with what it started with; the row says that there is one (E43)."""
    if action.address.kind is not Kind.JOB or not action.id or not action.writes:
        return action
    thing = observation.at(action.address.profile, Kind.JOB, action.id)
    if not isinstance(thing, Observed) or not thing.about.get("running"):
        return action
    return replace(action, notes=(*action.notes, "a run of it is under way, and ends as it began"))


def _new_default(row: Action) -> Mapping[str, Json] | None:
    for change in row.changes:
        if change.field == "default" and change.writes and isinstance(change.write, dict):
            return change.write
    return None


def _stopped(observation: Observation, profile: str, snapshot: Mapping[str, str]) -> list[Observed]:
    things = observation.things.get((profile, Kind.JOB), {})
    if isinstance(things, Unknown):
        return []
    return [
        thing
        for _, thing in sorted(things.items())
        if thing.about.get("held_to_model")
        and isinstance(thing.get("follows"), dict)
        and _differs(thing.get("follows"), snapshot)
    ]


def _differs(held: Json, snapshot: Mapping[str, str]) -> bool:
    # Hermes compares without regard to case.
    return any(str(held.get(key, "")).lower() != value.lower() for key, value in snapshot.items())


def _title(job: Observed) -> str:
    return f"{job.name or 'a job'} ({job.id})"


def _model(job: Observed) -> str:
    held = job.get("follows")
    return f"{held.get('provider')}/{held.get('model')}" if isinstance(held, dict) else "another model"


def _follow(inference_address: Address, job: Observed) -> Action:
    address = Address(inference_address.home, job.profile, Kind.JOB, job.id)
    return Action(
        Row.FOLLOW,
        address,
        id=job.id,
        reason=f"{job.name or 'a job'} is not ours; `rebase: all` holds it to the new model",
        needs=(inference_address,),
        fingerprint=job.fingerprint,
    )
