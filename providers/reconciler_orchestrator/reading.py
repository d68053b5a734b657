"""One read of a whole home: its folder, by us, and a running daemon's own answer where one serves it.

No process is started and no byte of the home changes.
"""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.errors import DoorLost, ProviderError
from reconciler.observe import Observation, Observed, Store, Things, Unknown, Wanted
from reconciler.place import Place
from reconciler.provider import Behind, HomeRef
from reconciler_shape import behind as left
from reconciler_shape import configfile, dotenv, lease, marks, places, worker
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import access, cold, store, wire
from .ways import Way, find

DEFAULT = "default"
_LIMIT = 64 << 20  # bytes of a job store
_ENV_LIMIT = 1 << 20
_PROCESS_KEY = secrets.token_bytes(32)
_SIGNS = ("config.yaml", "cron", "profiles", "AGENTS.md", "orchestrator.lock")
_SURE = ("orchestrator.lock", "orchestrator.sock", "orchestrator.acquire", ".agents")
"""Only an orchestrator's home has one of these; everything else a Hermes home has too."""
_OWN = frozenset({"config.yaml", "cron", "logs", "state.db", "state.db-wal", "state.db-shm"})
"""What a profile's folder has from the orchestrator itself, and without which nothing of a person's would be lost."""
_ELSEWHERE = (Kind.INFERENCE, Kind.SETTING, Kind.FILE)
Listing = Mapping[str, Mapping[str, Any]]


def mode(ref: HomeRef) -> str:
    """The setup's `door.mode`."""
    return str(ref.options.get("mode") or "auto")


def folder(root: str, profile: str) -> str:
    """Where a profile lies; the root folder is the default one."""
    return root if profile == DEFAULT else posixpath.join(root, "profiles", profile)


def observe(ref: HomeRef, wanted: Wanted) -> Observation:
    """Raises ProviderError when the path cannot be looked at, or holds something else than a home."""
    place, root = ref.place, ref.path
    found = places.lstat(place, root)
    if isinstance(found, Unknown):
        raise ProviderError(found.reason)
    if found is None:
        return Observation(exists=False, version=cold.version(ref))
    if found.kind != "dir":
        raise ProviderError(f"{root} is a {found.kind}, not a home of the orchestrator")
    there = places.names(place, root)
    if not there:
        return Observation(exists=False, version=cold.version(ref))
    if marks.NATIVE in there:
        raise ProviderError(f"{root} is a native home: say `harness: native`")
    if not any(sign in there for sign in _SIGNS):
        raise ProviderError(f"{root} is not a home of the orchestrator: it holds {', '.join(there[:3])}")
    reading = _Reading(ref, wanted)
    uid = place.uid()
    if found.uid != uid:
        reading.blocked = f"{root} belongs to uid {found.uid}, and we are uid {uid}"
    return replace(reading.result(), sure=any(sign in there for sign in _SURE))


def blank(ref: HomeRef, declared: Collection[str] = ()) -> Observation:
    """A home is made by the orchestrator itself: nothing can be provisioned."""
    why = "a home of the orchestrator is made by the orchestrator itself; make it there, then adopt it"
    things: dict[tuple[str, Kind], Things | Unknown] = {}
    for name in {DEFAULT, *declared}:
        things |= _unreached(name)
    return Observation(version=cold.version(ref), things=things, blocked=why)


def _unreached(profile: str) -> dict[tuple[str, Kind], Things]:
    """Kinds that no verb reaches: seen as empty, so that what is declared of them is refused by name."""
    return {(profile, kind): {} for kind in (*_ELSEWHERE, Kind.CHANNEL, Kind.JOB)}


def profiles(place: Place, root: str) -> list[str]:
    """The profiles that the folder holds; one with a dot before its name is none."""
    found = [DEFAULT]
    below = posixpath.join(root, "profiles")
    found += [name for name in places.folders(place, below) if not name.startswith(".") and name != DEFAULT]
    return found


def hider(ref: HomeRef, names: list[str]) -> Hider:
    """Hides by the home's own key where the engine has one, and whatever a profile's `.env` keeps.

    Raises ProviderError for one that cannot be read: what it keeps could not be hidden.
    """
    key = ref.options.get("$key")
    known: list[str] = []
    for name in names:
        text = _env(ref.place, posixpath.join(folder(ref.path, name), ".env")).decode("utf-8", "replace")
        entries = map(dotenv.entry, text.splitlines())
        known += [entry[1] for entry in entries if entry and dotenv.is_secret(*entry)]
    return Hider(bytes.fromhex(str(key)) if key else _PROCESS_KEY, known)


def _env(place: Place, path: str) -> bytes:
    """A `.env`, followed through a link, as the orchestrator follows it; b"" if there is none."""
    found = places.lstat(place, path)
    if isinstance(found, Unknown):
        raise ProviderError(found.reason)
    linked = found is not None and found.kind == "link"
    real = found.target if found is not None and linked else path
    try:
        return _read(place, real, _ENV_LIMIT) or b""
    except OSError as error:
        what = f"{path}, a link to {real}" if linked else path
        why = f"{what}: {error.strerror or error}"
        raise ProviderError(f"{why}; what it keeps could not be hidden, so the home is not read") from error


def jobs_file(ref: HomeRef, profile: str) -> store.JobsFile:
    """Raises store.Unreadable."""
    path = posixpath.join(folder(ref.path, profile), "cron", "jobs.json")
    try:
        return store.parse(_read(ref.place, path, _LIMIT), path)
    except OSError as error:
        raise store.Unreadable(f"{path}: {error.strerror or error}") from error


def _read(place: Place, path: str, limit: int) -> bytes | None:
    try:
        return place.read(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return None


def listing(ref: HomeRef, profile: str, hidden: Hider) -> Listing | Unknown:
    """The running daemon's own list of a profile's jobs. Raises ProviderError if it does not answer."""
    answer = wire.call(Path(ref.path), {"verb": "cronjob_list", "args": {}, "profile": profile})
    if not answer["ok"]:
        return Unknown(f"{profile}: the running daemon does not list its jobs: {hidden.text(str(answer.get('error')))}")
    result = answer.get("result")
    jobs = result.get("jobs") if isinstance(result, dict) else None
    if not isinstance(jobs, list) or any(not isinstance(job, dict) for job in jobs):
        return Unknown(f"{profile}: the running daemon's list of jobs has another form")
    return {str(job.get("job_id")): job for job in jobs}


def jobs(ref: HomeRef, profile: str, live: bool, hidden: Hider, notes: list[str]) -> tuple[Things | Unknown, Store]:
    """A profile's jobs as they stand, and the state of their file. Raises ProviderError if the daemon is lost."""
    try:
        file = jobs_file(ref, profile)
    except store.Unreadable as error:
        return Unknown(str(error)), Store.IMPROPER
    told = listing(ref, profile, hidden) if live else None
    if isinstance(told, Unknown):
        return told, file.state
    return store.observed(profile, file, told, hidden, notes), file.state


class _Reading:
    """Collects the observation, profile by profile."""

    def __init__(self, ref: HomeRef, wanted: Wanted) -> None:
        self.ref, self.place = ref, ref.place
        self.blocked = ""
        self.notes: list[str] = []
        self.names = profiles(ref.place, ref.path)
        self.asked = wanted
        self.wanted = sorted({a.profile for a in wanted.addresses if a.profile} - set(self.names))
        # Who serves a home elsewhere cannot be told from here, and nothing is written there.
        self.way = find(Path(ref.path), mode(ref)) if ref.place.local else Way()
        self.hidden = hider(ref, self.names)

    def result(self) -> Observation:
        things: dict[tuple[str, Kind], Things | Unknown] = {}
        stores: dict[tuple[str, Kind], Store] = {}
        things["", Kind.PROFILE] = {
            name: Observed(
                Kind.PROFILE, "", name, self._worker(name), name=name, fingerprint=name, about=self._holds(name)
            )
            for name in self.names
        }
        for name in self.names:
            things |= _unreached(name)
            things[name, Kind.JOB], stores[name, Kind.JOB] = self._jobs(name)
            things[name, Kind.CHANNEL] = self._access(name)
        for name in self.wanted:
            things |= _unreached(name)
            stores[name, Kind.JOB] = Store.MISSING
        notes = [self.way.note] if self.way.note else []
        return Observation(
            version=cold.version(self.ref),
            things=things,
            stores=stores,
            blocked=self.blocked or self.way.held,
            notes=(*notes, *self.notes),
            facts={
                "zone": self.ref.timezone,
                "skills": {name: self._skills(name) for name in self.names},
                "cold": self.place.local and not self.way.live,
            },
        )

    def _worker(self, name: str) -> dict[str, Json | Unknown]:
        path = posixpath.join(folder(self.ref.path, name), "config.yaml")
        try:
            data = self.place.read(self.place.resolve(path), configfile.LIMIT)
            block = worker.observed(configfile.parse(data, path), self.hidden)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            return {worker.FIELD: Unknown(f"{path}: {error.strerror or error}")}
        except configfile.NotReadable as error:
            return {worker.FIELD: Unknown(str(error))}
        return {} if block is None else {worker.FIELD: block}

    def _jobs(self, name: str) -> tuple[Things | Unknown, Store]:
        if self.way.silent:
            return Unknown(self.way.held), Store.PROPER
        try:
            return jobs(self.ref, name, self.way.live, self.hidden, self.notes)
        except (DoorLost, wire.NotHeard) as error:
            # It went away, or it hangs: what it holds is not known, and nothing may be written beside it.
            self.blocked = self.blocked or str(error)
            return Unknown(str(error)), Store.PROPER

    def _access(self, name: str) -> Things | Unknown:
        keys, here = self.asked.keys(name, Kind.CHANNEL), folder(self.ref.path, name)
        if not keys and not self.asked.everything:
            return {}
        return access.read(self.place, here, name, self.hidden, keys, self.asked.everything)

    def _holds(self, name: str) -> dict[str, Json]:
        """What keeps a profile from being deleted: files beyond those of a new one."""
        if name == DEFAULT:
            return {}
        here = folder(self.ref.path, name)
        found = []
        for entry in places.names(self.place, here):
            stat = places.lstat(self.place, posixpath.join(here, entry))
            empty = entry == ".env" and getattr(stat, "size", 1) == 0
            if entry not in _OWN and not empty:
                found.append(entry)
        return {"holds": found} if found else {}

    def _skills(self, name: str) -> list[str]:
        return places.visible(self.place, posixpath.join(folder(self.ref.path, name), ".agents", "skills"))


def trash(ref: HomeRef) -> list[str]:
    """What lies in the home's trash, a line each."""
    below = posixpath.join(ref.path, "profiles", ".trash")
    return [f"trash: the profile folder profiles/.trash/{name}" for name in places.visible(ref.place, below)]


def behind(ref: HomeRef) -> list[Behind]:
    """What a copy leaves in the home."""
    folders = {folder("", name): folder(ref.path, name) for name in profiles(ref.place, ref.path)}
    return list(left.behind(ref.place, folders, {lease.SOCKET}))
