"""One read of a whole home, by us: no process is started, no connection is made, and no byte of it changes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import replace
from secrets import token_bytes
from typing import Any

from reconciler.observe import Observation, Store, Things, Unknown, Wanted
from reconciler.provider import HomeRef
from reconciler_shape import dotenv, places
from reconciler_shape.hiding import Hider
from reconciler_shape.secret import in_clear
from reconciler_specs.address import Address, Kind
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json

from . import (
    authored,
    boards,
    files,
    home,
    inference,
    install,
    jobs,
    kinds,
    profiles,
    roster,
    secretrefs,
    secrets,
    serving,
    settings,
    statedb,
    versions,
)
from .view import View, look_up

_PROCESS_KEY = token_bytes(32)
_SLOW = "slow door: it is written by OpenClaw's command line behind the prefix, which takes seconds for each call"
Parts = dict[tuple[str, Kind], Things | Unknown]


def digest_key(ref: HomeRef) -> bytes:
    """The home's own key where the engine has one, else one that lives as long as this process."""
    key = ref.options.get("$key")
    return bytes.fromhex(str(key)) if key else _PROCESS_KEY


def owner(ref: HomeRef) -> str:
    """The setup's name, which stands in the markers of our blocks, with its former names on lines below."""
    return "\n".join([str(ref.options.get("$owner") or "setup"), *ref.options.get("$formerly", ())])


def observe(ref: HomeRef, wanted: Wanted) -> Observation:
    """Raises ProviderError when the path cannot be looked at, or holds something else than an OpenClaw home."""
    program = install.find(ref.place, ref.options)
    if not home.check(ref.place, ref.path):
        return Observation(exists=False, version=program.version, facts=_program(program))
    return Reading(ref, wanted, program).result()


def gateway(ref: HomeRef) -> serving.Gateway | None:
    """The gateway that serves the home, None if none does."""
    return serving.find(home.locate(ref.place, ref.path))


def blank(ref: HomeRef, declared: Collection[str] = ()) -> Observation:
    """A home as `provision` makes it: a config with what the gateway needs, and the agent `main`; the other `declared`
    profiles are still to be made."""
    program = install.find(ref.place, ref.options)
    reading = Reading(ref, Wanted(frozenset(Address(ref.id, name) for name in declared)), program, fresh=True)
    return reading.result()


def _program(program: install.Install) -> dict[str, Json]:
    return {"openclaw": program.script, "node": program.node, "installed": program.version, "profiles": {}}


class Reading:
    """Collects the observation, profile by profile."""

    def __init__(self, ref: HomeRef, wanted: Wanted, program: install.Install, fresh: bool = False) -> None:
        self.ref, self.wanted, self.program, self.fresh = ref, wanted, program, fresh
        self.place = ref.place
        self.here = home.locate(ref.place, ref.path)
        self.user = ref.place.resolve("~")
        self.env = home.Env() if fresh else home.env(self.here)
        self.config = authored.Authored(self.here.config) if fresh else authored.read(self.here)
        self.data = statedb.Database() if fresh else statedb.read(self.here)
        self.gateway = None if fresh else serving.find(self.here)
        # The home's own version says how it is to be read; the installed one only where it has none yet.
        self.home_version = versions.of_home(self.data.ran, self.config.written_by) or program.version
        self.roster = roster.read(self.config.tree, self.home_version)
        values = [*self.env.secrets, *_secrets(self.config.tree)]
        self.hidden = Hider(digest_key(ref), values)
        self.named = Hider(digest_key(ref), [*self.env.secrets, *_secrets(self.config.tree, odd=False)])
        # What `.env` says counts before what the config's own `env` says.
        self.environment = {**_variables(self.config.tree), **self.env.values}
        self.names = self.environment.keys() | self.data.secrets
        self.notes = [note for note in (program.why,) if note]

    def result(self) -> Observation:
        things: Parts = {}
        stores: dict[tuple[str, Kind], Store] = {}
        self.notes += [*self.config.notes, *self.roster.notes]
        if self.env.unknown:
            self.notes.append(self.env.unknown.reason)
        store = self._jobs()
        self.notes += store.notes
        views = {name: self.view(name) for name in self.profile_names()}
        there = set(self.roster.profiles)
        things["", Kind.PROFILE] = (
            self.config.unknown
            if self.config.unknown
            else {name: profiles.observed(view) for name, view in views.items() if name in there}
        )
        for name, view in views.items():
            things[name, Kind.JOB] = self.config.unknown or store.things.get(name, {})
            stores[name, Kind.JOB] = Store.PROPER if self.fresh else store.store
            things[name, Kind.SETTING] = self._settings(view)
            things[name, Kind.INFERENCE] = {"": inference.observed(view)}
            for kind in kinds.PARTS:
                things[name, kind] = self._part(view, kind)
            for kind in (Kind.SETTING, Kind.INFERENCE, *kinds.PARTS):
                stores[name, kind] = Store.PROPER if self.fresh else self.config.store
            things[name, Kind.FILE] = self._files(view)
        things[home.DEFAULT, Kind.KIT], stores[home.DEFAULT, Kind.KIT] = self._boards()
        things["", Kind.SECRET] = self._secrets()
        self._running()
        return Observation(
            version=self._version(),
            things=things,
            stores=stores,
            strays={(Kind.JOB, job_id): why for job_id, why in store.strays.items()},
            ended={(name, Kind.JOB): ended for name, ended in store.ended.items()},
            blocked=self._blocked(),
            notes=tuple(self.notes),
            facts={**self._facts(views), "orphaned": store.orphaned},
            clear=self._clear(),
        )

    def _jobs(self) -> jobs.JobStore:
        """Without the config nobody knows whose a job is: none of them is seen then."""
        if self.config.unknown:
            return jobs.JobStore({}, self.data.store)
        return jobs.read(self.data, self.here, self.roster, self.hidden)

    def profile_names(self) -> list[str]:
        """Those that are there, and those that are only declared."""
        named = {address.profile for address in self.wanted.addresses if address.profile}
        return [*self.roster.profiles, *sorted(named - set(self.roster.profiles))]

    def view(self, name: str) -> View:
        agent = self.roster.agent(name)
        tree, version = self.config.tree, self.home_version
        folder = roster.workspace(tree, self.roster, agent, self.here.root, self.user, version)
        return View(name, agent, self.roster, self.config, folder, self.hidden, self.named, frozenset(self.names))

    def _settings(self, view: View) -> Things | Unknown:
        return settings.read(view, self.wanted.keys(view.profile, Kind.SETTING), self.wanted.everything)

    def _part(self, view: View, kind: Kind) -> Things | Unknown:
        if view.config.unknown:
            return view.config.unknown
        found = kinds.PARTS[kind].read(view, self.wanted.keys(view.profile, kind), self.wanted.everything)
        if not view.first or kind is not Kind.CHANNEL:
            return found
        # An account is read for the profile whose setup has it, for the default one where none has.
        others = {a.key for a in self.wanted.addresses if a.kind is kind and a.profile != view.profile}
        mine = self.wanted.keys(view.profile, kind)
        return {key: thing for key, thing in found.items() if key in mine or key not in others}

    def _boards(self) -> tuple[Things | Unknown, Store]:
        keys = self.wanted.keys(home.DEFAULT, Kind.KIT)
        if self.fresh or not (keys or self.wanted.everything):
            return {}, Store.PROPER
        return boards.read(self.here, keys, self.wanted.everything, self.hidden)

    def _secrets(self) -> Things | Unknown:
        why = self.env.unknown or self.config.unknown
        if why:
            return why
        return secrets.read(self.environment, self.data.secrets, self.wanted.keys("", Kind.SECRET), self.hidden)

    def _clear(self) -> frozenset[str]:
        if self.fresh:  # what `provision` is going to write
            return frozenset({f"{home.CONFIG}: gateway.auth.token"})
        return frozenset(in_clear(home.CONFIG, self.named.value(secretrefs.named(self.config.tree))))

    def _files(self, view: View) -> Things:
        keys, everything = self.wanted.keys(view.profile, Kind.FILE), self.wanted.everything
        package = posixpath.dirname(self.program.script)
        return files.read(self.place, view, keys, everything, owner(self.ref), package)

    def _version(self) -> str | None:
        """The installed version; where the home is of another one, both, which no guard takes for a tested one."""
        installed, version = self.program.version, self.home_version
        return f"{installed}{versions.OVER}{version}" if installed and version != installed else installed

    def _running(self) -> None:
        if not self.place.local:
            self.notes.append(_SLOW)
        if self.gateway is not None:
            port = f" on port {self.gateway.port}" if self.gateway.port else ""
            version = self.data.ran or "of an unknown version"
            self.notes.append(f"a gateway (pid {self.gateway.pid}, {version}) serves this home{port}")
        if self.data.store is Store.MISSING and not self.fresh:
            self.notes.append("no gateway has run on this home yet: it has no job store")

    def _blocked(self) -> str:
        if self.fresh:
            return ""
        switches = self.env.flags | (self.gateway.switches if self.gateway else frozenset())
        unread = self.config.unknown.reason if self.config.unknown else ""
        other = self.gateway.other if self.gateway else ""
        return home.foreign(self.here) or home.managed(self.here, switches) or other or unread

    def _facts(self, views: Mapping[str, View]) -> dict[str, Json]:
        return {
            **_program(self.program),
            "root": self.here.root,
            "config": self.here.config,
            "database": self.here.database,
            "state_dir": statedb.named(self.here, self.data),
            "ran": self.data.ran,
            "written_by": self.config.written_by,
            "gateway": {"pid": self.gateway.pid, "port": self.gateway.port} if self.gateway else None,
            "comments": list(self.config.comments),
            "includes": dict(self.config.includes),
            "digests": dict(self.config.files),
            "roster": self.roster.form,
            "default": self.roster.default,
            "zone": self.ref.timezone,
            "names": sorted(self.names),
            "names_known": self.env.unknown is None and self.data.unknown is None,
            "secret_store": sorted(self.data.secrets),
            "environment": sorted(self.environment),
            "keyed": _keyed(self.config.tree),
            "channels": None if self.config.unknown else sorted(_map(self.config.tree.get("channels"))),
            "tree": secretrefs.hidden(secretrefs.named(self.config.tree), self.hidden),
            "profiles": {name: self._of_profile(view) for name, view in views.items()},
        }

    def _of_profile(self, view: View) -> dict[str, Json]:
        return {
            "agent": view.agent.id,
            "agent_path": list(view.agent.path),
            "model_path": list(inference.model_path(view)),
            "workspace": view.workspace,
            "scripts": places.tree(self.place, view.workspace, "scripts") if self._asks_scripts(view.profile) else [],
        }

    def _asks_scripts(self, profile: str) -> bool:
        return self.wanted.everything or bool(self.wanted.keys(profile, Kind.JOB))


def _secrets(tree: Any, under: str = "", inside: bool = False, odd: bool = True) -> list[str]:
    """Values of the config that must not be seen wherever else they stand: under a credential's key, or in an `env`
    where they are no plain words (`odd`)."""
    if isinstance(tree, Mapping):
        deep = odd and (inside or under == "env")
        return [value for key, item in tree.items() for value in _secrets(item, str(key), deep, odd)]
    if isinstance(tree, list):
        return [value for item in tree for value in _secrets(item, under, inside, odd)]
    if not isinstance(tree, str) or tree.startswith("${"):
        return []
    return [tree] if secret_key(under) or (inside and dotenv.is_secret(under, tree)) else []


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _variables(tree: Mapping[str, Any]) -> dict[str, str]:
    """What the config's own `env` gives a value."""
    env = look_up(tree, ("env",))
    if not isinstance(env, Mapping):
        return {}
    inner = env.get("vars")
    given = {**{key: value for key, value in env.items() if str(key).isupper()}, **_map(inner)}
    return {str(key): str(value) for key, value in given.items()}


def _keyed(tree: Mapping[str, Any]) -> list[str]:
    """The providers whose key the config names."""
    known = look_up(tree, inference.PROVIDERS)
    pairs = known.items() if isinstance(known, Mapping) else ()
    return sorted(str(name) for name, entry in pairs if isinstance(entry, Mapping) and entry.get("apiKey"))


def prepared(observation: Observation, declared: Mapping[str, Json]) -> Observation:
    """With what else the setup declares, for the functions that see one resource at a time."""
    return replace(observation, facts={**observation.facts, "declared": dict(declared)})
