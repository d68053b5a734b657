"""Status: two letters per thing, as in `git status`: the setup's side and the home's side since the last apply."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...action import Action, FieldRow, Row
from ...plan import Plan
from .style import safe

LETTERS = """\
letters: first the setup, then the home, each since the last apply
  A added   M changed   D gone   R replaced   ? cannot be seen   (blank) as it was"""

_ROWS = {
    Row.CREATE: "A ",
    Row.EXPIRED: "A ",
    Row.UNOWNED: "AA",
    Row.FOREIGN: "AA",
    Row.AMBIGUOUS: "AA",
    Row.REFUSED: "A ",
    Row.MISSING: " D",
    Row.SPENT: " D",
    Row.REPLACED: " R",
    Row.DELETE: "D ",
    Row.FORGET: "DD",
    Row.BLOCKED: " ?",
    Row.UNMANAGED: " A",
    Row.PROVISION: "A ",
    Row.ADOPT: "A ",
}
_SETUP = {FieldRow.SET, FieldRow.CLAIM, FieldRow.UNSET, FieldRow.RELEASE, FieldRow.CONFLICT}
_HOME = {FieldRow.DRIFT, FieldRow.CONFLICT, FieldRow.RESTORE, FieldRow.STAMP}


def letters(action: Action) -> str:
    """The two letters of one row."""
    if action.row is not Row.UPDATE:
        return _ROWS.get(action.row, "  ")
    rows = {c.row for c in action.changes}
    home = "?" if FieldRow.BLOCKED in rows else "M" if rows & _HOME else " "
    return ("M" if rows & _SETUP else " ") + home


def status_text(plan: Plan, *, everything: bool, secrets: bool = False) -> Iterator[str]:
    """One line per thing that is not as it was (all with `everything`), for each secret with `secrets`, and what holds
    a home."""
    said = False
    for home in plan.homes:
        reason = home.failed or (home.hold.why if home.hold else "")
        if reason:
            said = True
            yield f" ! {safe(home.id)}  {safe(reason)}"
            if command := home.remedy or (home.hold.command if home.hold else ""):
                yield f"      next: {safe(command)}"
        for action in home.actions:
            if action.row is Row.IN_SYNC and not (everything or (secrets and action.source)):
                continue
            said = True
            yield f"{letters(action)} {safe(str(action.address))}" + _fields(action)
    if not said:
        yield f"Everything is as it was applied ({sum(h.unchanged for h in plan.homes)} thing(s))."


def _fields(action: Action) -> str:
    if action.source:
        return f"  {safe(action.reason)}"
    names = [c.field for c in action.changes if c.row not in (FieldRow.STAMP,)]
    return f"  {', '.join(names)}" if action.row is Row.UPDATE and names else ""


def status_json(plan: Plan) -> str:
    """`{"format": "reconciler.status/1", …}`."""
    things = [
        {
            "address": str(a.address),
            "setup": letters(a)[0].strip(),
            "home": letters(a)[1].strip(),
            "row": str(a.row),
            "fields": {c.field: str(c.row) for c in a.changes},
        }
        for h in plan.homes
        for a in h.actions
    ]
    homes = [
        {"home": h.id, "held": h.hold.why if h.hold else "", "failed": h.failed, "unchanged": h.unchanged}
        for h in plan.homes
    ]
    return json.dumps({"format": "reconciler.status/1", "homes": homes, "things": things}, indent=2)
