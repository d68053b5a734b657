"""`moved:` and `released:`: addresses that things have had, and are known by in state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .address import Address
from .document import Node, shown
from .errors import Where
from .reading import Reasons, check_keys, is_map
from .setup import Home

EVERY = "*"
"""The home of an address that is one in every home: what a template had."""


def read_moved(root: Node, homes: Mapping[str, Home], found: Reasons) -> tuple[tuple[Address, Address], ...]:
    """(from, to) of each, for every home that they are of (E9)."""
    node = root.get("moved")
    result: list[tuple[Address, Address]] = []
    if node is None:
        return ()
    if node.kind != "seq":
        found.add(node.where, "moved: a list of {from, to} is expected")
        return ()
    for item in node.value:
        if not is_map(item, "moved", found):
            continue
        check_keys(item, ("from", "to"), "moved", found)
        old = _address(item.get("from"), "moved from", item.where, found)
        new = _address(item.get("to"), "moved to", item.where, found)
        if old is None or new is None:
            continue
        if old.kind is not new.kind:
            found.add(item.where, f"moved: {old} and {new} are of two kinds")
        if (old.home == EVERY) is not (new.home == EVERY):
            found.add(item.where, "moved: `*` for every home stands in `from` and in `to`, or in none")
            continue
        if old.home != new.home:
            found.add(item.where, f"moved: {old} and {new} are in two homes", "a thing stays in its home")
            continue
        for source, target in zip(_each(old, homes), _each(new, homes), strict=True):
            if _declares(source, homes):
                found.add(item.value["from"].where, f"moved from: {source} is still declared", "rename its block")
            elif source in (o for o, _ in result) or target in (n for _, n in result):
                found.add(item.where, "moved: an address stands here twice")
            result.append((source, target))
    return tuple(result)


def read_released(root: Node, homes: Mapping[str, Home], found: Reasons) -> tuple[Address, ...]:
    """What is let go of without a delete, for every home that it is in."""
    node = root.get("released")
    if node is None:
        return ()
    if node.kind != "seq":
        found.add(node.where, "released: a list of addresses is expected")
        return ()
    result: list[Address] = []
    for item in node.value:
        said = _address(item, "released", item.where, found)
        for address in _each(said, homes) if said is not None else ():
            if _declares(address, homes):
                found.add(item.where, f"released: {address} is still declared", "take its block away first")
            result.append(address)
    return tuple(result)


def _address(node: Node | None, what: str, where: Where, found: Reasons) -> Address | None:
    if node is None or not isinstance(node.value, str):
        found.add(node.where if node else where, f"{what}: an address is expected", "main/default/jobs/brief")
        return None
    try:
        return Address.parse(node.value)
    except ValueError as error:
        found.add(node.where, f"{what}: {shown(node.value)} is no address: {error}")
        return None


def _declares(address: Address, homes: Mapping[str, Home]) -> bool:
    home = homes.get(address.home)
    return home is not None and (str(address) == home.id or address in home.resources)


def _each(address: Address, homes: Iterable[str]) -> list[Address]:
    """An address of one home; of every home where its home is `*`."""
    return [address.within(home) for home in homes] if address.home == EVERY else [address]
