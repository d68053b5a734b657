"""Adopt: take what a home holds into state (and, for a path, into the setup's text). Writes no byte of a home (E47)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from reconciler_specs.address import Address, Kind, selects
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_specs.shape import Json
from reconciler_specs.values import NAME
from reconciler_state.record import HomeState

from . import contact as contacts
from .contact import Contact
from .errors import ProviderError, UsageError
from .event import Event, Outcome
from .observe import Observation, Observed, Unknown, Wanted
from .place import LocalPlace, Place
from .plan import Options
from .provider import HomeRef, Provider
from .redact import is_hidden
from .run import HomeRun
from .workspace import Workspace, physical

# A file longer than this stays where it is: a setup is for people to read.
LONGEST_TEXT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Taken:
    """What an adopt has taken: addresses with the fields that the home does not satisfy (the plan claims them)."""

    home: str
    took: tuple[tuple[Address, tuple[str, ...]], ...]
    left: tuple[str, ...]  # declared, and not taken: why


def adopt_home(
    space: Workspace, home_id: str, targets: Sequence[str] = (), mapping: Mapping[Address, str] | None = None
) -> Taken:
    """Takes a declared home's things into state. Raises ProviderError if the home cannot be read, UsageError if a
    `--map` names what is not there, StateLocked if somebody else is at work on it."""
    ref = space.ref(home_id)
    with space.lock(ref) as guard:
        plan = space.plan_home(home_id, Options(in_sync=True))
        if plan.failed:
            raise ProviderError(plan.failed)
        if not plan.observation.exists:
            raise UsageError(f"{home_id}: there is no home at {ref.path}", hint=f"reconciler provision {home_id}")
        for address, harness_id in (mapping or {}).items():
            if not isinstance(plan.observation.at(address.profile, address.kind, harness_id), Observed):
                raise UsageError(f"--map {address}={harness_id}: nothing with this id is there")
        provider = space.provider(ref.harness)
        _check_mapping(plan.state, space.setup.name, mapping or {})
        before = space.store.read(physical(ref))
        state = before or HomeState(ref.place.name, ref.harness, ref.path)
        contact = contacts.adopted(
            Contact(state),
            space.setup.name,
            home_id,
            plan.resources,
            plan.observation,
            provider,
            chosen=lambda a: not targets or any(selects(t, a) for t in targets),
            mapping=mapping,
        )
        # What a cut-off run left open is for a plan to settle: nobody looks for it here.
        fresh = replace(plan, state=contact.state, actions=contact.actions, hold=None, intents=())
        old, new = state.owned(space.setup.name), contact.state.owned(space.setup.name)
        if old != new or not contacts.known(state, space.setup.name):
            _finish(HomeRun(fresh, space, guard).carry_out(contact.actions, lambda: False))
        took = []
        for path, thing in new.items():
            if path not in old:
                address = Address.parse(f"{home_id}/{path}")
                declared = plan.canons[address].fields if address in plan.canons else {}
                took.append((address, tuple(n for n in declared if n not in thing.fields)))
    left = [
        f"{a.address}: {a.hold.why if a.hold else a.reason}"
        for a in space.plan_home(home_id, Options(targets=tuple(targets))).actions
        if a.hold is not None
    ]
    return Taken(home_id, tuple(took), tuple(left))


def _check_mapping(state: HomeState, owner: str, mapping: Mapping[Address, str]) -> None:
    """Raises UsageError for a `--map` to what another setup owns, or what we own under another address (L1, L3)."""
    taken: dict[tuple[str, Kind, str], str] = {}
    for name, things in state.owners.items():
        for path, thing in things.items():
            address = Address.parse(f"-/{path}")
            who = f"setup {name!r} owns it" if name != owner else f"it is {path} already"
            taken[address.profile, address.kind, thing.id] = f"{path}\n{who}"
    for address, harness_id in mapping.items():
        path, _, who = taken.get((address.profile, address.kind, harness_id), "").partition("\n")
        if who and (path != address.path or "setup" in who):
            raise UsageError(f"--map {address}={harness_id}: {who}")
        taken[address.profile, address.kind, harness_id] = f"{address.path}\nit is mapped twice"


def _finish(events: Iterable[Event]) -> None:
    for event in events:
        if event.outcome is Outcome.FAILED:
            raise ProviderError(event.reason)


# -- a home that no setup names yet ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Survey:
    """A home as found at a path: which harness it is of, and everything in it."""

    ref: HomeRef
    provider: Provider
    observation: Observation


@dataclass
class Draft:
    """A home block in grammar form, and what a person should know of it.

    `ids` maps each drafted job to its harness id. `left` is what stays out (unmanaged), with `out`, the reason by
    address; `look` is what wants a look: twins, missing scripts, secrets in clear.
    """

    home_id: str
    block: dict[str, Json] = field(default_factory=dict)
    ids: dict[Address, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    look: list[str] = field(default_factory=list)
    out: dict[Address, str] = field(default_factory=dict)

    def leave(self, address: Address, why: str, title: str = "") -> None:
        """A thing stays out of the block; `title` is what a person knows it by."""
        self.left.append(f"{title or address.path}: {why}")
        self.out[address] = why


def survey(path: str, providers: Mapping[str, Provider], place: Place | None = None, narrow: str = "") -> Survey:
    """Finds out whose home it is and reads all of it. Raises UsageError if no installed provider knows it, or if
    several do: then `providers` has to be narrowed to one, by the command line `narrow` with its name."""
    place = place or LocalPlace()
    reasons = []
    accepted: list[Survey] = []
    for harness, provider in providers.items():
        try:
            ref = HomeRef("found", harness, place, provider.home_path(path, place))
            observation = provider.observe(ref, Wanted(everything=True))
        except (ProviderError, OSError) as error:
            reasons.append(f"{harness}: {error}")
            continue
        if observation.exists:
            accepted.append(Survey(ref, provider, observation))
        else:
            reasons.append(f"{harness}: nothing is there")
    accepted = [found for found in accepted if found.observation.sure] or accepted
    if len(accepted) == 1:
        return accepted[0]
    if accepted:
        names = [found.ref.harness for found in accepted]
        hint = f"{narrow or f'reconciler adopt {path} --harness'} {names[-1]}"
        raise UsageError(f"{path} can be taken as a home of {' or '.join(names)}", hint=hint)
    raise UsageError(f"{path} is no home of a harness that is installed here\n  " + "\n  ".join(reasons))


def draft(
    found: Survey,
    home_id: str,
    path: str,
    *,
    only: str = "",
    everything: bool = False,
    extends: str = "",
    keys: Mapping[tuple[str, str], str] | None = None,
) -> Draft:
    """The survey as a home block that a person would keep: defaults left out, no secret in it. `keys` are the jobs'
    keys by profile and harness id, where a setup has named them already."""
    made = Draft(home_id)
    profiles: dict[str, Json] = {}
    observation = found.observation
    names = sorted(t.id for t in observation.all() if t.kind is Kind.PROFILE)
    for profile in names:
        block = _profile(found, made, profile, only, everything, keys or {})
        if block or profile != "default":
            profiles[profile] = block
    made.block = {"harness": found.ref.harness, "path": path, "profiles": profiles}
    if extends:
        made.block["extends"] = [extends]
    for (profile, kind), things in observation.things.items():
        if isinstance(things, Unknown):
            made.look.append(f"{profile or 'home'} {kind}: {things.reason}")
    made.look += list(observation.notes)
    _leave_out_unfit(made)
    return made


def _leave_out_unfit(made: Draft) -> None:
    """A harness stores values that the language refuses (`repeat: true`). Such a thing stays out, with the reason, so
    that what is written can be loaded. Things are tried one by one only if the whole does not load."""
    if not _unfit(made.home_id, made.block):
        return
    for profile, block in made.block["profiles"].items():
        for group in ("inference", "settings", "files", "jobs"):
            things = block.get(group, {})
            for key in list(things):
                if group == "inference":
                    alone: Json = {"inference": things}
                elif group == "jobs":
                    alone = {"jobs": {key: {n: v for n, v in things[key].items() if n != "context_from"}}}
                else:
                    alone = {group: {key: things[key]}}
                why = _unfit(made.home_id, {**made.block, "profiles": {profile: alone}})
                if why and group == "inference":
                    made.leave(Address(made.home_id, profile, Kind.INFERENCE), why)
                    del block["inference"]
                    break
                if why:
                    address = Address(made.home_id, profile, Kind(group), key)
                    made.leave(address, why)
                    del things[key]
                    made.ids.pop(address, None)


def _unfit(home_id: str, block: Mapping[str, Json]) -> str:
    """Why the language refuses a home block, "" if it does not."""
    try:
        load_text(render_setup("adopted", {home_id: {k: v for k, v in block.items() if k != "extends"}}))
    except SpecError as error:
        return error.reasons[0].message
    return ""


def _profile(
    found: Survey, made: Draft, profile: str, only: str, everything: bool, keys: Mapping[tuple[str, str], str]
) -> dict[str, Json]:
    observation, provider = found.observation, found.provider
    block: dict[str, Json] = {}
    thing = observation.at("", Kind.PROFILE, profile)
    if isinstance(thing, Observed):
        block.update(provider.express(thing, observation))
    inference = observation.at(profile, Kind.INFERENCE, "")
    address = Address(made.home_id, profile, Kind.INFERENCE)
    if isinstance(inference, Observed) and _wanted(only, address):
        value = provider.express(inference, observation)
        if value:
            block["inference"] = dict(value)
    settings, files = _settings(found, made, profile, only, everything), _files(found, made, profile, only)
    jobs = _jobs(found, made, profile, only, keys)
    for name, value in (("settings", settings), ("files", files), ("jobs", jobs)):
        if value:
            block[name] = value
    return block


def _wanted(only: str, address: Address) -> bool:
    path, text = address.path, str(address)
    return not only or fnmatchcase(path, only) or fnmatchcase(text, only) or selects(only, address)


def _things(found: Survey, profile: str, kind: Kind) -> list[Observed]:
    things = found.observation.things.get((profile, kind), {})
    return [] if isinstance(things, Unknown) else list(things.values())


def _settings(found: Survey, made: Draft, profile: str, only: str, everything: bool) -> dict[str, Json]:
    settings: dict[str, Json] = {}
    for thing in _things(found, profile, Kind.SETTING):
        address = Address(made.home_id, profile, Kind.SETTING, thing.id)
        if not _wanted(only, address) or ("value" in thing.defaults and not everything):
            continue
        value = found.provider.express(thing, found.observation)
        if "value" in value:
            settings[thing.id] = value["value"]
        else:
            made.leave(address, "holds what a setup must not, or cannot, say")
    return settings


def _files(found: Survey, made: Draft, profile: str, only: str) -> dict[str, Json]:
    files: dict[str, Json] = {}
    for thing in _things(found, profile, Kind.FILE):
        address = Address(made.home_id, profile, Kind.FILE, thing.id)
        if not _wanted(only, address) or "text" in thing.defaults:
            continue
        value = dict(found.provider.express(thing, found.observation))
        if "text" not in value:
            made.leave(address, "its text cannot stand in a setup")
        elif len(value["text"]) > LONGEST_TEXT:
            made.leave(address, f"longer than a setup should be ({len(value['text'])} characters)")
        else:
            files[thing.id] = value
    return files


def _jobs(found: Survey, made: Draft, profile: str, only: str, known: Mapping[tuple[str, str], str]) -> dict[str, Json]:
    jobs: dict[str, Json] = {}
    things = _things(found, profile, Kind.JOB)
    keys = {thing.id: known[profile, thing.id] for thing in things if (profile, thing.id) in known}
    names = Counter(t.name.casefold() for t in things)
    for thing in things:
        if thing.id not in keys:
            keys[thing.id] = _key(thing.name or thing.id, set(keys.values()))
    for thing in things:
        key = keys[thing.id]
        address = Address(made.home_id, profile, Kind.JOB, key)
        if not _wanted(only, address):
            continue
        value = dict(found.provider.express(thing, found.observation))
        missing = _cannot_stand(value, thing)
        if missing:
            made.leave(address, missing, f"{profile}: job {thing.name or thing.id} ({thing.id})")
            continue
        if names[thing.name.casefold()] > 1:
            made.look.append(
                f"{profile}: {names[thing.name.casefold()]} jobs are called {thing.name!r}; this one is {key}"
            )
        if "deliver" not in value:
            value["deliver"] = "keep"
            made.look.append(f"{address}: where its answer goes cannot be said in a setup; it stays as it is")
        if value.get("name") == key:
            del value["name"]
        if "context_from" in value:
            strangers = [i for i in value["context_from"] if i not in keys and i != "self"]
            if strangers:
                del value["context_from"]
                made.look.append(f"{address}: context_from names what is not there: {', '.join(strangers)}")
            else:
                value["context_from"] = [keys.get(i, i) for i in value["context_from"]]
        unknown = [n for n in thing.fields if isinstance(thing.fields[n], Unknown)]
        if unknown:
            made.look.append(f"{address}: {', '.join(unknown)} cannot be read")
        jobs[key] = value
        made.ids[address] = thing.id
    return jobs


def _cannot_stand(job: Mapping[str, Json], thing: Observed) -> str:
    """E46: why a job cannot be declared, "" if it can."""
    if not job.get("run") and is_hidden(thing.get("prompt")):
        return "its prompt holds a secret in the clear"
    if "schedule" not in job:
        return "its schedule cannot be said in a setup"
    if not job.get("run") and not job.get("prompt"):
        return "it has no prompt and no script that a setup could say"
    return ""


def _key(name: str, taken: set[str]) -> str:
    """A job's key from its name: what a person would type, and unique in its profile."""
    stem = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._")[:48] or "job"
    key, number = stem, 2
    while key in taken or not NAME.match(key):
        key, number = f"{stem}-{number}", number + 1
    return key
