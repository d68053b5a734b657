"""Untrusted plans: what a setup from somebody else would change, without looking at a home or starting anything (L18).

Homes come from what a trusted runner has published; where they are, how they are reached and what is allowed come from
the target branch; what is desired comes from the setup under review.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load
from reconciler_specs.resource import Resource
from reconciler_specs.setup import Home, Setup
from reconciler_state.local import LocalStore
from reconciler_state.repository import Repository, words

from .action import Hold
from .errors import ProviderError, UsageError
from .gitops.drift import short
from .match import place_id
from .observe import Observation, Observed, Unknown
from .observed import AGAIN, UNPUBLISHED, Published, Seen
from .place import Place
from .plan import HomeInputs, HomePlan, Options
from .planner import plan_home
from .provider import HomeRef, Provider
from .workspace import Workspace

# What a home's block says that is no wish for what is in it.
_OF_A_HOME = ("harness", "path", "place", "at", "host", "door", "first_contact", "shared", "restart", "policy")
_WORDS = {"at": "place", "host": "place", "first_contact": "first contact"}
# What a setup says that is not of one home; what is not known to this version is in none.
_OF_A_SETUP = ("name", "formerly", "policy", "state", "notify", "windows")
_BLOB = ("100644", "100755")
MAX_FILES = 5_000


class _Nowhere:
    """A place that nobody looks at: every question is refused."""

    local = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise ProviderError(f"an untrusted plan looks at no home ({name})")


class Untrusted(Workspace):
    """A workspace that plans a setup under review and can do nothing else. `changed` are the lines to confirm: what the
    review changes that is taken from the target branch until it is merged."""

    def __init__(self, review: Setup, target: Setup, published: Published, providers: Mapping[str, Provider]) -> None:
        if published.setup != target.name:
            raise UsageError(
                f"the observation is of another setup ({published.setup!r}, the target is {target.name!r})"
            )
        super().__init__(_as_on(review, target), LocalStore(Path(os.devnull) / "none"), providers)
        self._published = published
        self._target = target
        self.changed = changes(target, review)

    def plan_home(self, home_id: str, options: Options) -> HomePlan:
        home = self.setup.homes[home_id]
        seen = self._published.homes.get(home_id)
        ref = self._told(home, seen)
        plan = self._planned(home, seen, ref, options)
        lines = [f"to confirm: {line}" for of in ("", home_id) for line in self.changed.get(of, ())]
        when = f"as published at {self._published.made:%Y-%m-%d %H:%M %Z}"
        return replace(plan, notes=(*plan.notes, when, *lines))

    def _planned(self, home: Home, seen: Seen | None, ref: HomeRef, options: Options) -> HomePlan:
        owner = self.setup.name
        if home.id not in self._target.homes:
            return HomePlan(ref, owner, hold=Hold("a new home: it can be planned once this is merged"))
        if seen is None:
            return HomePlan(ref, owner, failed="it is in no observation", remedy=AGAIN)
        if seen.failed:
            return HomePlan(ref, owner, failed=f"when it was observed: {seen.failed}")
        if (seen.harness, seen.said) != (home.harness, home.path):
            return HomePlan(ref, owner, failed=f"the observation is of another home ({seen.harness} at {seen.said})")
        resources = {a: r for a, r in self.setup.desired(home.id).items() if a.kind is not Kind.SECRET}
        provider = self.provider(home.harness)
        inputs = HomeInputs(
            ref=ref,
            owner=owner,
            resources=resources,
            state=seen.state,
            observation=_only_seen(seen, resources),
            policy=self.setup.policy_of(home.id),
            now=self.now(),
            formerly=self.setup.formerly,
            first_contact=home.first_contact,
            moved=self.setup.moved,
            released=self.setup.released,
            shared=home.shared,
            restart=home.restart,
        )
        return plan_home(inputs, provider, options)

    def _told(self, home: Home, seen: Seen | None) -> HomeRef:
        place = cast(Place, _Nowhere(seen.place if seen else home.place))
        options = {**home.door, "$key": "00" * 32, "$owner": self.setup.name, "$formerly": list(self.setup.formerly)}
        path = seen.path if seen else home.path
        return HomeRef(home.id, home.harness, place, path, options, home.timezone, home.harness_version)

    def ref(self, home_id: str) -> HomeRef:
        return self._told(self.setup.homes[home_id], self._published.homes.get(home_id))


def _only_seen(seen: Seen, resources: Mapping[Address, Resource]) -> Observation:
    """The observation, in which what nobody had asked for is Unknown: that it is not listed does not say it is not
    there."""
    things = dict(seen.observation.things)
    for address, resource in resources.items():
        key = ("" if address.kind is Kind.PROFILE else address.profile, address.kind)
        found = things.get(key)
        if address.path in seen.asked or address.kind not in (Kind.FILE, Kind.SETTING) or isinstance(found, Unknown):
            continue
        if found is None or place_id(address) in found:
            continue
        unknown = dict.fromkeys(resource.fields, Unknown(UNPUBLISHED))
        things[key] = {**found, place_id(address): Observed(address.kind, address.profile, place_id(address), unknown)}
    return replace(seen.observation, things=things)


def _as_on(review: Setup, target: Setup) -> Setup:
    """The setup under review, with all that is not a wish for what is in a home as the target branch has it."""
    homes = {}
    for home_id, home in review.homes.items():
        trusted = target.homes.get(home_id)
        if trusted is None:
            homes[home_id] = home
        else:
            homes[home_id] = replace(home, **{name: getattr(trusted, name) for name in _OF_A_HOME})
    of_setup = {f.name: getattr(target, f.name) for f in fields(Setup) if f.name in _OF_A_SETUP}
    return replace(review, homes=homes, **of_setup)


def changes(target: Setup, review: Setup) -> Mapping[str, Sequence[str]]:
    """What a person has to confirm, as lines by home id; those of the setup as a whole are under ""."""
    lines: dict[str, list[str]] = {"": []}
    for name in (f.name for f in fields(Setup) if f.name in _OF_A_SETUP):
        before, after = getattr(target, name), getattr(review, name)
        if before != after:
            lines[""].append(f"changes the setup's {name}: {_said(before)} → {_said(after)}")
    lines[""] += [f"takes away the home {home}" for home in target.homes if home not in review.homes]
    for home_id, home in review.homes.items():
        trusted = target.homes.get(home_id)
        if trusted is None:
            lines[home_id] = [f"adds a home: {home.harness} at {home.path}" + _way(home)]
            continue
        own = lines.setdefault(home_id, [])
        for name in _OF_A_HOME:
            before, after = getattr(trusted, name), getattr(home, name)
            if before != after:
                own.append(f"changes the {_WORDS.get(name, name)}: {_said(before)} → {_said(after)}")
        sources, new = _sources(trusted), _sources(home)
        for path in sorted(sources.keys() | new.keys()):
            if sources.get(path) != new.get(path):
                own.append(f"changes where {path} is from: {_said(sources.get(path))} → {_said(new.get(path))}")
    return lines


def _sources(home: Home) -> dict[str, Any]:
    return {a.path: r.fields.get("value") for a, r in home.resources.items() if a.kind is Kind.SECRET}


def _way(home: Home) -> str:
    return f", through {_said(list(home.at))}" if home.at else f", on {home.host}" if home.host else ""


def _said(value: Any) -> str:
    if value is None or value in ("", (), {}):
        return "nothing"
    if is_dataclass(value) and not isinstance(value, type):
        value = {k: str(v) if isinstance(v, StrEnum) else v for k, v in asdict(value).items() if v} or "nothing"
    if isinstance(value, tuple):
        value = list(value)
    return short(value if isinstance(value, str | list | dict | int) else str(value))


@contextmanager
def target_setup(setup: Path, ref: str) -> Iterator[Setup]:
    """The setup as a commit has it, read from git's objects: no filter, hook or checkout of the repository runs.

    Raises UsageError for what is no commit, SpecError for a setup there that cannot be read.
    """
    real = Path(os.path.realpath(setup))
    repository = Repository.around(real.parent)
    if repository is None:
        raise UsageError(f"{setup} is in no git checkout: there is no target branch", hint="git clone it")
    found = repository.ask("rev-parse", "--verify", "-q", "--end-of-options", f"{ref}^{{commit}}")
    commit = found.out.strip().splitlines()[-1:]
    if found.status or not commit:
        raise UsageError(f"--base {ref}: git knows no such commit", hint="git fetch origin main; --base origin/main")
    inside = real.relative_to(Path(os.path.realpath(repository.root)))
    below = [] if inside.parent == Path() else [f"{inside.parent.as_posix()}/"]
    listed = repository.run("ls-tree", "-r", "-z", "--full-tree", commit[0], "--", *below)
    blobs = [line.split("\t", 1) for line in words(listed)]
    if len(blobs) > MAX_FILES:
        raise UsageError(f"--base {ref}: more than {MAX_FILES} files beside the setup")
    with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
        for told, name in blobs:
            mode, _kind, blob = told.split()
            if mode in _BLOB:
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(repository.ask("cat-file", "blob", blob).out.encode("utf-8", "surrogatepass"))
        yield load(Path(folder) / inside, stands=real.parent)
