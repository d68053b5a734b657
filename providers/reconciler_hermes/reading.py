"""One read of a whole home, by us: no process is started and no byte of it changes."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from reconciler.errors import ProviderError
from reconciler.observe import Gateway, Observation, Observed, Store, Things, Unknown, Wanted
from reconciler.place import Place, Stat
from reconciler.provider import HomeRef
from reconciler_shape import configfile, dotted, marks, places, reach, secret
from reconciler_shape.hiding import Hider
from reconciler_shape.skills import store as store_of
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

from . import boards, dotenv, files, gateways, home, inference, interpreter, jobs, profiles, reaching, settings, tools

_PROCESS_KEY = secrets.token_bytes(32)
_STORED = (Kind.JOB, Kind.SETTING, Kind.FILE, Kind.KIT, *tools.KINDS)
"""Kinds of which a new profile has nothing."""
_MANAGED = "/etc/hermes/config.yaml"

Parts = dict[tuple[str, Kind], Things | Unknown]


def hider(ref: HomeRef) -> Hider:
    """With the home's own key where the engine has one, else with one that lives as long as this process."""
    key = ref.options.get("$key")
    return Hider(bytes.fromhex(str(key)) if key else _PROCESS_KEY)


def owner(ref: HomeRef) -> str:
    """The setup's name, which stands in the markers of our blocks."""
    return "\n".join([str(ref.options.get("$owner") or "setup"), *ref.options.get("$formerly", ())])


def observe(ref: HomeRef, wanted: Wanted) -> Observation:
    """Raises ProviderError when the path cannot be looked at, or holds something else than a Hermes home."""
    place, root = ref.place, ref.path
    found = places.lstat(place, root)
    if isinstance(found, Unknown):
        raise ProviderError(found.reason)
    hermes = interpreter.find(place, ref.options)
    if found is None:
        return Observation(exists=False, version=hermes.version, facts=_home_facts(place, hermes))
    there = _check_kind(place, root, found)
    reading = _Reading(ref, wanted, hermes)
    reading.all()
    return replace(reading.result(_blocked(place, root, found)), sure=marks.NATIVE not in there)


def _check_kind(place: Place, root: str, found: Stat) -> list[str]:
    """The names in the home's folder. Raises ProviderError for what is no home of Hermes."""
    if found.kind != "dir":
        raise ProviderError(f"{root} is a {found.kind}, not a Hermes home")
    try:
        names = place.list(root)
    except OSError as error:
        raise ProviderError(f"{root}: {error.strerror or error}") from error
    if names and not set(names) & set(home.MARKS) and ".env" not in names:
        raise ProviderError(f"{root} is not a Hermes home: it holds {', '.join(names[:3])}, but no {home.MARKS[0]}")
    return names


def _blocked(place: Place, root: str, found: Stat) -> str:
    if places.lstat(place, posixpath.join(root, ".managed")):
        return "managed by NixOS (there is a .managed in the home): Hermes refuses writes to it"
    uid = place.uid()
    if found.uid != uid:
        return f"{root} belongs to uid {found.uid}, and we are uid {uid}"
    return ""


def _home_facts(place: Place, hermes: interpreter.Interpreter) -> dict[str, Json]:
    return {"profiles": {}, "user_home": place.resolve("~"), "python": hermes.python, "pinned": []}


class _Reading:
    """Collects the observation, profile by profile."""

    def __init__(self, ref: HomeRef, wanted: Wanted, hermes: interpreter.Interpreter) -> None:
        self.ref, self.wanted, self.hermes = ref, wanted, hermes
        self.place, self.root = ref.place, ref.path
        self.things: Parts = {}
        self.stores: dict[tuple[str, Kind], Store] = {}
        self.ended: dict[tuple[str, Kind], Mapping[str, str]] = {}
        self.notes: list[str] = []
        self.clear: set[str] = set()
        self.soul: str | None = None
        self.no_env: dict[str, Unknown] = {}
        self.facts = _home_facts(self.place, hermes)
        self.gateways: dict[str, Gateway] = {}
        self.shared: Mapping[str, Json] = {}  # the default profile's config, whose gateway may serve the others

    def all(self) -> None:
        if self.hermes.why:
            self.notes.append(self.hermes.why)
        names = profiles.names(self.place, self.root)
        envs = {name: self._env(name) for name in names}
        # A secret of one profile may stand in another's prompt.
        hidden = hider(self.ref).with_secrets(secret for env in envs.values() for secret in env.secrets)
        self.facts["pinned"] = self._pinned()
        self.gateways = gateways.running(self.ref, {n: home.profile_dir(self.root, n) for n in names})
        self.shared = home.config(self.place, self.root).raw if self.gateways else {}
        souls = [a for a in self.wanted.addresses if a.kind is Kind.FILE and a.key == "SOUL.md"]
        if len(names) > 1 or self.wanted.everything or souls:
            self.soul = profiles.first_soul(self.place, self.hermes.site)
        soul = self.soul
        found = {}
        for name in names:
            folder = home.profile_dir(self.root, name)
            filled = len(envs[name].filled)
            held = profiles.holds(self.place, folder, filled, soul) if name != home.DEFAULT else []
            found[name] = profiles.observed(self.place, self.root, name, hidden, held)
        self.things["", Kind.PROFILE] = found
        for name in names:
            self._profile(self._read_profile(name, envs[name], hidden))
        for name in sorted({a.profile for a in self.wanted.addresses if a.profile} - set(names)):
            self._absent(name, hidden)
        kits = self.wanted.keys(home.DEFAULT, Kind.KIT)
        self.things[home.DEFAULT, Kind.KIT] = boards.read(self.place, self.root, kits, self.wanted.everything, hidden)
        self._sticky(names)

    def _env(self, name: str) -> dotenv.DotEnv:
        env = home.env(self.place, home.profile_dir(self.root, name))
        if isinstance(env, Unknown):
            self.notes.append(env.reason)
            self.no_env[name] = env
            return dotenv.DotEnv()
        return env

    def _read_profile(self, name: str, env: dotenv.DotEnv, hidden: Hider) -> home.Profile:
        folder = home.profile_dir(self.root, name)
        config = home.config(self.place, folder)
        if config.note:
            self.notes.append(config.note)
        zone = config.raw.get("timezone")
        zone = zone.strip() if isinstance(zone, str) else ""
        if not zone and self.ref.timezone and name == home.DEFAULT:
            self.notes.append(
                f"the home has no `timezone` setting: Hermes goes by the clock of its machine, not by "
                f"{self.ref.timezone}"
            )
        if isinstance(places.lstat(self.place, posixpath.join(folder, "distribution.yaml")), Stat):
            self.notes.append(
                f"profile {name} comes from a distribution: `hermes profile update` overwrites its jobs, skills and "
                "SOUL.md"
            )
        return home.Profile(name, folder, config, env, zone or self.ref.timezone, hidden)

    def _profile(self, profile: home.Profile) -> None:
        name, wanted, everything = profile.name, self.wanted, self.wanted.everything
        store = self._jobs(profile)
        self.things[name, Kind.JOB] = store.things
        self.stores[name, Kind.JOB] = store.store
        self.ended[name, Kind.JOB] = store.ended
        self.notes += store.notes
        self.things[name, Kind.SETTING] = settings.read(profile, wanted.keys(name, Kind.SETTING), everything)
        self.stores[name, Kind.SETTING] = profile.config.store
        self.things[name, Kind.INFERENCE] = {"": inference.observed(profile)}
        self.stores[name, Kind.INFERENCE] = profile.config.store
        self.things[name, Kind.FILE] = files.read(
            self.place, profile, wanted.keys(name, Kind.FILE), everything, owner(self.ref), self.soul
        )
        for kind, found in tools.read(self.place, profile, wanted).items():
            self.things[name, kind] = found
            self.stores[name, kind] = store_of(kind, profile.config.store)
        for kind, part in reaching.read(self.place, profile, self.no_env.get(name), wanted).items():
            self.things[name, kind], self.stores[name, kind] = part
        at = secret.place(name)
        self.things[at, Kind.SECRET] = self.no_env.get(name) or secret.things(
            name, wanted.keys(at, Kind.SECRET), profile.env.values, profile.hider
        )
        facts = self._facts(profile)
        self.facts["profiles"][name] = facts
        self.clear |= set(secret.in_clear(posixpath.join(name, "config.yaml"), facts["config"]))

    def _jobs(self, profile: home.Profile) -> jobs.JobStore:
        """The profile's jobs, unless their folder is a link that leads out of the profile: who follows it writes
        somebody else's files (L17)."""
        folder = posixpath.join(profile.folder, "cron")
        found = places.lstat(self.place, folder)
        if isinstance(found, Stat) and found.kind == "link" and not found.target.startswith(f"{profile.folder}/"):
            why = Unknown(f"{folder}: a link to {found.target}; links out of the home are not followed")
            return jobs.JobStore(why, Store.IMPROPER)
        return jobs.read(self.place, profile, self.hermes.version, inference.current(profile))

    def _absent(self, name: str, hidden: Hider) -> None:
        """A profile that is only declared: nothing is there, and inference will be as Hermes makes it."""
        folder = home.profile_dir(self.root, name)
        blank = home.Profile(name, folder, home.Config(folder), dotenv.DotEnv(), self.ref.timezone, hidden)
        for kind in (*_STORED, Kind.SECRET):
            self.things[name, kind] = {}
            self.stores[name, kind] = Store.MISSING
        for kind, part in reaching.absent().items():
            self.things[name, kind], self.stores[name, kind] = part
        self.things[name, Kind.INFERENCE] = {"": inference.observed(blank)}
        self.facts["profiles"][name] = {**self._facts(blank), "env_known": False}

    def _facts(self, profile: home.Profile) -> dict[str, Json]:
        env = profile.env
        channels = [
            platform
            for platform, variable in sorted(dotenv.HOME_CHANNELS.items())
            if variable in env.filled or profile.config.raw.get(variable)
        ]
        skills = places.tree(self.place, profile.folder, "skills") if self.wanted.keys(profile.name, Kind.JOB) else []
        return {
            "zone": profile.zone,
            "env": sorted(env.filled),
            "env_known": True,
            "same": reach.same_values(env.values),
            "gateway": gateways.serving(profile.name, self.gateways, self.shared),
            "home_channels": channels,
            "scripts": places.tree(self.place, profile.folder, "scripts"),
            "skills": [posixpath.dirname(p).removeprefix("skills/") for p in skills if p.endswith("/SKILL.md")],
            "config": profile.hider.value(dict(profile.config.raw)),
        }

    def _pinned(self) -> list[str]:
        """Settings that this machine's administrator has pinned in `/etc/hermes`."""
        data = home.text(self.place, _MANAGED, configfile.LIMIT)
        if not isinstance(data, bytes):
            return []
        try:
            raw = configfile.parse(data, _MANAGED)
        except configfile.NotReadable:
            return []
        pinned = [".".join(path) for path in dotted.leaves(raw)]
        self.notes.append(f"{_MANAGED} pins {len(pinned)} setting(s) on this machine")
        return pinned

    def _sticky(self, names: list[str]) -> None:
        data = home.text(self.place, posixpath.join(self.root, "active_profile"), home.SMALL_LIMIT)
        name = data.decode(errors="replace").strip() if isinstance(data, bytes) else ""
        if name and name != home.DEFAULT:
            gone = "" if name in names else ", which is not there"
            self.notes.append(
                f"active_profile is {name}{gone}: plain `hermes …` commands go there; this plan goes by what it names"
            )

    def _unread(self) -> str:
        """F05: a Hermes that cannot read its config runs on its defaults, and a job made then would carry them."""
        for (_, kind), things in self.things.items():
            if kind is Kind.SETTING and isinstance(things, Unknown):
                return things.reason
        return ""

    def result(self, blocked: str) -> Observation:
        return Observation(
            version=self.hermes.version,
            things=self.things,
            stores=self.stores,
            ended=self.ended,
            blocked=blocked or self._unread(),
            notes=tuple(self.notes),
            facts=self.facts,
            clear=frozenset(self.clear),
            gateways=self.gateways,
        )


def blank(ref: HomeRef, declared: Collection[str] = ()) -> Observation:
    """A home as `provision` makes it, in which the other `declared` profiles are still to be made."""
    hermes = interpreter.find(ref.place, ref.options)
    hidden = hider(ref)
    things: Parts = {("", Kind.PROFILE): {home.DEFAULT: Observed(Kind.PROFILE, "", home.DEFAULT, name=home.DEFAULT)}}
    facts = _home_facts(ref.place, hermes)
    for name in sorted({home.DEFAULT, *declared}):
        folder = home.profile_dir(ref.path, name)
        profile = home.Profile(name, folder, home.Config(folder), dotenv.DotEnv(), ref.timezone, hidden)
        things |= {(name, kind): {} for kind in (*_STORED, *reach.KINDS)}
        things[secret.place(name), Kind.SECRET] = {}
        things[name, Kind.INFERENCE] = {"": inference.observed(profile)}
        facts["profiles"][name] = {
            "zone": ref.timezone,
            "env": [],
            "env_known": name == home.DEFAULT,
            "home_channels": [],
            "scripts": [],
            "skills": [],
            "config": {},
        }
    return Observation(version=hermes.version, things=things, facts=facts)


def prepared(observation: Observation, declared: Mapping[str, Json], addresses: Iterable[Address]) -> Observation:
    """With what else the setup declares, for the functions that see one resource at a time."""
    facts = secret.with_coming(observation.facts, addresses)
    return replace(observation, facts={**facts, "declared": dict(declared)})
