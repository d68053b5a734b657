"""What the platform cannot do, taken out of a plan's rows with the reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.action import CLEAR, Action, FieldChange, FieldRow, Hold, Row
from reconciler.values import from_base
from reconciler_specs.address import Kind
from reconciler_specs.remote import CLEARABLE
from reconciler_specs.resource import Resource

KEEPS = "the platform has no way to take a kit, or a type of one, out of a project again"


def kit_of(source: Any) -> str:
    """`viable:project` → `project`; "" for a kit of another source."""
    where, _, name = str(source or "").partition(":")
    return name if where == "viable" else ""


def reviewed(action: Action, resource: Resource | None, offer: Mapping[str, Sequence[str]]) -> Action:
    """The row as the platform can carry it out."""
    if action.hold is not None:
        return action
    if action.address.kind is Kind.SETTING and action.row is Row.UPDATE:
        keeps = action.address.key not in CLEARABLE
        return replace(action, changes=tuple(_kept(c) if keeps else c for c in action.changes))
    if action.address.kind is not Kind.KIT:
        return action
    if action.row is Row.DELETE:
        return replace(action, hold=Hold(KEEPS, f"reconciler release {action.address}"))
    if action.row in (Row.CREATE, Row.UPDATE) and resource is not None:
        return _kit(action, resource, offer)
    return action


def _kept(change: FieldChange) -> FieldChange:
    """A value that nothing can take away is let go of, and stays."""
    if change.row is FieldRow.UNSET and change.write is CLEAR:
        return replace(change, row=FieldRow.RELEASE, write=None)
    return change


def _kit(action: Action, resource: Resource, offer: Mapping[str, Sequence[str]]) -> Action:
    action = replace(
        action, changes=tuple(_kept(c) if c.field == "types" else c for c in action.changes)
    )  # fmt: skip
    writing = {c.field: c for c in action.changes if c.writes}
    if not writing:
        return action
    name = kit_of(resource.fields.get("source"))
    wanted = resource.fields.get("types")
    why = ""
    if action.row is Row.UPDATE and "source" in writing:
        why = f"{KEEPS}; declare {name} under a key of its own"
    elif name not in offer:
        why = f"the platform offers no kit {name}; it offers {', '.join(sorted(offer)) or 'none'}"
    elif wanted is not None and not set(wanted) <= set(offer[name]):
        strange = ", ".join(item for item in wanted if item not in offer[name])
        why = f"the kit {name} has no type {strange}; it has {', '.join(offer[name])}"
    elif action.row is Row.UPDATE and "types" in writing:
        base = writing["types"].base
        had = from_base(base.observed) if base is not None else []
        left = [item for item in had if item not in wanted] if isinstance(had, list) and wanted is not None else []
        why = f"{', '.join(left)} would go, and {KEEPS}" if left else ""
    if why:
        return replace(action, row=Row.REFUSED, reason=why, hold=Hold(why))
    more = [item for item in offer[name] if wanted is not None and item not in wanted]
    notes = ["the platform rebuilds the project", *([f"also offered: {', '.join(more)}"] if more else [])]
    return replace(action, notes=(*action.notes, *notes))
