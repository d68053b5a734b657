"""A home's block as resources: its own keys, then profile by profile what lies in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator

from . import file, inference, job, profile, remote, secret, setting
from .address import Address, Kind
from .channel import split_key
from .document import Node, shown
from .errors import Where
from .policy import DEFAULTS, Policy, read_policy
from .reading import (
    FLAG,
    NAMES,
    TEXT,
    THING_KEYS,
    Field,
    Fields,
    Reasons,
    check_keys,
    did_you_mean,
    is_map,
    read,
    ref,
)
from .resource import Mode, Resource
from .setup import HARNESSES, Home
from .shape import Json
from .sources import Sources
from .table import Around, read_things
from .tables import TABLES
from .values import NAME, PROFILE, Filled, Flag, Refusal, Zone, plain, word

FIRST_CONTACT = ("ask", "adopt", "provision")
RESTART = ("never", "ask", "when_needed")
FIELDS: Fields = {
    "harness": Field("The harness that the home belongs to.", {"enum": list(HARNESSES)}),
    "path": Field("The harness's state directory, at its place.", TEXT),
    "at": Field("The name of the place where it is; this machine if left out.", TEXT),
    "harness_version": Field('The versions that you tested, as a range: ">=0.19,<0.20".', TEXT),
    "timezone": Field("The home's IANA time zone.", TEXT),
    "first_contact": Field(
        "What to do with a home that has no state yet.", {"enum": list(FIRST_CONTACT), "default": "ask"}
    ),
    "shared": Field("Whether other setups declare things in it too.", FLAG),
    "restart": Field("Whether the harness may be restarted.", {"enum": list(RESTART), "default": "ask"}),
    "door": Field("How to reach the harness; the keys are the provider's.", {"type": "object"}),
    "extends": Field("Templates that it starts from, in this order.", NAMES),
    "with": Field("Values for the parameters.", {"type": "object"}),
    "policy": Field("Policy of this home, over the setup's.", ref("Policy")),
    "secrets": Field("Where the values of its secrets come from, by name; over the setup's.", {"type": "object"}),
    "profiles": Field("The profiles, by name.", {"type": "object"}),
    **remote.FIELDS,
}
NOT_IN_TEMPLATE = frozenset({"path", "at", "with", "url", "project"})
PROFILE_FIELDS: Fields = {
    **profile.FIELDS,
    "inference": Field("The models that the profile uses.", ref("Inference")),
    "settings": Field("Settings of the harness, by dotted path.", {"type": "object"}),
    "files": Field("Files of the profile, by relative path.", {"type": "object"}),
    **{table.kind.value: Field(table.doc, {"type": "object"}) for table in TABLES.values()},
    "jobs": Field("Jobs, by your own keys.", {"type": "object"}),
}
# What `reconciler explain` prints.
BY_KIND: Mapping[Kind, Fields] = {
    Kind.HOME: FIELDS,
    Kind.PROFILE: PROFILE_FIELDS,
    Kind.INFERENCE: inference.FIELDS,
    Kind.SETTING: setting.FIELDS,
    Kind.FILE: file.FIELDS,
    **{kind: table.fields for kind, table in TABLES.items()},
    Kind.JOB: job.FIELDS,
    Kind.SECRET: secret.FIELDS,
}


class HomeModel(BaseModel):
    """A home's own keys as written; what is a map of its own is read apart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    harness: Annotated[str, PlainValidator(word(*HARNESSES))]
    path: Filled
    at: Filled = ""
    harness_version: Filled = ""
    timezone: Zone = ""
    first_contact: Annotated[str, PlainValidator(word(*FIRST_CONTACT))] = "ask"
    shared: Flag = False
    restart: Annotated[str, PlainValidator(word(*RESTART))] = "ask"


class RemoteModel(HomeModel):
    """The same where the home is at a URL, which `remote` reads."""

    path: Filled = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where homes are: this machine, a command prefix, or another machine by name."""

    exec: tuple[str, ...] | None = None
    host: str = ""


def read_home(
    node: Node,
    home_id: str,
    where: Where,
    setup_policy: Policy,
    places: Mapping[str, Place | None],
    extends: tuple[str, ...],
    secrets: Mapping[str, tuple[Json, Node]],
    sources: Sources,
    reasons: Reasons,
) -> Home | None:
    """The home, from its merged and resolved block. None with reasons added if its own keys are wrong.

    `secrets` are the sources that the setup says for all of its homes.
    """
    check_keys(node, FIELDS, home_id, reasons)
    harness = node.get("harness")
    far = harness is not None and harness.value == remote.HARNESS
    own = read(RemoteModel if far else HomeModel, node, home_id, where, reasons)
    policy = read_policy(node.get("policy"), f"{home_id} policy", reasons)
    mode = policy.over(setup_policy).over(DEFAULTS).on_drift or Mode.HOLD
    place: Place | None = Place()
    at = node.get("at")
    if own is not None and own.at and at is not None:
        if own.at not in places:
            reasons.add(
                at.where,
                f"{home_id} at: there is no place {shown(own.at)}",
                did_you_mean(own.at, places) if places else "declare it in places",
            )
        place = places.get(own.at)
    door = _door(node.get("door"), home_id, reasons)
    own_secrets = secret.read_sources(node.get("secrets"), f"{home_id} secrets", reasons)
    resources: dict[Address, Resource] = {}
    profiles: list[str] = []
    models: dict[str, Mapping[str, Json]] = {}
    found = remote.read_remote(node, home_id, where, mode, sources, reasons) if far else None
    for key in () if far else remote.FIELDS:
        if node.get(key) is not None:
            reasons.add(
                node.where_key(key), f"{home_id}: {key} goes with harness: {remote.HARNESS} only", "take it out"
            )
    given = node.get("profiles") if not far else None
    if given is not None and is_map(given, f"{home_id} profiles", reasons):
        for name, child in given.items():
            at_key = given.where_key(name)
            if name in profile.RESERVED:
                reasons.add(at_key, f"{home_id}: a profile may not be named like a kind ({name})")
            elif not PROFILE.match(name):
                reasons.add(at_key, f"{home_id}: {shown(name)} is no profile name", "a-z, 0-9, _ and -, up to 64")
            elif is_map(child, f"{home_id}/{name}", reasons):
                profiles.append(name)
                address = Address(home_id, name, Kind.PROFILE)
                around = Around(sources, frozenset(given.value) | {"default"})
                declared = _read_profile(child, address, at_key, mode, around, reasons, resources)
                if declared:
                    models[name] = declared
    if own is None or (far and found is None):
        return None
    path = own.path
    if found is not None:
        path, reach, resources = found
        door = {**door, **reach}
    elif place == Place() and not path.startswith(("/", "~")):
        said = node.value["path"]
        path = os.path.normpath(sources.around(said.file) / path)
    place = place or Place()
    resources = secret.rows(home_id, own.harness, own_secrets, secrets, resources, mode, sources.around)
    return Home(
        id=home_id,
        harness=own.harness,
        path=path,
        place=own.at,
        at=place.exec,
        host=place.host,
        harness_version=own.harness_version,
        timezone=own.timezone,
        first_contact=own.first_contact,
        shared=own.shared,
        restart=own.restart,
        door=door,
        extends=extends,
        policy=policy,
        profiles=tuple(profiles),
        models=models,
        resources=resources,
        where=where,
    )


def _door(node: Node | None, home_id: str, reasons: Reasons) -> dict[str, Any]:
    if node is None or not is_map(node, f"{home_id} door", reasons):
        return {}
    try:
        result: dict[str, Any] = plain(node.plain())
    except Refusal as refusal:
        reasons.add(node.descend(refusal.path).where, f"{home_id} door: {refusal.message}", refusal.hint)
        return {}
    return result


def _read_profile(
    node: Node,
    address: Address,
    where: Where,
    mode: Mode,
    around: Around,
    reasons: Reasons,
    into: dict[Address, Resource],
) -> Mapping[str, Json]:
    """Adds the profile's Resource and those of everything in it, in the order in which they may be made.

    The models that the profile declares, by name.
    """
    what = str(address)
    check_keys(node, (*PROFILE_FIELDS, *THING_KEYS), what, reasons)

    def add(made: Resource | None) -> None:
        if made is not None:
            into[made.address] = made

    def part(key: str) -> Node | None:
        child = node.get(key)
        return child if child is not None and is_map(child, f"{what}/{key}", reasons) else None

    add(profile.read_profile(node, address, where, mode, reasons))
    home, name = address.home, address.profile
    files, settings, jobs = part("files"), part("settings"), part("jobs")
    for key, child in files.items() if files else ():
        at = files.where_key(key) if files else where
        wrong = file.file_path(key)
        if wrong:
            reasons.add(at, f"{what}/files: {shown(key)}: {wrong}")
        else:
            add(file.read_file(child, Address(home, name, Kind.FILE, key), at, mode, reasons, around.sources))
    if settings:
        _read_settings(settings, address, mode, reasons, into)
    models = inference.Models({})
    infer = node.get("inference")
    if infer is not None:
        at = node.where_key("inference")
        made, models = inference.read_inference(infer, Address(home, name, Kind.INFERENCE), at, mode, reasons)
        add(made)
    for table in TABLES.values():
        things = part(table.kind.value)
        for thing in read_things(table, things, address, mode, around, reasons) if things else ():
            add(thing)
    if jobs:
        job_keys = [k for k, _ in jobs.items()]
        file_keys = {k for k, _ in files.items()} if files else set()
        declared: dict[Address, Resource] = {}
        for key, child in jobs.items():
            at = jobs.where_key(key)
            if not NAME.match(key) or key == "self":
                reasons.add(at, f"{what}/jobs: {shown(key)} is no job key", "a-z, 0-9, _, . and -, up to 63")
                continue
            job_address = Address(home, name, Kind.JOB, key)
            made = job.read_job(child, job_address, at, mode, reasons, models, job_keys, file_keys, infer is not None)
            if made is not None:
                declared[job_address] = made
        for ring in job.cycles(declared):
            reasons.add(
                declared[ring[0]].origin("context_from").where,
                f"{ring[0]} context_from: a ring, {' → '.join(a.key for a in (*ring, ring[0]))}",
                "self is for a job's own last answer",
            )
        into.update(declared)
    _lead(address, into)
    return models.by_name


def _lead(profile_address: Address, into: dict[Address, Resource]) -> None:
    """Lets jobs, webhooks and routes come after the declared channels and skills that they name (rule 7)."""
    name = profile_address.profile
    channels = [a for a in into if (a.profile, a.kind) == (name, Kind.CHANNEL)]
    skills = {a.key: a for a in into if (a.profile, a.kind) == (name, Kind.SKILL)}
    if not channels and not skills:
        return
    for address, resource in list(into.items()):
        if address.profile != name or address.kind not in (Kind.JOB, Kind.WEBHOOK, Kind.ROUTE):
            continue
        fields = resource.fields
        said = [fields.get(key) for key in ("deliver", "failure_deliver")]
        named = [(t["to"], "") for t in said if isinstance(t, dict)]
        if "owner_chat" in said:
            named += [(split_key(a.key)[0], "") for a in channels if "owner_chat" in into[a].fields]
        if "match" in fields:
            named.append((fields["match"]["channel"], fields["match"].get("account", "")))
        more = [a for channel, account in named for a in channels if _is_channel(a.key, channel, account)]
        more += [skills[key] for key in fields.get("skills", ()) if key in skills]
        if more:
            into[address] = replace(resource, needs=tuple(dict.fromkeys((*resource.needs, *more))))


def _is_channel(key: str, channel: str, account: str) -> bool:
    own, known = split_key(key)
    return own == channel and (not account or not known or known == account)


def _read_settings(
    node: Node, profile_address: Address, mode: Mode, reasons: Reasons, into: dict[Address, Resource]
) -> None:
    what = f"{profile_address}/settings"
    paths: dict[tuple[str, ...], str] = {}
    for key, child in node.items():
        at = node.where_key(key)
        try:
            path = setting.split_setting(key)
        except Refusal as refusal:
            reasons.add(at, f"{what}: {shown(key)}: {refusal.message}", refusal.hint)
            continue
        if path in paths:
            reasons.add(at, f"{what}: {shown(key)} is the same setting as {shown(paths[path])}", "keep one of them")
            continue
        paths[path] = key
        address = Address(profile_address.home, profile_address.profile, Kind.SETTING, setting.join_setting(path))
        made = setting.read_setting(child, address, at, mode, reasons)
        if made is not None:
            into[address] = made
    for outer, inner in setting.overlaps(paths):
        reasons.add(
            node.where_key(paths[inner]),
            f"{what}: {shown(paths[inner])} lies inside {shown(paths[outer])}, which is declared too",
            "declare one of the two",
        )
