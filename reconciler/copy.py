"""Copy: a home as the block of another home, with a fidelity per thing. Pure; the move itself is plan and apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_specs.resource import Resource
from reconciler_specs.setup import Home
from reconciler_specs.shape import Json

from .draft import Draft, Survey
from .observe import Observation, Observed, Unknown
from .provider import Behind, Canon, HomeRef, Portable, Provider
from .redact import is_hidden

# Fields that a thing does its work without. One that the new home cannot keep is dropped, and said; a thing that would
# do something else without a field is refused as a whole.
_DROPPABLE = frozenset({"id", "metadata", "failure_deliver", "session", "unattended", "description"})
_IN_CLEAR = "holds a secret in the clear: put it where the home keeps its secrets, and name it"
_NO_WORDS = "holds what a setup has no words for"


class Fidelity(StrEnum):
    """How a thing of one home comes to another."""

    EXACT = "exact"
    SEMANTIC = "semantic"  # it does its work; what differs is said
    REFUSED = "refused"  # it is not in the new block, and why


@dataclass(frozen=True, slots=True)
class Item:
    """One thing: its address in the new home, what changes (or why it is refused), and what it will wait for there."""

    address: Address
    fidelity: Fidelity
    changes: tuple[str, ...] = ()
    waits: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The home that is to be: as it is now, or (`blank`) as its provider would make it."""

    ref: HomeRef
    provider: Provider
    observation: Observation
    blank: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """What `copy` made: the new home's block in grammar form, and what a person has to know of it.

    `secrets` are the names that the new home needs, by profile. `behind` is None if the source's provider cannot tell.
    """

    source: HomeRef
    target: Target
    block: Mapping[str, Json]
    items: tuple[Item, ...]
    secrets: Mapping[str, Sequence[str]]
    behind: Sequence[Behind] | None
    notes: tuple[str, ...] = ()

    def count(self, fidelity: Fidelity) -> int:
        return sum(item.fidelity is fidelity for item in self.items)


@dataclass
class _Work:
    """The block while things are taken out of it, with what is said of each."""

    home: str
    block: dict[str, Json]
    folder: Path | str
    changes: dict[Address, list[str]] = field(default_factory=dict)
    refused: dict[Address, list[str]] = field(default_factory=dict)

    def profile(self, address: Address) -> dict[str, Json]:
        found: dict[str, Json] = self.block["profiles"].get(address.profile, {})
        return found

    def fields(self, address: Address) -> dict[str, Json]:
        """What the block says of a thing."""
        if address.kind is Kind.PROFILE:
            return self.profile(address)
        if address.kind is Kind.SETTING:
            return {"value": self.profile(address).get("settings", {}).get(address.key)}
        group: dict[str, Json] = self.profile(address).get(address.kind.value, {})
        return group if address.kind is Kind.INFERENCE else group.get(address.key, {})

    def note(self, address: Address, words: str) -> None:
        said = self.changes.setdefault(address, [])
        if words not in said:
            said.append(words)

    def drop(self, address: Address, name: str, why: str) -> None:
        self.fields(address).pop(name, None)
        self.note(address, f"without {name}: {why}")

    def refuse(self, address: Address, why: Iterable[str]) -> None:
        """Takes a thing out of the block; a profile goes with all that is in it."""
        said = self.refused.setdefault(address, [])
        said.extend(why)
        if address.kind is Kind.PROFILE:
            if self.block["profiles"].pop(address.profile, None):
                said.append("all that is in it stays behind with it")
        elif address.kind is Kind.INFERENCE:
            self.profile(address).pop("inference", None)
        else:
            group = self.profile(address).get(address.kind.value, {})
            group.pop(address.key, None)
            if not group:
                self.profile(address).pop(address.kind.value, None)

    def load(self) -> Home:
        return load_text(render_setup("copy", {self.home: self.block}), base_dir=self.folder).homes[self.home]


def copy(found: Survey, made: Draft, target: Target, behind: Sequence[Behind] | None) -> Copy:
    """The drafted home as a block for `target`. Raises SpecError if not even a part of it can be declared there."""
    block = {**made.block, "harness": target.ref.harness}
    work = _Work(target.ref.id, block, made.folder, refused={a: [_why(found, a, why)] for a, why in made.out.items()})
    work.refused |= dict(_unreadable(found.observation, target.ref.id))
    for address, thing in _drafted(found, made, work):
        _unsaid(work, address, thing)
    for address, names in made.loose.items():
        if address not in work.refused:
            left = {a.key for a in made.out if (a.profile, a.kind) == (address.profile, Kind.JOB)}
            why = "refused" if left.issuperset(names) else "not in the home"
            work.refuse(address, [f"its context comes from {', '.join(names)}, which is {why}"])
    _settings(work, found, target)
    resources, canons = _settle(work, target)
    _meaning(work, found, target, resources)
    waits = {address: canon.held for address, canon in canons.items() if canon.held}
    kept = [
        Item(
            address,
            Fidelity.SEMANTIC if work.changes.get(address) else Fidelity.EXACT,
            tuple(work.changes.get(address, ())),
            waits.get(address, ""),
        )
        for address in resources
        if address.kind is not Kind.PROFILE or work.fields(address).get("description") or address in work.changes
    ]
    lost = [Item(a, Fidelity.REFUSED, tuple(dict.fromkeys(why))) for a, why in work.refused.items()]
    secrets = {name: sorted(set(_secrets(profile))) for name, profile in block["profiles"].items()}
    return Copy(
        found.ref,
        target,
        block,
        tuple(sorted([*kept, *lost], key=lambda item: item.address)),
        {name: names for name, names in secrets.items() if names},
        behind,
        tuple(found.observation.notes),
    )


def _drafted(found: Survey, made: Draft, work: _Work) -> Iterator[tuple[Address, Observed]]:
    """The things of the block, each with what the home has of it."""
    for address in list(work.load().resources):
        profile = "" if address.kind is Kind.PROFILE else address.profile
        harness_id = address.profile if address.kind is Kind.PROFILE else made.ids.get(address, address.key)
        thing = found.observation.at(profile, address.kind, harness_id)
        if isinstance(thing, Observed):
            yield address, thing


def _unreadable(observation: Observation, home: str) -> Iterator[tuple[Address, list[str]]]:
    for (profile, kind), things in observation.things.items():
        if isinstance(things, Unknown):
            yield Address(home, profile, kind), [things.reason]


def _why(found: Survey, address: Address, said: str) -> str:
    """A draft's reason, in more words where a secret is it."""
    thing = found.observation.at(address.profile, address.kind, address.key)
    hidden = isinstance(thing, Observed) and any(_holds(v, is_hidden) for v in thing.fields.values())
    return _IN_CLEAR if hidden else said


def _unsaid(work: _Work, address: Address, thing: Observed) -> None:
    """Fields of the home that the block does not say, since a setup must not or cannot."""
    said = work.fields(address)
    for name, value in thing.fields.items():
        hidden = _holds(value, is_hidden)
        if not (hidden or isinstance(value, Unknown) or _holds(value, _is_native)):
            continue
        why = value.reason if isinstance(value, Unknown) else _IN_CLEAR if hidden else _NO_WORDS
        if address.kind is Kind.JOB and name == "deliver":
            # There is nothing to keep in a home that is new, and its answer is not sent elsewhere in silence.
            work.refuse(address, ["deliver: where its answer goes cannot be said in a setup; declare it with a target"])
            return
        if (address.kind is Kind.FILE and name != "mode") or (name == "prompt" and "run" in said):
            continue  # the draft took what of a file can be said, and the prompt of a script is no part of it
        if name in _DROPPABLE or (address.kind is Kind.INFERENCE and said.get("default")):
            work.drop(address, name, why)
        else:
            work.refuse(address, [f"{name} {why}" if not isinstance(value, Unknown) else f"{name}: {why}"])
            return
    if address.kind is Kind.SKILL and "source" in said:
        declared = work.load().resources[address].fields.get("content")
        if declared != thing.get("content"):
            work.note(address, f"content: as {said['source']} has it; the home's was edited since")
    block = said.get("block")
    if (
        address.kind is Kind.FILE
        and block
        and _ending(work.load().resources[address].fields["block"]) != _ending(thing.get("block"))
    ):
        work.note(address, f"block: as {block} has it; the home's was edited since")


def _ending(block: Json) -> str:
    """A block's text with the line end that its closing marker needs."""
    return f"{str(block).removesuffix(chr(10))}\n"


def _settings(work: _Work, found: Survey, target: Target) -> None:
    """Takes out the settings that are paths of a config which the new home does not have."""
    if not isinstance(found.provider, Portable) or not isinstance(target.provider, Portable):
        return
    here, there = found.provider.config, target.provider.config
    for name, profile in work.block["profiles"].items() if here != there else ():
        keys = profile.pop("settings", {})
        if keys:
            why = f"paths of {here}, and the new home has {there}: {', '.join(sorted(keys))}"
            work.refused[Address(work.home, name, Kind.SETTING)] = [why]


def _settle(work: _Work, target: Target) -> tuple[Mapping[Address, Resource], Mapping[Address, Canon]]:
    """Takes out what the target refuses, until it refuses nothing: what stood on a refused thing goes with it."""
    while True:
        resources = work.load().resources
        observation = target.provider.prepare(resources, target.observation)
        canons = {a: target.provider.canon(r, observation, lambda path: None) for a, r in resources.items()}
        before = len(work.refused), sum(map(len, work.changes.values()))
        for address, canon in canons.items():
            if canon.expired:
                work.refuse(address, [canon.expired])
            elif canon.refused.keys() - _DROPPABLE:
                work.refuse(address, dict.fromkeys(canon.refused.values()))
            else:
                for name, why in canon.refused.items():
                    work.drop(address, name, why)
        _orphans(work)
        if before == (len(work.refused), sum(map(len, work.changes.values()))):
            for address, canon in canons.items():
                for words in canon.notes:
                    work.note(address, words)
            return resources, canons


def _orphans(work: _Work) -> None:
    """Jobs whose context comes from a job that is refused."""
    for profile, block in list(work.block["profiles"].items()):
        jobs = block.get("jobs", {})
        for key, job in list(jobs.items()):
            gone = [ref for ref in job.get("context_from", ()) if ref != "self" and ref not in jobs]
            if gone:
                why = f"its context comes from {', '.join(gone)}, which is refused"
                work.refuse(Address(work.home, profile, Kind.JOB, key), [why])


def _meaning(work: _Work, found: Survey, target: Target, resources: Mapping[Address, Resource]) -> None:
    """Notes where the two harnesses mean something else by the same words."""
    if not isinstance(found.provider, Portable) or not isinstance(target.provider, Portable):
        return
    here = found.provider.prepare(resources, found.observation)
    there = target.provider.prepare(resources, target.observation)
    for address, resource in resources.items():
        old, new = found.provider.implied(resource, here), target.provider.implied(resource, there)
        for aspect in old.keys() | new.keys():
            if old.get(aspect) != new.get(aspect):
                work.note(address, f"{aspect}: {old.get(aspect, 'not said')} → {new.get(aspect, 'not said')}")


def _holds(value: Json | Unknown, test: Callable[[Json], bool]) -> bool:
    """Whether `value` passes the test, or anything in it does."""
    if isinstance(value, Unknown):
        return False
    inner: Iterable[Json] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return test(value) or any(_holds(item, test) for item in inner)


def _is_native(value: Json) -> bool:
    return isinstance(value, dict) and "$native" in value


def _secrets(value: Json) -> Iterator[str]:
    """The names of the secrets that a block names."""
    if isinstance(value, dict):
        if set(value) == {"secret"} and isinstance(value["secret"], str):
            yield value["secret"]
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)
