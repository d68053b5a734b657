"""The one question of a run, at a terminal."""

from __future__ import annotations

from ...action import Row, Tier
from ...plan import Plan


def question(plan: Plan, *, reviewed: bool) -> str:
    """What is asked: the rows by what they need, and the sources of secrets that apply alone may ask."""
    rows = [a for h in plan.homes for a in h.open]
    deletes = sum(1 for a in rows if a.row is Row.DELETE)
    confirm = sum(1 for a in rows if a.tier is Tier.CONFIRM and a.row is not Row.DELETE)
    parts = [f"{len(rows)} row(s)"]
    if confirm:
        parts.append(f"{confirm} of them need you to look")
    if deletes:
        parts.append(f"{deletes} delete(s)" + ("" if reviewed else ", which wait for --reviewed"))
    names = sorted({a.address.key for h in plan.homes for a in h.checks})
    words = [f"Carry out {', '.join(parts)}"] if rows else []
    if names:
        words.append(f"{'ask' if rows else 'Ask'} the source of {', '.join(names)}, and write what differs")
    return f"{', and '.join(words)}?"


def ask(plan: Plan, *, reviewed: bool) -> bool:
    """Whether the person agrees to the whole plan. End of input is no."""
    try:
        answer = input(f"{question(plan, reviewed=reviewed)} [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")
