"""What a copy carries, what it changes, what it refuses, and what stays behind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ...copy import Copy, Fidelity, Item
from ...provider import Behind, HomeRef
from .json import dump
from .style import Style, out, safe

_MARKS = {Fidelity.EXACT: ("=", "green"), Fidelity.SEMANTIC: ("~", "yellow"), Fidelity.REFUSED: ("✗", "red")}


def tell(made: Copy, source: str, setup: str) -> None:
    """For a person; ends with what stays behind and the next command."""
    style = Style(sys.stdout)
    target = made.target
    out(f"{style(safe(source), 'bold')} ({made.source.harness}) → {style(target.ref.id, 'bold')} ({_kind(made)})")
    for item in made.items:
        _item(item, style)
    words = [f"{made.count(f)} {f}" for f in Fidelity]
    out(f"\nWrote {target.ref.id} into {safe(setup)}: {', '.join(words)}.")
    for profile, names in made.secrets.items():
        out(f"  {target.ref.id}/{profile} needs these secrets, by name only: {', '.join(map(safe, names))}")
    for note in made.notes:
        out(f"  {safe(source)}: {safe(note)}")
    _behind(made.behind, source, made.count(Fidelity.REFUSED) > 0)
    if any(item.address.kind.value == "jobs" and item.fidelity is not Fidelity.REFUSED for item in made.items):
        out("\nAfter the move both homes have these jobs: pause the old ones, or stop what runs them.")
    if target.blank and target.observation.blocked:
        out(f"\nThere is no home at {safe(target.ref.path)} yet: {safe(target.observation.blocked)}.")
        out(f"next: make it, then {style(f'reconciler adopt {target.ref.id}', 'cyan')}")
    else:
        out(f"next: {style(f'reconciler {_next(made)}', 'cyan')}")


def _kind(made: Copy) -> str:
    version = made.target.observation.version
    return f"{made.target.ref.harness}{f' {version}' if version else ''} at {safe(made.target.ref.path)}"


def _next(made: Copy) -> str:
    return f"provision {made.target.ref.id}" if made.target.blank else f"adopt {made.target.ref.id}"


def _item(item: Item, style: Style) -> None:
    mark, colour = _MARKS[item.fidelity]
    out(f"  {style(mark, colour)} {safe(item.address.path)}  {style(str(item.fidelity), colour)}")
    for words in item.changes:
        out(f"      {safe(words)}")
    if item.waits:
        out(f"      will wait: {safe(item.waits)}")


def _behind(parts: Sequence[Behind] | None, source: str, refused: bool) -> None:
    if parts is None:
        out(f"\nWhat stays behind in {safe(source)} cannot be listed: its provider does not tell.")
        return
    if not parts:
        out(f"\nNothing {'else ' if refused else ''}stays behind in {safe(source)}.")
        return
    out(f"\nStays behind in {safe(source)}, untouched:")
    width = max(len(safe(part.path)) for part in parts)
    for part in parts:
        files = "1 file" if part.files == 1 else f"{part.files:,} files"
        out(f"  {safe(part.path):<{width}}  {safe(part.what)}, {files}, {amount(part.size)}")


def amount(size: int) -> str:
    """Bytes as people say them: `512 B`, `3.4 KiB`."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def copy_json(made: Copy, written: str) -> str:
    """The same as `{"format": "reconciler.copy/1", …}`; `written` is the setup, "" if nothing was written."""
    things = [
        {
            "address": str(item.address),
            "fidelity": item.fidelity.value,
            "changes": list(item.changes),
            **({"waits": item.waits} if item.waits else {}),
        }
        for item in made.items
    ]
    return dump(
        {
            "format": "reconciler.copy/1",
            "from": _ref(made.source),
            "to": {
                **_ref(made.target.ref),
                "version": made.target.observation.version,
                "exists": not made.target.blank,
            },
            "things": things,
            "summary": {fidelity.value: made.count(fidelity) for fidelity in Fidelity},
            "secrets": {profile: list(names) for profile, names in made.secrets.items()},
            "behind": None if made.behind is None else [_part(part) for part in made.behind],
            "notes": list(made.notes),
            "written": written or None,
            "next": f"reconciler {_next(made)}",
        }
    )


def _ref(ref: HomeRef) -> dict[str, Any]:
    return {"home": ref.id, "harness": ref.harness, "place": ref.place.name, "path": ref.path}


def _part(part: Behind) -> dict[str, Any]:
    return {"path": part.path, "what": part.what, "files": part.files, "bytes": part.size}
