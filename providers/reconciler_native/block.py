"""Our marked block in a file of somebody else's: where it stands, and the file with another one in its place."""

from __future__ import annotations

_HTML = (".md", ".markdown", ".html", ".xml")
_SLASHES = (".js", ".ts", ".mjs", ".c", ".go", ".rs")


class Torn(ValueError):
    """The markers do not pair up."""


def markers(path: str, owner: str) -> tuple[str, str]:
    """The opening and the closing line, as comments where the file's type has them."""
    opening, closing = f">>> reconciler:{owner} >>>", f"<<< reconciler:{owner} <<<"
    if path.endswith(_HTML):
        return f"<!-- {opening} -->", f"<!-- {closing} -->"
    sign = "//" if path.endswith(_SLASHES) else "#"
    return f"{sign} {opening}", f"{sign} {closing}"


def _span(lines: list[str], path: str, owner: str) -> tuple[int, int] | None:
    first, last = markers(path, owner)
    starts = [n for n, line in enumerate(lines) if line.strip() == first]
    ends = [n for n, line in enumerate(lines) if line.strip() == last]
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or starts[0] > ends[0]:
        raise Torn(f"{path}: the markers {first!r} and {last!r} do not pair up")
    return starts[0], ends[0]


def find(text: str, path: str, owner: str) -> str | None:
    """What stands between our markers, None if they are not there. Raises Torn."""
    lines = text.splitlines(keepends=True)
    span = _span(lines, path, owner)
    return None if span is None else "".join(lines[span[0] + 1 : span[1]])


def put(text: str, path: str, owner: str, block: str | None) -> str:
    """`text` with our block replaced, added at its end, or (None) taken out. Raises Torn."""
    lines = text.splitlines(keepends=True)
    span = _span(lines, path, owner)
    if block is None:
        if span is None:
            return text
        head, tail = lines[: span[0]], lines[span[1] + 1 :]
        if not tail and len(head) > 1 and not head[-1].strip():
            head.pop()  # the empty line that we set before the block
        return "".join(head + tail)
    first, last = markers(path, owner)
    piece = f"{first}\n{block if not block or block.endswith(chr(10)) else block + chr(10)}{last}\n"
    if span is not None:
        return "".join(lines[: span[0]]) + piece + "".join(lines[span[1] + 1 :])
    return piece if not text else text + ("" if text.endswith("\n") else "\n") + "\n" + piece
