"""Secrets: `.env` in the state directory, which OpenClaw reads beside its environment. Names for everybody, values only
as digests (L5).

What `.env` does not have may stand in the config's own `env`, or in OpenClaw's secret store, which tells no value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.observe import Observed, Things, Unknown
from reconciler_shape import dotenv
from reconciler_shape import secret as shape
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

FILE = ".env"
_SIMPLE = re.compile(r"[\w./:@%+=,-]*")
_NO_VALUE = "it is in OpenClaw's own secret store, which tells no value"


def read(values: Mapping[str, str], stored: Collection[str], wanted: Sequence[str], hider: Hider) -> Things:
    """The wanted names that have a value; `values` are the ones that can be seen."""
    found = shape.things(shape.DEFAULT, wanted, values, hider)
    for name in wanted:
        if name in stored and name not in found:
            fields: dict[str, Json | Unknown] = {"present": True, "value": Unknown(_NO_VALUE)}
            found[name] = Observed(Kind.SECRET, "", name, fields, name=name)
    return found


def coming(facts: Mapping[str, Json], addresses: Iterable[Address]) -> dict[str, Json]:
    """The facts with the declared secrets among the home's names: what needs one waits for its row."""
    names = {a.key for a in addresses if a.kind is Kind.SECRET}
    known = {word: sorted({*facts.get(word, ()), *names}) for word in ("names", "environment")}
    return {**facts, **known}


def put(text: str, values: Mapping[str, str | None]) -> str:
    """The text of `.env` with these values, None for none; every other line stays. Raises ValueError for a value that
    no line can hold."""
    lines, left = [], dict(values)
    for line in reversed(text.splitlines()):  # of two lines the last one counts
        entry = dotenv.entry(line)
        if entry is None or entry[0] not in values:
            lines.append(line)
            continue
        value = left.pop(entry[0], None)
        if value is not None:
            lines.append(f"{entry[0]}={_quoted(value)}")
    lines.reverse()
    lines += [f"{name}={_quoted(value)}" for name, value in left.items() if value is not None]
    return "".join(f"{line}\n" for line in lines)


def _quoted(value: str) -> str:
    if _SIMPLE.fullmatch(value):
        return value
    if "\n" in value or "\r" in value:
        raise ValueError("a value of several lines cannot stand in .env")
    for mark, wrong in (("'", "'"), ('"', '"\\')):
        if not any(char in value for char in wrong):
            return f"{mark}{value}{mark}"
    raise ValueError("a value with both kinds of quotes cannot stand in .env")
