"""One credential of a channel in two places: both would answer, and each would take the other's messages away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .address import Address, Kind
from .channel import split_key
from .reading import Reasons
from .secret import KEEP, ONE_STORE
from .shape import Json

if TYPE_CHECKING:
    from .setup import Home


def one_credential_once(homes: Mapping[str, Home], reasons: Reasons) -> None:
    """Adds a reason for each enabled channel whose credential has the same source as another's.

    Two names that are only kept in their homes may stand for two values: that cannot be told from a setup.
    """
    seen: dict[tuple[str, str], Address] = {}
    for home in homes.values():
        for address, resource in home.resources.items():
            if address.kind is not Kind.CHANNEL or not resource.fields.get("enabled"):
                continue
            for name in resource.fields.get("secrets", {}).values():
                source = _source(home, address, name)
                if source == KEEP or source is None:
                    continue
                first = seen.setdefault((split_key(address.key)[0], repr(source)), address)
                if first != address:
                    reasons.add(
                        resource.origin("secrets").where,
                        f"{address}: its {name} comes from where that of {first} does; two that listen with one "
                        "credential take each other's messages",
                        "give each its own, or set enabled: false on one of them",
                    )


def _source(home: Home, address: Address, name: str) -> Json:
    profile = "" if address.profile == "default" or home.harness in ONE_STORE else address.profile
    resource = home.resources.get(Address(home.id, profile, Kind.SECRET, name))
    return resource.fields["value"] if resource else None
