"""Kanban boards by Hermes's own functions. Making one that is there renames it, so each is looked at first."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

from reconciler_shape.plain import digest


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Create, update and archive, each by itself."""
    results = []
    for op in request["ops"]:
        try:
            code, words = _one(op, Path(request["home"]), bytes.fromhex(request["key"]))
        except Exception as error:  # noqa: BLE001 - the boundary: Hermes's functions may raise anything
            code, words = "refused", str(error) or type(error).__name__
        results.append({"ref": op["ref"], "code": code, "id": op["slug"], "words": words, "inert": ""})
    return results


def _one(op: dict[str, Any], root: Path, key: bytes) -> tuple[str, str]:
    hermes: Any = importlib.import_module("hermes_cli.kanban_db")
    slug, folder = op["slug"], root / "kanban" / "boards" / op["slug"]
    theirs = Path(hermes.board_dir(slug))
    if os.path.realpath(theirs) != os.path.realpath(folder):
        raise RuntimeError(f"Hermes keeps the board {slug} at {theirs}, not in this home")
    if op["op"] == "create":
        if folder.exists() and any(folder.iterdir()):
            return "stale", f"there is a board {slug} already"
        hermes.create_board(slug, **op["args"])
        return "ok", ""
    path = folder / "board.json"
    raw = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if digest(raw, key) != op["fingerprint"] or not folder.is_dir():
        return "stale", "the board has changed since it was looked at"
    if op["op"] == "delete":
        hermes.remove_board(slug, archive=True)
    else:
        hermes.write_board_metadata(slug, **op["args"])
    return "ok", ""
