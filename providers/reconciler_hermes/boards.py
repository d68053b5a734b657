"""Planning kits on Hermes: kanban boards of the whole home, each known by its slug for life."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Place, Stat
from reconciler_shape import places
from reconciler_shape.boards import OWN, SLUG, Boards
from reconciler_shape.hiding import Hider, is_hidden
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.planning_kit import BOARD

from . import home

FOLDER = "kanban/boards"
BOARDS = Boards(
    "Hermes",
    ("triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done", "archived"),
    {"planned": "todo", "in-progress": "running", "closed": "done"},
)
_LIMIT = 1 << 18  # bytes of a board.json
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
        if SLUG.match(slug) and slug != OWN and (everything or slug in wanted):
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


def words(board: Mapping[str, Any], seen: Any) -> dict[str, str]:
    """Board fields as Hermes's arguments; what is gone is cleared."""
    before = seen if isinstance(seen, dict) and not is_hidden(seen) else {}
    gone = {key: "" for key in before if key not in board}
    return {WORDS.get(key, key): str(value) for key, value in {**gone, **board}.items() if key != "slug"}
