"""Plugins in a Hermes-shaped config.yaml: members of `plugins.enabled` and `plugins.disabled`, and what
`plugins.entries.<id>` says of one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.action import Clear
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import dotted, parts
from .edits import Edits
from .shaped import Found, Raw, Shaped, write_map

_ENABLED, _DISABLED, _ENTRIES = ["plugins", "enabled"], ["plugins", "disabled"], ["plugins", "entries"]


def _ids(raw: Raw) -> Iterable[str]:
    entries = parts.at(raw, _ENTRIES)
    return {
        *parts.members(raw, _ENABLED),
        *parts.members(raw, _DISABLED),
        *(entries if isinstance(entries, dict) else ()),
    }


def _parts(key: str) -> list[parts.Part]:
    return [parts.member(_ENABLED, key), parts.member(_DISABLED, key), parts.value([*_ENTRIES, key])]


def _found(raw: Raw, key: str) -> Found | None:
    fields: dict[str, Json] = {}
    # A member of `disabled` never loads, whatever `enabled` says.
    if key in parts.members(raw, _DISABLED):
        fields["enabled"] = False
    elif key in parts.members(raw, _ENABLED):
        fields["enabled"] = True
    entry = parts.at(raw, [*_ENTRIES, key])
    if entry is not None:
        fields["config"] = entry
    return Found(fields) if fields else None


def _edit(key: str, values: Mapping[str, Json | Clear], old: Mapping[str, Json], made: Edits) -> None:
    if "enabled" in values:
        on = values["enabled"]
        # Both lists: a plugin that comes with the harness is on unless it stands in `disabled`.
        (made.adds if on is True else made.removes).append([_ENABLED, key])
        (made.adds if on is False else made.removes).append([_DISABLED, key])
    if "config" in values:
        write_map([*_ENTRIES, key], values["config"], old.get("config"), made)


def _said(name: str, value: Json) -> Json:
    return dotted.named(value, name)


PLUGINS = Shaped(Kind.PLUGIN, _ids, _parts, _found, _edit, said=_said)
