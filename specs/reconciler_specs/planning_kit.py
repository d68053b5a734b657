"""A planning kit: the card types and status flows that a home's work is planned by, and the board that they are on.

The definition comes from a file beside the setup, from this package (`kit:`), stands in the setup itself, or is one
that the viable platform offers under a name.
"""

from __future__ import annotations

import re
from typing import Any

from . import kit
from .address import Kind
from .document import read_document, shown
from .reading import NAMES, TEXT, Field, Fields, Reasons, did_you_mean
from .shape import ATOMIC, MAP_OF_SCALARS, SCALAR, Json
from .table import Around, Declared, Table
from .values import Refusal, closed, filled, names, word

_SOURCE = re.compile(r"(viable|file|kit):(\S.*)\Z")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
BOARD = ("slug", "name", "description", "icon", "color", "workdir")


def _source(value: Any) -> str:
    if not isinstance(value, str) or not _SOURCE.match(value):
        raise Refusal("viable:<kit>, file:<path beside the setup> or kit:<ready one> is expected",
                      f"ready ones: {', '.join(kit.ready())}")  # fmt: skip
    return value


def _board(value: Any) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, item in closed(value, BOARD, "a board").items():
        try:
            found[key] = filled(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    if "slug" not in found:
        raise Refusal("slug is needed: the board's name in the harness")
    if not _SLUG.match(found["slug"]):
        raise Refusal("a slug is a-z, 0-9, _ and -, up to 63", path=("slug",))
    return found


FIELDS: Fields = {
    "source": Field("Where the kit is from: viable:<kit>, file:<path beside the setup> or kit:<ready one>.",
                    {"type": "string", "pattern": "^(viable|file|kit):\\S"}, SCALAR, check=_source),
    "kit": Field("The kit itself, where it is in no file of its own: title, purpose, types and flows.",
                 {"type": "object"}, kit.SHAPE, check=kit.definition),
    "types": Field("Only these of its card types.", NAMES, ATOMIC, check=names),
    "board": Field(f"The board that its cards are on: {', '.join(BOARD)}.",
                   {"type": "object", "properties": dict.fromkeys(BOARD, TEXT), "required": ["slug"],
                    "additionalProperties": False}, MAP_OF_SCALARS, check=_board),
    "on_unsupported": Field("What to do where the harness has statuses of its own: refuse, or degrade to those.",
                            {"enum": ["refuse", "degrade"]}, field=False, check=word("refuse", "degrade")),
}  # fmt: skip


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    fields, node, what = declared.fields, declared.node, declared.what
    declared.options.update(declared.steering)
    where, _, name = fields.get("source", "").partition(":")
    try:
        if where == "kit":
            if name not in kit.ready():
                at = node.value["source"].where
                reasons.add(at, f"{what} source: there is no ready kit {shown(name)}", did_you_mean(name, kit.ready()))
                return
            fields["kit"] = kit.ready_kit(name)
        elif where == "file":
            found = _from_file(name, declared, around, reasons)
            if found is None:
                return
            fields["kit"] = found
        if where in ("kit", "file"):
            declared.options["source"] = fields.pop("source")
        if "kit" in fields and "types" in fields:
            fields["kit"] = kit.chosen(fields["kit"], fields.pop("types"))
    except Refusal as refusal:
        reasons.refused(node.value["types"], ("types",), what, refusal)


def _from_file(name: str, declared: Declared, around: Around, reasons: Reasons) -> Json:
    """The definition in a file. None with reasons, which name the file, if it is none."""
    text = around.sources.text(name, declared.node.value["source"], f"{declared.what} source", reasons)
    document = read_document(text, name, reasons.found) if text is not None else None
    if document is None:
        return None
    try:
        return kit.definition(document.root.plain())
    except Refusal as refusal:
        reasons.refused(document.root, (), declared.what, refusal)
        return None


TABLE = Table(
    Kind.KIT,
    "PlanningKit",
    "Planning kits, by your own names.",
    FIELDS,
    one_of=("source", "kit"),
    finish=_finish,
)
