"""Value classes: how a field's value merges and compares (laws, “Value classes”). Kind files declare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# What a field holds: None, bool, int, float, str, list and dict of the same. Named for the reader; mypy
# cannot check a recursive alias against pydantic's output, so it is Any to the checker.
Json = Any


class Class(StrEnum):
    """How two values of a field are brought together."""

    SCALAR = "scalar"  # compared and written whole, whatever it is made of
    ATOMIC = "atomic"  # a list whose order means something: replaced whole
    SET = "set"  # a list without order: unites; {"only": [...]} makes it exact
    KEYED = "keyed"  # a list of maps, each known by the values of `keys`
    MAP = "map"  # by key; `fields` names known members, `of` is the shape of the others
    TEXT = "text"  # three-way by line


@dataclass(frozen=True, slots=True)
class Shape:
    """A value class with what lies inside it.

    `of` is the shape of a map's values or a keyed list's items (SCALAR where None); `fields` the shapes of a
    map's known members; `keys` the fields that tell a keyed list's items apart, with `defaults` for those that
    an item may leave out. `free`: the kind says nothing of what is in it, and the value's own form is its shape.
    """

    cls: Class = Class.SCALAR
    of: Shape | None = None
    fields: Mapping[str, Shape] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Json] = field(default_factory=dict)
    free: bool = False


SCALAR = Shape(Class.SCALAR)
ATOMIC = Shape(Class.ATOMIC)
SET = Shape(Class.SET)
TEXT = Shape(Class.TEXT)
MAP_OF_SCALARS = Shape(Class.MAP)
FREE = Shape(Class.MAP, free=True)


def shape_of(value: Json) -> Shape:
    """The shape of a value whose kind says nothing (a setting): maps by key, lists whole, the rest scalar."""
    if isinstance(value, dict):
        return Shape(Class.MAP, fields={k: shape_of(v) for k, v in value.items()})
    return ATOMIC if isinstance(value, list) else SCALAR
