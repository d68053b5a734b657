"""What a change of an MCP server, a toolset, a plugin or a skill would do to the world. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.action import CLEAR, Action, Fact, FieldChange, Row
from reconciler.observe import Absent, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import parts
from .shaped import REFERENCE

SECURITY = frozenset({Kind.MCP_SERVER, Kind.TOOLSET, Kind.PLUGIN})
"""Kinds whose things decide what an agent may run, or reach."""
_PROGRAM = frozenset({"command", "args", "env", "cwd"})
_WORDS = (".md", ".txt", ".json", ".yaml", ".yml", ".csv")


def facts(action: Action, effective: Mapping[str, Json | Unknown]) -> set[Fact]:
    """`effective` are the thing's fields as they will be."""
    rows = {c.field: c for c in action.changes if action.row is not Row.UPDATE or c.writes}
    match action.address.kind:
        case Kind.MCP_SERVER:
            return _server(rows, effective)
        case Kind.TOOLSET:
            return {Fact.LOOSENS_SECURITY} if _widens(rows["tools"]) else set()
        case Kind.PLUGIN:
            starts = "enabled" in rows and rows["enabled"].write is not False
            found = {Fact.RUNS_CODE} if starts else set()
            return found | ({Fact.LOOSENS_SECURITY} if "config" in rows else set())
    code = [path for path in action.carries.get("files", {}) if not path.lower().endswith(_WORDS)]
    return {Fact.RUNS_CODE} if "content" in rows and code else set()


def _server(rows: Mapping[str, FieldChange], effective: Mapping[str, Json | Unknown]) -> set[Fact]:
    starts = "enabled" in rows and rows["enabled"].write is not False
    found = set()
    if (rows.keys() & _PROGRAM or starts) and effective.get("command"):
        found.add(Fact.RUNS_CODE)
    if (rows.keys() & {"url", "transport"} or starts) and effective.get("url"):
        found.add(Fact.NEW_ADDRESS)
    if any(_secrets(rows[name].write) - _secrets(rows[name].observed) for name in ("env", "headers") if name in rows):
        found.add(Fact.NEW_CREDENTIAL)
    if rows.keys() & {"extra", "headers"}:
        found.add(Fact.LOOSENS_SECURITY)  # which tools it offers, how it is trusted: the direction cannot be told
    return found


def _secrets(value: object) -> set[str]:
    if not isinstance(value, dict):
        return set()
    return {name for item in value.values() if isinstance(item, str) for name in REFERENCE.findall(item)}


def _widens(change: FieldChange) -> bool:
    """Whether a tool is on afterwards that was not; the harness's defaults may be any."""
    if change.write is CLEAR or isinstance(change.observed, Absent | Unknown):
        return True
    write = change.write["only"] if isinstance(change.write, dict) else change.write
    return bool(set(write) - set(parts.members({"": change.observed}, [""])))
