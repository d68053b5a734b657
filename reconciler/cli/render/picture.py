"""Who waits for whom: a plan's rows as a picture (SVG), and as text for Mermaid and Graphviz. Pure.

Rows come from left to right in the order in which they are carried out. All words are escaped for their language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from ...plan import Plan
from .report import HomeView, Risk, report

NODES = 60  # rows of one home's picture
_WIDE, _HIGH, _ACROSS, _DOWN, _EDGE = 232, 30, 56, 12, 8  # pixels
_LETTERS = 27  # of a name in a box

Edges = Sequence[tuple[int, int]]


def layers(count: int, edges: Edges) -> list[int]:
    """The column of each of `count` nodes: one more than the farthest that it waits for. `edges` make no ring."""
    before: dict[int, list[int]] = {}
    for first, then in edges:
        before.setdefault(then, []).append(first)
    found: dict[int, int] = {}
    for start in range(count):
        stack = [start]
        while stack:
            node = stack[-1]
            missing = [b for b in before.get(node, ()) if b not in found]
            if missing:
                stack += missing
            else:
                found[node] = max((found[b] + 1 for b in before.get(node, ())), default=0)
                stack.pop()
    return [found[node] for node in range(count)]


def direct(count: int, edges: Edges) -> list[tuple[int, int]]:
    """The edges without those that a longer way says already."""
    after: dict[int, set[int]] = {node: set() for node in range(count)}
    for first, then in edges:
        after[first].add(then)
    column = layers(count, edges)
    reach: dict[int, set[int]] = {}
    for node in sorted(range(count), key=lambda n: -column[n]):
        reach[node] = set().union(*({n} | reach[n] for n in after[node]))
    return [(a, b) for a, b in edges if not any(b in reach[other] for other in after[a] if other != b)]


def svg(home: HomeView) -> str:
    """A home's rows that wait for one another; "" if none does."""
    joined = sorted({place for edge in home.edges for place in edge})
    if not joined:
        return ""
    shown = joined[:NODES]
    at = {place: number for number, place in enumerate(shown)}
    edges = direct(len(shown), [(at[a], at[b]) for a, b in home.edges if a in at and b in at])
    column = layers(len(shown), edges)
    spots = _spots(column, edges)
    width = 2 * _EDGE + (max(column) + 1) * _WIDE + max(column) * _ACROSS
    height = 2 * _EDGE + max(y for _, y in spots) + _HIGH
    label = f"Order of {len(shown)} rows of {home.id}"
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(label)}" xmlns="http://www.w3.org/2000/svg">'
    ]
    for first, then in edges:
        (x1, y1), (x2, y2) = spots[first], spots[then]
        x1, y1, x2, y2 = x1 + _WIDE + _EDGE, y1 + _HIGH // 2 + _EDGE, x2 + _EDGE, y2 + _HIGH // 2 + _EDGE
        bend = (x2 - x1) // 2
        parts.append(f'<path class="edge" d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 5} {y2}"/>')
        parts.append(f'<path class="tip" d="M{x2} {y2} l-7 -4 v8 z"/>')
    for place, number in at.items():
        row, (x, y) = home.rows[place], spots[number]
        name = row.name if len(row.name) <= _LETTERS else f"…{row.name[-_LETTERS + 1 :]}"
        parts.append(
            f'<g class="node {slug(row.risk)}"><title>{escape(row.word)} {escape(row.address)}</title>'
            f'<rect x="{x + _EDGE}" y="{y + _EDGE}" width="{_WIDE}" height="{_HIGH}" rx="6"/>'
            f'<rect class="bar" x="{x + _EDGE}" y="{y + _EDGE}" width="5" height="{_HIGH}" rx="2.5"/>'
            f'<text x="{x + _EDGE + 14}" y="{y + _EDGE + 20}">{escape(name)}</text></g>'
        )
    return "".join(parts) + "</svg>"


def _spots(column: Sequence[int], edges: Edges) -> list[tuple[int, int]]:
    """The left upper corner of each node: in its column, near the middle of what it waits for."""
    spots = [(0, 0)] * len(column)
    before: dict[int, list[int]] = {}
    for first, then in edges:
        before.setdefault(then, []).append(first)

    def middle(node: int) -> tuple[float, int]:
        found = [spots[b][1] for b in before.get(node, ())]
        return (sum(found) / len(found) if found else 0.0), node

    for level in range(max(column) + 1):
        nodes = sorted((n for n, c in enumerate(column) if c == level), key=middle)
        for row, node in enumerate(nodes):
            spots[node] = (level * (_WIDE + _ACROSS), row * (_HIGH + _DOWN))
    return spots


def slug(risk: Risk) -> str:
    """A risk as a class of the page."""
    return str(risk).replace(" ", "-")


def plan_mermaid(plan: Plan) -> str:
    """The rows and who waits for whom as a Mermaid flowchart; each home is a subgraph."""
    lines = ["flowchart LR"]
    for number, home in enumerate(report(plan).homes):
        lines.append(f'  subgraph h{number}["{_mermaid(home.id)}"]')
        lines.append("    direction LR")
        if not home.rows:
            lines.append(f'    h{number}none["{_mermaid(home.why or "at rest")}"]')
        for place, row in enumerate(home.rows):
            lines.append(f'    h{number}r{place}["{_mermaid(f"{row.word} {row.name}")}"]:::{_class(row.risk)}')
        lines += [f"    h{number}r{first} --> h{number}r{then}" for first, then in home.edges]
        lines.append("  end")
    lines += [f"  classDef {_class(risk)} stroke:{colour},stroke-width:2px" for risk, colour in _COLOURS.items()]
    return "\n".join(lines)


def plan_dot(plan: Plan) -> str:
    """The rows and who waits for whom as a Graphviz digraph; each home is a cluster."""
    lines = ["digraph plan {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for number, home in enumerate(report(plan).homes):
        lines += [f"  subgraph cluster_h{number} {{", f"    label={_dot(home.id)};"]
        if not home.rows:
            lines.append(f"    h{number}none [label={_dot(home.why or 'at rest')}, shape=plaintext];")
        for place, row in enumerate(home.rows):
            label, colour = _dot(f"{row.word} {row.name}"), _COLOURS[row.risk]
            lines.append(f'    h{number}r{place} [label={label}, color="{colour}"];')
        lines += [f"    h{number}r{first} -> h{number}r{then};" for first, then in home.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"])


_COLOURS = {
    Risk.FAILED: "#b3261e",
    Risk.DELETE: "#d1453b",
    Risk.CONFIRM: "#b26a00",
    Risk.HELD: "#7a5af5",
    Risk.AUTO: "#1f883d",
    Risk.REST: "#8a8f98",
}


def _class(risk: Risk) -> str:
    return slug(risk).replace("-", "")


def _mermaid(words: str) -> str:
    """Text in quotes: Mermaid has its own entities, and reads what is in backticks as Markdown."""
    return re.sub(r"[^\w /.,:=()+→…‹›?-]", lambda found: f"#{ord(found[0])};", _line(words))


def _dot(words: str) -> str:
    return '"' + _line(words).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _line(words: str) -> str:
    flat = " ".join(words.split())
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
