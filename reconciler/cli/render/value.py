"""Long texts as a small diff, each line safe to print."""

from __future__ import annotations

from difflib import unified_diff

from ...action import Clear
from ...observe import Seen
from ...words import LONG
from .style import safe

DIFF_LINES = 12


def is_long(*values: Seen | Clear) -> bool:
    """Whether a change of these reads better as a diff."""
    texts = [v for v in values if isinstance(v, str)]
    return len(texts) == len(values) and any("\n" in t or len(t) > LONG for t in texts)


def text_diff(before: str, after: str) -> list[str]:
    """A small line diff, cut after DIFF_LINES lines, each line safe to print."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]
    shown = [safe(line[:200]) for line in lines[:DIFF_LINES] if not line.startswith("@@")]
    if len(lines) > DIFF_LINES:
        shown.append(f"… {len(lines) - DIFF_LINES} more lines")
    return shown
