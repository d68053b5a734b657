"""Cron jobs of a home, per profile, in the setup's words; and back for adopt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from reconciler.action import CLEAR, Action, Hold, Row
from reconciler.observe import ABSENT, Observation, Observed, Store, Things, Unknown
from reconciler_shape import jobs as shape
from reconciler_shape import places
from reconciler_shape import schedule as times
from reconciler_shape.hiding import Hider
from reconciler_shape.plain import digest, is_native, native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home, jobwords
from .jobwords import Job
from .roster import Roster
from .statedb import SYSTEM, Database

MARKER = "reconciler:"
"""Our declaration keys begin with it; behind it is the id of the intent that made the job (L11)."""

_CLAW = "claw:"
_INTENT = (
    "name", "displayName", "description", "agentId", "sessionKey", "sessionTarget", "wakeMode", "schedule", "pacing",
    "trigger", "payload", "delivery", "failureAlert", "deleteAfterRun", "declarationKey", "owner",
)  # fmt: skip
_ABOUT = {
    "nextRunAtMs": "next_run_at",
    "lastRunAtMs": "last_run_at",
    "lastRunStatus": "last_status",
    "lastError": "last_error",
    "lastDeliveryError": "last_delivery_error",
}


@dataclass(frozen=True, slots=True)
class JobStore:
    """The jobs of every profile, and in what state their one store is. `orphaned` says of a home that was moved or
    copied whose jobs its database has instead, "" for any other home. `strays` says of each job why it is not where
    it is looked for in vain."""

    things: Mapping[str, Things | Unknown]
    store: Store
    orphaned: str = ""
    ended: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    strays: Mapping[str, str] = field(default_factory=dict)


def marker(job: Job) -> str:
    """Our intent id, "" if the job is not of our making."""
    key = str(job.get("declarationKey") or "")
    return key.removeprefix(MARKER) if key.startswith(MARKER) else ""


def declaration_key(intent: str) -> str:
    """The key under which a job is made, and looked up before a second try."""
    return f"{MARKER}{intent}"


def own(job: Job) -> bool:
    """Whether it is OpenClaw's, or a plugin's, own: made again at every start, and gone with its agent."""
    return str(job.get("declarationKey") or "").startswith(SYSTEM)


def stranger(job: Job) -> str:
    """Why a job is never touched by us, a package's or an agent's; "" for a plain one."""
    key = str(job.get("declarationKey") or "")
    if key.startswith(_CLAW):
        return "it belongs to an installed package (Claw)"
    if job.get("owner"):
        return "an agent made it in a chat, and it acts for that chat"
    return ""


def fingerprint(job: Job, key: bytes) -> str:
    """A digest of everything but run-time state: the same of a row in the database and of `cron.get`'s answer, so that
    the door can compare it just before a write. 9.6 stores the nulls of a patch, and tells none of them."""
    kept = jobwords.plain({name: job[name] for name in _INTENT if job.get(name) is not None})
    return digest({**kept, "enabled": job.get("enabled", True) is not False or bool(jobwords.stopped(job))}, key)


def read(database: Database, here: home.Home, roster: Roster, hider: Hider) -> JobStore:
    """Every profile's jobs; all of them Unknown where the database cannot be read."""
    profiles = roster.profiles
    if database.unknown is not None:
        return JobStore(dict.fromkeys(profiles, database.unknown), database.store)
    things: dict[str, dict[str, Observed]] = {name: {} for name in profiles}
    ended: dict[str, dict[str, str]] = {name: {} for name in profiles}
    notes = list(database.notes)
    lost: dict[str, int] = {}
    strays = dict.fromkeys(database.broken, "the job is there, and its record cannot be read")
    system: list[str] = []
    for row in database.rows:
        job = row.whole
        profile = roster.profile(str(job.get("agentId") or "").strip().lower())
        if profile not in things:
            lost[profile] = lost.get(profile, 0) + 1
            strays[row.id] = f"the job is there, of an agent {profile} that is not in the config"
            continue
        if own(job):
            strays[row.id] = "the job is OpenClaw's own now"
            system.append(str(job.get("declarationKey")))
            continue
        strays[row.id] = f"the job is one of profile {profile} now; `moved:` follows it there"
        thing = observed(job, row.id, profile, hider)
        things[profile][row.id] = thing
        why = jobwords.stopped(job)
        if why and "at" in _kind(job):
            ended[profile][row.id] = why
    for agent, count in sorted(lost.items()):
        notes.append(f"{count} job(s) belong to an agent {agent} that is not in the config; they are left alone")
    if system:
        notes.append(
            f"{len(system)} job(s) of OpenClaw itself and its plugins are left alone: {', '.join(sorted(system))}"
        )
    store, why = _store(database, here)
    if why:
        notes.append(why)
    return JobStore(things, store, why, ended, tuple(notes), strays)


def _kind(job: Job) -> str:
    when = job.get("schedule")
    return str(when.get("kind")) if isinstance(when, Mapping) else ""


def _store(database: Database, here: home.Home) -> tuple[Store, str]:
    """A home that was moved has its jobs under its old path, where OpenClaw no longer looks: it lost them (fact 10)."""
    ours = [row for row in database.rows if not own(row.job)]
    if ours or not any(database.others.values()) or database.store is not Store.PROPER:
        return database.store, ""
    old, count = max(database.others.items(), key=lambda item: item[1])
    was = old.removesuffix("/cron/jobs.json")
    there = places.lstat(here.place, f"{was}/{home.DATABASE}") is not None
    how = "this is a copy of that home" if there else "the home was moved from there"
    return Store.MISSING, (
        f"{here.database}: {count} job(s) are kept for {was}, and none for {here.root}: {how}, and OpenClaw leaves "
        "such jobs behind"
    )


def observed(job: Job, job_id: str, profile: str, hider: Hider) -> Observed:
    """One job in the setup's words."""
    fields = {name: _shown(value, hider) for name, value in jobwords.observed(job).items()}
    name = str(job.get("name") or job_id)
    defaults = shape.defaults(fields)
    if fields.get("session") == jobwords.ISOLATED:
        defaults.add("session")
    if fields.get("deliver") == "owner_chat" or fields.get("session") == jobwords.MAIN:
        defaults.add("deliver")
    return Observed(
        Kind.JOB,
        profile,
        job_id,
        fields,
        name=hider.text(name),
        defaults=frozenset(defaults),
        marker=marker(job),
        fingerprint=fingerprint(job, hider.key),
        about=_about(job, hider),
    )


def _shown(value: Json, hider: Hider) -> Json:
    """A field without secrets in it. Who knows a webhook's address can use it: it is seldom without a token, in
    whatever part, and a setup could not say it anyway."""
    if is_native(value) and isinstance(value["$native"], Mapping) and value["$native"].get("mode") == "webhook":
        return native({**value["$native"], "to": hider.value(value["$native"].get("to"), forced=True)})
    return hider.value(value)


def _about(job: Job, hider: Hider) -> dict[str, Json]:
    state = job.get("state")
    known = state if isinstance(state, Mapping) else {}
    about: dict[str, Json] = {}
    for name, word in _ABOUT.items():
        value = known.get(name)
        if value is not None:
            about[word] = _moment(value) if name.endswith("AtMs") else hider.value(value)
    if known.get("runningAtMs") is not None:
        about["running"] = True
    why, foreign = jobwords.stopped(job), stranger(job)
    if why:
        about["state"] = why
    if foreign:
        about["foreign"] = foreign
        about["changed_by"] = foreign
    # What the setup has no word for stays as it is; a person may want to know that it is there.
    more = [name for name in ("pacing", "trigger", "failureAlert", "description") if job.get(name)]
    if more:
        about["also"] = more
    return about


def _moment(value: Json) -> Json:
    try:
        return times.utc(datetime.fromtimestamp(value / 1000, UTC))
    except (OverflowError, OSError, TypeError, ValueError):
        return value


def reviewed(action: Action, observation: Observation) -> Action:
    """OpenClaw takes no folder away from a script: such a row is not tried."""
    if action.address.kind is not Kind.JOB or action.row is not Row.UPDATE or action.hold is not None:
        return action
    changes = {change.field: change for change in action.changes if change.writes}
    thing = observation.at(action.address.profile, Kind.JOB, action.id)
    script = isinstance(thing, Observed) and thing.get("run") is not ABSENT and not changes.keys() & {"run", "prompt"}
    if not script or "workdir" not in changes or changes["workdir"].write is not CLEAR:
        return action
    return replace(action, hold=Hold("OpenClaw takes no workdir away from a script: give it another one"))


def express(thing: Observed, workspace: str) -> dict[str, Json]:
    """A job in the grammar's form, a script of the workspace by its name there; {} for one that is not ours to take."""
    if thing.about.get("foreign"):
        return {}
    out = shape.express(thing)
    if out.get("toolsets") == []:
        out["toolsets"] = {"only": []}  # none at all; a list without members would say nothing
    if isinstance(out.get("run"), str):
        out["run"] = out["run"].removeprefix(f"{workspace}/scripts/")
    return out
