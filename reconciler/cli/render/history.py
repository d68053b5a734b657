"""History: runs as a table, and one run with its rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from reconciler_state.decisions import Said

from ...past import Command, Past
from ...words import moment, show
from .json import dump
from .style import Style, safe

_MARKS = {"applied": ("✓", "green"), "settled": ("✓", "green"), "": ("?", "red"), "uncertain": ("?", "red")}


def history_text(past: Past, which: str, limit: int) -> Iterator[str]:
    """The runs, or with a run's id or a target the rows of each."""
    style = Style(sys.stdout)
    for home, why in past.unread.items():
        yield f"{style('✗', 'red')} {safe(home)}: {safe(why)}"
    for decision in past.decisions[-limit:]:
        if decision.said is not Said.PERMITTED:  # that is the run's row
            row = f"{decision.row}  " if decision.row else ""
            what = f"{safe(decision.address)}  {row}{decision.said}: {safe(decision.why)}"
            yield f"… {moment(decision.at)}  {what}" + (f"  by {safe(decision.by)}" if decision.by else "")
    if not past.commands:
        yield "Nothing was done yet." if not which else f"Nothing was done to {safe(which)} yet."
        return
    for command in past.commands[:limit]:
        yield _head(command, style)
        if which:
            yield from _rows(command, style, whole=which == command.run)
    if len(past.commands) > limit:
        yield style(f"{len(past.commands) - limit} older run(s); see them with --limit {len(past.commands)}", "dim")


def _head(command: Command, style: Style) -> str:
    who = command.first.who
    counts = Counter(row.outcome or "open" for _, row in command.rows)
    words = ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))
    by = safe(str(who.get("actor", "")))
    commit = safe(str(who.get("commit", ""))[:12]) + ("+" if who.get("dirty") else "")
    parts = [style(command.run, "bold"), moment(command.began), ", ".join(safe(h) for h in command.homes), words]
    parts += [part for part in (f"by {by}" if by else "", f"of {commit}" if commit else "") if part]
    if command.seconds >= 0.05:
        parts.append(f"({command.seconds:.1f} s)")
    return "  ".join(parts)


def _rows(command: Command, style: Style, *, whole: bool) -> Iterator[str]:
    if whole:
        who = command.first.who
        for name in ("subject", "author", "ref", "pipeline", "host"):
            if who.get(name):
                yield style(f"  {name:<9} {safe(str(who[name]))}", "dim")
    for address, row in command.rows:
        mark, colour = _MARKS.get(row.outcome, ("✗", "red"))
        tier = f"  [{row.tier}]" if row.tier not in ("", "auto") else ""
        door = style(f"  through {safe(row.door)}", "dim") if row.door else ""
        outcome = "" if row.outcome == "applied" else f"  {style(row.outcome or 'open', colour)}"
        reason = f"  {safe(row.reason)}" if row.reason else ""
        yield f"  {style(mark, colour)} {safe(address)}  {row.row}{outcome}{tier}{reason}{door}"
        for name, before in row.before.items():
            yield style(f"      {safe(name):<12} was {show(before, 60)}", "dim")
    if whole:
        for home, run in command.homes.items():
            for store, names in run.seen.items():
                said = ", ".join(safe(n) for n in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                yield style(f"  not declared in {safe(home)} then: {safe(store)}: {said}", "dim")
        yield style(f"  undo: reconciler plan --undo {command.run}", "dim")


def history_json(past: Past) -> str:
    """`{"format": "reconciler.history/1", "runs": [...]}`, newest first."""
    return dump(
        {
            "format": "reconciler.history/1",
            "runs": [_run(command) for command in past.commands],
            "unread": dict(past.unread),
            "decisions": [asdict(decision) for decision in past.decisions],
        }
    )


def _run(command: Command) -> dict[str, Any]:
    return {
        "run": command.run,
        "began": command.began,
        "seconds": command.seconds,
        "who": dict(command.first.who),
        "homes": {
            home: {"version": run.version, "host": run.host, "seen": {k: list(v) for k, v in run.seen.items()}}
            for home, run in command.homes.items()
        },
        "rows": [
            {
                "address": address,
                **{n: getattr(row, n) for n in ("row", "tier", "outcome", "reason", "door", "id", "at")},
                "fields": list(row.fields),
                "before": dict(row.before),
            }
            for address, row in command.rows
        ],
    }
