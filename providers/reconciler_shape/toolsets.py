"""Toolsets in a Hermes-shaped config.yaml: `platform_toolsets.<channel>`, and `toolsets` for `default`. Pure.

A list is exactly what is on there; without one the harness's defaults are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.action import CLEAR, Clear
from reconciler.observe import Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import parts
from .edits import Edits
from .shaped import Found, Raw, Shaped

EVERYWHERE = "default"
_USUAL = ["hermes-cli"]  # what Hermes fills in for `toolsets`


def path_of(key: str) -> list[str]:
    """Where a toolset's list stands."""
    return ["toolsets"] if key == EVERYWHERE else ["platform_toolsets", key]


def _ids(raw: Raw) -> Iterable[str]:
    section = raw.get("platform_toolsets")
    by_channel = [key for key in section if key != EVERYWHERE] if isinstance(section, dict) else []
    return [*([EVERYWHERE] if raw.get("toolsets") is not None else []), *by_channel]


def _parts(key: str) -> list[parts.Part]:
    return [parts.value(path_of(key))]


def _found(raw: Raw, key: str) -> Found | None:
    path = path_of(key)
    value = parts.at(raw, path)
    if value is None:
        return None
    if not isinstance(value, list):
        return Found({"tools": Unknown(f"{'.'.join(path)} is no list: the harness goes by its defaults")})
    tools = parts.members(raw, path)
    return Found({"tools": tools}, frozenset({"tools"}) if key == EVERYWHERE and tools == _USUAL else frozenset())


def _edit(key: str, values: Mapping[str, Json | Clear], old: Mapping[str, Json], made: Edits) -> None:
    tools = values.get("tools", CLEAR)
    if tools is CLEAR:
        made.unset(path_of(key))
    else:
        made.set(path_of(key), tools["only"] if isinstance(tools, dict) else tools)


TOOLSETS = Shaped(Kind.TOOLSET, _ids, _parts, _found, _edit)


def off_everywhere(fields: Mapping[str, Json], raw: Raw) -> tuple[str, ...]:
    """A note naming declared tools that `agent.disabled_toolsets` takes away again."""
    tools = fields.get("tools") or []
    declared = tools["only"] if isinstance(tools, dict) else tools
    off = sorted(set(parts.members(raw, ["agent", "disabled_toolsets"])) & set(declared))
    return (f"agent.disabled_toolsets switches off {', '.join(off)}",) if off else ()
