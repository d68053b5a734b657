"""Files of an agent's workspace: a closed list of targets, whole or our marked block in them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Place
from reconciler_shape import files as shape
from reconciler_shape import paths, places

from . import home
from .view import View

BOOTSTRAP = (
    "AGENTS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "MEMORY.md", "SOUL.md", "TOOLS.md", "USER.md",
)  # fmt: skip
"""What OpenClaw puts before an agent's turns, and what `agents.files` reads and writes."""
FOLDERS = frozenset({"memory", "scripts", "skills"})
CODE = frozenset({"scripts", "skills"})
"""Folders whose files are run."""

_SHIPPED = re.compile(r"^```markdown\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""7.1 shows what it ships of this file inside a page about it."""
_TEMPLATES = "docs/reference/templates"


def refusal(path: str) -> str:
    """Why `path` cannot be declared as a file of an OpenClaw profile, "" if it can."""
    parts = path.split("/")
    if paths.outside(path):
        return f"{path}: not a path inside the workspace"
    if path in BOOTSTRAP or (len(parts) > 1 and parts[0] in FOLDERS):
        return ""
    allowed = ", ".join([*BOOTSTRAP, *(f"{folder}/…" for folder in sorted(FOLDERS))])
    return f"{path} is not a file that a setup may write (allowed: {allowed})"


def read(place: Place, view: View, wanted: Sequence[str], everything: bool, owner: str, package: str) -> Things:
    """The wanted files that are there; with `everything`, the bootstrap files and the scripts too.

    `package` is the folder of the installed OpenClaw, "" for none: a file as OpenClaw itself puts it into a new
    workspace is its default.
    """
    names = {path for path in wanted if not refusal(path)}
    if everything:
        names |= {*BOOTSTRAP, *places.tree(place, view.workspace, "scripts")}
    things: dict[str, Observed] = {}
    for path in sorted(names):
        found = _read(place, view, path, owner)
        if found is None:
            continue
        if path in BOOTSTRAP and package and found.get("text") == template(place, package, path):
            found = replace(found, defaults=frozenset({"text", "mode"}))
        things[path] = found
    return things


def template(place: Place, package: str, path: str) -> str | None:
    """What OpenClaw puts into a new workspace, without the head that its documentation needs."""
    data = home.text(place, posixpath.join(package, _TEMPLATES, path), home.TEXT_LIMIT)
    if not isinstance(data, bytes):
        return None
    text = data.decode("utf-8", "replace")
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2].lstrip("\n")
    shipped = _SHIPPED.search(text) if path == "HEARTBEAT.md" else None
    return shipped[1] if shipped else text


def _read(place: Place, view: View, path: str, owner: str) -> Observed | None:
    whole = posixpath.join(view.workspace, path)
    stat = places.lstat(place, whole)
    folder = posixpath.dirname(whole)
    # Also where the file is not there yet: making it would write through the link.
    inside = place.resolve(folder) == posixpath.join(place.resolve(view.workspace), posixpath.dirname(path)).rstrip("/")
    if not isinstance(stat, Unknown) and not inside:
        stat = Unknown(f"{whole}: its folder is reached through a link")
    if stat is None:
        return None
    data = stat if isinstance(stat, Unknown) else home.text(place, whole, home.TEXT_LIMIT)
    if data is None:
        return None
    if isinstance(data, Unknown) or isinstance(stat, Unknown):
        reason = data if isinstance(data, Unknown) else stat
        assert isinstance(reason, Unknown)
        return shape.unknown(view.profile, path, reason)
    return shape.observed(view.profile, path, data, stat.mode, view.hider, owner, whole)
