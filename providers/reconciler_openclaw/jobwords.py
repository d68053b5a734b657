"""A cron job between OpenClaw's words and the setup's: one table, read in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reconciler_shape import schedule as times
from reconciler_shape.plain import native
from reconciler_specs.shape import Json

Job = Mapping[str, Any]
"""A job as `cron.list` tells it, or as `job_json` of the state database has it."""

AGENT, EVENT, COMMAND = "agentTurn", "systemEvent", "command"
ISOLATED, MAIN = "isolated", "main"
_MINUTE = 60_000  # ms
_ALL_TOOLS = ["*"]
_USUAL_SPREAD = 300_000  # ms


@dataclass(frozen=True, slots=True)
class Turn:
    """What decides the form in which a job's words are written: the session that it runs in, and whether it is a
    script. OpenClaw has one payload for each: an event for the main session, a turn of the agent, or a command."""

    session: str = ISOLATED
    script: bool = False

    @property
    def payload(self) -> str:
        return COMMAND if self.script else EVENT if self.session == MAIN else AGENT


@dataclass(frozen=True, slots=True)
class Word:
    """One field of the setup. `read` gives its value of a job, None where the job has none; `write` gives the part of
    a `cron.update` patch that makes it so, None as the value takes it away (`{}`: there is nothing to take away)."""

    read: Callable[[Job], Json]
    write: Callable[[Json, Turn], dict[str, Any]]


def turn(job: Job) -> Turn:
    """The form that a job has now."""
    return Turn(str(job.get("sessionTarget") or ISOLATED), _payload(job).get("kind") == COMMAND)


def turn_of(fields: Mapping[str, Json]) -> Turn:
    """The form that declared fields ask for; a job whose session is not declared runs by itself."""
    return Turn(str(fields.get("session") or ISOLATED), bool(fields.get("run")))


def observed(job: Job) -> dict[str, Json]:
    """A job in the setup's words; what it lacks is left out, what the setup has no word for is marked as such."""
    found = {name: word.read(job) for name, word in WORDS.items()}
    return {name: value for name, value in found.items() if value is not None}


def to_native(fields: Mapping[str, Json]) -> dict[str, Any]:
    """Declared canonical fields as the parameters of `cron.add`, without `agentId` and `declarationKey`.

    A one-shot is kept after its run, so that it can be told from one that somebody deleted.
    """
    form = turn_of(fields)
    job: dict[str, Any] = {"sessionTarget": form.session, "wakeMode": "now", "payload": {"kind": form.payload}}
    if form.payload == EVENT:
        job["payload"]["text"] = fields.get("prompt", "")
    for name in WORDS:
        if fields.get(name) is not None:
            job = merged(job, WORDS[name].write(fields[name], form))
    if job.get("schedule", {}).get("kind") == "at":
        job["deleteAfterRun"] = False
    return {key: plain(value) for key, value in job.items()}


def patch(job: Job, changes: Mapping[str, Json]) -> dict[str, Any]:
    """The `cron.update` patch that changes these fields of a job as it is now; None takes a field away."""
    before, after = turn(job), _turn_after(job, changes)
    found: dict[str, Any] = {} if before.payload == after.payload else _another_kind(job, before, after)
    for name, value in changes.items():
        found = merged(found, WORDS[name].write(value, after))
    if "payload" in found:
        found["payload"] = {"kind": after.payload, **found["payload"]}
    if "schedule" in found:
        found["schedule"] = {**_kept_of_schedule(job, found["schedule"]), **found["schedule"]}
    if "schedule" in changes and _over(job) and not changes.get("paused"):
        found["enabled"] = True  # a one-shot that ran is switched off; its new time is meant to come
    return found


def _turn_after(job: Job, changes: Mapping[str, Json]) -> Turn:
    """The form that a job has once it is changed. It is either a script or has a prompt: the one that is given takes
    the place of the other; and a script has no session."""
    before = turn(job)
    if "run" in changes or changes.get("prompt"):
        script = bool(changes.get("run"))
    else:
        script = before.script
    session = str(changes.get("session", before.session) or ISOLATED)
    return Turn(ISOLATED if script and session == MAIN else session, script)


def _another_kind(job: Job, before: Turn, after: Turn) -> dict[str, Any]:
    """What a job keeps as another kind of job: OpenClaw takes nothing over from the old payload, and lets one that was
    an event of the main session send its answers."""
    text = _payload(job).get("message", _payload(job).get("text"))
    kept = {} if after.script or text is None else _write_prompt(text, after)
    quiet = {"delivery": {"mode": "none"}} if before.payload == EVENT else {}
    return {"sessionTarget": after.session, **kept, **quiet}


def _kept_of_schedule(job: Job, new: Mapping[str, Any]) -> dict[str, Any]:
    """What a schedule of the same kind keeps: the moment that intervals are counted from, and a spread of a person's
    own (the one that OpenClaw gives to full hours by itself is drawn again)."""
    old = job.get("schedule")
    if not isinstance(old, Mapping) or old.get("kind") != new.get("kind"):
        return {}
    found = {name: old[name] for name in ("anchorMs", "staggerMs") if old.get(name) is not None}
    return {name: value for name, value in found.items() if (name, value) != ("staggerMs", _USUAL_SPREAD)}


def stopped(job: Job) -> str:
    """Why a job is switched off by OpenClaw itself and not by a person, "" if it runs or somebody paused it."""
    if job.get("enabled", True) is not False:
        return ""
    state = job.get("state") if isinstance(job.get("state"), Mapping) else {}
    assert isinstance(state, Mapping)
    trouble = state.get("autoDisabled")
    if isinstance(trouble, Mapping):
        return f"switched off by OpenClaw after {trouble.get('consecutiveErrors', 'several')} errors in a row"
    if _over(job):
        return "its only time has passed, and it ran"
    trigger = job.get("trigger")
    if isinstance(trigger, Mapping) and trigger.get("once") and state.get("lastTriggerFireAtMs"):
        return "its trigger fired, once"
    return "its stream ended" if state.get("streamRestartExhausted") else ""


def _over(job: Job) -> bool:
    state, when = job.get("state"), job.get("schedule")
    ran = isinstance(state, Mapping) and bool(state.get("lastRunStatus") or state.get("lastStatus"))
    return ran and isinstance(when, Mapping) and when.get("kind") == "at" and job.get("enabled") is False


# schedule


def _read_schedule(job: Job) -> Json:
    """`staggerMs` and `anchorMs` are the server's own and stay out: they are kept where they are (L6)."""
    when = job.get("schedule")
    if not isinstance(when, Mapping):
        return None
    every, at, line = when.get("everyMs"), times.instant(when.get("at")), when.get("expr")
    match when.get("kind"):
        case "every" if isinstance(every, int) and every >= _MINUTE and every % _MINUTE == 0:
            return {"every": f"{every // _MINUTE}m"}
        case "at" if at is not None:
            return {"at": times.utc(at)}
        case "cron" if isinstance(line, str) and len(line.split()) == 5:
            return {"cron": times.cron(line)} | ({"tz": when["tz"]} if when.get("tz") else {})
    return native({key: value for key, value in when.items() if key not in ("staggerMs", "anchorMs")})


def _write_schedule(value: Json, _: Turn) -> dict[str, Any]:
    if "every" in value:
        minutes = times.minutes(str(value["every"]))
        return {"schedule": {"kind": "every", "everyMs": int(timedelta(minutes=minutes) / timedelta(milliseconds=1))}}
    if "at" in value:
        return {"schedule": {"kind": "at", "at": value["at"]}}
    zone = {"tz": value["tz"]} if value.get("tz") else {}
    return {"schedule": {"kind": "cron", "expr": value["cron"], **zone}}


# payload


def _payload(job: Job) -> Mapping[str, Any]:
    found = job.get("payload")
    return found if isinstance(found, Mapping) else {}


def _read_prompt(job: Job) -> Json:
    payload = _payload(job)
    match payload.get("kind"):
        case "agentTurn":
            return payload.get("message")
        case "systemEvent":
            return payload.get("text")
        case "command":
            return None
    return native({"kind": payload.get("kind")})  # an inline script, a heartbeat: the setup has no word for them


def _write_prompt(value: Json, form: Turn) -> dict[str, Any]:
    return {"payload": {"text" if form.payload == EVENT else "message": value}}


def _read_run(job: Job) -> Json:
    payload = _payload(job)
    if payload.get("kind") != COMMAND:
        return None
    argv = payload.get("argv")
    plain_one = isinstance(argv, list) and len(argv) == 1 and not payload.keys() & {"env", "input"}
    return argv[0] if plain_one and isinstance(argv, list) else native({"argv": argv})


def _read_model(job: Job) -> Json:
    return model(_payload(job).get("model"))


def model(ref: Any) -> Json:
    """`provider/model` as the setup's `{provider, model}`; a word without a slash is an alias, whose provider is
    OpenClaw's to find."""
    if not isinstance(ref, str) or not ref.strip():
        return None
    provider, slash, name = ref.strip().partition("/")
    return {"provider": provider, "model": name} if slash else {"provider": "auto", "model": provider}


def ref(value: Mapping[str, Json]) -> str:
    """The other way."""
    name = str(value.get("model", ""))
    return name if value.get("provider") in (None, "", "auto") else f"{value['provider']}/{name}"


def _only_of(kind: str, write: Callable[[Json], dict[str, Any]]) -> Callable[[Json, Turn], dict[str, Any]]:
    """Of a field that one kind of payload alone has: of another kind there is nothing to take away."""
    return lambda value, form: {"payload": write(value)} if form.payload == kind else {}


def _read_tools(job: Job) -> Json:
    tools = _payload(job).get("toolsAllow")
    # `["*"]` is what 9.6 fills in for “all of them”.
    return None if tools in (None, _ALL_TOOLS) or _payload(job).get("toolsAllowIsDefault") else tools


def _write_tools(value: Json, form: Turn) -> dict[str, Any]:
    """9.6 keeps the list of a job that becomes a script or an event, so that it can be taken away there too."""
    members = value.get("only", []) if isinstance(value, Mapping) else value
    return {"payload": {"toolsAllow": members}} if form.payload == AGENT or members is None else {}


# delivery


def _delivery(job: Job) -> Mapping[str, Any]:
    found = job.get("delivery")
    return found if isinstance(found, Mapping) else {}


def _read_deliver(job: Job) -> Json:
    found = _delivery(job)
    match found.get("mode"):
        case None | "none":
            return "local"
        case "announce":
            return _target(found, "owner_chat")
    return native({"mode": found.get("mode"), "to": found.get("to")})


def _target(found: Mapping[str, Any], nowhere: Json) -> Json:
    """A channel, with the account behind a slash where one is named; the chat that last spoke is the owner's."""
    channel, chat = found.get("channel"), found.get("to")
    if channel in (None, "last"):
        return nowhere if chat is None else native(dict(found))
    to = f"{channel}/{found['accountId']}" if found.get("accountId") else str(channel)
    thread = found.get("threadId")
    more = {"chat": chat, "thread": thread}
    return {"to": to} | {key: str(value) for key, value in more.items() if value is not None}


def _write_deliver(value: Json, form: Turn) -> dict[str, Any]:
    if form.session == MAIN and form.payload == EVENT:
        return {}  # its answer is in the session itself: OpenClaw keeps no delivery of it
    if value in (None, "local"):
        return {"delivery": {"mode": "none"}}
    return {"delivery": {"mode": "announce", **_place(value), "threadId": _said(value, "thread")}}


def _place(value: Json) -> dict[str, Any]:
    if value == "owner_chat":
        return {"channel": None, "to": None, "accountId": None}
    channel, _, account = str(value["to"]).partition("/")
    return {"channel": channel, "to": _said(value, "chat"), "accountId": account or None}


def _said(value: Json, key: str) -> str | None:
    return str(value[key]) if isinstance(value, Mapping) and value.get(key) is not None else None


def _read_failure(job: Job) -> Json:
    found = _delivery(job).get("failureDestination")
    if not isinstance(found, Mapping):
        return None
    if found.get("mode") == "webhook":
        return native({"mode": "webhook", "to": found.get("to")})
    return _target(found, "owner_chat")


def _write_failure(value: Json, form: Turn) -> dict[str, Any]:
    if value is None:
        return {"delivery": {"failureDestination": None}}
    if form.payload == EVENT:
        return {}
    return {"delivery": {"failureDestination": {"mode": "announce", **_place(value)}}}


def _read_paused(job: Job) -> Json:
    return job.get("enabled", True) is False and not stopped(job)


WORDS: Mapping[str, Word] = {
    "name": Word(lambda job: job.get("name"), lambda value, _: {"name": value}),
    "schedule": Word(_read_schedule, _write_schedule),
    "prompt": Word(_read_prompt, _write_prompt),
    "run": Word(_read_run, lambda value, _: {"payload": {"argv": [value]}} if value else {}),
    "workdir": Word(lambda job: _payload(job).get("cwd"), _only_of(COMMAND, lambda value: {"cwd": value})),
    "model": Word(_read_model, _only_of(AGENT, lambda value: {"model": ref(value) if value else None})),
    "toolsets": Word(_read_tools, _write_tools),
    "deliver": Word(_read_deliver, _write_deliver),
    "failure_deliver": Word(_read_failure, _write_failure),
    "session": Word(lambda job: job.get("sessionTarget"), lambda value, _: {"sessionTarget": value or ISOLATED}),
    "paused": Word(_read_paused, lambda value, _: {"enabled": not value}),
}
"""The setup's fields that OpenClaw stores, with both directions. What is not here is refused by `jobcanon`."""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two parts of a patch as one."""
    both = below.keys() & above.keys()
    return {
        **below,
        **above,
        **{key: merged(below[key], above[key]) for key in both if _maps(below[key], above[key])},
    }


def _maps(below: Any, above: Any) -> bool:
    return isinstance(below, Mapping) and isinstance(above, Mapping)


def plain(value: Any) -> Any:
    """Without the None's by which a patch takes something away: a new job has nothing yet."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return value
