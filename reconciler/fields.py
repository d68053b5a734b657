"""The field table of the laws: what becomes of one field, from what is declared, recorded and observed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler_specs.resource import Mode
from reconciler_specs.shape import Class, Json, Shape
from reconciler_state.record import Base

from .action import CLEAR, Clear, FieldChange, FieldRow
from .merge import COMPOSITE, changed, equal, meet, merge, show
from .observe import ABSENT, Seen, Unknown
from .textmerge import TextClash, merge_values
from .values import from_base

FOUND: Final = "replaces a value that was found in the home"
"""The note of a claim that needs consent: a value is there, and it is not the harness's default."""


def decide(
    field: str,
    shape: Shape,
    declared: Seen,
    base: Base | None,
    observed: Seen,
    *,
    mode: Mode = Mode.HOLD,
    created: bool,
    default: bool = False,
    restore: bool = False,
    unset: bool = False,
    others: Sequence[Json] = (),
) -> FieldChange:
    """One field's row: the first of the field table that holds.

    `declared` is ABSENT for a field that left the setup (and for one under `unset:`). `created` says whether we
    made the thing, `default` whether the observed value is the harness's own, `restore` whether the command line
    named the field. `others` is what other setups that share the home declare for it (L3): it is not removed.
    """

    def row(name: FieldRow, write: Json | Clear = None, note: str = "") -> FieldChange:
        return FieldChange(field, name, declared, observed, base, shape, write, mode, note)

    if isinstance(observed, Unknown):
        return row(FieldRow.BLOCKED, note=observed.reason)
    was_declared, was_observed = (from_base(base.declared), from_base(base.observed)) if base else (ABSENT, ABSENT)
    gone = observed is ABSENT or default
    if declared is ABSENT and not unset:
        if base is None:
            return row(FieldRow.IN_SYNC)
        if not created or gone:
            return row(FieldRow.RELEASE)
        left = merge(shape, was_declared, ABSENT, observed, others)
        return row(FieldRow.UNSET, CLEAR if left is ABSENT else left)
    if mode is Mode.SEED and (base is not None or observed is not ABSENT):
        return row(FieldRow.IN_SYNC)

    same_intent = base is not None and equal(shape, declared, was_declared)
    same_home = base is not None and equal(shape, observed, was_observed)
    if same_intent and (same_home or (unset and gone)):
        return row(FieldRow.IN_SYNC)
    write: Seen = ABSENT
    if unset:
        satisfied = gone
    else:
        # A text that the setup did not change has nothing to merge: to restore it is to write it.
        whole = shape.cls is Class.TEXT and same_intent
        write = declared if whole else merge(shape, was_declared, declared, observed, others)
        satisfied = equal(shape, write, observed)
    if satisfied:
        return row(FieldRow.STAMP)
    send = CLEAR if write is ABSENT else write
    if base is None:
        return row(FieldRow.CLAIM, send, "" if gone else FOUND)
    if same_intent:
        if restore or mode is Mode.RESTORE:
            return row(FieldRow.RESTORE, send)
        return row(FieldRow.DRIFT)
    conflict = _conflict(shape, was_declared, declared, was_observed, observed, write)
    if conflict is None:
        return row(FieldRow.SET, send)
    return row(FieldRow.RESTORE, send, conflict) if restore else row(FieldRow.CONFLICT, note=conflict)


def _conflict(
    shape: Shape, was_declared: Seen, declared: Seen, was_observed: Seen, observed: Seen, write: Seen
) -> str | None:
    """Where the home's change and ours meet, in words; None iff they do not, so that both can stand.

    A text is merged against what was declared. So it may clash though the home has not moved since: with lines of
    the home's own that an earlier merge kept, and that writing the setup's text would lose.
    """
    merged = merge_values(was_declared, declared, observed) if shape.cls is Class.TEXT else None
    if merged is not None:
        return f"both changed line {merged.line}" if isinstance(merged, TextClash) else None
    home = changed(shape, was_observed, observed)
    if not home:
        return None
    if shape.cls not in COMPOSITE:
        return "both changed it"
    met = meet(changed(shape, observed, write), home)
    return f"both changed {', '.join(sorted(show(p) for p in met)) or 'it'}" if met else None
