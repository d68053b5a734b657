"""A file of a profile: whole (`source`, `text`) or only the block between our two marker lines."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator

from . import profile
from .address import Address
from .document import Node, shown
from .errors import Where
from .reading import FLAG, TEXT, THING_KEYS, Field, Fields, Reasons, check_keys, is_map, origins, read, read_marks
from .reading import Marks as _Marks
from .reading import resource as make
from .resource import Mode, Resource
from .shape import SCALAR
from .shape import TEXT as TEXT_SHAPE
from .sources import Sources
from .values import Filled, Flag, Refusal, Text, described

FIELDS: Fields = {
    "source": Field("A file beside the setup that holds the whole text.", TEXT, SCALAR, field=False),
    "text": Field("The whole text.", TEXT, TEXT_SHAPE),
    "block": Field("A file beside the setup: what stands between our two marker lines.", TEXT, TEXT_SHAPE),
    "mode": Field('The permission bits, such as "0755".', {"type": "string", "pattern": "^0[0-7]{3}$"}, SCALAR),
    "seed": Field("Write it once, at create, and never look again.", FLAG, SCALAR, field=False),
}
SHAPES = {"text": TEXT_SHAPE, "block": TEXT_SHAPE, "mode": SCALAR}
_MODE = re.compile(r"0[0-7]{3}\Z")


def _mode(value: Any) -> str:
    if isinstance(value, str) and _MODE.match(value):
        return value
    digits = getattr(value, "text", str(value)).lower().removeprefix("0o")
    hint = f'quote it: mode: "0{digits[-3:]}"' if re.fullmatch(r"0*[0-7]{3}", digits) else 'write "0644" or "0755"'
    raise Refusal(f"a mode is four octal digits in quotes, got {described(value)}", hint)


class File(BaseModel):
    """A file as declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Filled = ""
    text: Text = ""
    block: Filled = ""
    mode: Annotated[str, PlainValidator(_mode)] = ""
    seed: Flag = False


def file_path(key: str) -> str:
    """What is wrong with a file's key, "" if it is a relative POSIX path that stays where it is put."""
    parts = key.split("/")
    if key.startswith(("/", "~")) or re.match(r"[A-Za-z]:", key):
        return "a file is a path inside the profile, not an absolute one"
    if ".." in parts:
        return "a file's path may not lead out of the profile"
    if "" in parts or "." in parts or "\\" in key or any(ord(c) < 32 for c in key):
        return "a file is a plain relative path such as scripts/disk.sh"
    return "# may not stand in a file's path" if "#" in key else ""


def read_file(
    node: Node, address: Address, where: Where, mode: Mode, reasons: Reasons, sources: Sources
) -> Resource | None:
    """The file's Resource with the text of its `source` or `block`."""
    what = str(address)
    if not is_map(node, what, reasons):
        if node.kind == "scalar" and isinstance(node.value, str):
            found = reasons.found.pop()
            reasons.add(found.where, found.message, f"write {{source: {shown(node.value)[1:-1]}}} or {{text: …}}")
        return None
    check_keys(node, (*FIELDS, *THING_KEYS), what, reasons)
    marks = read_marks(node, SHAPES, what, reasons)
    declared = read(File, node, what, where, reasons)
    if declared is None:
        return None
    given = [k for k in ("source", "text", "block") if k in declared.model_fields_set]
    if len(given) != 1:
        reasons.add(
            where,
            f"{what}: exactly one of source, text, block is needed, got {' and '.join(given) or 'none'}",
            f"take away what was inherited: {given[0]}: null" if given else "",
        )
        return None
    key = given[0]
    held = "block" if key == "block" else "text"
    content: str | None = declared.text
    if key != "text":
        content = sources.text(getattr(declared, key), node.value[key], f"{what} {key}", reasons)
        if content is None:
            return None
    fields = {held: content}
    if declared.mode:
        fields["mode"] = declared.mode
    if declared.seed:
        marks = _Marks({**dict.fromkeys(fields, Mode.SEED), **marks.modes}, marks.protect, marks.unset)
    needed = profile.needs(address.home, address.profile)
    origin = origins(node, where, {held: key})
    return make(address, fields, SHAPES, marks, mode, origin, needed)
