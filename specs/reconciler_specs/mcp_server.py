"""An MCP server: tools of another program, started here (`command`) or reached at an address (`url`)."""

from __future__ import annotations

import re
from typing import Any

from .address import Kind
from .environment import SCHEMA as ENVIRONMENT
from .environment import environment
from .reading import FLAG, TEXT, Field, Fields, Reasons
from .shape import ATOMIC, FREE, SCALAR
from .table import Around, Declared, Table, free_map
from .values import Refusal, count, described, filled, flag, text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise Refusal(f"a list of texts is expected, got {described(value)}")
    found = []
    for i, item in enumerate(value):
        try:
            found.append(text(item))
        except Refusal as refusal:
            raise refusal.under(i) from refusal
    return found


FIELDS: Fields = {
    "command": Field("The program that is started.", TEXT, SCALAR, check=filled),
    "args": Field("Its arguments.", {"type": "array", "items": TEXT}, ATOMIC, check=_texts),
    "env": Field("Its environment: texts, and {secret: NAME} for credentials.", ENVIRONMENT, FREE,
                 check=environment),
    "cwd": Field("The folder that it is started in.", TEXT, SCALAR, check=filled),
    "url": Field("The address of one that runs elsewhere.", TEXT, SCALAR, check=filled),
    "transport": Field("How to talk to the address, as the harness names it.", TEXT, SCALAR, check=filled),
    "headers": Field("Headers of each call: texts, and {secret: NAME} for credentials.", ENVIRONMENT, FREE,
                     check=environment),
    "timeout": Field("Seconds until a call is given up.", {"type": "integer", "minimum": 1}, SCALAR, check=count),
    "enabled": Field("Whether it is used.", FLAG, SCALAR, check=flag),
    "extra": Field("Other keys of the server, as the harness has them.", {"type": "object"}, FREE,
                   check=free_map),
}  # fmt: skip
_OF: dict[str, tuple[str, ...]] = {"command": ("url", "headers", "transport"), "url": ("command", "args", "env", "cwd")}


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    for one, others in _OF.items():
        if one in declared.fields:
            for name in others:
                if name in declared.fields:
                    reasons.add(declared.node.value[name].where, f"{declared.what}: {name} does not go with {one}")


def _key_problem(key: str) -> str:
    return "" if _NAME.match(key) else "a server's name is letters, digits, _, . and -, up to 63"


TABLE = Table(
    Kind.MCP_SERVER,
    "McpServer",
    "MCP servers, by their names in the harness.",
    FIELDS,
    one_of=("command", "url"),
    key=_key_problem,
    finish=_finish,
)
