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
from .shape import SCALAR, Class, Json, Shape, shape_of
from .values import Refusal, plain, secret_ref

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
        value = _with_references(plain(value))
    except Refusal as refusal:
        reasons.add(node.descend(refusal.path).where, f"{address}: {refusal.message}", refusal.hint)
        return None
    needed = profile.needs(address.home, address.profile)

    def origin(name: str) -> Origin:
        return Origin(node.where if name else where, node.via)

    shapes = {"value": _shape(value)}
    return resource(address, {"value": value}, shapes, _Marks(), mode, origin, needed)


def _with_references(value: Json) -> Json:
    """Checks every `{secret: NAME}` in a value. Raises Refusal with its path."""
    if isinstance(value, dict):
        if value.keys() == {"secret"}:
            return secret_ref(value)
        for key, item in value.items():
            try:
                _with_references(item)
            except Refusal as refusal:
                raise refusal.under(key) from refusal
    elif isinstance(value, list):
        for i, item in enumerate(value):
            try:
                _with_references(item)
            except Refusal as refusal:
                raise refusal.under(i) from refusal
    return value


def _shape(value: Json) -> Shape:
    """As `shape_of`, but a secret reference is one value, compared and written whole."""
    if isinstance(value, dict):
        if value.keys() == {"secret"}:
            return SCALAR
        return Shape(Class.MAP, fields={k: _shape(v) for k, v in value.items()})
    return shape_of(value)


def overlaps(paths: Iterable[tuple[str, ...]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of paths of which the first contains the second."""
    known = set(paths)
    return [(path[:n], path) for path in sorted(known) for n in range(1, len(path)) if path[:n] in known]
