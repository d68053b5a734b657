"""Hermes's own interpreter and version, found by reading files; nothing is started for it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.place import Place, Stat
from reconciler_shape import places, trust
from reconciler_specs.shape import Json

from . import home

_DIST = re.compile(r"hermes_agent-([0-9][^-]*)\.dist-info")
_INSTALLS = (
    # Hermes's own installer, uv, pipx, the container images
    "{user}/.hermes/hermes-agent/venv/bin/python",
    "{user}/.hermes/hermes-agent/.venv/bin/python",
    "{user}/.local/share/uv/tools/hermes-agent/bin/python",
    "{user}/.local/share/pipx/venvs/hermes-agent/bin/python",
    "{user}/.local/pipx/venvs/hermes-agent/bin/python",
    "/opt/hermes/.venv/bin/python",
    "/opt/hermes/venv/bin/python",
)
_IN_SCRIPT = re.compile(r"""["']?(/[^\s"']*/python[0-9.]*)["']?""")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`python` is its path at the place, "" if none was found; `why` then says what was tried."""

    python: str = ""
    version: str | None = None
    site: str = ""
    why: str = ""


def find(place: Place, options: Mapping[str, Json]) -> Interpreter:
    """The door's `python`, else that of the `hermes` on PATH, else a usual place."""
    named = options.get("python")
    if named:
        path = str(named)
        if path.startswith("~"):
            folder, _, name = path.rpartition("/")
            path = posixpath.join(place.resolve(folder), name)
        if not _there(place, path):
            return Interpreter(why=f"door.python: there is no {path}")
        return _describe(place, path)
    for path in _candidates(place):
        if _there(place, path):
            found = _describe(place, path)
            if found.version:
                return found
    return Interpreter(
        why="no hermes-agent was found (no `hermes` on PATH, no usual install); say door: {python: PATH}"
    )


def _candidates(place: Place) -> Iterator[str]:
    script = place.which("hermes")
    if script:
        real = place.resolve(script)
        data = home.text(place, real, home.SMALL_LIMIT)
        text = data.decode(errors="replace") if isinstance(data, bytes) else ""
        first, _, rest = text.partition("\n")
        shebang = first.removeprefix("#!").strip().split(" ")[0]
        if first.startswith("#!") and posixpath.basename(shebang).startswith("python"):
            yield shebang
        # A launcher: `exec "/…/venv/bin/python" -m hermes_cli.main "$@"`.
        for match in _IN_SCRIPT.finditer(rest):
            yield match[1]
        yield posixpath.join(posixpath.dirname(real), "python")
    user = place.resolve("~")
    for pattern in _INSTALLS:
        yield pattern.format(user=user)


def _there(place: Place, path: str) -> bool:
    return posixpath.isabs(path) and isinstance(places.lstat(place, path), Stat)


def _describe(place: Place, python: str) -> Interpreter:
    prefix = posixpath.dirname(posixpath.dirname(python))
    for lib in ("lib", "lib64"):
        for series in places.visible(place, posixpath.join(prefix, lib)):
            if not series.startswith("python3"):
                continue
            for packages in ("site-packages", "dist-packages"):
                site = posixpath.join(prefix, lib, series, packages)
                for name in places.visible(place, site):
                    match = _DIST.fullmatch(name)
                    if match:
                        return Interpreter(python, match[1], site)
    return Interpreter(python, None, why=f"{python} has no hermes-agent")


def unsafe(place: Place, found: Interpreter) -> str:
    """Why we do not run it (L17): somebody else may write it, or what it imports. "" if nobody may."""
    return trust.unsafe(place, (*trust.around(place, found.python), found.site))
