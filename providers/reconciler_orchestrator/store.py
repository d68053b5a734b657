"""One profile's jobs: what `cron/jobs.json` says, and what a running daemon says, whose word wins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.observe import Observed, Store, Things, Unknown
from reconciler_shape import jobs as shape
from reconciler_shape import record as records
from reconciler_shape.hiding import Hider
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import words

UNTOLD = ("context_from", "failure_deliver", "metadata", "model", "paused", "repeat", "skills", "workdir")
"""What `cronjob_list` does not tell of a job that the folder does not have."""


class Unreadable(Exception):
    """The store is not in proper form; in words, with the file."""


@dataclass(frozen=True, slots=True)
class JobsFile:
    """A job store as the folder has it: id → record, in the file's order. `twice` are ids of several records."""

    state: Store
    records: Mapping[str, records.Record] = field(default_factory=dict)
    twice: frozenset[str] = frozenset()
    nameless: int = 0


def parse(data: bytes | None, path: str) -> JobsFile:
    """Raises Unreadable."""
    if data is None:
        return JobsFile(Store.MISSING)
    if data.strip() in (b"", b"{}"):
        return JobsFile(Store.EMPTY)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path}: {error}") from error
    jobs = found.get("jobs") if isinstance(found, dict) else None
    if not isinstance(jobs, list) or any(not isinstance(job, dict) for job in jobs):
        raise Unreadable(f"{path}: there is no list of job records in it")
    by_id: dict[str, records.Record] = {}
    twice: set[str] = set()
    nameless = 0
    for job in jobs:
        name = job.get("id")
        if not isinstance(name, str) or not name:
            nameless += 1
        elif name in by_id:
            twice.add(name)
        else:
            by_id[name] = job
    return JobsFile(Store.PROPER, by_id, frozenset(twice), nameless)


def observed(
    profile: str, file: JobsFile, listing: Mapping[str, Mapping[str, Any]] | None, hider: Hider, notes: list[str]
) -> Things:
    """The profile's jobs by id. `listing` is the daemon's own list by id, None where none serves the home.

    A daemon holds the home in memory and writes all of it at its next save: what the folder says beside it is lost.
    """
    things: dict[str, Observed] = {}
    for name, item in file.records.items():
        told, shown = None if listing is None else listing.get(name), hider.text(name)
        if listing is not None and told is None:
            notes.append(
                f"{profile}: job {shown} is in the folder, and the running daemon has none; the daemon's counts"
            )
            continue
        things[name] = _one(profile, item, told, hider, notes)
        if name in file.twice:
            why = Unknown(f"{profile}: two jobs have the id {shown}")
            thing = things[name]
            things[name] = Observed(
                Kind.JOB, profile, name, dict.fromkeys(thing.fields, why), thing.name, fingerprint=thing.fingerprint
            )
            notes.append(why.reason)
    for name, told in (listing or {}).items():
        if name not in things:
            shown = hider.text(name)
            notes.append(f"{profile}: job {shown} is in the running daemon, and not in the folder; the daemon's counts")
            things[name] = _told_only(profile, name, told, hider)
    if file.nameless:
        notes.append(f"{profile}: {file.nameless} job record(s) without an id are left alone")
    return things


def _one(
    profile: str, item: records.Record, told: Mapping[str, Any] | None, hider: Hider, notes: list[str]
) -> Observed:
    plain = words.observed(item)
    differs: dict[str, Json] = {}
    if told is not None:
        differs = {key: value for key, value in words.listed(told).items() if plain[key] != value}
        if told.get("enabled") is not (item.get("enabled", True) is not False):
            differs["paused"] = not told.get("enabled")
        if differs:
            what = ", ".join(sorted(differs))
            shown = hider.text(str(item["id"]))
            notes.append(f"{profile}: job {shown}: the running daemon has another {what}; the daemon's counts")
    fields = {key: hider.value(value) for key, value in {**plain, **differs}.items() if value is not None}
    defaults = (shape.defaults(fields) | {"id"}) - {"deliver"}
    if not item.get("name"):
        defaults.add("name")
    fingerprint = records.fingerprint(item, hider.key)
    return Observed(
        Kind.JOB,
        profile,
        str(item["id"]),
        fields,
        name=str(hider.text(str(plain["name"]))),
        defaults=frozenset(defaults),
        marker=words.marker(str(item["id"]), item),
        fingerprint=digest([fingerprint, differs], hider.key) if differs else fingerprint,
        about=shape.about(item, hider),
    )


def _told_only(profile: str, name: str, told: Mapping[str, Any], hider: Hider) -> Observed:
    why = Unknown(f"{profile}: job {hider.text(name)} is in the running daemon only, and it does not tell this of it")
    known = {key: hider.value(value) for key, value in words.listed(told).items() if value is not None}
    return Observed(
        Kind.JOB,
        profile,
        name,
        {**dict.fromkeys(UNTOLD, why), **known, "id": hider.value(name), "paused": not told.get("enabled")},
        name=str(hider.text(str(known.get("name", name)))),
        defaults=frozenset({"id"}),
        marker=words.marker(name, {}),
        fingerprint=digest({key: told.get(key) for key in ("name", "prompt", "schedule", "deliver")}, hider.key),
    )
