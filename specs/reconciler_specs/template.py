"""Templates, overlays and parameters, on the node tree before validation, so that every value knows its origin.

template → home → profile: maps by key, lists replace, sets unite (`{only: […]}` replaces), `null` takes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import file, inference, job
from .document import Node, shown
from .errors import Where
from .reading import Reasons, check_keys, did_you_mean, is_map
from .shape import Class, Shape
from .tables import TABLES
from .values import NAME, described

_DEEP = Shape(Class.MAP)  # by key all the way down: what no kind says more about


def _kind(fields: Mapping[str, Any]) -> Shape:
    return Shape(Class.MAP, fields={name: f.shape for name, f in fields.items()})


_PROFILE = Shape(
    Class.MAP,
    fields={
        "inference": _kind(inference.FIELDS),
        "jobs": Shape(Class.MAP, of=_kind(job.FIELDS)),
        "files": Shape(Class.MAP, of=_kind(file.FIELDS)),
        **{kind.value: Shape(Class.MAP, of=_kind(table.fields)) for kind, table in TABLES.items()},
    },
)
HOME = Shape(Class.MAP, fields={"profiles": Shape(Class.MAP, of=_PROFILE)})


def merge(base: Node, over: Node, shape: Shape = HOME) -> Node:
    """`over` laid on `base`. Shares nodes with both; neither is changed."""
    if base.kind == "map" and over.kind == "map" and shape.cls is not Class.SCALAR and shape.cls is not Class.SET:
        merged = Node("map", dict(base.value), over.mark, over.file, via=over.via)
        merged.keys = {**base.keys, **over.keys}
        for key, child in over.value.items():
            below = base.value.get(key)
            merged.value[key] = child if below is None else merge(below, child, _below(shape, key))
        return merged
    if shape.cls is Class.SET and base.kind == "seq" and over.kind == "seq":
        united = Node("seq", list(base.value), over.mark, over.file, via=over.via)
        have = {n.value for n in base.value if n.kind == "scalar"}
        united.value += [n for n in over.value if n.kind != "scalar" or n.value not in have]
        return united
    return over


def _below(shape: Shape, key: str) -> Shape:
    return shape.fields.get(key) or shape.of or _DEEP


# --- parameters ----------------------------------------------------------------------------------------------------

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_USE = re.compile(r"\$(\$)?\(([^()\s]*)\)?")
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A typed value that a home fills in. `default` is None where a home has to give one."""

    name: str
    type: str
    default: Any = None
    description: str = ""
    where: Where = field(default=Where(""), compare=False)


def read_parameters(node: Node | None, reasons: Reasons) -> dict[str, Parameter]:
    """The setup's `parameters:`."""
    result: dict[str, Parameter] = {}
    if node is None or not is_map(node, "parameters", reasons):
        return result
    for name, child in node.items():
        what = f"parameters {name}"
        if not NAME.match(name):
            reasons.add(node.where_key(name), f"parameters: {shown(name)} is no name (a-z, 0-9, _, . and -)")
            continue
        if not is_map(child, what, reasons):
            continue
        check_keys(child, ("type", "default", "description"), what, reasons)
        kind = child.get("type")
        if kind is None or kind.value not in _TYPES:
            reasons.add(
                node.where_key(name) if kind is None else kind.where,
                f"{what} type: one of {', '.join(_TYPES)} is needed",
            )
            continue
        default = child.get("default")
        value = None
        if default is not None:
            value = _typed(default, kind.value, f"{what} default", reasons)
        about = child.get("description")
        result[name] = Parameter(
            name, kind.value, value, str(about.value) if about is not None else "", node.where_key(name)
        )
    return result


def _typed(node: Node, kind: str, what: str, reasons: Reasons) -> Any:
    value = node.value if node.kind == "scalar" else [] if node.kind == "seq" else {}
    fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if fits:
        return value
    hint = f'quote it: "{node.text}"' if kind == "string" and node.kind == "scalar" and node.text else ""
    reasons.add(node.where, f"{what}: a value of type {kind} is expected, got {described(value)}", hint)
    return None


class Parameters:
    """The parameters of one home: its `with` over the defaults. Resolves `$(name)` in a tree."""

    def __init__(
        self,
        declared: Mapping[str, Parameter],
        given: Node | None,
        home: str,
        reasons: Reasons,
        bad: Iterable[str] = (),
    ) -> None:
        self.declared = declared
        self.home = home
        self.reasons = reasons
        self.values: dict[str, Any] = {p.name: p.default for p in declared.values() if p.default is not None}
        self.failed: set[str] = set(bad)
        if given is not None and is_map(given, f"{home} with", reasons):
            for name, child in given.items():
                if name not in declared:
                    reasons.add(
                        given.where_key(name),
                        f"{home} with: there is no parameter {shown(name)}",
                        did_you_mean(name, declared) or "declare it in parameters",
                    )
                    continue
                value = _typed(child, declared[name].type, f"{home} with.{name}", reasons)
                if value is None:
                    self.failed.add(name)
                else:
                    self.values[name] = value

    def resolve(self, node: Node) -> Node:
        """The tree with every `$(name)` filled in; nodes without one are shared."""
        if node.kind == "map":
            changed = {k: r for k, v in node.value.items() if (r := self.resolve(v)) is not v}
            for key in node.value:
                if "$(" in key:
                    self.reasons.add(node.where_key(key), f"{shown(key)}: parameters are not resolved in keys")
            if not changed:
                return node
            new = Node("map", {**node.value, **changed}, node.mark, node.file, via=node.via)
            new.keys = node.keys
            return new
        if node.kind == "seq":
            items = [self.resolve(v) for v in node.value]
            if all(a is b for a, b in zip(items, node.value, strict=True)):
                return node
            return Node("seq", items, node.mark, node.file, via=node.via)
        value = node.value
        if not isinstance(value, str) or "$(" not in value:
            return node
        return self._scalar(node, value)

    def _scalar(self, node: Node, text: str) -> Node:
        used: list[str] = []
        whole = _USE.fullmatch(text)
        if whole and not whole[1] and whole[0].endswith(")") and node.style == "":
            value = self._value(whole[2], node, used)
        else:
            value = _USE.sub(lambda m: self._piece(m, node, used), text)
        via = node.via
        if used:
            by = f"parameter {', '.join(dict.fromkeys(used))}"
            via = f"{via}, {by}" if via else by
        as_text = value if isinstance(value, str) else str(value)
        return Node("scalar", value, node.mark, node.file, as_text, node.style or '"', via)

    def _piece(self, match: re.Match[str], node: Node, used: list[str]) -> str:
        if match[1]:
            return match[0][1:]
        if not match[0].endswith(")"):
            self._unknown(match[2], node)
            return match[0]
        value = self._value(match[2], node, used)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _value(self, name: str, node: Node, used: list[str]) -> Any:
        if name in self.values:
            used.append(name)
            return self.values[name]
        if name in self.failed:
            pass  # said already, where the value stands
        elif name in self.declared:
            self.reasons.add(
                node.where,
                f"{self.home}: the parameter {shown(name)} has no value",
                f"give it in the home: with: {{{name}: …}}",
            )
        else:
            self._unknown(name, node)
        return f"$({name})"

    def _unknown(self, name: str, node: Node) -> None:
        close = did_you_mean(name, self.declared) if self.declared else ""
        literal = "for the text itself write $$( "
        self.reasons.add(
            node.where,
            f"$( starts a parameter, and there is none of the name {shown(name)}",
            f"{close} {literal}".strip() if close.startswith("did") else literal.strip(),
        )
