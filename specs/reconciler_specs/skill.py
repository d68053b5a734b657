"""A skill: instructions that an agent can load. On or off; or a folder beside the setup that holds it."""

from __future__ import annotations

import re
from typing import Any

from .address import Kind
from .document import shown
from .folder import digest
from .reading import FLAG, TEXT, Field, Fields, Reasons
from .shape import SCALAR
from .sources import Unusable
from .table import Around, Declared, Table
from .values import Refusal, filled, flag

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")
MAX_FILES = 200


def _source(value: Any) -> str:
    name = filled(value)
    if name.startswith(("/", "~")):
        raise Refusal("a path relative to this file is expected", "keep it beside the setup")
    return name


FIELDS: Fields = {
    "enabled": Field("Whether it may be loaded.", FLAG, SCALAR, check=flag),
    "source": Field("A folder beside the setup, with its SKILL.md.", TEXT, field=False, check=_source),
    "content": Field("A digest of the folder's files; made from `source`.", TEXT, SCALAR),
}


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    if "source" in declared.steering:
        at = declared.node.value["source"]
        try:
            files = around.sources.folder_of(declared.steering["source"], at, MAX_FILES)
        except Unusable as error:
            name = shown(declared.steering["source"])
            reasons.add(at.where, f"{declared.what} source: {name} cannot be used: {error}")
            return
        if "SKILL.md" not in files:
            reasons.add(at.where, f"{declared.what} source: there is no SKILL.md in it")
            return
        declared.fields["content"] = digest(files)
        declared.options["files"] = files
        declared.options["folder"] = around.sources.below(declared.steering["source"], at)
    if not declared.fields:
        reasons.add(declared.node.where, f"{declared.what}: enabled or source is needed")


def _key_problem(key: str) -> str:
    return "" if _NAME.match(key) else "a skill's name is letters, digits, _, . and -, up to 63"


TABLE = Table(Kind.SKILL, "Skill", "Skills, by name.", FIELDS, key=_key_problem, finish=_finish)
