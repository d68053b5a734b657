"""A job: what runs when, with which prompt or script, and where the answer goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic import Field as Default

from . import profile
from .address import Address, Kind
from .document import Node, shown
from .errors import Where
from .inference import Models
from .reading import (
    FLAG,
    NAME_SET,
    NAMES,
    TEXT,
    THING_KEYS,
    Field,
    Fields,
    Reasons,
    check_keys,
    did_you_mean,
    is_map,
    origins,
    read,
    read_marks,
    ref,
    resource,
)
from .resource import Mode, Resource
from .shape import ATOMIC, SCALAR, SET, Class, Json, Shape
from .values import (
    Count,
    Filled,
    Flag,
    ModelOrName,
    Names,
    NameSet,
    Refusal,
    ScalarMap,
    Schedule,
    Target,
    closed,
    filled,
    names,
    target,
)

FIELDS: Fields = {
    "name": Field("The name in the harness; the key if you give none.", TEXT, SCALAR),
    "schedule": Field("When it runs: {cron, tz?}, {every} or {at}.", ref("Schedule"), SCALAR),
    "prompt": Field("What the agent is told.", TEXT, SCALAR),
    "before": Field("A script of the home whose output leads the prompt.", TEXT, SCALAR),
    "run": Field("A script of the home that is the job; no model runs.", TEXT, SCALAR),
    "deliver": Field(
        "Where the answer goes: local, owner_chat or {to, chat?, thread?}; keep: as the home's job has it.",
        {"oneOf": [ref("Target"), {"const": "keep"}]},
        SCALAR,
    ),
    "failure_deliver": Field("Where a failure is reported.", ref("Target"), SCALAR),
    "model": Field("A name from inference.models, or {provider, model}.", {"oneOf": [TEXT, ref("Model")]}, SCALAR),
    "skills": Field("Skills to load, in this order.", NAMES, ATOMIC),
    "toolsets": Field("Tools that it may use; {only: [...]} for exactly these.", NAME_SET, SET),
    "workdir": Field("The folder that it works in, at the home's place.", TEXT, SCALAR),
    "context_from": Field(
        "Jobs of this profile whose last answer it is given; self for its own.",
        {"oneOf": [NAMES, TEXT]},
        ATOMIC,
    ),
    "session": Field("The session that it runs in, as the harness names it.", TEXT, SCALAR),
    "repeat": Field("How many times it runs.", {"type": "integer", "minimum": 1}, SCALAR),
    "monitor": Field("Run only when this changed: {script} or {url}.", ref("Monitor"), SCALAR),
    "paused": Field("Whether it waits.", FLAG, SCALAR),
    "id": Field("The harness's id, for harnesses where the author may choose it.", TEXT, SCALAR),
    "metadata": Field("Free values kept with the job.", {"type": "object"}, Shape(Class.MAP)),
}
SHAPES = {name: f.shape for name, f in FIELDS.items()}
KEEP = "keep"
REQUIRED = ("schedule", "deliver")


def _context(value: Any) -> list[str]:
    return names([value] if isinstance(value, str) else value)


def _deliver(value: Any) -> Json:
    """A target, or `keep`: what an adopted job was made with and no word of ours can say (E46)."""
    return value if value == KEEP else target(value)


def _monitor(value: Any) -> dict[str, str]:
    value = closed(value, ("script", "url"), "{script: NAME} or {url: ADDRESS}")
    if len(value) != 1:
        raise Refusal("exactly one of script, url is expected")
    [(key, item)] = value.items()
    try:
        return {key: filled(item)}
    except Refusal as refusal:
        raise refusal.under(key) from refusal


class Job(BaseModel):
    """A job as declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # What is left out has a plain default: `model_fields_set` says what the author set, and a schema without
    # “or None” is built in half the time.
    schedule: Schedule
    deliver: Annotated[Json, PlainValidator(_deliver)]
    name: Filled = ""
    prompt: Filled = ""
    before: Filled = ""
    run: Filled = ""
    failure_deliver: Target = None
    model: ModelOrName = None
    skills: Names = Default(default_factory=list)
    toolsets: NameSet = None
    workdir: Filled = ""
    context_from: Annotated[list[str], PlainValidator(_context)] = Default(default_factory=list)
    session: Filled = ""
    repeat: Count = 0
    monitor: Annotated[dict[str, str], PlainValidator(_monitor)] = Default(default_factory=dict)
    paused: Flag = False
    id: Filled = ""
    metadata: ScalarMap = Default(default_factory=dict)


def read_job(
    node: Node,
    address: Address,
    where: Where,
    mode: Mode,
    reasons: Reasons,
    models: Models,
    jobs: Collection[str],
    files: Collection[str],
    has_inference: bool,
) -> Resource | None:
    """The job's Resource. `jobs` and `files` are the keys that the same profile declares."""
    what = str(address)
    if not is_map(node, what, reasons):
        return None
    check_keys(node, (*FIELDS, *THING_KEYS), what, reasons)
    marks = read_marks(node, FIELDS, what, reasons)
    job = read(Job, node, what, where, reasons)
    if job is None:
        return None
    given = job.model_fields_set
    if ("prompt" in given) == ("run" in given):
        got = "both" if "run" in given else "none"
        reasons.add(
            where,
            f"{what}: exactly one of prompt, run is needed, got {got}",
            "prompt is for the agent (before: a script that feeds it); run is a script that is the job",
        )
    if "before" in given and "run" in given:
        reasons.add(node.value["before"].where, f"{what}: before goes with prompt, not with run")
    fields: dict[str, Json] = {name: getattr(job, name) for name in FIELDS if name in given}
    fields = {"name": address.key, **fields}
    if isinstance(job.model, str):
        try:
            fields["model"] = models.resolve(job.model)
        except Refusal as refusal:
            reasons.add(node.value["model"].where, f"{what} model: {refusal.message}", refusal.hint)
    needed = list(profile.needs(address.home, address.profile))
    if has_inference:
        needed.append(Address(address.home, address.profile, Kind.INFERENCE))
    for script in _scripts(job):
        path = f"scripts/{script}"
        if path in files:
            needed.append(Address(address.home, address.profile, Kind.FILE, path))
    if "context_from" in given:
        paths = []
        for i, key in enumerate(job.context_from):
            if key == "self":
                paths.append("self")
                continue
            other = Address(address.home, address.profile, Kind.JOB, key)
            if key == address.key:
                at = node.value["context_from"].descend((i,)).where
                reasons.add(at, f"{what} context_from: {shown(key)} is this job", "write self")
                continue
            if "/" in key or "#" in key:
                at = node.value["context_from"].descend((i,)).where
                reasons.add(at, f"{what} context_from: {shown(key)} is no job key", did_you_mean(key, jobs))
            paths.append(other.path)
            needed.append(other)
        fields["context_from"] = paths
    kept = job.deliver == KEEP
    if kept:
        del fields["deliver"]
    made = resource(address, fields, SHAPES, marks, mode, origins(node, where), tuple(dict.fromkeys(needed)))
    return replace(made, options={"keeps": ["deliver"]}) if kept else made


def _scripts(job: Job) -> list[str]:
    found = [job.before, job.run, job.monitor.get("script")]
    return [name.removeprefix("scripts/") for name in found if name]


Place = TypeVar("Place", Address, str)


def cycles(jobs: Mapping[Address, Resource]) -> list[list[Address]]:
    """Rings of jobs that each take their context from the next."""
    edges = {a: [n for n in r.needs if n.kind is Kind.JOB and n in jobs] for a, r in jobs.items()}
    return rings({a: to for a, to in edges.items() if to})


def rings(edges: Mapping[Place, Sequence[Place]]) -> list[list[Place]]:
    """Each ring once, from its smallest member; only what has edges is in one."""
    done: set[Place] = set()
    found: list[list[Place]] = []
    for start in edges:
        if start in done:
            continue
        path: list[Place] = [start]
        open_ = [iter(edges[start])]
        while open_:
            following = next(open_[-1], None)
            if following is None:
                done.add(path.pop())
                open_.pop()
            elif following in path:
                ring = path[path.index(following) :]
                first = ring.index(min(ring))
                found.append(ring[first:] + ring[:first])
            elif following not in done and following in edges:
                path.append(following)
                open_.append(iter(edges[following]))
    return found
