"""The words of a commit of state, made from the journal's records: what a run begins, or what came of it (L12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

ROWS: Final = 100  # as many are listed; the journal has all

Records = Sequence[Mapping[str, Any]]


def message(verb: str, new: Records, earlier: Records) -> str:
    """A commit's message: a line, the rows, and from which commit of which setup by whom.

    `new` are the records that the commit adds, `earlier` those before them. `verb` is the command.
    """
    run: Mapping[str, Any] = next((r for r in (*reversed(new), *reversed(earlier)) if r["what"] == "run"), {})
    begun = {r["intent"]: r for r in (*earlier, *new) if r["what"] == "begin" and "intent" in r}
    # The last word on an intent counts, as in the journal.
    ended = {r["intent"]: r for r in new if r["what"] == "outcome" and r.get("intent") in begun}
    opened = [r for r in new if r["what"] == "begin"]
    if ended:
        counts = Counter(str(r.get("outcome", "")) for r in ended.values())
        lines = [f"{r.get('outcome')}  {_row(begun[i])}" for i, r in ended.items()]
        said = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    else:
        counts = Counter(str(r.get("row", "")) for r in opened)
        lines = [_row(r) for r in opened]
        said = "begins " + ", ".join(f"{number} {row}" for row, number in counts.items()) if counts else "state only"
    if len(lines) > ROWS:
        lines = [*lines[:ROWS], f"… and {len(lines) - ROWS} more: the journal has them"]
    parts = [[f"{verb} {run.get('home') or 'a home'}: {said}"], lines, _about(run)]
    return plain("\n\n".join("\n".join(part) for part in parts if part))


def _about(run: Mapping[str, Any]) -> list[str]:
    """Which setup, and who, as the run's header says."""
    said = run.get("who")
    who: Mapping[str, Any] = said if isinstance(said, dict) else {}
    commit = f"commit {who['commit']}" if who.get("commit") else "in no commit"
    ref = f" ({who['ref']})" if who.get("ref") else ""
    lines = [f"Setup: {run.get('owner', '')}, {commit}{ref}{', changed since' if who.get('dirty') else ''}"]
    if who.get("actor"):
        lines.append(f"Actor: {who['actor']} on {who.get('host', 'an unknown machine')}")
    lines.append(f"Run: {run.get('run', '')}{', ' + str(who['pipeline']) if who.get('pipeline') else ''}")
    return lines


def _row(begin: Mapping[str, Any]) -> str:
    return f"{begin.get('row', '')}  {begin.get('path') or '(the home)'}"


def plain(text: str) -> str:
    """The words of a commit without what a terminal would obey: a setup's keys may be anything."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text) + "\n"
