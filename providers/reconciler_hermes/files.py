"""Files of a profile: a closed list of targets, whole or our marked block in them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.observe import Observed, Things, Unknown
from reconciler.place import Place
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home
from .hiding import is_hidden
from .worker import block as blocks
from .worker import record as records

SINGLE = frozenset({"SOUL.md", "AGENTS.md", ".no-bundled-skills"})
FOLDERS = frozenset({"memories", "scripts", "hooks", "skills", "plugins", "skill-bundles", "skins", "workspace"})
CODE = frozenset({"scripts", "hooks", "plugins"})
"""Folders whose files Hermes runs."""

_MODE = re.compile(r"0?[0-7]{3}")


def refusal(path: str) -> str:
    """Why `path` cannot be declared as a file of a Hermes profile, "" if it can."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or "\0" in path or any(p in ("", ".", "..") for p in parts):
        return f"{path}: not a path inside the home"
    if path in SINGLE or (len(parts) > 1 and parts[0] in FOLDERS and ".hub" not in parts):
        return ""
    allowed = ", ".join([*sorted(SINGLE), *(f"{folder}/…" for folder in sorted(FOLDERS))])
    return f"{path} is not a file that a setup may write (allowed: {allowed})"


def runs_code(path: str, mode: str) -> bool:
    executable = bool(_MODE.fullmatch(mode)) and int(mode, 8) & 0o111 != 0
    return executable or path.split("/")[0] in CODE


def read(
    place: Place, profile: home.Profile, wanted: Sequence[str], everything: bool, owner: str, soul: str | None
) -> Things:
    """The wanted files that are there; with `everything`, SOUL.md and the scripts too.

    `soul` is the SOUL.md that Hermes puts into a new home by itself, None if that cannot be told.
    """
    paths = {path for path in wanted if not refusal(path)}
    if everything:
        paths |= {"SOUL.md", *home.tree(place, profile.folder, "scripts")}
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
    stat = home.lstat(place, whole)
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
        return Observed(Kind.FILE, profile.name, path, dict.fromkeys(("text", "block", "mode"), reason), name=path)
    fields: dict[str, Json | Unknown] = {"mode": f"0{stat.mode & 0o777:03o}"}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        fields["text"] = fields["block"] = Unknown(f"{whole}: not a text (byte {error.start})")
    else:
        fields["text"] = profile.hider.value(text)
        try:
            ours = blocks.find(text, path, owner)
        except blocks.Torn as error:
            fields["block"] = Unknown(str(error))
        else:
            if ours is not None:
                fields["block"] = profile.hider.value(ours)
    return Observed(
        Kind.FILE,
        profile.name,
        path,
        fields,
        name=path,
        fingerprint=records.digest([records.digest(data.hex(), profile.hider.key), fields["mode"]], profile.hider.key),
    )


def canon(fields: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, str]]:
    """Declared fields in canonical form, and what is refused."""
    out: dict[str, Json] = {}
    refused: dict[str, str] = {}
    for name, value in fields.items():
        if name == "mode":
            if not _MODE.fullmatch(str(value)):
                refused[name] = f"{value}: not a mode such as 0644 or 0755"
            else:
                out[name] = f"0{int(str(value), 8):03o}"
        elif name == "block":
            # The closing marker needs a line of its own, so that a block ends in a line break.
            out[name] = value if not value or str(value).endswith("\n") else f"{value}\n"
        else:
            out[name] = value
    return out, refused


def express(thing: Observed) -> dict[str, Json]:
    """`text`, or only our `block` where there is one; the mode where it is not the usual one."""
    out: dict[str, Json] = {}
    block, text, mode = thing.get("block"), thing.get("text"), thing.get("mode")
    if isinstance(block, str):
        out["block"] = block
    elif isinstance(text, str) and not is_hidden(text):
        out["text"] = text
    if out and isinstance(mode, str) and mode not in ("0644", "0600"):
        out["mode"] = mode
    return out
