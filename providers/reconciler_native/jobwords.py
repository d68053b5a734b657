"""A job between the two vocabularies: the record's fields, the setup's fields, and the arguments of the verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.action import CLEAR, Clear
from reconciler.observe import Observed
from reconciler_shape import jobs as shape
from reconciler_shape import models
from reconciler_shape import record as records
from reconciler_shape import schedule as words
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import is_native
from reconciler_specs.shape import Json

from . import record, schedule, target
from .errors import Refused


def observed(item: records.Record, zone: str) -> dict[str, Json]:
    """A record in the setup's terms, canonical; None where it says nothing."""
    agent = not item.get("no_agent")
    repeat = item.get("repeat")
    context = item.get("context_from")
    refs = [context] if isinstance(context, str) else context if isinstance(context, list) else []
    attach = item.get("attach_to_session")
    script, url = item.get("monitor_script"), item.get("monitor_url")
    return {
        "name": str(item.get("name") or record.label(item)).strip(),
        "schedule": _when(item.get("schedule"), zone),
        "prompt": str(item.get("prompt") or "") or None if agent else None,  # a script that is the job reads none
        "before" if agent else "run": str(item.get("script") or "") or None,
        "deliver": target.declared(item.get("deliver") or "local"),
        "failure_deliver": target.declared(item.get("failure_deliver") or None),
        "model": models.pinned(item),
        "skills": records.skills(item),
        # Hermes has a word for the job itself; here it is its id, as that of any other.
        "context_from": [item.get("id") if ref == "self" else ref for ref in refs],
        "toolsets": item.get("enabled_toolsets") or None,
        "workdir": item.get("workdir") or None,
        "repeat": repeat.get("times") if isinstance(repeat, dict) else repeat,
        "monitor": {"script": script} if script else {"url": url} if url else None,
        "session": ("main" if attach else "isolated") if isinstance(attach, bool) else None,
        "metadata": item.get("host") if isinstance(item.get("host"), dict) else None,
        "paused": records.paused(item),
        "id": item.get("id"),
    }


def _when(when: Any, zone: str) -> Json:
    found = words.observed(when, zone or "UTC")
    if isinstance(found, dict) and "cron" in found:
        return _cron(found["cron"], str(when.get("tz") or ""), zone)
    return found


def _cron(expr: str, tz: str, zone: str) -> dict[str, Json]:
    """A zone that is the home's own is not said."""
    line = words.cron(expr)
    return {"cron": line} if not tz or tz == (zone or "UTC") else {"cron": line, "tz": tz}


def canonical(when: Mapping[str, Json], zone: str, meant: str = "") -> tuple[dict[str, Json], str]:
    """A declared schedule in the form that `observed` gives, and "" or why it cannot be kept.

    `zone` is the home's, `meant` the setup's word for it: where the home says nothing, each job keeps it.
    """
    if "every" in when:
        minutes = words.minutes(str(when["every"]))
        if not minutes:
            return dict(when), f"every: {when['every']} is no whole number of minutes, hours or days"
        long = minutes > schedule.LONGEST
        return {"every": f"{minutes}m"}, "every: that is no run within 8 years" if long else ""
    if "at" in when:
        moment = schedule.instant(str(when["at"]), zone)
        return ({"at": words.utc(moment)}, "") if moment else (dict(when), f"at: {when['at']} is no moment")
    return _cron(str(when.get("cron", "")), str(when.get("tz") or (meant if not zone else "")), zone), ""


def arguments(values: Mapping[str, Json | Clear]) -> dict[str, Any]:
    """Fields to write as a verb's arguments; CLEAR is null. Raises Refused for a value that is only a mark."""
    args: dict[str, Any] = {}
    for name, value in values.items():
        gone = value is CLEAR
        if not gone and (is_hidden(value) or is_native(value)):
            raise Refused(f"{name}: the value cannot be written back as it was read")
        match name:
            case "schedule":
                args["schedule"] = None if value is CLEAR else _schedule(value)
            case "deliver" | "failure_deliver":
                args[name] = None if gone else target.word_of(value)
            case "model":
                for key in ("provider", "model", "base_url"):
                    args[key] = None if value is CLEAR else value.get(key)
            case "toolsets":
                members = value.get("only", []) if isinstance(value, dict) else value
                args["enabled_toolsets"] = None if gone else members
            case "session":
                args["attach_to_session"] = None if gone else value == "main"
            case "monitor":
                found = value if isinstance(value, dict) else {}
                args["monitor_script"], args["monitor_url"] = found.get("script"), found.get("url")
            case "paused":
                args["enabled"] = gone or not value
            case "before" | "run" | "id":
                continue
            case _:
                args[name] = None if gone else value
    # One slot for both: a script that feeds the prompt, or is the job.
    for name, alone in (("before", False), ("run", True)):
        if name in values and values[name] is not CLEAR:
            args["script"], args["no_agent"] = values[name], alone
    if "script" not in args and ("run" in values or "before" in values):
        args["script"], args["no_agent"] = None, False
    return args


def _schedule(value: Any) -> dict[str, Any]:
    if "every" in value:
        return {"kind": "interval", "minutes": int(str(value["every"]).removesuffix("m"))}
    if "at" in value:
        return {"kind": "once", "run_at": value["at"]}
    return {"kind": "cron", "expr": value["cron"], **({"tz": value["tz"]} if value.get("tz") else {})}


def express(thing: Observed) -> dict[str, Json]:
    """A job in the setup's form."""
    out = shape.express(thing)
    if "context_from" in out:
        out["context_from"] = ["self" if ref == thing.id else ref for ref in out["context_from"]]
    return out
