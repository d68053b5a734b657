"""One read of a whole home, by us: no process is started, no lock is taken and no byte of it changes."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.errors import ProviderError
from reconciler.observe import Gateway, Observation, Observed, Store, Things, Unknown, Wanted
from reconciler.place import Place, Stat
from reconciler.provider import Behind, HomeRef
from reconciler_shape import behind as left
from reconciler_shape import reach, secret
from reconciler_shape import trash as trash_of
from reconciler_shape.hiding import Hider
from reconciler_shape.places import ended, folders, lstat, names, tree, visible
from reconciler_shape.skills import store as store_of
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

from . import kits, lease, observed, ops_profiles, reaching, tools
from .disk import LIMIT
from .errors import LoadFailed
from .folder import DEFAULT, KITS, MARK, PROFILE, Folder, Profile
from .jobsfile import JobsFile
from .ops_files import LIMIT as FILE_LIMIT
from .ops_files import refusal as file_refusal

VERSION = "1"
"""The version of the folder's form."""
_PROCESS_KEY = secrets.token_bytes(32)
_STORED = (Kind.JOB, Kind.SETTING, Kind.FILE, Kind.KIT, *tools.KINDS)
"""Kinds of which a new profile has nothing."""
Parts = dict[tuple[str, Kind], Things | Unknown]


class PlaceSource:
    """A home's bytes by way of its place."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def read(self, path: Path) -> bytes | None:
        try:
            return self._place.read(str(path), LIMIT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            found = lstat(self._place, str(path))
            link = isinstance(found, Stat) and found.kind == "link"
            why = "a link; a native home's own files lie in it" if link else error.strerror or str(error)
            raise LoadFailed(str(path), why) from error

    def jobs(self, path: Path) -> JobsFile:
        return JobsFile(self.read(path), str(path))

    def folders(self, path: Path) -> list[str]:
        return folders(self._place, str(path))


def hider(ref: HomeRef) -> Hider:
    """With the home's own key where the engine has one, else with one that lives as long as this process."""
    key = ref.options.get("$key")
    return Hider(bytes.fromhex(str(key)) if key else _PROCESS_KEY)


def owner(ref: HomeRef) -> str:
    """The setup's name, which stands in the markers of our blocks."""
    return str(ref.options.get("$owner") or "setup")


def observe(ref: HomeRef, wanted: Wanted) -> Observation:
    """Raises ProviderError when the path cannot be looked at, or holds something else than a home."""
    place, root = ref.place, ref.path
    found = lstat(place, root)
    if isinstance(found, Unknown):
        raise ProviderError(found.reason)
    facts: dict[str, Json] = {"profiles": {}}
    if found is None:
        return Observation(exists=False, version=VERSION, facts=facts)
    if found.kind != "dir":
        raise ProviderError(f"{root} is a {found.kind}, not a native home")
    there = names(place, root)
    if not there:
        return Observation(exists=False, version=VERSION, facts=facts)
    if MARK not in there:
        raise ProviderError(f"{root} is not a native home: it holds {', '.join(there[:3])}, but no {MARK}")
    reading = _Reading(ref, wanted)
    reading.all()
    uid = place.uid()
    if found.uid != uid:
        reading.blocked = f"{root} belongs to uid {found.uid}, and we are uid {uid}"
    return reading.result()


class _Reading:
    """Collects the observation, profile by profile."""

    def __init__(self, ref: HomeRef, wanted: Wanted) -> None:
        self.ref, self.wanted, self.place = ref, wanted, ref.place
        self.folder = Folder(Path(ref.path), PlaceSource(ref.place))
        self.things: Parts = {}
        self.stores: dict[tuple[str, Kind], Store] = {}
        self.ended: dict[tuple[str, Kind], Mapping[str, str]] = {}
        self.notes: list[str] = []
        self.blocked = ""
        self.clear: set[str] = set()
        self.gateways: dict[str, Gateway] = {}
        self.facts: dict[str, Json] = {"profiles": {}}

    def all(self) -> None:
        try:
            self.folder.check()
        except LoadFailed as error:
            self.blocked = str(error)
        known = []
        for profile in self.folder.profiles.values():
            try:
                known += profile.env.secrets()
            except LoadFailed as error:
                self.notes.append(str(error))
        # A secret of one profile may stand in another's prompt.
        hidden = Hider(hider(self.ref).key, known)
        self.things["", Kind.PROFILE] = {
            name: observed.profile(profile, hidden, self._holds(profile))
            for name, profile in self.folder.profiles.items()
        }
        for profile in self.folder.profiles.values():
            self._profile(profile, hidden)
        for name in sorted({a.profile for a in self.wanted.addresses if a.profile} - set(self.folder.profiles)):
            self._absent(name, hidden)
        self._lease()

    def _profile(self, profile: Profile, hidden: Hider) -> None:
        name, wanted = profile.name, self.wanted
        try:
            jobs = profile.jobs
            self.things[name, Kind.JOB] = observed.jobs(profile, hidden, self.notes)
            self.stores[name, Kind.JOB] = Store(jobs.state)
            alive = set(jobs.ids())
        except LoadFailed as error:
            self.things[name, Kind.JOB] = Unknown(str(error))
            self.stores[name, Kind.JOB] = Store.IMPROPER
            alive = set()
        self.ended[name, Kind.JOB] = ended(self.place, str(profile.folder), alive)
        for kind, read in self._config_kinds(profile, hidden).items():
            try:
                self.things[name, kind] = read()
                data = profile.config.original
                self.stores[name, kind] = (
                    Store.MISSING if data is None else Store.PROPER if profile.config.raw else Store.EMPTY
                )
            except LoadFailed as error:
                self.things[name, kind] = Unknown(str(error))
                self.stores[name, kind] = Store.IMPROPER
        self._reaching(profile, hidden)
        for kind, things in tools.read(self.place, profile, wanted, hidden).items():
            self.things[name, kind] = things
            self.stores[name, kind] = store_of(kind, self.stores[name, Kind.SETTING])
        self.things[name, Kind.FILE] = self._files(profile, hidden, wanted.keys(name, Kind.FILE))
        store = secret.place(name)
        try:
            values = profile.env.values()
            self.things[store, Kind.SECRET] = secret.things(name, wanted.keys(store, Kind.SECRET), values, hidden)
        except LoadFailed as error:
            self.things[store, Kind.SECRET] = Unknown(str(error))
        keys = wanted.keys(name, Kind.KIT)
        self.things[name, Kind.KIT] = kits.observed(profile, self.place, keys, wanted.everything, hidden)
        self.facts["profiles"][name] = self._facts(profile, hidden)

    def _config_kinds(self, profile: Profile, hidden: Hider) -> Mapping[Kind, Callable[[], Things]]:
        wanted, everything = self.wanted.keys(profile.name, Kind.SETTING), self.wanted.everything
        return {
            Kind.SETTING: lambda: observed.settings(profile, hidden, wanted, everything),
            Kind.INFERENCE: lambda: {"": observed.inference(profile, hidden)},
        }

    def _reaching(self, profile: Profile, hidden: Hider) -> None:
        """Who and what reaches the profile. A store that does not load is not an empty one."""
        for kind, read, state in (
            (Kind.CHANNEL, reaching.channels, self.stores[profile.name, Kind.SETTING]),
            (Kind.ROUTE, reaching.routes, self.stores[profile.name, Kind.SETTING]),
            (Kind.WEBHOOK, reaching.webhooks, Store.PROPER),
        ):
            key, wanted = (profile.name, kind), self.wanted.keys(profile.name, kind)
            self.stores[key] = state
            try:
                self.things[key] = read(profile, hidden, wanted, self.wanted.everything)
                if kind is Kind.WEBHOOK and profile.webhooks.original is None:
                    self.stores[key] = Store.MISSING
            except LoadFailed as error:
                self.things[key], self.stores[key] = Unknown(str(error)), Store.IMPROPER

    def _files(self, profile: Profile, hidden: Hider, wanted: Sequence[str]) -> Things:
        paths = {path for path in wanted if not file_refusal(path)}
        if self.wanted.everything:
            paths |= {"SOUL.md", "AGENTS.md", *tree(self.place, str(profile.folder), "scripts")}
        found = {}
        for path in sorted(paths):
            whole = str(profile.folder / path)
            stat = lstat(self.place, whole)
            data: bytes | Unknown | None = None
            if isinstance(stat, Unknown):
                data = stat
            elif stat is not None:
                data = self._file(whole, stat)
            if data is not None:
                mode = stat.mode if isinstance(stat, Stat) else 0
                found[path] = observed.file(profile.name, path, data, mode, hidden, owner(self.ref))
        return found

    def _file(self, whole: str, stat: Stat) -> bytes | Unknown | None:
        folder = posixpath.dirname(whole)
        if stat.kind == "link" or self.place.resolve(folder) != folder:
            return Unknown(f"{whole}: reached through a link; links are not followed here")
        try:
            return self.place.read(whole, FILE_LIMIT)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Unknown(f"{whole}: {error.strerror or error}")

    def _facts(self, profile: Profile, hidden: Hider) -> dict[str, Json]:
        skills: list[str] = []
        if self.wanted.keys(profile.name, Kind.JOB):
            for below in ("skills", ".agents/skills"):
                found = tree(self.place, str(profile.folder), below)
                skills += [posixpath.dirname(p).removeprefix(f"{below}/") for p in found if p.endswith("/SKILL.md")]
        facts: dict[str, Json] = {
            "zone": "",
            "meant": self.ref.timezone,
            "env": [],
            "env_known": False,
            "scripts": tree(self.place, str(profile.folder), "scripts"),
            "skills": skills,
            "config": {},
            "channels": [],
        }
        try:
            raw: Any = hidden.value(dict(profile.config.raw))
            platforms = raw.get("platforms")
            facts |= {"zone": profile.zone, "config": raw}
            self.clear |= set(secret.in_clear(f"{profile.name}/config.yaml", raw))
            facts["channels"] = sorted(platforms) if isinstance(platforms, dict) else []
            facts |= {"env": sorted(profile.env.names()), "env_known": True}
            facts["same"] = reach.same_values(profile.env.values())
        except LoadFailed:
            return facts  # what cannot be read is Unknown above, with its reason
        return facts

    def _absent(self, name: str, hidden: Hider) -> None:
        """A profile that is only declared: nothing is there."""
        for kind in (*_STORED, Kind.SECRET, *reach.KINDS):
            self.things[name, kind] = {}
            self.stores[name, kind] = Store.MISSING
        self.things[name, Kind.INFERENCE] = {"": observed.no_inference(name, hidden)}
        self.facts["profiles"][name] = blank_facts(self.ref.timezone, known=False)

    def _holds(self, profile: Profile) -> list[str]:
        """What a profile's folder has beyond a new one's: relative paths, and `.env` if it says anything."""
        if profile.name == DEFAULT:
            return []
        found: list[str] = []
        for name in names(self.place, str(profile.folder)):
            if name in ("config.yaml", "profile.yaml", "cron", "logs"):
                continue
            stat = lstat(self.place, str(profile.folder / name))
            if name == KITS and isinstance(stat, Stat) and stat.kind == "dir":
                inside = tree(self.place, str(profile.folder), name, 50)
                found += [f"{Kind.KIT}/{path.removeprefix(f'{name}/').removesuffix('.yaml')}" for path in inside]
            elif isinstance(stat, Stat) and stat.kind == "dir":
                found += tree(self.place, str(profile.folder), name, 50)
            elif name != ".env" or not isinstance(stat, Stat) or stat.size:
                found.append(name)
        return found

    def _lease(self) -> None:
        if not self.place.local:
            return
        root = Path(self.ref.path)
        if (root / lease.GUARD).exists():
            self.notes.append(lease.guard_words(root / lease.GUARD))
        found = lease.inspect(root)
        if found.state is lease.State.UNREADABLE:
            self.notes.append(f"{found.words}: nothing can be written until that is looked at")
        elif found.state is lease.State.LIVE:
            self.notes.append(f"{found.words}; it is written through its socket")
            self.gateways[DEFAULT] = lease.gateway(found, root)
            for facts in self.facts["profiles"].values():
                facts["gateway"] = DEFAULT

    def result(self) -> Observation:
        return Observation(
            version=VERSION,
            things=self.things,
            stores=self.stores,
            ended=self.ended,
            blocked=self.blocked,
            notes=tuple(self.notes),
            facts=self.facts,
            clear=frozenset(self.clear),
            gateways=self.gateways,
        )


def blank_facts(zone: str, *, known: bool) -> dict[str, Json]:
    """What is known of a profile that is not there yet."""
    return {
        "zone": "",
        "meant": zone,
        "env": [],
        "env_known": known,
        "scripts": [],
        "skills": [],
        "config": {},
        "channels": [],
    }


def blank(ref: HomeRef, declared: Collection[str] = ()) -> Observation:
    """A home as `init` makes it, in which the other `declared` profiles are still to be made."""
    hidden = hider(ref)
    default = Observed(Kind.PROFILE, "", DEFAULT, name=DEFAULT, fingerprint=ops_profiles.fingerprint(None, hidden.key))
    things: Parts = {("", Kind.PROFILE): {DEFAULT: default}}
    facts = {}
    for name in sorted({DEFAULT, *declared}):
        things |= {(name, kind): {} for kind in (*_STORED, *reach.KINDS)}
        things[secret.place(name), Kind.SECRET] = {}
        things[name, Kind.INFERENCE] = {"": observed.no_inference(name, hidden)}
        facts[name] = blank_facts(ref.timezone, known=name == DEFAULT)
    return Observation(version=VERSION, things=things, facts={"profiles": facts})


def prepared(observation: Observation, declared: Mapping[str, Json], addresses: Iterable[Address]) -> Observation:
    """With what else the setup declares, for the functions that see one resource at a time."""
    facts = secret.with_coming(observation.facts, addresses)
    return replace(observation, facts={**facts, "declared": dict(declared)})


def trash(ref: HomeRef) -> list[str]:
    """What lies in the home's trash, a line each."""
    if not ref.place.local:
        return []
    copies = visible(ref.place, posixpath.join(ref.path, trash_of.NAME))
    return [
        *(f"trash: a copy from before a delete, {name} (kept for 14 days)" for name in copies),
        *(
            f"trash: the profile folder {name} (`reconciler native profiles.restore` brings it back)"
            for name in ops_profiles.in_trash(Path(ref.path), "")
        ),
    ]


def behind(ref: HomeRef) -> list[Behind]:
    """What a copy leaves in the home."""
    below = {"": ref.path}
    for name in visible(ref.place, posixpath.join(ref.path, "profiles")):
        if PROFILE.fullmatch(name):
            below[f"profiles/{name}"] = posixpath.join(ref.path, "profiles", name)
    own = {MARK, lease.GUARD, lease.SOCKET, lease.LOCK, "AGENTS.md", KITS}
    return list(left.behind(ref.place, below, own))
