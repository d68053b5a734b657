"""Planning kits on OpenClaw: boards of its bundled plugin Workboard, which is off until a setup switches it on.

The boards lie in a database of the plugin's own, and are written through the methods that it gives the gateway.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.action import CLEAR, Action, Hold, Row
from reconciler.observe import Observation, Observed, Store, Things, Unknown
from reconciler.provider import Canon
from reconciler_shape import places
from reconciler_shape.boards import OWN, SLUG, Boards
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.plain import digest
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import home, roster, sqlitefile
from .edits import changes_of
from .view import look_up

PLUGIN = "workboard"
BOARDS = Boards(
    "Workboard",
    ("triage", "backlog", "todo", "scheduled", "ready", "running", "review", "blocked", "done"),
    {"planned": "todo", "in-progress": "running", "closed": "done"},
)
TEXTS = ("name", "description", "icon", "color")
_FILE = ("plugins", PLUGIN, "workboard.sqlite")
# Archived is gone, for people and for us.
_ROWS = f"SELECT id, {', '.join(TEXTS)}, default_workspace_json FROM workboard_boards WHERE archived_at IS NULL"
_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'workboard_boards'"
# What 9.6 empties when asked to; 7.1 empties nothing.
_EMPTIED = ("icon", "color")


def file(here: home.Home) -> str:
    return here.path(*_FILE)


def read(here: home.Home, wanted: Sequence[str], everything: bool, hider: Hider) -> tuple[Things | Unknown, Store]:
    """The home's boards by slug, without Workboard's own one, and the state of their database."""
    path = file(here)
    found = places.lstat(here.place, path)
    if found is None:
        return {}, Store.MISSING
    if isinstance(found, Unknown):
        return found, Store.IMPROPER
    if found.kind != "file":
        return Unknown(f"{path} is a {found.kind}, not a file"), Store.IMPROPER
    try:
        rows = sqlitefile.read(here.place, path, _rows)
    except (sqlite3.Error, OSError) as error:
        return Unknown(f"{path}: {error}"), Store.IMPROPER
    boards = {str(row[0]): row for row in rows}
    return {
        slug: _board(slug, row, hider)
        for slug, row in boards.items()
        if SLUG.match(slug) and slug != OWN and (everything or slug in wanted)
    }, Store.PROPER


def _rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute(_ROWS).fetchall() if connection.execute(_TABLE).fetchone() else []


def _board(slug: str, row: Sequence[Any], hider: Hider) -> Observed:
    board = {name: text for name, text in zip(TEXTS, row[1:], strict=False) if text}
    folder = _workdir(row[-1])
    fields = {**board, **({"workdir": folder} if folder else {}), "slug": slug}
    return Observed(
        Kind.KIT, OWN, slug, {"board": hider.value(fields)}, name=slug, fingerprint=digest(list(row), hider.key)
    )


def _workdir(said: Any) -> str:
    """The folder of its cards, "" where it has none of its own, or one of another sort than a plain folder."""
    try:
        found = json.loads(said) if said else None
    except ValueError:
        return ""
    return str(found.get("path", "")) if isinstance(found, dict) and found.get("kind") == "dir" else ""


def canon(resource: Resource, observation: Observation) -> Canon:
    made = BOARDS.canon(resource)
    folder = resource.fields.get("board", {}).get("workdir", "/")
    if not posixpath.isabs(folder):
        made = replace(made, refused={**made.refused, "board": f"workdir {folder}: an absolute path is needed"})
    why = _off(observation)
    return replace(made, refused={**made.refused, "": made.refused.get("", why)}) if why else made


def _off(observation: Observation) -> str:
    """Why Workboard does not run in this home and will not after the apply, "" if it will."""
    things = observation.facts.get("declared", {}).get("things", {})
    declared = next((r for a, r in things.items() if a.kind is Kind.PLUGIN and a.key == PLUGIN), None)
    entry = look_up(observation.facts.get("tree", {}), ("plugins", "entries", PLUGIN, "enabled"))
    on = declared.fields.get("enabled", entry) if declared is not None else entry
    return "" if on is True else f"Workboard is off in this home; add plugins: {{{PLUGIN}: {{enabled: true}}}}"


def texts(action: Action) -> tuple[Mapping[str, Json], list[str]]:
    """What a row makes of a board, and the words that it is to have no more."""
    for change in changes_of(action):
        if change.field == "board":
            write = {} if change.write is CLEAR or not isinstance(change.write, Mapping) else dict(change.write)
            seen = change.observed if isinstance(change.observed, Mapping) and not is_hidden(change.observed) else {}
            return write, sorted(name for name in seen if name not in write) if action.row is Row.UPDATE else []
    return {}, []


def reviewed(action: Action, observation: Observation) -> Action:
    """After the row that switches the plugin on; and a word that Workboard never takes away is not tried."""
    address = action.address
    if address.kind is not Kind.KIT:
        return action
    action = replace(action, needs=(*action.needs, Address(address.home, OWN, Kind.PLUGIN, PLUGIN)))
    if action.row is not Row.UPDATE or action.hold is not None:
        return action
    version = observation.facts.get("ran") or observation.version
    can = () if roster.is_old(version) else _EMPTIED
    kept = [name for name in texts(action)[1] if name not in can]
    if not kept:
        return action
    why = f"Workboard takes no {' or '.join(kept)} away from a board: give it another one"
    return replace(action, hold=Hold(why))


def params(action: Action) -> dict[str, Any]:
    """The call of a row that makes or changes a board; one that was archived comes back."""
    board, gone = texts(action)
    found: dict[str, Any] = {"id": action.address.key, "archived": False}
    found |= {name: board[name] for name in TEXTS if name in board}
    if "workdir" in board:
        found["defaultWorkspace"] = {"kind": "dir", "path": board["workdir"]}
    cleared = [name for name in gone if name in _EMPTIED]
    return {**found, "clearAppearance": cleared} if cleared else found
