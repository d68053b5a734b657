"""A toolset: the tools that an agent may use, everywhere (`default`) or on one channel."""

from __future__ import annotations

from .address import Kind
from .reading import NAME_SET, Field, Fields
from .shape import SET
from .table import Table
from .values import name_set

FIELDS: Fields = {
    "tools": Field("Tools that are on, as the harness names them; {only: [...]} for exactly these.", NAME_SET, SET,
                   check=name_set, needed=True),
}  # fmt: skip

TABLE = Table(
    Kind.TOOLSET, "Toolset", "Tools that are on: everywhere (`default`), or by channel.", FIELDS, short="tools"
)
