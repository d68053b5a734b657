"""The files that a setup includes: globs relative to it, inside its folder, regular and small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .document import MAX_BYTES, Node, shown
from .reading import Reasons
from .sources import Sources, Unusable

MAX_INCLUDED = 2_000


def included(
    root: Node, name: str, path: Path, sources: Sources, reasons: Reasons
) -> Iterator[tuple[str, Path, bytes]]:
    """(name for messages, path, content) of every included file, in the order of the globs and then of the names."""
    node = root.get("include")
    if node is None:
        return
    if node.kind != "seq":
        reasons.add(node.where, "include: a list of file names is expected", "write include: [clients/*.yaml]")
        return
    seen = {Path(os.path.realpath(path))}
    for item in node.value:
        pattern = item.value
        if not isinstance(pattern, str) or not pattern or pattern.startswith(("/", "~")) or "\\" in pattern:
            reasons.add(item.where, "include: a path relative to this file is expected", "clients/*.yaml")
            continue
        if ".." in pattern.split("/"):
            reasons.add(item.where, f"include: {shown(pattern)} leads out of the setup's folder")
            continue
        try:
            found = sorted(p for p in path.parent.glob(pattern) if not p.is_dir())
        except (ValueError, NotImplementedError, OSError):
            reasons.add(item.where, f"include: {shown(pattern)} is no file name")
            continue
        if not found:
            reasons.add(item.where, f"include: {shown(pattern)} matches no file")
        for file in found:
            real = Path(os.path.realpath(file))
            if real in seen:
                continue
            if len(seen) > MAX_INCLUDED:
                reasons.add(item.where, f"include: more than {MAX_INCLUDED} files")
                return
            seen.add(real)
            shown_name = str(Path(name).parent / file.relative_to(path.parent))
            try:
                yield shown_name, file, sources.bytes(file, MAX_BYTES)
            except Unusable as error:
                reasons.add(item.where, f"include: {shown(shown_name)} cannot be used: {error}")
