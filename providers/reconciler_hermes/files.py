"""Files of a profile: a closed list of targets, whole or our marked block in them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace

from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Place
from reconciler_shape import files as shape
from reconciler_shape import paths, places

from . import home

SINGLE = frozenset({"SOUL.md", "AGENTS.md", ".no-bundled-skills"})
FOLDERS = frozenset({"memories", "scripts", "hooks", "skills", "plugins", "skill-bundles", "skins", "workspace"})
CODE = frozenset({"scripts", "hooks", "plugins"})
"""Folders whose files Hermes runs."""


def refusal(path: str) -> str:
    """Why `path` cannot be declared as a file of a Hermes profile, "" if it can."""
    parts = path.split("/")
    if paths.outside(path):
        return f"{path}: not a path inside the home"
    if path in SINGLE or (len(parts) > 1 and parts[0] in FOLDERS and ".hub" not in parts):
        return ""
    allowed = ", ".join([*sorted(SINGLE), *(f"{folder}/…" for folder in sorted(FOLDERS))])
    return f"{path} is not a file that a setup may write (allowed: {allowed})"


def read(
    place: Place, profile: home.Profile, wanted: Sequence[str], everything: bool, owner: str, soul: str | None
) -> Things:
    """The wanted files that are there; with `everything`, SOUL.md and the scripts too.

    `soul` is the SOUL.md that Hermes puts into a new home by itself, None if that cannot be told.
    """
    paths = {path for path in wanted if not refusal(path)}
    if everything:
        paths |= {"SOUL.md", *places.tree(place, profile.folder, "scripts")}
    things: dict[str, Observed] = {}
    for path in sorted(paths):
        found = _read(place, profile, path, owner)
        if found is not None and path == "SOUL.md" and soul is not None and found.get("text") == soul:
            found = replace(found, defaults=frozenset({"text", "mode"}))
        if found is not None:
            things[path] = found
    return things


def _read(place: Place, profile: home.Profile, path: str, owner: str) -> Observed | None:
    whole = posixpath.join(profile.folder, path)
    stat = places.lstat(place, whole)
    folder = posixpath.dirname(whole)
    # Also where the file is not there yet: making it would write through the link.
    if not isinstance(stat, Unknown) and place.resolve(folder) != folder:
        stat = Unknown(f"{whole}: its folder is reached through a link")
    if stat is None:
        return None
    data = stat if isinstance(stat, Unknown) else home.text(place, whole, home.TEXT_LIMIT)
    if data is None:
        return None
    if isinstance(data, Unknown) or isinstance(stat, Unknown):
        reason = data if isinstance(data, Unknown) else stat
        assert isinstance(reason, Unknown)
        return shape.unknown(profile.name, path, reason)
    return shape.observed(profile.name, path, data, stat.mode, profile.hider, owner, whole)
