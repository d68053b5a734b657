"""Files of a profile in the setup's words: whole, or our marked block in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.observe import Observed, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import block as blocks
from . import paths
from .hiding import Hider, is_hidden
from .plain import digest


def unknown(profile: str, path: str, reason: Unknown) -> Observed:
    """A file that cannot be read."""
    return Observed(Kind.FILE, profile, path, dict.fromkeys(("text", "block", "mode"), reason), name=path)


def observed(profile: str, path: str, data: bytes, mode: int, hider: Hider, owner: str, where: str) -> Observed:
    """A file with its text, the block of the setup `owner` in it, and its mode; `where` is its name for a person."""
    fields: dict[str, Json | Unknown] = {"mode": f"0{mode & 0o777:03o}"}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        fields["text"] = fields["block"] = Unknown(f"{where}: not a text (byte {error.start})")
    else:
        fields["text"] = hider.value(text)
        try:
            ours = blocks.find(text, path, owner)
            if ours is not None:
                fields["block"] = hider.value(ours)
        except blocks.Torn as error:
            fields["block"] = Unknown(str(error))
    fingerprint = digest(paths.content(data, mode, hider.key), hider.key)
    return Observed(Kind.FILE, profile, path, fields, name=path, fingerprint=fingerprint)


def canon(fields: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, str]]:
    """Declared fields in canonical form, and what is refused."""
    out: dict[str, Json] = {}
    refused: dict[str, str] = {}
    for name, value in fields.items():
        out[name] = value
        if name == "mode":
            if paths.MODE.fullmatch(str(value)):
                out[name] = f"0{int(str(value), 8):03o}"
            else:
                refused[name] = f"{value}: not a mode such as 0644 or 0755"
        elif name == "block" and value and not str(value).endswith("\n"):
            out[name] = f"{value}\n"  # the closing marker needs a line of its own
    return out, refused


def express(thing: Observed, usual: tuple[str, ...]) -> dict[str, Any]:
    """`text`, or only our `block` where there is one; the mode where it is not a usual one."""
    out: dict[str, Any] = {}
    block, text, mode = thing.get("block"), thing.get("text"), thing.get("mode")
    if isinstance(block, str):
        out["block"] = block
    elif isinstance(text, str) and not is_hidden(text):
        out["text"] = text
    if out and isinstance(mode, str) and mode not in usual:
        out["mode"] = mode
    return out
