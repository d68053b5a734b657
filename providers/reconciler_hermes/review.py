"""What a home's rows mean beyond themselves: facts for the gate, and jobs that a change of model would stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.action import Action, Fact, FieldChange, FieldRow, Row
from reconciler.observe import ABSENT, Observation, Observed, Unknown
from reconciler_shape import reachreview
from reconciler_shape import review as shape
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secrets import looks_secret, secret_key
from reconciler_specs.shape import Json

from . import files, inference, versions

_STANDING = frozenset({Row.UPDATE, Row.IN_SYNC, Row.CREATE, Row.MISSING, Row.ADOPT, Row.MOVED})


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What carrying out `action` would do to the world."""
    return shape.facts(action, desired, observation, _RULES)


def _in_clear(under: str, value: Json) -> bool:
    if not isinstance(value, str) or not value or value.startswith("${"):
        return False
    return looks_secret(value) or secret_key(under)


_RULES = shape.Rules(files.CODE, _in_clear)


def review(actions: Sequence[Action], observation: Observation, resources: Sequence[Resource]) -> list[Action]:
    """The rows with the consequences of a change of model: ours follow, the user's are named or followed too."""
    rows = [_running(_tidy(shape.noted(action, observation)), observation) for action in actions]
    rows = [reachreview.review(row, observation) for row in rows]
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
