"""Our marked block in a file of somebody else's: one definition for the plan's side and for the worker."""

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


def _span(text: str, path: str, owner: str) -> tuple[int, int] | None:
    """Line numbers of the two markers. `owner` is the setup's name, with former ones on lines below. Raises Torn."""
    lines = text.splitlines()
    for name in owner.split("\n"):
        first, last = markers(path, name)
        starts = [n for n, line in enumerate(lines) if line.strip() == first]
        ends = [n for n, line in enumerate(lines) if line.strip() == last]
        if not starts and not ends:
            continue
        if len(starts) != 1 or len(ends) != 1 or starts[0] > ends[0]:
            raise Torn(f"{path}: the markers {first!r} and {last!r} do not pair up")
        return starts[0], ends[0]
    return None


def find(text: str, path: str, owner: str) -> str | None:
    """What stands between our markers, None if they are not there. Raises Torn."""
    span = _span(text, path, owner)
    if span is None:
        return None
    return "".join(text.splitlines(keepends=True)[span[0] + 1 : span[1]])


def put(text: str, path: str, owner: str, block: str | None) -> str:
    """`text` with our block replaced, added at its end, or (None) taken out. Raises Torn."""
    first, last = markers(path, owner.partition("\n")[0])
    span = _span(text, path, owner)
    lines = text.splitlines(keepends=True)
    if block is None:
        if span is None:
            return text
        head, tail = lines[: span[0]], lines[span[1] + 1 :]
        # The empty line that we set before the block goes with it.
        if head and not tail and head[-1].strip() == "" and len(head) > 1:
            head.pop()
        return "".join(head + tail)
    body = block if block.endswith("\n") or not block else block + "\n"
    piece = f"{first}\n{body}{last}\n"
    if span is not None:
        return "".join(lines[: span[0]]) + piece + "".join(lines[span[1] + 1 :])
    if not text:
        return piece
    return text + ("" if text.endswith("\n") else "\n") + "\n" + piece
