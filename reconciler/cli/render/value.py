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


def text_diff(before: str, after: str, lines: int = DIFF_LINES) -> list[str]:
    """A small line diff, cut after `lines` lines. Made safe as a whole first: a key has more lines than one."""
    found = list(unified_diff(safe(before).splitlines(), safe(after).splitlines(), lineterm="", n=1))[2:]
    shown = [line[:200] for line in found[:lines] if not line.startswith("@@")]
    if len(found) > lines:
        shown.append(f"… {len(found) - lines} more lines")
    return shown
