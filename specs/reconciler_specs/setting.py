"""A setting: one value of a harness's own configuration, by its dotted path."""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import profile
from .address import Address
from .document import Node
from .errors import Where
from .reading import Field, Fields, Reasons, resource
from .reading import Marks as _Marks
from .resource import Mode, Origin, Resource
from .table import free_shape, with_references
from .values import Refusal, plain

FIELDS: Fields = {"value": Field("Any value that JSON can hold, or {secret: NAME}.", {})}

_SEGMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."\s][^."]*)')
_BARE = re.compile(r'[^."\s\\][^."\\]*\Z')


def split_setting(key: str) -> tuple[str, ...]:
    """`providers."my.host".base_url` → ("providers", "my.host", "base_url"). Raises Refusal if it is no path."""
    parts: list[str] = []
    at = 0
    while True:
        match = _SEGMENT.match(key, at)
        if match is None or match[0] == "" or match[0] == '""':
            raise Refusal(
                "a setting is a dotted path", 'put a segment with a dot in double quotes: providers."my.host".base_url'
            )
        quoted, bare = match.groups()
        parts.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare.rstrip())
        at = match.end()
        if at == len(key):
            return tuple(parts)
        if key[at] != ".":
            raise Refusal(
                "a setting is a dotted path", 'put a segment with a dot in double quotes: providers."my.host".base_url'
            )
        at += 1


def join_setting(path: Iterable[str]) -> str:
    """The one way to write a path: quotes only round segments that need them. The inverse of `split_setting`."""
    return ".".join(
        p if _BARE.match(p) and p == p.rstrip() else '"' + p.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for p in path
    )


def read_setting(node: Node, address: Address, where: Where, mode: Mode, reasons: Reasons) -> Resource | None:
    """The Resource of one setting whose key was accepted."""
    value = node.plain()
    try:
        value = with_references(plain(value))
    except Refusal as refusal:
        reasons.add(node.descend(refusal.path).where, f"{address}: {refusal.message}", refusal.hint)
        return None
    needed = profile.needs(address.home, address.profile)

    def origin(name: str) -> Origin:
        return Origin(node.where if name else where, node.via)

    shapes = {"value": free_shape(value)}
    return resource(address, {"value": value}, shapes, _Marks(), mode, origin, needed)


def overlaps(paths: Iterable[tuple[str, ...]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of paths of which the first contains the second."""
    known = set(paths)
    return [(path[:n], path) for path in sorted(known) for n in range(1, len(path)) if path[:n] in known]
