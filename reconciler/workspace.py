"""Workspace: a setup with its state, places and providers; all reading that a plan needs, and the locks of a run.

The command line makes one; tests make one around a home in memory. Reading is here so that planning can be pure.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from reconciler_specs.address import Address, Kind
from reconciler_specs.errors import ReconcilerError
from reconciler_specs.resource import Resource
from reconciler_specs.setup import Home, Setup
from reconciler_state.errors import StateError
from reconciler_state.history import Run, restored, runs
from reconciler_state.journal import Journal
from reconciler_state.local import LocalStore
from reconciler_state.record import HomeState, Owned
from reconciler_state.store import Physical

from . import fights, left
from .contact import as_named
from .errors import ProviderError
from .filled import filled
from .losses import also_lost
from .meeting import locked
from .observe import Observation, Unknown, Wanted
from .place import LocalPlace, Place
from .place_exec import ExecPlace
from .plan import HomeInputs, HomePlan, Options, Plan
from .planner import plan_home
from .processes import ancestors
from .provenance import Provenance, provenance
from .provider import HomeRef, Provider
from .undo import Undo
from .undo import known as known_run
from .undo import of as undo_of
from .vault import Vault
from .words import moment

# Homes behind a command prefix are read side by side: their time is spent waiting.
READERS = 4


@dataclass(frozen=True, slots=True)
class HomeGuard:
    """The lock of one home's run; `fd` is handed to the worker, so that the home stays locked while it lives."""

    fd: int | None


class Workspace:
    """A setup, the store of its state, and the providers of its homes by harness name."""

    lock_wait = 10.0  # seconds (L13)

    def __init__(self, setup: Setup, store: LocalStore, providers: Mapping[str, Provider]) -> None:
        self.setup = setup
        self.vault = Vault(setup.root.parent, setup.stands)
        self.store = store
        self._providers = providers
        self._places: dict[tuple[str, ...], Place] = {}
        self._refs: dict[str, HomeRef] = {}
        self._provenance: Provenance | None = None

    # -- homes -------------------------------------------------------------------------------------------------

    def provider(self, harness: str) -> Provider:
        """Raises ProviderError if no provider for the harness is installed."""
        try:
            return self._providers[harness]
        except KeyError:
            raise ProviderError(
                f"no provider for harness {harness!r} is installed", hint="reconciler explain lists those that are"
            ) from None

    def ref(self, home_id: str) -> HomeRef:
        """The home with its path resolved at its place. Raises ProviderError if the place cannot be reached, or if
        the setup's `door:` block is not one of this harness."""
        if home_id not in self._refs:
            self._refs[home_id] = self._resolve(self.setup.homes[home_id])
        return self._refs[home_id]

    def physical(self, home_id: str) -> Physical:
        """The home as it is. Raises as `ref`."""
        return physical(self.ref(home_id))

    def _resolve(self, home: Home) -> HomeRef:
        provider = self.provider(home.harness)
        wrong = provider.options(home.door)
        if wrong:
            raise ProviderError(f"{home.where}: {'; '.join(wrong)}")
        place = self._place(home)
        try:
            path = provider.home_path(home.path, place)
        except OSError as error:
            raise ProviderError(f"{home.id}: {home.path}: {error.strerror or error}") from error
        kept = self.store.key_for(Physical(place.name, home.harness, path))
        options = {
            **home.door,
            "$key": (kept or secrets.token_bytes(32)).hex(),
            "$owner": self.setup.name,
            "$formerly": list(self.setup.formerly),
        }
        return HomeRef(
            home.id,
            home.harness,
            place,
            path,
            options,
            home.timezone,
            home.harness_version,
            # Runners that share state have a key each: what a plan says on one has to be found again on another.
            keyed=kept is not None and not self.store.shared,
        )

    def _place(self, home: Home) -> Place:
        prefix = home.at or ()
        python = str(home.door.get("python", "python3"))
        key = (*prefix, python) if prefix else ()
        if key not in self._places:
            self._places[key] = ExecPlace(prefix, python) if prefix else LocalPlace()
        if home.host and self.store.shared:
            return LocalPlace(host_place(home.host))  # here, and one of several machines that share state
        return self._places[key]

    def desired(self, home_id: str) -> dict[Address, Resource]:
        """What the setup declares for a home; empty for one that it does not name."""
        return self.setup.desired(home_id) if home_id in self.setup.homes else {}

    def unattended(self, home_id: str) -> Collection[str]:
        return self.setup.policy_of(home_id).unattended or ()

    def seconds(self, home_id: str) -> float:
        """How long a run of the home may take (policy.limits.minutes); no limit if none is set."""
        if home_id not in self.setup.homes:
            return float("inf")
        return self.setup.policy_of(home_id).limits.get("minutes", float("inf")) * 60

    def observe(self, ref: HomeRef, wanted: Wanted) -> Observation:
        """One read of a home. Raises ProviderError when it cannot be read."""
        try:
            return self.provider(ref.harness).observe(ref, wanted)
        except OSError as error:
            raise ProviderError(f"{ref.id}: {error.filename or ref.path}: {error.strerror or error}") from error

    # -- planning ----------------------------------------------------------------------------------------------

    def plan(self, options: Options) -> Plan:
        """Observes every home that the targets touch, and plans all of them (L8)."""
        homes = [h for h in self.setup.homes if left.touched(h, options.targets)]
        if options.undo:
            self._known(options.undo, homes)
        remote = [h for h in homes if self.setup.homes[h].at]
        if len(remote) > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(READERS) as pool:
                plans = list(pool.map(lambda h: self.plan_home(h, options), homes))
        else:
            plans = [self.plan_home(h, options) for h in homes]
        plans = self._one_home_once(plans)
        gone = [(label, state) for label, state in left.left(self) if left.touched(label, options.targets)]
        return Plan(self.setup.name, (*plans, *(left.held(self.setup.name, state, label) for label, state in gone)))

    def plan_home(self, home_id: str, options: Options) -> HomePlan:
        """One home's plan; a home that cannot be read has its reason in `failed`."""
        home = self.setup.homes[home_id]
        if home.host and home.host != os.uname().nodename:
            ref = HomeRef(home.id, home.harness, LocalPlace(), home.path)
            return HomePlan(ref, self.setup.name, elsewhere=home.host)
        try:
            ref = self.ref(home_id)
            undo = undo_of(self.runs(ref), options.undo, self._names) if options.undo else Undo()
            if undo.paths:
                owned = self._owned(self.store.read(physical(ref)))
                undo = undo.standing(home_id, self._desired(home_id, ref), owned, self.setup.moved)
            if options.undo and not undo.paths:
                return HomePlan(ref, self.setup.name, notes=tuple(undo.notes()))
            inputs, provider = self._inputs(home, ref, undo), self.provider(home.harness)
            made = plan_home(inputs, provider, options)
            if fights.restoring(made):
                inputs = replace(inputs, restored=restored(self.runs(ref), self._names))
                made = plan_home(inputs, provider, options)
            if made.guard == "rebuild":
                made = replace(made, notes=(*made.notes, *also_lost(self.runs(ref), made.observation)))
            return replace(made, notes=(*self.store.notes(physical(ref)), *made.notes))
        except ReconcilerError as error:
            ref = self._refs.get(home_id, HomeRef(home.id, home.harness, LocalPlace(), home.path))
            return HomePlan(ref, self.setup.name, failed=str(error), remedy=error.hint or "")

    def _inputs(self, home: Home, ref: HomeRef, undo: Undo) -> HomeInputs:
        state = self.store.read(physical(ref))
        resources = self._desired(home.id, ref)
        journal = self.journal(ref)
        intents = [i for i in journal.open_intents() if i.owner in self._names]
        # All that a row may be made of has to be looked at: what nobody asks for is not there.
        paths = {*self._owned(state), *undo.paths, *(i.path for i in intents if i.path)}
        wanted = frozenset(resources) | {Address.parse(f"{home.id}/{path}") for path in paths}
        observation: Observation | Unknown
        try:
            observation = self.observe(ref, Wanted(wanted))
        except ProviderError as error:
            observation = Unknown(str(error))
        if state is not None:
            journal.check(state)
            if self.store.veiled(physical(ref)) and isinstance(observation, Observation):
                state = filled(state, resources, observation, home.id)
        resources = undo.resources(home.id, resources, self._owned(state))
        return HomeInputs(
            ref=ref,
            owner=self.setup.name,
            resources=resources,
            state=state,
            observation=observation,
            policy=self.setup.policy_of(home.id),
            now=self.now(),
            formerly=self.setup.formerly,
            first_contact=home.first_contact,
            moved=self.setup.moved,
            released=self.setup.released,
            intents=intents,
            damaged=state.damaged if state else (),
            shared=home.shared,
            restart=home.restart,
            undo=undo,
        )

    @property
    def _names(self) -> Collection[str]:
        """What the setup is called, and was."""
        return {self.setup.name, *self.setup.formerly}

    def _owned(self, state: HomeState | None) -> Mapping[str, Owned]:
        """What the setup owns, under whichever of its names."""
        return as_named(state, self.setup).owned(self.setup.name) if state is not None else {}

    def _desired(self, home_id: str, ref: HomeRef) -> dict[Address, Resource]:
        resources = self.setup.desired(home_id)
        if not any(address.kind is Kind.SECRET for address in resources):
            return resources
        return self.vault.desired(resources, bytes.fromhex(str(ref.options["$key"])))

    def _one_home_once(self, plans: list[HomePlan]) -> list[HomePlan]:
        """E14: two homes of one setup may not be one physical home, whatever links lead there."""
        seen: dict[Physical, str] = {}
        checked = []
        for plan in plans:
            if plan.failed or plan.elsewhere:
                checked.append(plan)
                continue
            first = seen.setdefault(physical(plan.ref), plan.id)
            if first != plan.id:
                why = f"{first} and {plan.id} are one physical home ({plan.ref.path})"
                plan = HomePlan(plan.ref, plan.owner, failed=why)
            checked.append(plan)
        return checked

    # -- what apply needs --------------------------------------------------------------------------------------

    def probe(self) -> None:
        """Raises StateError if state, journal or holder file could not be written (before the first door call)."""
        self.store.probe()

    def journal(self, ref: HomeRef) -> Journal:
        return self.store.journal(physical(ref))

    def publish(self, ref: HomeRef) -> str:
        """Gives other runners what was recorded of a home; why not, "" if they have it."""
        try:
            self.store.publish(physical(ref))
        except StateError as error:
            return f"what came of it is recorded here, and not there yet: {error}"
        return ""

    @contextmanager
    def lock(self, ref: HomeRef) -> Iterator[HomeGuard]:
        """L13: one writer per home. Raises StateLocked, naming the holder, after 10 s."""
        there = ref.place.local and Path(ref.path).is_dir()
        with locked(physical(ref), self.store, self.lock_wait, Path(ref.path) if there else None) as fd:
            self.store.refresh(physical(ref))  # another runner may have been quicker
            yield HomeGuard(fd)

    def keep_key(self, ref: HomeRef) -> None:
        """Keeps the home's digest key from now on. Called before the first record that holds a digest of it."""
        if not ref.keyed:
            self.store.keep_key(physical(ref), bytes.fromhex(str(ref.options["$key"])))
            self._refs.pop(ref.id, None)

    def runs(self, ref: HomeRef) -> list[Run]:
        """The home's runs, oldest first. Raises StateError if its journal is damaged."""
        return runs(self.journal(ref))

    def _known(self, run: str, homes: Sequence[str]) -> None:
        """Raises UsageError unless the setup has this run in one of `homes`; of a home whose journal cannot be read
        nobody knows, and its plan says so."""
        found: dict[str, list[str]] = {}
        for home in self.setup.homes:
            try:
                for past in self.runs(self.ref(home)):
                    if past.owner in self._names:
                        found.setdefault(past.run, []).append(home)
            except ReconcilerError:
                if home in homes:
                    return
        known_run(run, found, homes)

    def provenance(self) -> Provenance:
        """Which commit the setup is at, and who runs us; asked once."""
        if self._provenance is None:
            self._provenance = provenance(self.setup.files)
        return self._provenance

    def history(self, ref: HomeRef, path: str) -> list[str]:
        """What was done to one address, oldest first, as lines for a person."""
        past = self.journal(ref).history(path)
        return [f"{moment(p.at)}  {p.intent.row}  {p.outcome or 'open'}  {p.reason}".rstrip() for p in past]

    @staticmethod
    def caller() -> Provenance:
        """Who runs us, in which run; git is not asked (tests replace it)."""
        return provenance(())

    @staticmethod
    def now() -> datetime:
        """The moment of a plan, in UTC (tests replace it)."""
        return datetime.now(UTC)

    @staticmethod
    def pause(seconds: float) -> None:
        """Waits between two reads of a door whose deadline is not over (tests replace it)."""
        time.sleep(seconds)

    @staticmethod
    def ancestors() -> list[int]:
        """The pids above this process (tests replace it)."""
        return ancestors()

    def close(self) -> None:
        for place in self._places.values():
            place.close()


def host_place(host: str) -> str:
    """The name, in shared state, of a place that the setup says is on a machine of its own."""
    return f"host:{host}"


def physical(ref: HomeRef) -> Physical:
    """The home as it is, whatever setups call it (L3)."""
    return Physical(ref.place.name, ref.harness, ref.path)
