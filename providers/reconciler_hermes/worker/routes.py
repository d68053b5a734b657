"""Routes: the one list of config.yaml, each of our entries by its name, all of a step in one write."""

from __future__ import annotations

from typing import Any

from reconciler_shape import routes as shape
from reconciler_shape.plain import digest

from . import config as configs


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """As `config.perform`, with what each operation makes of the list."""
    return configs.perform(request, _paths, _seen)


def _paths(raw: dict[str, Any], op: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    found = shape.entries(raw)
    made = shape.put(found, op["name"], op["fields"]) if op["op"] == "set" else shape.without(found, op["name"])
    path = list(shape.place(raw))
    return ([[path, made]], []) if made else ([], [path])


def _seen(raw: dict[str, Any], op: dict[str, Any], key: bytes) -> str:
    twins = shape.named(shape.entries(raw), op["name"])
    return digest(twins[0], key) if twins else ""
