"""A kind that its field table says all of: read, checked and made a Resource by the table alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from . import profile
from .address import Address, Kind
from .document import Node, shown
from .errors import Where
from .reading import THING_KEYS, Fields, Reasons, check_keys, is_map, origins, read_marks, resource
from .resource import Mode, Resource
from .shape import SCALAR, Class, Json, Shape, shape_of
from .sources import Sources
from .values import NAME, Refusal, plain, secret_ref


@dataclass(frozen=True, slots=True)
class Around:
    """What a thing may need to know of its home: the `sources`, and the names of the declared `profiles`."""

    sources: Sources
    profiles: Collection[str] = ()


@dataclass(slots=True)
class Declared:
    """A thing while it is read: what its kind's `finish` may complete."""

    address: Address
    node: Node
    what: str
    fields: dict[str, Json]
    steering: dict[str, Json] = field(default_factory=dict)  # the table's entries that are no fields
    needs: list[Address] = field(default_factory=list)
    options: dict[str, Json] = field(default_factory=dict)


def name_problem(key: str) -> str:
    """What is wrong with a thing's name, "" if nothing."""
    return "" if NAME.match(key) else "a name is a-z, 0-9, _, . and -, up to 63"


@dataclass(frozen=True, slots=True)
class Table:
    """A kind of which a profile holds several by name.

    `doc` is its line in the profile, `thing` the word for one in the JSON Schema. `one_of` are fields of which exactly
    one is given. `key` says what is wrong with a name; `finish` completes what was read, or adds reasons.
    """

    kind: Kind
    thing: str
    doc: str
    fields: Fields
    one_of: tuple[str, ...] = ()
    short: str = ""
    key: Callable[[str], str] = name_problem
    finish: Callable[[Declared, Around, Reasons], None] | None = None

    @property
    def written(self) -> Fields:
        """What an author may write: the rest is made from it by `finish`."""
        return {name: f for name, f in self.fields.items() if f.check is not None}

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: f.shape for name, f in self.fields.items() if f.field}


def read_thing(
    table: Table, node: Node, address: Address, where: Where, mode: Mode, around: Around, reasons: Reasons
) -> Resource | None:
    """One thing as a Resource. None with reasons added if it does not fit its table."""
    what = str(address)
    if table.short and (node.kind == "seq" or (node.kind == "map" and node.value.keys() == {"only"})):
        node = _wrapped(node, table.short)
    if not is_map(node, what, reasons):
        return None
    before = len(reasons.found)
    check_keys(node, (*table.written, *THING_KEYS), what, reasons)
    marks = read_marks(node, table.shapes, what, reasons)
    declared = Declared(address, node, what, {})
    for name, entry in table.written.items():
        child = node.get(name)
        if child is None or child.is_null:
            if entry.needed:
                reasons.add(child.where if child is not None else where, f"{what}: {name} is needed")
            continue
        try:
            value = entry.check(child.plain()) if entry.check is not None else None
        except Refusal as refusal:
            reasons.refused(child, (name,), what, refusal)
            continue
        (declared.fields if entry.field else declared.steering)[name] = value
    given = [name for name in table.one_of if node.get(name) is not None]
    if table.one_of and len(given) != 1:
        got = " and ".join(given) or "none"
        reasons.add(where, f"{what}: exactly one of {', '.join(table.one_of)} is needed, got {got}")
    if len(reasons.found) > before:
        return None
    declared.needs += profile.needs(address.home, address.profile)
    if table.finish is not None:
        table.finish(declared, around, reasons)
        if len(reasons.found) > before:
            return None
    shapes = {name: _shape(table.shapes[name], value) for name, value in declared.fields.items()}
    return resource(
        declared.address,
        declared.fields,
        shapes,
        marks,
        mode,
        origins(node, where),
        tuple(dict.fromkeys(declared.needs)),
        declared.options,
    )


def read_things(
    table: Table, node: Node, profile_address: Address, mode: Mode, around: Around, reasons: Reasons
) -> list[Resource]:
    """All things of a kind in a profile, in the order in which they stand there."""
    what = f"{profile_address}/{table.kind}"
    made: dict[Address, Resource] = {}
    for key, child in node.items():
        at = node.where_key(key)
        wrong = table.key(key)
        if wrong:
            reasons.add(at, f"{what}: {shown(key)}: {wrong}")
            continue
        address = Address(profile_address.home, profile_address.profile, table.kind, key)
        found = read_thing(table, child, address, at, mode, around, reasons)
        if found is None:
            continue
        if found.address in made:
            reasons.add(at, f"{what}: {shown(key)} is {found.address.key}, which stands here already")
        made[found.address] = found
    return list(made.values())


def _wrapped(node: Node, name: str) -> Node:
    """`node` as the one entry of a map."""
    return Node("map", {name: node}, node.mark, node.file, via=node.via)


def _shape(shape: Shape, value: Json) -> Shape:
    return free_shape(value) if shape.free else shape


def free_shape(value: Json) -> Shape:
    """The shape of a free value: as `shape_of`, but a secret reference is compared and written whole."""
    if isinstance(value, dict):
        if value.keys() == {"secret"}:
            return SCALAR
        return Shape(Class.MAP, fields={key: free_shape(item) for key, item in value.items()})
    return shape_of(value)


def with_references(value: Json) -> Json:
    """Checks every `{secret: NAME}` in a free value. Raises Refusal with its path."""
    if isinstance(value, dict):
        if value.keys() == {"secret"}:
            return secret_ref(value)
        for key, item in value.items():
            try:
                with_references(item)
            except Refusal as refusal:
                raise refusal.under(key) from refusal
    elif isinstance(value, list):
        for i, item in enumerate(value):
            try:
                with_references(item)
            except Refusal as refusal:
                raise refusal.under(i) from refusal
    return value


def free_map(value: Json) -> dict[str, Json]:
    """A map of anything that JSON can hold, `{secret: NAME}` where a secret belongs. Raises Refusal."""
    if not isinstance(value, dict):
        raise Refusal("a map is expected")
    result: dict[str, Json] = with_references(plain(value))
    return result


def named_in(value: Json) -> set[str]:
    """The names of the secrets that a value names."""
    if isinstance(value, Mapping):
        if value.keys() == {"secret"} and isinstance(value["secret"], str):
            return {value["secret"]}
        return set().union(*(named_in(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(named_in(item) for item in value))
    return set()
