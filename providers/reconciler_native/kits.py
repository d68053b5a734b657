"""Planning kits in the setup's words: read from their files, and as the arguments of the verb that writes them.

A kit that the setup says in full is one field, `kit`; of one that another place knows (`viable:`) the file has its
name and those of its types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR
from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Stat
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.places import lstat, names
from reconciler_shape.plain import digest, holds_native
from reconciler_specs import kit
from reconciler_specs.address import Kind
from reconciler_specs.planning_kit import BOARD
from reconciler_specs.shape import Json
from reconciler_specs.values import Refusal

from .errors import LoadFailed
from .folder import KIT, KITS, Profile

FIELDS = ("source", "kit", "types", "board")


def observed(found: Profile, place: Any, wanted: Sequence[str], everything: bool, hider: Hider) -> Things | Unknown:
    """The profile's kits by name; one whose file is not in proper form has Unknown fields."""
    folder = str(found.folder / KITS)
    there = lstat(place, folder)
    if isinstance(there, Unknown):
        return there
    if isinstance(there, Stat) and there.kind == "link":
        return Unknown(f"{folder} is a link; a native home's own files lie in it")
    files = names(place, folder) if there is not None else []
    here = [name.removesuffix(".yaml") for name in files if name.endswith(".yaml")]
    return {name: _kit(found, name, hider) for name in here if KIT.fullmatch(name) and (everything or name in wanted)}


def _kit(found: Profile, name: str, hider: Hider) -> Observed:
    try:
        raw = found.kit(name).raw
    except LoadFailed as error:
        return Observed(Kind.KIT, found.name, name, dict.fromkeys(FIELDS, Unknown(str(error))), name=name)
    fields: dict[str, Json | Unknown] = {}
    named = raw.get("types") if isinstance(raw.get("types"), list) else []
    if isinstance(raw.get("source"), str):
        fields["source"] = raw["source"]
    if named and all(isinstance(item, str) for item in named):
        fields["types"] = named
    whole = {
        key: _known(raw[key], key) for key in kit.KEYS if key in raw and not (key == "types" and "types" in fields)
    }
    if whole:
        fields["kit"] = _in_form(whole)
    if isinstance(raw.get("board"), dict):
        fields["board"] = {key: raw["board"][key] for key in BOARD if key in raw["board"]}
    shown = {key: hider.whole(value) for key, value in fields.items()}
    return Observed(Kind.KIT, found.name, name, shown, name=name, fingerprint=digest(raw, hider.key))


def _known(value: Any, of: str) -> Any:
    """Without what others keep in the same records."""
    if isinstance(value, list) and of in kit.LISTS:
        return [
            {key: _known(item[key], key) for key in kit.LISTS[of] if key in item} if isinstance(item, dict) else item
            for item in value
        ]
    return value


def _in_form(whole: Mapping[str, Any]) -> dict[str, Json]:
    """As the setup's own kits are, where it is one; else as it stands there."""
    try:
        return kit.definition(dict(whole))
    except Refusal:
        return dict(whole)


def express(thing: Observed) -> dict[str, Json]:
    """The kit as a setup's fields."""
    said = {key: value for key, value in thing.fields.items() if not isinstance(value, Unknown)}
    return {key: value for key, value in said.items() if not is_hidden(value) and not holds_native(value)}


def arguments(values: Mapping[str, Any]) -> dict[str, Json]:
    """What is written of a kit as the arguments of `kits.apply`; None takes a field away."""
    given = {key: None if value is CLEAR else value for key, value in values.items()}
    args: dict[str, Json] = {}
    if "kit" in given:
        whole = given.pop("kit") or {}
        args |= {key: whole.get(key) for key in kit.KEYS}
    return {**args, **{key: value for key, value in given.items() if value is not None or key not in args}}
