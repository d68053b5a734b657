"""Secrets of a Hermes-shaped home: entries of a profile's `.env`. Names for everybody, values only as digests (L5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.observe import Observed
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

from .hiding import HIDDEN, Hider
from .plain import digest

DEFAULT = "default"


def place(profile: str) -> str:
    """The profile that a secret's address names: none for the default one, whose secrets are the home's."""
    return "" if profile == DEFAULT else profile


def profile_of(address: Address) -> str:
    """The profile in whose `.env` a secret stands."""
    return address.profile or DEFAULT


def things(profile: str, wanted: Sequence[str], values: Mapping[str, str], hider: Hider) -> dict[str, Observed]:
    """The wanted names that have a value there, as their digests."""
    found = {}
    for name in wanted:
        value = values.get(name)
        if value:
            seen = digest(value, hider.key)
            fields: dict[str, Json] = {"present": True, "value": {HIDDEN: seen}}
            found[name] = Observed(Kind.SECRET, place(profile), name, fields, name=name, fingerprint=seen)
    return found


def with_coming(facts: Mapping[str, Json], addresses: Iterable[Address]) -> dict[str, Json]:
    """The facts with the declared secrets among each profile's names: what needs one waits for its row."""
    profiles = dict(facts.get("profiles", {}))
    for address in addresses:
        name = profile_of(address)
        if address.kind is Kind.SECRET and name in profiles:
            profiles[name] = {**profiles[name], "env": sorted({*profiles[name].get("env", ()), address.key})}
    return {**facts, "profiles": profiles}


def in_clear(file: str, hidden: Any, path: str = "") -> Iterator[str]:
    """The places in a file where a secret stands itself, and not a reference to it; `hidden` is its hidden content."""
    if isinstance(hidden, dict):
        if hidden.keys() == {HIDDEN}:
            yield f"{file}: {path}"
            return
        for key, item in hidden.items():
            yield from in_clear(file, item, f"{path}.{key}" if path else str(key))
    elif isinstance(hidden, list):
        for index, item in enumerate(hidden):
            yield from in_clear(file, item, f"{path}[{index}]")
