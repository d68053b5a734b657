"""Three-way merge of texts by line, so that a file's own lines survive when the setup's text changes."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from .observe import Seen


@dataclass(frozen=True, slots=True)
class TextClash:
    """The first place where both sides changed the same lines. `line` counts from 1, in `theirs`."""

    line: int
    ours: str
    theirs: str


def merge3(base: str, ours: str, theirs: str) -> str | TextClash:
    """Both sides' changes to `base`, or where they meet. Changes to neighbouring lines meet, too.

    A line ends with its newline, so a missing last newline is a difference, and nothing else about line ends is
    interpreted.
    """
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    b, o, t = _lines(base), _lines(ours), _lines(theirs)
    out: list[str] = []
    ib = io = it = 0
    for sb, so, st, length in [*_anchors(b, o, t), (len(b), len(o), len(t), 0)]:
        was, mine, home = b[ib:sb], o[io:so], t[it:st]
        if mine == home or home == was:
            out += mine
        elif mine == was:
            out += home
        else:
            return TextClash(it + 1, "".join(mine), "".join(home))
        out += b[sb : sb + length]
        ib, io, it = sb + length, so + length, st + length
    return "".join(out)


def merge_values(base: Seen, ours: Seen, theirs: Seen) -> str | TextClash | None:
    """`merge3` of three values, None unless each of them is a text."""
    if isinstance(base, str) and isinstance(ours, str) and isinstance(theirs, str):
        return merge3(base, ours, theirs)
    return None


def _lines(text: str) -> list[str]:
    """Split after "\\n" only: `str.splitlines` would also cut at form feeds and Unicode separators."""
    parts = text.split("\n")
    return [p + "\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _anchors(base: list[str], ours: list[str], theirs: list[str]) -> list[tuple[int, int, int, int]]:
    """Runs of base lines that stand unchanged on both sides: (start in base, in ours, in theirs, length)."""
    mine, home = _blocks(base, ours), _blocks(base, theirs)
    anchors: list[tuple[int, int, int, int]] = []
    i = j = 0
    while i < len(mine) and j < len(home):
        (mb, mo, ml), (hb, ht, hl) = mine[i], home[j]
        start, end = max(mb, hb), min(mb + ml, hb + hl)
        if start < end:
            anchors.append((start, mo + start - mb, ht + start - hb, end - start))
        if mb + ml < hb + hl:
            i += 1
        else:
            j += 1
    return anchors


def _blocks(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    """Matching blocks of two texts. Common ends are cut off first: the matcher is quadratic in the rest."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False)
    return [
        (0, 0, head),
        *((m.a + head, m.b + head, m.size) for m in middle.get_matching_blocks() if m.size),
        (len(a) - tail, len(b) - tail, tail),
    ]
