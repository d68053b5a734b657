"""State for people: the homes that have some, and who owns how much of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .style import safe

if TYPE_CHECKING:
    from reconciler_state.local import LocalStore

    from ...migrate import Copied


def list_text(store: LocalStore) -> Iterator[str]:
    """One line per home and setup; damaged files last."""
    empty = True
    for physical in store.list():
        state = store.read(physical)
        if state is None:
            continue
        empty = False
        yield f"{safe(state.harness)}  {safe(state.path)}  ({safe(state.place)}, serial {state.serial})"
        for owner, label in sorted(state.labels.items()):
            yield f"  setup {safe(owner)} calls it {safe(label)}, and owns {len(state.owned(owner))} thing(s)"
        for line in state.damaged:
            yield f"  damaged: {safe(line)}"
    for error in store.broken():
        empty = False
        yield f"! {safe(str(error))}"
    if empty:
        yield f"No home has state in {store.where}."


def list_json(store: LocalStore) -> str:
    """`{"format": "reconciler.state/1", …}`."""
    homes = []
    for physical in store.list():
        state = store.read(physical)
        if state is not None:
            homes.append(
                {
                    "harness": state.harness,
                    "place": state.place,
                    "path": state.path,
                    "lineage": state.lineage,
                    "serial": state.serial,
                    "file": str(store.path(physical)),
                    "owners": {o: {"home": label, "things": len(state.owned(o))} for o, label in state.labels.items()},
                }
            )
    broken = [str(e) for e in store.broken()]
    return json.dumps({"format": "reconciler.state/1", "homes": homes, "broken": broken}, indent=2)


def migrated_text(home: Copied) -> Iterator[str]:
    """What became of one home's state."""
    yield f"{'✗ ' if home.refused else ''}{safe(home.state.harness)}  {safe(home.state.path)}: {safe(home.what)}"
