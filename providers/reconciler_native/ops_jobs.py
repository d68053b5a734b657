"""The verbs on jobs: what the orchestrator's door answers, without its traps (docs/providers/native.md)."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC
from typing import Any

from reconciler_shape import record as records
from reconciler_shape.plain import same

from . import record, schedule, target
from .context import Args, Context, Result, Verb, flag, maybe_text, text, texts, verb
from .errors import Refused

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
METADATA = 16384  # bytes of JSON
_FIELDS = (
    "attach_to_session", "base_url", "context_from", "deliver", "enabled", "enabled_toolsets", "failure_deliver",
    "metadata", "model", "monitor_script", "monitor_url", "name", "no_agent", "prompt", "provider", "repeat",
    "schedule", "script", "skills", "workdir",
)  # fmt: skip


def _create(ctx: Context, args: Args) -> Result:
    jobs = ctx.profile.jobs
    job_id = _new_id(ctx, args)
    if "schedule" not in args:
        raise Refused("schedule is required")
    if isinstance(args.get("prompt"), str) and not args["prompt"].strip():
        raise Refused("prompt is required")
    blank: records.Record = {
        **dict.fromkeys(record.ORDER[:-1]),
        "id": job_id,
        "prompt": "",
        "skills": [],
        "no_agent": False,
        "repeat": {"times": None, "completed": 0},
        "enabled": True,
        "state": "scheduled",
        "created_at": ctx.stamp,
        "deliver": "origin",
        "origin": _origin(args.get("surface")),
    }
    given = {key: value for key, value in args.items() if key in _FIELDS}
    if "enabled" in given and given["enabled"] is None:
        del given["enabled"]
    job = _changed(ctx, blank, given)
    intent = maybe_text(args, "intent")
    if intent:
        job[records.MARKER] = {"intent": intent}
    jobs.put(job)
    shown = record.view(job, ctx.zone)
    where = f"delivering to {job['deliver']}"
    said = schedule.describe(job["schedule"], ctx.zone)
    return {
        "ran": f"created cron job {job_id} ({said}) in profile {ctx.profile.name}, {where}",
        "job_id": job_id,
        "job": shown,
    }


def _new_id(ctx: Context, args: Args) -> str:
    given = args.get("id")
    if given in (None, ""):
        # The random part: an id is a job's identity, and must not come back when a job of the same second is gone.
        return f"job_{ctx.now.astimezone(UTC).strftime('%Y%m%d_%H%M%S')}_{os.urandom(3).hex()}"
    if not isinstance(given, str) or not ID.fullmatch(given):
        raise Refused(
            f"jobs.create: the id {given!r} is not a file name (letters, digits, '.', '_' and '-', at most 64)"
        )
    if ctx.profile.jobs.get(given) is not None:
        raise Refused(f"jobs_create: job {given} already exists")
    return given


def _update(ctx: Context, args: Args) -> Result:
    job_id, job = _found(ctx, args, "jobs.update")
    given = {key: value for key, value in args.items() if key in _FIELDS}
    if not given:
        raise Refused(f"jobs.update changes nothing; name at least one of {', '.join(_FIELDS)}")
    new = _changed(ctx, job, given)
    ctx.profile.jobs.put(new)
    return {
        "ran": f"updated cron job {job_id} in profile {ctx.profile.name} ({', '.join(sorted(given))})",
        "job_id": job_id,
        "job": record.view(new, ctx.zone),
    }


def _changed(ctx: Context, job: records.Record, given: Args) -> records.Record:
    """The record with the given fields. Raises Refused; the record given stays as it is."""
    new = dict(job)
    for name in ("model", "provider", "workdir", "base_url", "monitor_script", "monitor_url"):
        if name in given:
            _put(new, name, maybe_text(given, name))
    for name in ("deliver", "failure_deliver"):
        if name in given:
            _put(new, name, target.accept(given[name], name))
    new["deliver"] = new.get("deliver") or "origin"
    if "skills" in given:
        new["skills"] = texts(given, "skills")
        new["skill"] = new["skills"][0] if new["skills"] else None
    if "context_from" in given:
        new["context_from"] = texts(given, "context_from") or None
    if "enabled_toolsets" in given:
        new["enabled_toolsets"] = texts(given, "enabled_toolsets") or None
    if "metadata" in given:
        _put(new, "host", _metadata(given["metadata"]))
    if "attach_to_session" in given:
        _put(new, "attach_to_session", flag(given, "attach_to_session"))
    _script(new, given)
    if "prompt" in given:
        new["prompt"] = _prompt(given["prompt"])
    if not str(new.get("prompt") or "").strip() and not new.get("no_agent") and not new.get("skills"):
        raise Refused("prompt is required")
    named = bool(job.get("name")) and job["name"] != record.label(job)
    new["name"] = maybe_text(given, "name") if "name" in given else job["name"] if named else None
    new["name"] = new["name"] or record.label(new)
    _when(ctx, job, new, given)
    return new


def _put(job: records.Record, name: str, value: Any) -> None:
    """Sets a field; one that Hermes does not write into each record goes away when it is empty."""
    if value is None and name not in record.ORDER[:-1]:
        job.pop(name, None)
    else:
        job[name] = value


def _prompt(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise Refused("prompt must be a non-empty string")
    return value


def _metadata(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict) or len(json.dumps(value, separators=(",", ":"))) > METADATA:
        raise Refused("metadata must be an object of at most 16 KiB")
    return value


def _script(new: records.Record, given: Args) -> None:
    if "script" in given:
        script = maybe_text(given, "script")
        if script and (script.startswith(("/", "~")) or ".." in script.split("/")):
            raise Refused(f"script: {script} does not lie under the profile's scripts/")
        new["script"] = script
    if "no_agent" in given:
        new["no_agent"] = bool(flag(given, "no_agent"))
    elif given.get("prompt") and new.get("no_agent"):
        # A script that is the job would go on running, and the prompt would lie beside it unread.
        new["no_agent"], new["script"] = False, new["script"] if "script" in given else None
    if new.get("no_agent") and not new.get("script"):
        raise Refused("no_agent needs a script: with no agent and no script there is nothing to run")


def _when(ctx: Context, job: records.Record, new: records.Record, given: Args) -> None:
    """Schedule, repeat, and whether and when it runs next. An equal schedule moves no run."""
    moved = False
    if "schedule" in given:
        parsed = schedule.parse(given["schedule"], ctx.now, ctx.zone)
        moved = not same(_bare(parsed), _bare(job.get("schedule")))
        new["schedule"] = parsed if moved else job["schedule"]
        new["schedule_display"] = new["schedule"].get("display", "")
    _repeats(job, new, given, moved)
    on = flag(given, "enabled")
    if moved and job.get("state") == "completed" and on is None:
        on = True
    was = job.get("enabled", True) is not False
    if on is True or (on is None and was and moved):
        _arm(ctx, new, keep=was and not moved)
    elif on is False:
        new.update(enabled=False, state="paused", paused_at=ctx.stamp, paused_reason=None)
        if moved:
            new["next_run_at"] = None
    elif moved:
        new["next_run_at"] = None  # it waits; `jobs.resume` computes the next run


def _bare(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != "display"} if isinstance(value, dict) else value


def _kind(job: records.Record) -> Any:
    when = job.get("schedule")
    return when.get("kind") if isinstance(when, dict) else None


def _repeats(job: records.Record, new: records.Record, given: Args, moved: bool) -> None:
    repeat = dict(job["repeat"]) if isinstance(job.get("repeat"), dict) else {"times": None, "completed": 0}
    once = _kind(new) == "once"
    if "repeat" in given:
        times = given["repeat"]
        if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
            raise Refused("repeat must be a whole number, at least 1 (leave it out for ever)")
        repeat["times"] = times
    elif moved and not once and _kind(job) == "once" and repeat.get("times") == 1:
        repeat["times"] = None
    if once and repeat.get("times") is None:
        repeat["times"] = 1
    if moved and job.get("state") == "completed":
        repeat["completed"] = 0
    new["repeat"] = repeat


def _arm(ctx: Context, job: records.Record, *, keep: bool) -> None:
    """Lets it run; `keep` leaves a next run that is still to come."""
    if not keep or schedule.instant(job.get("next_run_at")) is None:
        following = schedule.next_run(job.get("schedule"), ctx.now, ctx.zone)
        if following is None:
            raise Refused(f"job {job['id']} cannot run: its schedule has no run to come")
        job["next_run_at"] = schedule.stored(following)
    job.update(enabled=True, state="scheduled", paused_at=None, paused_reason=None)


def _pause(ctx: Context, args: Args) -> Result:
    job_id, job = _found(ctx, args, "jobs.pause")
    new = {**job, "enabled": False, "state": "paused", "paused_at": ctx.stamp, "paused_reason": None}
    if job.get("enabled", True) is False and job.get("state") == "paused":
        new = job
    ctx.profile.jobs.put(new)
    return _ran("paused", ctx, job_id, new)


def _resume(ctx: Context, args: Args) -> Result:
    job_id, job = _found(ctx, args, "jobs.resume")
    new = dict(job)
    coming = schedule.instant(job.get("next_run_at"))
    # A run that was missed while it waited is not made up for.
    running = job.get("enabled", True) is not False
    _arm(ctx, new, keep=coming is not None and (running or coming > ctx.now))
    ctx.profile.jobs.put(new)
    return _ran("resumed", ctx, job_id, new)


def _ran(word: str, ctx: Context, job_id: str, job: records.Record) -> Result:
    return {
        "ran": f"{word} cron job {job_id} in profile {ctx.profile.name}",
        "job_id": job_id,
        "job": record.view(job, ctx.zone),
    }


def _run(ctx: Context, args: Args) -> Result:
    job_id, job = _found(ctx, args, "jobs.run")
    if job.get("enabled", True) is False:
        raise Refused(f"jobs_run: job {job_id} is paused, and nothing would claim it; resume it first")
    new = {**job, "next_run_at": ctx.stamp}
    ctx.profile.jobs.put(new)
    return {
        "ran": f"cron job {job_id} in profile {ctx.profile.name} is due now; the next tick claims it",
        "job_id": job_id,
        "job": record.view(new, ctx.zone),
    }


def _delete(ctx: Context, args: Args) -> Result:
    job_id, _ = _found(ctx, args, "jobs.delete")
    # The history stays, aside: output without a record is how a job that ended by itself is known.
    output = ctx.profile.folder / "cron" / "output"
    if ID.fullmatch(job_id) and (output / job_id).is_dir():
        stamp = ctx.now.astimezone(UTC).strftime("%Y%m%d%H%M%S")
        ctx.home.disk.move(output / job_id, output / ".deleted" / f"{job_id}-{stamp}-{os.urandom(3).hex()}")
    ctx.profile.jobs.remove(job_id)
    return {
        "ran": f"removed cron job {job_id} from profile {ctx.profile.name}",
        "job_id": job_id,
        "job": None,
        "deleted": True,
    }


def _list(ctx: Context, args: Args) -> Result:
    jobs = ctx.profile.jobs.shown(ctx.zone)
    return {"ran": f"{len(jobs)} cron jobs in profile {ctx.profile.name}", "jobs": jobs}


def _get(ctx: Context, args: Args) -> Result:
    job_id, job = _found(ctx, args, "jobs.get")
    return {
        "ran": f"cron job {job_id} in profile {ctx.profile.name}",
        "job_id": job_id,
        "job": record.view(job, ctx.zone),
    }


def _found(ctx: Context, args: Args, op: str) -> tuple[str, records.Record]:
    """The job that a verb acts on. Raises Refused: none, two of one id, or not the one that the caller saw."""
    job_id = str(args.get("id") or args.get("job_id") or "").strip()
    if not job_id:
        raise Refused(f"{op} needs the job id to act on")
    if job_id in ctx.profile.jobs.twice:
        raise Refused(f"{op}: two jobs have the id {job_id}; give one of them another id in {ctx.profile.jobs.path}")
    job = ctx.profile.jobs.get(job_id)
    if job is None:
        raise Refused(f"{op.replace('.', '_')}: no job {job_id}", stale=ctx.expect is not None)
    ctx.still(f"job {job_id}", record.intent(job))
    return job_id, job


def _origin(surface: Any) -> dict[str, Any] | None:
    """`platform|kind|chat_id|thread_id|participant_id` as a job's origin. Raises Refused."""
    if surface in (None, ""):
        return None
    key = surface_key(surface)
    return {
        "platform": key[0],
        "chat_type": key[1],
        "chat_id": key[2] or None,
        "thread_id": key[3] or None,
    }


def surface_key(surface: Any) -> tuple[str, str, str, str, str]:
    """The five parts of a surface key. Raises Refused."""
    parts = surface.strip().split("|") if isinstance(surface, str) else []
    if not 2 <= len(parts) <= 5 or not parts[0] or not parts[1]:
        raise Refused(
            f"surface {json.dumps(surface)} is not a surface key: write it as "
            "platform|kind|chat_id|thread_id|participant_id"
        )
    padded = [*parts, *[""] * (5 - len(parts))]
    return padded[0], padded[1], padded[2], padded[3], padded[4]


def _session(ctx: Context, args: Args, op: str) -> Result:
    if not args.get("surface"):
        raise Refused(f"{op} needs the surface to act on (platform|kind|chat_id|thread_id|participant_id)")
    key = "|".join(surface_key(text(args, "surface", op)))
    raise Refused(
        f"no live conversation on {key} in profile {ctx.profile.name}; `{op}` ends a binding that exists, and a native "
        "home holds no conversations yet"
    )


def _sessions_new(ctx: Context, args: Args) -> Result:
    return _session(ctx, args, "sessions.new")


def _sessions_reset(ctx: Context, args: Args) -> Result:
    return _session(ctx, args, "sessions.reset")


VERBS: dict[str, Verb] = {
    "jobs.create": verb(_create, *_FIELDS, "id", "surface", "intent"),
    "jobs.update": verb(_update, *_FIELDS, "id", "job_id"),
    "jobs.pause": verb(_pause, "id", "job_id"),
    "jobs.resume": verb(_resume, "id", "job_id"),
    "jobs.run": verb(_run, "id", "job_id"),
    "jobs.delete": verb(_delete, "id", "job_id"),
    "jobs.list": verb(_list, reads=True),
    "jobs.get": verb(_get, "id", "job_id", reads=True),
    "sessions.new": verb(_sessions_new, "surface"),
    "sessions.reset": verb(_sessions_reset, "surface"),
}
