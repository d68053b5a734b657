"""What an apply does, as it does it, and what came of it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence

from ...event import Event, Outcome
from ...plan import Plan
from .style import Style, err, out, safe, width

_MARKS = {
    Outcome.APPLIED: ("✓", "green"),
    Outcome.REFUSED: ("✗", "red"),
    Outcome.NOT_APPLIED: ("✗", "red"),
    Outcome.INERT: ("✗", "red"),
    Outcome.UNCERTAIN: ("?", "red"),
    Outcome.SKIPPED: ("·", "yellow"),
    Outcome.HELD: ("!", "yellow"),
    Outcome.WAITS: ("…", "yellow"),
    Outcome.FAILED: ("✗", "red"),
}


class Reporter:
    """Prints outcomes as they come; a progress line on a terminal while a door works or waits."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._style = Style(sys.stdout)
        self._screen = Style(sys.stderr).colour
        self._progress = ""
        self._started = time.monotonic()

    def tell(self, event: Event) -> None:
        if self._quiet:
            return
        if event.what == "step" and self._screen:
            self._show(f"{event.home}: {event.total} change(s) through {event.reason}")
        elif event.what == "note" and self._screen:
            self._show(f"{event.home}: {event.reason}")
        elif event.what == "note":
            err(f"  … {safe(event.home)}: {safe(event.reason)}")
        elif event.what == "outcome" and event.outcome is not None:
            self._clear()
            out(self._line(event))
            if event.command:
                out(f"      next: {self._style(safe(event.command), 'cyan')}")
        elif event.what == "home-end" and event.outcome is not None:
            self._clear()
            mark, colour = _MARKS[event.outcome]
            out(f"  {self._style(mark, colour)} {safe(event.home)}  {event.outcome}: {safe(event.reason)}")
            if event.command:
                out(f"      next: {self._style(safe(event.command), 'cyan')}")

    def _line(self, event: Event) -> str:
        assert event.outcome is not None
        mark, colour = _MARKS[event.outcome]
        text = f"  {self._style(mark, colour)} {safe(str(event.address))}  {event.row}"
        if event.outcome is not Outcome.APPLIED:
            text += f"  {self._style(str(event.outcome), colour)}"
        if event.fields:
            text += f"  ({', '.join(event.fields)})"
        return text + (f"  {safe(event.reason)}" if event.reason else "")

    def _show(self, words: str) -> None:
        """Beside the outcomes, which may go to a pipe; one line at most, since it is taken back by its length."""
        self._clear()
        self._progress = f"  … {safe(words)}"[: width() - 1]
        sys.stderr.write(self._progress)
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._progress:
            sys.stderr.write("\r" + " " * len(self._progress) + "\r")
            sys.stderr.flush()
            self._progress = ""

    def close(self, plan: Plan, told: Sequence[Event], unasked: Sequence[str] = ()) -> None:
        """The summary, from what was told: the journal's outcomes, not what was hoped for (L12). `unasked` are the
        secrets whose source nobody agreed to ask."""
        self._clear()
        last = {(e.address, e.row): e.outcome for e in told if e.what == "outcome"}
        counts = Counter(str(o) for o in last.values())
        if not counts and not any(h.open for h in plan.homes):
            if any(h.hold or any(a.hold or a.held_fields for a in h.actions) for h in plan.homes):
                out("Nothing was done: what is held waits for you.")
            else:
                out(_idle(plan, unasked))
            return
        seconds = time.monotonic() - self._started
        words = ", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "nothing was done"
        out(self._style("Applied: ", "bold") + words + (f"  ({seconds:.1f} s)" if seconds >= 0.05 else ""))


def _idle(plan: Plan, unasked: Sequence[str]) -> str:
    """What is true of a run that had no row to carry out: a source that was not asked may have another value."""
    if any(h.failed for h in plan.homes):
        return "Nothing was done."
    if unasked:
        return f"Nothing else to do; not asked, so that a new value is not known: {', '.join(unasked)}."
    return "Nothing to do."
