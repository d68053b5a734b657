"""A plugin of the harness: whether it is on, and how it is set up. Installing one is the harness's own business."""

from __future__ import annotations

import re

from .address import Kind
from .reading import FLAG, Field, Fields
from .shape import FREE, SCALAR
from .table import Table, free_map
from .values import flag

_NAME = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9_./-]{0,126}\Z")
FIELDS: Fields = {
    "enabled": Field("Whether it is on.", FLAG, SCALAR, check=flag, needed=True),
    "config": Field("Its own configuration.", {"type": "object"}, FREE, check=free_map),
}


def _key_problem(key: str) -> str:
    return "" if _NAME.match(key) else "a plugin is named as the harness names it"


TABLE = Table(Kind.PLUGIN, "Plugin", "Plugins, by the harness's ids for them.", FIELDS, key=_key_problem)
