"""JSON values compared by what they mean: `1`, `1.0` and `True` apart as JSON has them, dict order irrelevant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeGuard

from reconciler_specs.shape import Json

from .observe import ABSENT, Absent, Seen

_ABSENT_MARK: Final = "$absent"


def same(a: Seen, b: Seen) -> bool:
    """Whether two values are the same JSON. A bool is no number; 1 and 1.0 are one number; absent is only absent."""
    if a is b:
        return True
    if isinstance(a, str):
        return isinstance(b, str) and a == b
    if isinstance(a, bool) or isinstance(b, bool):
        return False  # True and False are singletons, so `is` has already answered
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or (a != a and b != b)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return False


def canonical(value: Json) -> str:
    """A text that two values share iff they are `same`: what sets and keyed lists index their members by."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value


def from_base(half: Json) -> Json | Absent:
    """A base's half as it is seen: `{"$absent": true}` is ABSENT."""
    if isinstance(half, dict) and half.keys() == {_ABSENT_MARK}:
        return ABSENT
    return half


def to_base(value: Json | Absent) -> Json:
    """A value as a base's half: ABSENT is `{"$absent": true}`."""
    return {_ABSENT_MARK: True} if value is ABSENT else value


def members(value: Seen) -> list[Json]:
    """A set's members, each once: of a list, of `{"only": [...]}`, of nothing (absent, null)."""
    listed: Iterable[Json] = ()
    if isinstance(value, list | tuple):
        listed = value
    elif is_only(value):
        listed = value["only"]
    return list({canonical(v): v for v in listed}.values())


def is_only(value: Seen) -> TypeGuard[dict[str, Any]]:
    """Whether a declared set is exact: `{"only": [...]}`."""
    return isinstance(value, dict) and value.keys() == {"only"} and isinstance(value["only"], list | tuple)
