"""Planning kits on Hermes: kanban boards.

A board is of the whole home, its statuses are Hermes's own, and its slug is for life. So a kit is a board whose slug is
the kit's key, and its statuses become Hermes's by what they mean.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Place, Stat
from reconciler.provider import Canon
from reconciler_shape import places
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.planning_kit import BOARD
from reconciler_specs.resource import Resource
from reconciler_specs.shape import MAP_OF_SCALARS, Json

from . import home

FOLDER = "kanban/boards"
STATUSES = ("triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done", "archived")
MEANS = {"planned": "todo", "in-progress": "running", "closed": "done"}
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
_LIMIT = 1 << 18  # bytes of a board.json
_OWN = "default"
# The setup's word for a key of board.json, where it is another.
WORDS = {"workdir": "default_workdir"}


def read(place: Place, root: str, wanted: Sequence[str], everything: bool, hider: Hider) -> Things | Unknown:
    """The home's boards by slug, without the default one, which is Hermes's own."""
    folder = posixpath.join(root, FOLDER)
    there = places.lstat(place, folder)
    if isinstance(there, Unknown):
        return there
    if there is None:
        return {}
    if there.kind != "dir":
        return Unknown(f"{folder} is a {there.kind}, not a folder")
    found = {}
    for slug in places.names(place, folder):
        if _SLUG.match(slug) and slug != _OWN and (everything or slug in wanted):
            thing = _board(place, posixpath.join(folder, slug), slug, hider)
            if thing is not None:
                found[slug] = thing
    return found


def _board(place: Place, folder: str, slug: str, hider: Hider) -> Observed | None:
    kind = places.lstat(place, folder)
    if isinstance(kind, Stat) and kind.kind == "link":
        return _unknown(slug, f"{folder} is a link; links are not followed here")
    inside = [name for name in ("board.json", "kanban.db") if places.lstat(place, posixpath.join(folder, name))]
    if not inside:
        return None  # as Hermes sees it
    data = home.text(place, posixpath.join(folder, "board.json"), _LIMIT)
    if isinstance(data, Unknown):
        return _unknown(slug, data.reason)
    try:
        raw: Any = json.loads(data) if isinstance(data, bytes) else {}
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        return _unknown(slug, f"{folder}/board.json is not in proper form")
    board = {key: raw[word] for key in BOARD if (word := WORDS.get(key, key)) in raw and raw[word] not in ("", None)}
    return Observed(
        Kind.KIT,
        home.DEFAULT,
        slug,
        {"board": hider.value({**board, "slug": slug})},
        name=slug,
        fingerprint=digest(raw, hider.key),
    )


def _unknown(slug: str, why: str) -> Observed:
    return Observed(Kind.KIT, home.DEFAULT, slug, {"board": Unknown(why)}, name=slug)


def canon(resource: Resource) -> Canon:
    """The board that a kit becomes; what of it no board can hold is refused, unless `on_unsupported: degrade`."""
    fields, key = resource.fields, resource.address.key
    refused: dict[str, str] = {}
    notes: list[str] = []
    board: dict[str, Json] = dict(fields.get("board", {}))
    if resource.address.profile != home.DEFAULT:
        refused[""] = f"a board is of the whole home: declare it in the profile {home.DEFAULT}"
    elif key == _OWN:
        refused[""] = f"the board {_OWN} is Hermes's own; take another key"
    elif not _SLUG.match(key):
        refused[""] = "the key becomes the board's slug: a-z, 0-9, _ and -"
    if board.get("slug", key) != key:
        refused["board"] = f"a board is known by its slug: give the kit the key {board['slug']}"
    for name in ("source", "types"):
        if name in fields:
            refused[name] = "what is in it is not known here: take the kit from a file, or one of kit:"
    if "kit" in fields:
        kit = fields["kit"]
        if resource.options.get("on_unsupported") != "degrade":
            refused["kit"] = f"Hermes has fixed statuses: {', '.join(STATUSES)}; write on_unsupported: degrade"
        notes += _degraded(kit)
        if "title" in kit:
            board.setdefault("name", kit["title"])
    canonical = {"board": {**board, "slug": key}}
    return Canon(canonical, {"board": MAP_OF_SCALARS}, refused=refused, notes=tuple(notes))


def _degraded(kit: Mapping[str, Any]) -> list[str]:
    """What becomes of each flow's statuses, a line each."""
    lines = []
    for flow in kit["flows"]:
        pairs = (f"{status.get('label', status['id'])} → {MEANS[status['intrinsic']]}" for status in flow["statuses"])
        lines.append(f"{flow.get('label', flow['id'])}: {', '.join(pairs)}")
    return lines


def express(thing: Observed) -> dict[str, Json]:
    """Nothing: a board says nothing of types and flows, and a kit without them is none."""
    return {}


def words(board: Mapping[str, Any], seen: Any) -> dict[str, str]:
    """Board fields as Hermes's arguments; what is gone is cleared."""
    before = seen if isinstance(seen, dict) and not is_hidden(seen) else {}
    gone = {key: "" for key in before if key not in board}
    return {WORDS.get(key, key): str(value) for key, value in {**gone, **board}.items() if key != "slug"}
