"""Kinds that are parts of config.yaml, told by one description each: read, canonical, expressed, written. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.action import CLEAR, Action, Clear, Row
from reconciler.observe import Absent, Observed, Things, Unknown
from reconciler.provider import Canon
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import dotted, parts
from .edits import Edits
from .hiding import Hider, is_hidden
from .plain import digest, holds_native

Raw = Mapping[str, Json]
Fields = Mapping[str, Json | Unknown]
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Found:
    """A thing as it stands in config.yaml: its fields, and which of them are only the harness's defaults."""

    fields: Fields
    defaults: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Shaped:
    """One kind of a Hermes-shaped config.yaml.

    `ids` are the things that are there, `parts` where one stands, `found` its fields (None if it is not there).
    `edit` adds to an Edits what the values to write come to: `(id, values, old fields, edits)`; `new` says that nothing
    is there. `refused` maps declared fields that cannot be stored to why. `said` makes an expressed value the
    language's own; `secret` says whether a text, by its field and the key above it, is a credential in the clear beyond
    what looks like one. `needed` are fields without which nothing can be said of the thing.
    """

    kind: Kind
    ids: Callable[[Raw], Iterable[str]]
    parts: Callable[[str], list[parts.Part]]
    found: Callable[[Raw, str], Found | None]
    edit: Callable[[str, Mapping[str, Json | Clear], Mapping[str, Json], Edits], None]
    refused: Callable[[Mapping[str, Json]], dict[str, str]] = field(default=lambda fields: {})
    said: Callable[[str, Json], Json] = field(default=lambda name, value: value)
    secret: Callable[[str, str, str], bool] = field(default=lambda name, key, text: False)
    needed: tuple[str, ...] = ()


def read(shaped: Shaped, profile: str, raw: Raw, wanted: Sequence[str], everything: bool, hider: Hider) -> Things:
    """The wanted things that are there; with `everything`, all."""
    things = {}
    for key in sorted({*wanted, *(shaped.ids(raw) if everything else ())}):
        found = shaped.found(raw, key)
        if found is not None:
            fields = {n: v if isinstance(v, Unknown) else _shown(shaped, n, v, hider) for n, v in found.fields.items()}
            stands = digest(parts.seen(raw, shaped.parts(key)), hider.key)
            things[key] = Observed(
                shaped.kind, profile, key, fields, name=key, defaults=found.defaults, fingerprint=stands
            )
    return things


def _shown(shaped: Shaped, name: str, value: Json, hider: Hider) -> Json:
    """A field as it may be shown: what is a credential by its key, its look or the kind's own rule is hidden."""

    def conceal(key: str, item: Json) -> Json:
        if isinstance(item, dict):
            return item if is_hidden(item) and len(item) == 1 else {k: conceal(k, v) for k, v in item.items()}
        if isinstance(item, list):
            return [conceal(key, each) for each in item]
        return hider.value(item, key, forced=True) if isinstance(item, str) and shaped.secret(name, key, item) else item

    return conceal("", hider.value(value, name))


def canon(shaped: Shaped, resource: Resource, env: Iterable[str], env_known: bool, notes: Sequence[str] = ()) -> Canon:
    """The declared fields as config.yaml holds them: `{secret: NAME}` is `${NAME}`; held while `.env` has no NAME."""
    fields: dict[str, Json] = {}
    names: set[str] = set()
    for name, value in resource.fields.items():
        fields[name], named = dotted.referenced(value)
        names |= named
    return Canon(fields, refused=shaped.refused(fields), held=lacking(names, env, env_known), notes=tuple(notes))


def lacking(names: Iterable[str], env: Iterable[str], env_known: bool) -> str:
    """Which of the named secrets the home has not, in words; "" if it has them all, or that cannot be told."""
    missing = sorted(set(names) - set(env)) if env_known else []
    return f"the home's .env has no {', '.join(missing)}" if missing else ""


def express(shaped: Shaped, thing: Observed) -> dict[str, Json]:
    """A thing as a setup's fields: defaults left out, hidden values too; {} if what it needs cannot be said."""
    said: dict[str, Json] = {}
    for name, value in thing.fields.items():
        if name in thing.defaults or isinstance(value, Unknown):
            continue
        told = _sayable(shaped.said(name, value))
        if told is not None:
            said[name] = told
        elif name in shaped.needed:
            return {}
    return said


def _sayable(value: Json) -> Json:
    """A value without what a setup must not, or cannot, say: keys of a mapping go each by itself; None if all goes."""
    if isinstance(value, dict) and not is_hidden(dict.fromkeys(value)) and not holds_native(dict.fromkeys(value)):
        kept = {key: _sayable(item) for key, item in value.items()}
        found = {key: item for key, item in kept.items() if item is not None or value[key] is None}
        return found if found or not value else None
    return None if is_hidden(value) or holds_native(value) else value


def by_reference(value: Json) -> Json:
    """A mapping of texts with `${NAME}` as `{secret: NAME}`."""
    if not isinstance(value, dict):
        return value
    found = {key: REFERENCE.fullmatch(item) if isinstance(item, str) else None for key, item in value.items()}
    return {key: {"secret": match[1]} if match else value[key] for key, match in found.items()}


def edits(shaped: Shaped, action: Action) -> Edits:
    """What an action writes. Raises CannotWrite."""
    made = Edits()
    if action.row is Row.DELETE:
        return gone(shaped, action.address.key)
    rows = [c for c in action.changes if action.row is not Row.UPDATE or c.writes]
    old = {c.field: c.observed for c in rows if not isinstance(c.observed, Absent | Unknown)}
    shaped.edit(action.address.key, {c.field: c.write for c in rows}, old, made)
    return made


def gone(shaped: Shaped, key: str) -> Edits:
    """What takes the whole thing away, and nothing beside it."""
    made = Edits()
    for part in shaped.parts(key):
        if "member" in part:
            made.removes.append([part["path"], part["member"]])
        else:
            made.unset(part["path"])
    return made


def write_map(path: Sequence[str], value: Json | Clear, old: Json | None, made: Edits) -> None:
    """One mapping (or single value) at a path. Raises CannotWrite."""
    if value is CLEAR:
        made.unset(path)
    else:
        made.differ(path, old, value)
