"""Draft: a home that no setup names yet, as the block that a person would keep of it. Pure but for the one read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from reconciler_specs.address import Address, Kind, selects
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_specs.setting import split_setting
from reconciler_specs.setup import Home
from reconciler_specs.shape import Json
from reconciler_specs.tables import TABLES
from reconciler_specs.values import NAME

from .errors import ProviderError, UsageError
from .observe import Observation, Observed, Unknown, Wanted
from .place import LocalPlace, Place
from .provider import HomeRef, Provider, traits_of
from .redact import is_hidden

# A file longer than this stays where it is: a setup is for people to read.
LONGEST_TEXT = 64 * 1024


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
    address; `look` is what wants a look: twins, missing scripts, secrets in clear. `loose` are the jobs whose context
    comes from what is not in the block, with its names. Sources that the block names lie in `folder`.
    """

    home_id: str
    block: dict[str, Json] = field(default_factory=dict)
    ids: dict[Address, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    look: list[str] = field(default_factory=list)
    out: dict[Address, str] = field(default_factory=dict)
    loose: dict[Address, tuple[str, ...]] = field(default_factory=dict)
    folder: Path | str = "."
    said: Mapping[tuple[str, Kind, str], Mapping[str, Json]] = field(default_factory=dict)

    def load(self) -> Home:
        """The block as the language reads it. Raises SpecError."""
        whole = {name: value for name, value in self.block.items() if name != "extends"}
        return _loaded(self, whole)

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
    blocks: Mapping[tuple[str, str], str] | None = None,
    said: Mapping[tuple[str, Kind, str], Mapping[str, Json]] | None = None,
    folder: Path | str = ".",
) -> Draft:
    """The survey as a home block that a person would keep: defaults left out, no secret in it. `keys` are the jobs'
    keys by profile and harness id, where a setup has named them already; `blocks` the sources in `folder` of the marked
    blocks that it declares, by profile and file; `said` what it says and no home shows (a skill's source)."""
    made = Draft(home_id, folder=folder, said=said or {})
    profiles: dict[str, Json] = {}
    observation = found.observation
    names = sorted(t.id for t in observation.all() if t.kind is Kind.PROFILE)
    for profile in names:
        block = _profile(found, made, profile, only, everything, keys or {}, blocks or {})
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
    _loosen(made)
    _leave_out_refused(found, made)
    return made


def _leave_out_unfit(made: Draft) -> None:
    """A harness stores values that the language refuses (`repeat: true`). Such a thing stays out, with the reason, so
    that what is written can be loaded. Things are tried one by one only if the whole does not load."""
    if not _unfit(made, made.block):
        return
    for profile, block in made.block["profiles"].items():
        for group in ("inference", "settings", "files", *(kind.value for kind in TABLES), "jobs"):
            things = block.get(group, {})
            for key in list(things):
                if group == "inference":
                    alone: Json = {"inference": things}
                elif group == "jobs":
                    alone = {"jobs": {key: {n: v for n, v in things[key].items() if n != "context_from"}}}
                else:
                    alone = {group: {key: things[key]}}
                why = _unfit(made, {**made.block, "profiles": {profile: alone}})
                if why and group == "inference":
                    made.leave(Address(made.home_id, profile, Kind.INFERENCE), why)
                    del block["inference"]
                    break
                if why:
                    address = Address(made.home_id, profile, Kind(group), key)
                    made.leave(address, why)
                    del things[key]
                    made.ids.pop(address, None)


def _leave_out_refused(found: Survey, made: Draft) -> None:
    """A home may hold what its own harness would not take from a setup (a script outside of it): declared, every plan
    would refuse it."""
    while not _unfit(made, made.block):
        resources = made.load().resources
        observation = found.provider.prepare(resources, found.observation)
        refused: dict[Address, str] = {}
        for address, resource in resources.items():
            why = found.provider.canon(resource, observation, lambda path: None).refused
            if why and (address.kind is not Kind.PROFILE or address.profile != "default"):
                refused[address] = "; ".join(dict.fromkeys(why.values()))
        if not refused:
            return
        for address, why_not in refused.items():
            made.leave(address, why_not)
            made.ids.pop(address, None)
            profiles = made.block["profiles"]
            if address.kind is Kind.PROFILE:
                profiles.pop(address.profile, None)
            elif address.kind is Kind.INFERENCE:
                profiles.get(address.profile, {}).pop("inference", None)
            else:
                group = profiles.get(address.profile, {}).get(address.kind.value, {})
                for key in [key for key in group if _is_at(address, key)]:
                    del group[key]
        _loosen(made)


def _is_at(address: Address, key: str) -> bool:
    """Whether a key of a block is the address's, which may be spelled in another way."""
    return key == address.key or (address.kind is Kind.SETTING and split_setting(key) == split_setting(address.key))


def _loosen(made: Draft) -> None:
    """Takes away `context_from` where it names a job that stayed out: a setup could not be loaded with it."""
    for profile, block in made.block["profiles"].items():
        jobs = block.get("jobs", {})
        for key, job in jobs.items():
            gone = [ref for ref in job.get("context_from", ()) if ref != "self" and ref not in jobs]
            if gone:
                del job["context_from"]
                address = Address(made.home_id, profile, Kind.JOB, key)
                made.loose[address] = tuple(gone)
                made.look.append(
                    f"{address}: context_from stays as it is; it names what is not here: {', '.join(gone)}"
                )


def _loaded(made: Draft, block: Mapping[str, Json]) -> Home:
    return load_text(render_setup("adopted", {made.home_id: block}), base_dir=made.folder).homes[made.home_id]


def _unfit(made: Draft, block: Mapping[str, Json]) -> str:
    """Why the language refuses a home block, "" if it does not."""
    try:
        _loaded(made, {name: value for name, value in block.items() if name != "extends"})
    except SpecError as error:
        return error.reasons[0].message
    return ""


def _profile(
    found: Survey,
    made: Draft,
    profile: str,
    only: str,
    everything: bool,
    keys: Mapping[tuple[str, str], str],
    blocks: Mapping[tuple[str, str], str],
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
    settings, files = _settings(found, made, profile, only, everything), _files(found, made, profile, only, blocks)
    jobs = _jobs(found, made, profile, only, keys)
    tables = [(kind.value, _named(found, made, profile, only, kind)) for kind in TABLES]
    for name, value in (("settings", settings), ("files", files), *tables, ("jobs", jobs)):
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
            made.leave(address, _unsayable(thing))
    return settings


def _files(
    found: Survey, made: Draft, profile: str, only: str, blocks: Mapping[tuple[str, str], str]
) -> dict[str, Json]:
    files: dict[str, Json] = {}
    for thing in _things(found, profile, Kind.FILE):
        address = Address(made.home_id, profile, Kind.FILE, thing.id)
        if not _wanted(only, address) or "text" in thing.defaults:
            continue
        value = dict(found.provider.express(thing, found.observation))
        if "block" in value and (profile, thing.id) in blocks:
            files[thing.id] = {**value, "block": blocks[profile, thing.id]}
        elif "block" in value:
            made.leave(
                address, "a setup's block stands in it; a block needs a file beside the setup that holds its text"
            )
        elif "text" not in value:
            made.leave(address, "its text cannot stand in a setup")
        elif len(value["text"]) > LONGEST_TEXT:
            made.leave(address, f"longer than a setup should be ({len(value['text'])} characters)")
        else:
            files[thing.id] = value
    return files


def _named(found: Survey, made: Draft, profile: str, only: str, kind: Kind) -> dict[str, Json]:
    """The things of a kind that its field table says all of, by their ids, or by names where ids are the harness's."""
    by_place = traits_of(found.provider.traits, kind).by_place
    block: dict[str, Json] = {}
    for thing in _things(found, profile, kind):
        key = thing.id if by_place else _key(thing.name or thing.id, set(block))
        address = Address(made.home_id, profile, kind, key)
        besides = made.said.get((profile, kind, key), {})
        if not _wanted(only, address) or (set(thing.fields) <= thing.defaults and not besides):
            continue
        value = {**found.provider.express(thing, found.observation), **besides}
        if not value:
            made.leave(address, _unsayable(thing))
            continue
        unsaid = sorted(thing.fields.keys() - value.keys() - thing.defaults - ({"content"} if besides else set()))
        if unsaid:
            made.look.append(f"{address}: {', '.join(unsaid)} cannot be said in a setup; it stays as it is")
        partly = sorted(n for n, v in thing.fields.items() if n in value and _conceals(v))
        if partly:
            made.look.append(f"{address}: {', '.join(partly)} holds a secret in the clear, which stays out")
        block[key] = value
        if not by_place:
            made.ids[address] = thing.id
    return block


def _unsayable(thing: Observed) -> str:
    """Why nothing of a thing can stand in a setup."""
    clear = sorted(name for name, value in thing.fields.items() if _conceals(value))
    if clear:
        return f"{', '.join(clear)} stands in the home as a secret in the clear: give it a name in the home first"
    return "holds what a setup must not, or cannot, say"


def _conceals(value: Json | Unknown) -> bool:
    """Whether a hidden secret is anywhere in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_hidden(value) or any(_conceals(item) for item in inner)


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
                made.loose[address] = tuple(strangers)
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
    if thing.about.get("foreign"):
        return str(thing.about["foreign"])
    if not job.get("run") and is_hidden(thing.get("prompt")):
        return "its prompt holds a secret in the clear"
    if "schedule" not in job:
        return "its schedule cannot be said in a setup"
    return "" if job.get("run") or job.get("prompt") else "it has no prompt and no script that a setup could say"


def _key(name: str, taken: set[str]) -> str:
    """A job's key from its name: what a person would type, and unique in its profile."""
    stem = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._")[:48] or "job"
    key, number = stem, 2
    while key in taken or not NAME.match(key):
        key, number = f"{stem}-{number}", number + 1
    return key
