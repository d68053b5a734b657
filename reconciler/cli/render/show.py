"""Show: one thing from all sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reconciler_specs.address import Address, split_field

from ...errors import UsageError
from ...observe import ABSENT, Observed, Unknown
from ...plan import Options
from ...words import show
from ...workspace import Workspace
from .json import value
from .style import safe


def _sides(space: Workspace, target: str) -> dict[str, Any]:
    text, only = split_field(target)
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from error
    plan = space.plan(Options(targets=(text,), in_sync=True))
    home = next((h for h in plan.homes if h.id == address.home), None)
    if home is None:
        raise UsageError(f"{target}: not in this setup")
    resource = home.resources.get(address)
    owned = home.state.owned(plan.owner).get(address.path)
    action = next((a for a in home.actions if a.address == address), None)
    seen = home.observed(address, owned.id if owned else (action.id if action else ""))
    if resource is None and owned is None and not isinstance(seen, Observed):
        raise UsageError(
            f"{target}: neither declared, nor owned, nor in the home", hint=f"reconciler status {address.home}"
        )
    canon = home.canons.get(address)
    declared = canon.fields if canon else {}
    names = dict.fromkeys(
        [*declared, *(owned.fields if owned else ()), *(seen.fields if isinstance(seen, Observed) else ())]
    )
    fields = {}
    for name in names:
        if only is not None and name != only:
            continue
        base = owned.fields.get(name) if owned else None
        origin = resource.origin(name) if resource is not None and name in resource.fields else None
        fields[name] = {
            "declared": declared.get(name, ABSENT),
            "base": base.observed if base else ABSENT,
            "observed": seen.get(name)
            if isinstance(seen, Observed)
            else (seen if isinstance(seen, Unknown) else ABSENT),
            "from": f"{origin.where}{f' via {origin.via}' if origin.via else ''}" if origin else "",
        }
    return {
        "address": str(address),
        "row": str(action.row) if action else ("unmanaged" if owned is None else "in-sync"),
        "reason": (action.hold.why if action.hold else action.reason) if action else "",
        "id": owned.id if owned else "",
        "origin": owned.origin if owned else "",
        "about": dict(seen.about) if isinstance(seen, Observed) else {},
        "fields": fields,
        "history": space.history(home.ref, address.path),
    }


def show_text(space: Workspace, target: str) -> Iterator[str]:
    """The thing as lines: a head, a table of its fields, run-time facts, the last outcomes."""
    sides = _sides(space, target)
    yield f"{safe(sides['address'])}  {sides['row']}  {safe(sides['reason'])}".rstrip()
    if sides["id"] or sides["origin"]:
        yield f"  harness id {safe(sides['id']) or '(by place)'}, {sides['origin']}"
    yield f"  {'field':<14} {'declared':<28} {'last applied':<28} observed"
    for name, side in sides["fields"].items():
        columns = [show(side[n], 26) for n in ("declared", "base", "observed")]
        yield f"  {name:<14} {columns[0]:<28} {columns[1]:<28} {columns[2]}"
        if side["from"]:
            yield f"  {'':<14} from {safe(side['from'])}"
    for name, fact in sides["about"].items():
        if fact not in (None, "", []):
            yield f"  {safe(name)}: {show(fact, 80)}"
    for line in sides["history"][-5:]:
        yield f"  {safe(line)}"


def show_json(space: Workspace, target: str) -> str:
    """`{"format": "reconciler.show/1", …}`."""
    sides = _sides(space, target)
    fields = {
        name: {k: (v if k == "from" else value(v)) for k, v in side.items()} for name, side in sides["fields"].items()
    }
    return json.dumps({"format": "reconciler.show/1", **sides, "fields": fields}, indent=2, default=str)
