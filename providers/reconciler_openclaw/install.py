"""OpenClaw's own program, its version and the Node that runs it, found by reading files; nothing is started for it."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.place import Place, Stat
from reconciler_shape import places, trust
from reconciler_specs.shape import Json

from . import home

PROGRAM = "openclaw.mjs"
_PACKAGE = "openclaw"
_INSTALLS = (
    # npm's global folders: of the system, of a user's own prefix, of Homebrew, of the container image
    "/usr/local/lib/node_modules/openclaw",
    "/usr/lib/node_modules/openclaw",
    "{user}/.npm-global/lib/node_modules/openclaw",
    "{user}/.local/lib/node_modules/openclaw",
    "/opt/homebrew/lib/node_modules/openclaw",
    "/app",
)
_IN_SCRIPT = re.compile(r"""["']?(/[^\s"']*/openclaw\.mjs)["']?""")


@dataclass(frozen=True, slots=True)
class Install:
    """`script` is OpenClaw's own `openclaw.mjs` at the place and `node` what runs it, "" where none was found; `why`
    then says what was tried. `version` stands in the package beside the script."""

    script: str = ""
    node: str = ""
    version: str | None = None
    why: str = ""

    @property
    def argv(self) -> list[str]:
        """How OpenClaw is started."""
        return [self.node, self.script]


def wrong(door: Mapping[str, Json]) -> list[str]:
    """What is wrong with the paths of a setup's `door:`, in words."""
    found = []
    for name, what in (("openclaw", "OpenClaw's command or its package"), ("node", "the Node that runs it")):
        value = door.get(name)
        if value is not None and not (isinstance(value, str) and value.startswith(("/", "~/")) and "\0" not in value):
            found.append(f"door.{name}: an absolute path of {what}")
    return found


def find(place: Place, options: Mapping[str, Json]) -> Install:
    """The door's `openclaw`, else the one on PATH, else one at a usual place."""
    named = options.get("openclaw")
    if named:
        found = _describe(place, _expand(place, str(named)), options)
        return found or Install(why=f"door.openclaw: there is no OpenClaw at {named}")
    for path in _candidates(place):
        found = _describe(place, path, options)
        if found is not None:
            return found
    return Install(why="no OpenClaw was found (no `openclaw` on PATH, no usual install); say door: {openclaw: PATH}")


def _candidates(place: Place) -> Iterator[str]:
    on_path = place.which("openclaw")
    if on_path:
        yield on_path
    user = place.resolve("~")
    for pattern in _INSTALLS:
        yield pattern.format(user=user)


def _expand(place: Place, path: str) -> str:
    return place.resolve("~") + path[1:] if path.startswith("~/") else path


def _describe(place: Place, path: str, options: Mapping[str, Json]) -> Install | None:
    """The install that a command, a script or a package folder belongs to; None if it is none."""
    real = place.resolve(path)
    stat = places.lstat(place, real)
    if not isinstance(stat, Stat):
        return None
    folders = [real] if stat.kind == "dir" else [posixpath.dirname(real)]
    if stat.kind == "file" and not real.endswith(f"/{PROGRAM}"):
        # A launcher: `exec node "/…/openclaw.mjs" "$@"`.
        data = home.text(place, real, home.SMALL_LIMIT)
        words = data.decode(errors="replace") if isinstance(data, bytes) else ""
        folders += [posixpath.dirname(place.resolve(match[1])) for match in _IN_SCRIPT.finditer(words)]
    for folder in folders:
        version = package_version(place, folder)
        if version is not None:
            node = _node(place, folder, options)
            why = "" if node else "no Node was found that could run OpenClaw; say door: {node: PATH}"
            return Install(posixpath.join(folder, PROGRAM), node, version, why)
    return None


def package_version(place: Place, folder: str) -> str | None:
    """The version of the OpenClaw package in a folder, None if there is none in it."""
    data = home.text(place, posixpath.join(folder, "package.json"), home.SMALL_LIMIT * 4)
    try:
        found = json.loads(data) if isinstance(data, bytes) else None
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("name") != _PACKAGE or not isinstance(found.get("version"), str):
        return None
    return str(found["version"])


def _node(place: Place, folder: str, options: Mapping[str, Json]) -> str:
    named = options.get("node")
    if named:
        path = _expand(place, str(named))
        return path if isinstance(places.lstat(place, path), Stat) else ""
    # npm puts its global packages below the prefix that its Node is in.
    beside = posixpath.join(folder.rpartition("/lib/node_modules/")[0], "bin", "node")
    if beside.startswith("/") and isinstance(places.lstat(place, beside), Stat):
        return beside
    return place.which("node") or ""


def unsafe(place: Place, found: Install) -> str:
    """Why we do not run it (L17): somebody else may write it, or what runs it. "" if nobody may."""
    return trust.unsafe(place, (found.script, posixpath.dirname(found.script), place.resolve(found.node)))
