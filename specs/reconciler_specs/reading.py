"""From a node to a validated model: field tables, closed maps with “did you mean”, every reason with its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .address import Address
from .document import Node, shown
from .errors import Reason, Where
from .resource import Mode, Origin, Resource
from .shape import SCALAR, Json, Shape
from .values import Refusal, described

Schema = dict[str, Any]
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind: how it merges, one line for people, and its JSON Schema.

    `field` is False for what steers the setup but is no field of a Resource (a file's `seed`). A kind that is read by
    its table alone (`table`) has its `check` here, which gives a value back as plain JSON or raises Refusal, and
    whether it is `needed`.
    """

    doc: str
    schema: Schema
    shape: Shape = SCALAR
    field: bool = True
    check: Callable[[Any], Json] | None = None
    needed: bool = False


Fields = Mapping[str, Field]


@dataclass(slots=True)
class Reasons:
    """Collects everything that is wrong, so that a person sees it all at once."""

    found: list[Reason] = field(default_factory=list)
    hidden: set[Where] = field(default_factory=set)

    def add(self, where: Where, message: str, hint: str = "") -> None:
        """Nothing more is said of a value that was taken out of the tree: what stands there now is nobody's."""
        if where not in self.hidden:
            self.found.append(Reason(where, message, hint))

    def hide(self, where: Where, message: str, hint: str) -> None:
        """A reason for a value that nobody may see, and that is taken out of the tree."""
        self.add(where, message, hint)
        self.hidden.add(where)

    def refused(self, node: Node, under: tuple[str | int, ...], what: str, refusal: Refusal) -> None:
        """A value that was not accepted: `node` is what stands at `under` in the thing."""
        path = refusal.path
        if path and refusal.at_key:
            at = node.descend(path[:-1]).where_key(str(path[-1]))
        else:
            at = node.descend(path).where
        dotted = ".".join(str(part) for part in (*under, *path))
        self.add(at, f"{what} {dotted}: {refusal.message}", refusal.hint)


def did_you_mean(key: str, known: Iterable[str]) -> str:
    """A hint that names the closest of `known`, or lists them if few."""
    choices = list(known)
    close = get_close_matches(key, choices, 1, 0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"one of {', '.join(choices)}" if 0 < len(choices) <= 16 else ""


def is_map(node: Node, what: str, reasons: Reasons) -> bool:
    """Whether `node` is a map; adds a reason if it is something else. A null passes as “nothing there”: False."""
    if node.kind == "map":
        return True
    if not node.is_null:
        value = [] if node.kind == "seq" else node.value
        reasons.add(node.where, f"{what}: a map is expected, got {described(value)}")
    return False


def check_keys(node: Node, known: Collection[str], what: str, reasons: Reasons, *, extra: bool = False) -> None:
    """Adds a reason for every key of the map that is not one of `known`. `extra` lets `x-…` pass."""
    for key in node.value:
        if key in known or (extra and key.startswith("x-")):
            continue
        reasons.add(
            node.where_key(key),
            f"{what}: {shown(key)} is not a key here" if what else f"{shown(key)} is not a key here",
            did_you_mean(key, known),
        )


THING_KEYS = ("fields", "protect", "unset")


def read(model: type[M], node: Node, what: str, where: Where, reasons: Reasons) -> M | None:
    """`node` as `model`, whose keys were checked already. None with reasons added if it does not fit.

    `what` is how messages name the thing, `where` the place for what is missing in it.
    """
    fields = model.model_fields
    known = {f.alias or name for name, f in fields.items()}
    values = {k: v.plain() for k, v in node.value.items() if k in known and not v.is_null}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        for e in error.errors(include_url=False, include_context=True, include_input=False):
            _explain(e, node, what, where, reasons)
        return None


def _explain(e: Any, node: Node, what: str, where: Where, reasons: Reasons) -> None:
    loc = tuple(e["loc"])
    cause = e.get("ctx", {}).get("error")
    name = ".".join(str(p) for p in loc)
    if e["type"] == "missing":
        empty = node.value.get(loc[0]) if node.kind == "map" else None
        if empty is not None:
            reasons.add(empty.where, f"{what} {name} is empty", _null_hint(name, empty))
        else:
            reasons.add(where, f"{what}: {name} is needed")
        return
    if isinstance(cause, Refusal):
        path = (*loc, *cause.path)
        if path and cause.at_key:
            at = node.descend(path[:-1]).where_key(str(path[-1]))
        else:
            at = node.descend(path).where if path else where
        dotted = ".".join(str(p) for p in path)
        reasons.add(at, f"{what} {dotted}: {cause.message}" if dotted else f"{what}: {cause.message}", cause.hint)
        return
    reasons.add(node.descend(loc).where if loc else where, f"{what} {name}: {e['msg']}")


def _null_hint(name: str, node: Node) -> str:
    if node.text == "~" and name == "path":
        return 'a ~ by itself is null: write "~" or a path such as ~/.hermes'
    return "a text that starts with # or ~ needs quotes; an empty value is null" if node.text in ("", "~") else ""


@dataclass(frozen=True, slots=True)
class Marks:
    """What any thing may say beside its fields: modes by field, protection, fields to clear."""

    modes: Mapping[str, Mode] = field(default_factory=dict)
    protect: bool = False
    unset: frozenset[str] = frozenset()


def read_marks(node: Node, fields: Collection[str], what: str, reasons: Reasons) -> Marks:
    """`fields:`, `protect:` and `unset:` of a thing whose own field names are `fields`."""
    modes: dict[str, Mode] = {}
    given = node.get("fields")
    if given is not None and is_map(given, f"{what} fields", reasons):
        for key, child in given.items():
            if key not in fields:
                reasons.add(
                    given.where_key(key), f"{what} fields: {shown(key)} is not a field", did_you_mean(key, fields)
                )
            elif child.value in _MODES:
                modes[key] = Mode(child.value)
            else:
                reasons.add(
                    child.where,
                    f"{what} fields.{key}: one of {', '.join(_MODES)} is expected",
                    did_you_mean(str(child.value), _MODES) if isinstance(child.value, str) else "",
                )
    protect = node.get("protect")
    if protect is not None and not isinstance(protect.value, bool):
        reasons.add(protect.where, f"{what} protect: true or false is expected")
    unset: set[str] = set()
    cleared = node.get("unset")
    if cleared is not None:
        if cleared.kind != "seq":
            reasons.add(cleared.where, f"{what} unset: a list of field names is expected", "write unset: [workdir]")
        else:
            for item in cleared.value:
                name = item.value
                if not isinstance(name, str) or name not in fields:
                    reasons.add(
                        item.where,
                        f"{what} unset: {shown(name)} is not a field" if isinstance(name, str) else f"{what} unset",
                        did_you_mean(str(name), fields),
                    )
                elif node.get(name) is not None:
                    reasons.add(item.where, f"{what} unset: {name} is declared here too", "keep one of the two")
                else:
                    unset.add(name)
    return Marks(modes, protect is not None and protect.value is True, frozenset(unset))


_MODES = tuple(m.value for m in Mode)


def origin_of(node: Node, where: Where, keys: Mapping[str, str], name: str) -> Origin:
    """Where a field was written. `keys` maps a field to the key that says it (a file's `text` to `source`)."""
    child = node.value.get(keys.get(name, name)) if name and node.kind == "map" else None
    if child is None:
        return Origin(where, node.via)
    return Origin(child.where, child.via)


def origins(node: Node, where: Where, keys: Mapping[str, str] | None = None) -> Callable[[str], Origin]:
    return partial(origin_of, node, where, keys or {})


def resource(
    address: Address,
    fields: Mapping[str, Json],
    shapes: Mapping[str, Shape],
    marks: Marks,
    default_mode: Mode,
    origin: Callable[[str], Origin],
    needs: tuple[Address, ...] = (),
    options: Mapping[str, Json] | None = None,
) -> Resource:
    """A Resource with the policy's mode on every field that has none of its own."""
    modes = marks.modes
    if default_mode is not Mode.HOLD:
        modes = {**dict.fromkeys(fields, default_mode), **modes}
    return Resource(
        address=address,
        fields=fields,
        shapes={name: shapes[name] for name in fields},
        needs=needs,
        modes=modes,
        unset=marks.unset,
        protect=marks.protect,
        options=options or {},
        origin=origin,
    )


# JSON Schema fragments that several field tables use.
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NAMES: Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
NAME_SET: Schema = {
    "oneOf": [
        NAMES,
        {"type": "object", "properties": {"only": NAMES}, "required": ["only"], "additionalProperties": False},
    ]
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def marks_schema(fields: Iterable[str]) -> dict[str, Schema]:
    """The JSON Schema of `fields`, `protect` and `unset` for a kind with these field names."""
    names = list(fields)
    return {
        "fields": {
            "description": "What to do per field when the home's value moved away from what was applied.",
            "type": "object",
            "properties": {name: {"enum": list(_MODES)} for name in names},
            "additionalProperties": False,
        },
        "protect": {"description": "Never delete it, not even when its block is gone.", "type": "boolean"},
        "unset": {
            "description": "Fields to clear in the harness.",
            "type": "array",
            "items": {"enum": names},
            "uniqueItems": True,
        },
    }
