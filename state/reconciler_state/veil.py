"""The form of a state that other runners may see: digests of secrets are names that say nothing, texts may be digests.

A digest of a secret value is keyed, and still no repository's business (L5). Each runner gives a digest a random name,
`{"$hidden": "@NAME"}`, keeps which name stands for which digest to itself, and sees by the name whether the value is
still the one that it knows.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from .record import Base, HomeState, Owned

HIDDEN: Final = "$hidden"
TEXT: Final = "$text"
MARKS: Final = (b'{"$hidden": "@', b'{"$text": ')
"""How what another runner knows looks in a state file."""
LONG: Final = 256  # characters: a text from here on may be kept as its digest


@dataclass
class Names:
    """One home's names for digests, as this runner knows them: name → digest. `new` says whether one was added."""

    known: dict[str, str] = field(default_factory=dict)
    new: bool = False

    def __post_init__(self) -> None:
        self._of = {digest: name for name, digest in self.known.items()}

    def name(self, digest: str, before: str) -> str:
        """The name of a digest; `before` is one that it may take up if it has none ("" for none)."""
        if digest.startswith("@"):
            return digest
        if digest not in self._of:
            free = before.startswith("@") and before not in self.known
            name = before if free else f"@{secrets.token_hex(6)}"
            self.known[name] = digest
            self._of[digest] = name
            self.new = True
        return self._of[digest]

    def digest(self, name: str) -> str:
        """The digest that a name stands for; the name itself where that is not known here."""
        return self.known.get(name, name)


def veiled(
    state: HomeState,
    names: Names,
    *,
    before: HomeState | None = None,
    touched: Collection[str] = (),
    texts: bool = True,
) -> HomeState:
    """The state as others may see it. `before` is what they see now: a value whose thing no run has `touched` (address
    paths) keeps its name. Without `texts` long ones become digests."""

    def out(value: Json, was: Json) -> Json:
        if _hides(value):
            return {HIDDEN: names.name(value[HIDDEN], str(was[HIDDEN]) if _hides(was) else "")}
        if not texts and isinstance(value, str) and len(value) >= LONG:
            return {TEXT: digest_of(value)}
        return value

    made = {}
    for owner, things in state.owners.items():
        old = before.owned(owner) if before else {}
        made[owner] = {
            path: _thing(path, thing, None if path in touched else old.get(path), out) for path, thing in things.items()
        }
    return replace(state, owners=made)


def unveiled(state: HomeState, names: Names, ours: HomeState | None) -> HomeState:
    """The state as this runner knows it. `ours` is its earlier copy, for the texts in it."""
    texts: dict[str, str] = {}

    def learn(value: Json, was: Json) -> Json:
        if isinstance(value, str) and len(value) >= LONG:
            texts[digest_of(value)] = value
        return value

    def back(value: Json, was: Json) -> Json:
        if _hides(value):
            return {HIDDEN: names.digest(value[HIDDEN])}
        if is_text(value):
            return texts.get(value[TEXT], value)
        return value

    for things in ours.owners.values() if ours else ():
        for path, thing in things.items():
            _thing(path, thing, None, learn)
    made = {o: {p: _thing(p, t, None, back) for p, t in things.items()} for o, things in state.owners.items()}
    return replace(state, owners=made)


def resolved(value: Json, seen: Json, texts: Mapping[str, str]) -> Json:
    """A base's half with what this runner does not know of it filled in: a hidden value by the one that is `seen` at
    the same place now, a text by one of `texts` (digest → text). What neither has stays."""

    def fill(one: Json, now: Json) -> Json:
        if _hides(one) and one[HIDDEN].startswith("@"):
            return now if _hides(now) else one
        return texts.get(one[TEXT], one) if is_text(one) else one

    return _walk(value, seen, fill)


def unknown_here(thing: Owned) -> bool:
    """Whether something in a thing's bases is known to other runners only."""
    found = False

    def look(value: Json, was: Json) -> Json:
        nonlocal found
        found = found or is_text(value) or (_hides(value) and value[HIDDEN].startswith("@"))
        return value

    _thing("", thing, None, look)
    return found


def has_long(value: Json) -> bool:
    """Whether a long text, or what stands for one, is anywhere in a value."""
    found = False

    def look(one: Json, was: Json) -> Json:
        nonlocal found
        found = found or is_text(one) or (isinstance(one, str) and len(one) >= LONG)
        return one

    _walk(value, None, look)
    return found


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_text(value: Json) -> bool:
    """Whether a value stands for a long text."""
    return isinstance(value, dict) and value.keys() == {TEXT} and isinstance(value[TEXT], str)


def _hides(value: Json) -> bool:
    return isinstance(value, dict) and value.keys() == {HIDDEN} and isinstance(value[HIDDEN], str)


_Change = Callable[[Json, Json], Json]


def _thing(path: str, thing: Owned, old: Owned | None, change: _Change) -> Owned:
    was = old.fields if old else {}
    fields = {}
    for name, base in thing.fields.items():
        then = was.get(name, Base(None, None))
        fields[name] = Base(_walk(base.declared, then.declared, change), _walk(base.observed, then.observed, change))
    # What a secret was before stands there as bare digests.
    bare = Kind.SECRET.value in path.split("/")[:2]
    found = {
        name: tuple(_bare(v, change) if bare and isinstance(v, str) else _walk(v, None, change) for v in values)
        for name, values in thing.found.items()
    }
    return replace(thing, fields=fields, found=found)


def _bare(digest: str, change: _Change) -> Json:
    made = change({HIDDEN: digest}, None)
    return made[HIDDEN] if isinstance(made, dict) else made


def _walk(value: Json, was: Json, change: _Change) -> Json:
    """`value` with `change` made to every part of it that is no map or list, or that stands for something."""
    if isinstance(value, dict) and not _hides(value) and not is_text(value):
        then = was if isinstance(was, dict) else {}
        return {key: _walk(item, then.get(key), change) for key, item in value.items()}
    if isinstance(value, list):
        old = was if isinstance(was, list) and len(was) == len(value) else [None] * len(value)
        return [_walk(item, one, change) for item, one in zip(value, old, strict=True)]
    return change(value, was)
