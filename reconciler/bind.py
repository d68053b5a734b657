"""Bind: take an observed thing into state (adopt, settle, and what a write's read-back proved). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler_specs.resource import Resource
from reconciler_specs.shape import Class, Json, Shape
from reconciler_state.record import Base, Owned

from .action import FieldChange, FieldRow
from .fields import FOUND
from .merge import equal, merge
from .observe import ABSENT, Absent, Observed, Seen, Unknown
from .provider import Canon
from .values import members

ABSENT_JSON = {"$absent": True}


def as_json(value: Seen) -> Json:
    """A side of a base as JSON: absent is written out. Unknown has no place in a base."""
    return dict(ABSENT_JSON) if value is ABSENT else value


def shape_in(canon: Canon, resource: Resource | None, name: str) -> Shape:
    """The shape of a canonical field: the provider's own if it derived the field, else the kind's."""
    shape = canon.shapes.get(name)
    if shape is None and resource is not None:
        shape = resource.shapes.get(name)
    return shape or Shape()


def bind(canon: Canon, resource: Resource, observed: Observed | Absent, harness_id: str, origin: str) -> Owned:
    """Ownership of an observed thing as `adopt` gives it (laws, “adopt”): a base for each declared field that the
    home satisfies, none for the others, which the next plan shows as `claim`."""
    fields, found = {}, {}
    for name, declared in canon.fields.items():
        value = observed.get(name) if isinstance(observed, Observed) else ABSENT
        if isinstance(value, Unknown) or value is ABSENT:
            continue
        shape = shape_in(canon, resource, name)
        if equal(shape, merge(shape, ABSENT, declared, value), value):
            fields[name] = Base(declared, value)
            if shape.cls is Class.SET:
                found[name] = tuple(members(value))
    return Owned(
        id=harness_id,
        origin=origin,
        fields=fields,
        needs=tuple(n.path for n in resource.needs),
        protect=resource.protect,
        found=found,
    )


def rebase(
    owned: Owned, bases: Mapping[str, Base], dropped: frozenset[str], changes: Sequence[FieldChange] = ()
) -> Owned:
    """`owned` with some bases renewed and some fields let go; of the `changes` that were written, those that added a
    field to an adopted thing are noted (laws, field row 2: “or the key”)."""
    fields = {k: v for k, v in {**owned.fields, **bases}.items() if k not in dropped}
    if owned.origin == "created":
        return replace(owned, fields=fields)
    added = {c.field for c in changes if c.row is FieldRow.CLAIM and c.note != FOUND and c.field in bases}
    return replace(owned, fields=fields, made=tuple(sorted({*owned.made, *added} & fields.keys())))


def references(value: object) -> set[str]:
    """The address paths that a canonical value refers to without knowing their ids."""
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return {str(value["$ref"])}
        return set().union(*(references(v) for v in value.values()))
    return set().union(*(references(v) for v in value)) if isinstance(value, list) else set()


def resolve_refs(value: Json, resolve: Callable[[str], str | None]) -> Json:
    """A canonical value with each `{"$ref": path}` replaced by the id that is bound to it by now."""
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return resolve(value["$ref"]) or value
        return {k: resolve_refs(v, resolve) for k, v in value.items()}
    if isinstance(value, list):
        return [resolve_refs(v, resolve) for v in value]
    return value
