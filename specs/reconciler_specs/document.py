"""Text as a tree that knows its lines and columns: the one module that reads YAML (libyaml, YAML 1.2 core schema).

The rules are those of the setup language, “Reading YAML”. Never read a home's own YAML by them: Hermes reads
its files by YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from .errors import Reason, SpecError, Where
from .scalars import MAYBE_TYPED, TOO_LONG, resolve
from .secrets import looks_secret
from .traps import COMMENT, hint_for

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 50
MAX_ALIASES = 100
MAX_ALIASED_NODES = 200_000  # what all aliases together may stand for

# libyaml where PyYAML was built with it (all wheels are); the events are the same, 20 times slower, without.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Kind = Literal["map", "seq", "scalar"]


class Node:
    """One value of a document.

    `value` is a dict of nodes by key text, a list of nodes, or a scalar (None, bool, int, float, str). `text` and
    `style` are a scalar's text as parsed and its quote (`"`, `'`, `|`, `>`, "" for plain). `keys` says where a
    map's keys stand. `via` names the template or parameter that the value came by, "" if it stands where it is.
    """

    __slots__ = ("file", "keys", "kind", "mark", "style", "text", "value", "via")

    def __init__(
        self, kind: Kind, value: Any, mark: Any, file: str, text: str = "", style: str = "", via: str = ""
    ) -> None:
        self.kind = kind
        self.value = value
        self.mark = mark
        self.file = file
        self.text = text
        self.style = style
        self.via = via
        self.keys: dict[str, Any] = {}

    @property
    def where(self) -> Where:
        return _where(self.file, self.mark)

    def where_key(self, key: str) -> Where:
        """Where `key` stands in this map; the map itself if it is not one of its keys."""
        child = self.value.get(key) if self.kind == "map" else None
        if child is None:
            return self.where
        mark = self.keys.get(key)
        # A merged map's keys come from several files; the child knows its own.
        return _where(child.file, mark) if mark is not None else child.where

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.value is None

    def get(self, key: str) -> Node | None:
        """The child under `key`, None if there is none, if it is null, or if this is no map."""
        child: Node | None = self.value.get(key) if self.kind == "map" else None
        return None if child is None or child.is_null else child

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a map that are not null; nothing for anything else."""
        if self.kind == "map":
            for key, child in self.value.items():
                if not child.is_null:
                    yield key, child

    def plain(self, nulls: bool = False) -> Any:
        """The tree as plain values.

        Nulls in maps are left out (null takes away) unless `nulls`. Below a list they stay: a list is replaced
        whole, so that there is nothing to take away from.
        """
        if self.kind == "map":
            if nulls:
                return {k: v.plain(True) for k, v in self.value.items()}
            return {k: v.plain() for k, v in self.value.items() if not (v.kind == "scalar" and v.value is None)}
        if self.kind == "seq":
            return [v.plain(True) for v in self.value]
        return self.value

    def copy(self, via: str | None = None) -> Node:
        """A deep copy, every node of it with `via` if one is given."""
        value = self.value
        if self.kind == "map":
            value = {k: v.copy(via) for k, v in value.items()}
        elif self.kind == "seq":
            value = [v.copy(via) for v in value]
        new = Node(self.kind, value, self.mark, self.file, self.text, self.style, self.via if via is None else via)
        new.keys = self.keys
        return new

    def descend(self, path: tuple[str | int, ...]) -> Node:
        """The deepest node on `path` that exists."""
        node = self
        for part in path:
            inside = range(len(node.value)) if node.kind == "seq" else node.value if node.kind == "map" else ()
            if part not in inside:
                break
            node = node.value[part]
        return node


def _where(file: str, mark: Any) -> Where:
    return Where(file) if mark is None else Where(file, mark.line + 1, mark.column + 1)


@dataclass(frozen=True, slots=True)
class Document:
    """One setup text as a tree. `text` is what was read, without a byte order mark."""

    file: str
    text: str
    root: Node

    @classmethod
    def parse(cls, data: bytes | str, file: str = "setup.yaml") -> Document:
        """Read YAML or JSON. Raises SpecError with every reason for any bytes that are no setup text."""
        reasons: list[Reason] = []
        document = read_document(data, file, reasons)
        if reasons or document is None:
            raise SpecError(reasons)
        return document


def read_document(data: bytes | str, file: str, reasons: list[Reason]) -> Document | None:
    """As `Document.parse`, but adds to `reasons`; None if there is no tree at all (then a reason was added)."""
    text = decode(data, file, reasons)
    if text is None:
        return None
    if file.endswith(".json"):
        text = _SURROGATES.sub(_join_surrogates, text)
    builder = _Builder(text, file, reasons)
    try:
        root = builder.build()
    except yaml.YAMLError as error:
        reasons.append(_syntax(error, text, file))
        return None
    except _StopReading as stop:
        reasons.append(stop.reason)
        return None
    if root is None:
        reasons.append(Reason(Where(file), "the file is empty", "a setup starts with: version: 1"))
        return None
    return Document(file, text, root)


def decode(data: bytes | str, file: str, reasons: list[Reason], limit: int = MAX_BYTES) -> str | None:
    """Bytes as text: UTF-8 without NUL, at most `limit` bytes. None with a reason added if it is not."""
    size = len(data)
    if size > limit:
        reasons.append(Reason(Where(file), f"the file is too large ({size} bytes; at most {limit})"))
        return None
    if isinstance(data, bytes):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            reasons.append(Reason(Where(file, line, column), "the file is not UTF-8 text", "save it as UTF-8"))
            return None
    else:
        text = data
    text = text.removeprefix("\ufeff")
    bad = _BINARY.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        reasons.append(
            Reason(Where(file, line, column), f"the file holds a control character (U+{ord(bad[0]):04X})", "")
        )
        return None
    return text


_BINARY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def _join_surrogates(match: re.Match[str]) -> str:
    high, low = int(match[1], 16), int(match[2], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _height(node: Node) -> int:
    if node.kind == "scalar":
        return 0
    return 1 + max(map(_height, node.value.values() if node.kind == "map" else node.value), default=0)


def _near(line: str, column: int) -> str:
    """What hints look at of a line, which may be megabytes long."""
    return line[max(0, column - 300) : column + 300]


class _StopReading(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message)
        self.reason = reason


class _Builder:
    """Events to nodes, in one pass; everything but syntax is collected, so that a person sees it all at once."""

    def __init__(self, text: str, file: str, reasons: list[Reason]) -> None:
        self.text = text
        self.file = file
        self.reasons = reasons
        self.anchors: dict[str, Node | None] = {}
        self.sizes: dict[str, int] = {}
        self.count = 0
        self.aliases = 0
        self.aliased = 0
        self.has_comments = " #" in text or "\t#" in text

    def build(self) -> Node | None:
        loader = _LOADER(self.text)
        try:
            return self._documents(loader)
        finally:
            loader.dispose()

    def _documents(self, loader: Any) -> Node | None:
        next_event = loader.get_event
        next_event()  # stream start
        event = next_event()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        if event.version is not None or event.tags:
            self.add(event.start_mark, "a % directive is not part of the language", "take the line away")
        root = self._node(next_event(), next_event, 0)
        next_event()  # document end
        event = next_event()
        if not isinstance(event, yaml.StreamEndEvent):
            self.add(event.start_mark, "a second document starts here", "one setup is one document; use include")
        return root

    def add(self, mark: Any, message: str, hint: str = "") -> None:
        self.reasons.append(Reason(_where(self.file, mark), message, hint))

    def _node(self, event: Any, next_event: Any, depth: int) -> Node:
        self.count += 1
        kind = type(event)
        if kind is yaml.ScalarEvent:
            node = self._scalar(event)
            if event.anchor:
                self.anchors[event.anchor] = node
                self.sizes[event.anchor] = 1
            return node
        if kind is yaml.AliasEvent:
            return self._alias(event, depth)
        if depth >= MAX_DEPTH:
            raise _StopReading(Reason(_where(self.file, event.start_mark), f"nested deeper than {MAX_DEPTH} levels"))
        if event.tag is not None:
            self._refuse_tag(event)
        start = self.count
        if event.anchor:
            self.anchors[event.anchor] = None  # open: an alias to it from inside would never end
        node = (
            self._mapping(event, next_event, depth)
            if kind is yaml.MappingStartEvent
            else self._sequence(event, next_event, depth)
        )
        if event.anchor:
            self.anchors[event.anchor] = node
            self.sizes[event.anchor] = self.count - start + 1
        return node

    def _sequence(self, event: Any, next_event: Any, depth: int) -> Node:
        items: list[Node] = []
        node = Node("seq", items, event.start_mark, self.file)
        event = next_event()
        while type(event) is not yaml.SequenceEndEvent:
            items.append(self._node(event, next_event, depth + 1))
            event = next_event()
        return node

    def _mapping(self, event: Any, next_event: Any, depth: int) -> Node:
        children: dict[str, Node] = {}
        node = Node("map", children, event.start_mark, self.file)
        keys = node.keys
        flow = event.flow_style
        event = next_event()
        while type(event) is not yaml.MappingEndEvent:
            mark, end = event.start_mark, event.end_mark
            key = self._key(event, next_event, depth)
            value_event = next_event()
            child = self._node(value_event, next_event, depth + 1)
            event = next_event()
            if key is None:
                continue
            if flow and child.is_null and child.text == "":
                # In { } the mark of a value that is not there is that of whatever comes next.
                if COMMENT.match(self.text, end.index + 1):
                    self._refuse_comment(end, "nothing")
                elif ":" in key:
                    self.add(mark, f"{shown(key)} is one word", "put a space after the colon")
            if key in children:
                first = _where(self.file, keys[key])
                self.add(
                    mark,
                    f"the key {shown(key)} stands here a second time; the first is at line {first.line}, "
                    f"column {first.column}",
                    "keep one of them",
                )
                continue
            children[key] = child
            keys[key] = mark
        return node

    def _key(self, event: Any, next_event: Any, depth: int) -> str | None:
        """A key's text, None (with a reason) for one that is no text. Keys stay text whatever they look like."""
        mark = event.start_mark
        if type(event) is not yaml.ScalarEvent:
            self._node(event, next_event, depth + 1)
            self.add(mark, "a key has to be plain text", 'put a text that starts with {, [ or * in quotes: "{{x}}"')
            return None
        self.count += 1
        if event.tag is not None:
            self._refuse_tag(event)
        if event.anchor:
            self.add(mark, "an anchor on a key is not part of the language", "take it away")
        key: str = event.value
        if event.implicit[0]:
            if key == "<<":
                self.add(mark, "merge keys (<<) are not part of the language", "use a template: extends: [name]")
                return None
            if key == "":
                self.add(mark, "a key is missing before the colon", "put the text in quotes or after `|`")
                return None
        return key

    def _scalar(self, event: Any) -> Node:
        text = event.value
        if event.tag is not None:
            self._refuse_tag(event)
        elif event.implicit[0]:
            mark = event.start_mark
            if self.has_comments:
                self._check_comment(event)
            if text[:1] not in MAYBE_TYPED:
                return Node("scalar", text, mark, self.file, text)
            value = resolve(text)
            if value is TOO_LONG:
                self.add(mark, "a number too long to be one", "quote it")
                value = text
            return Node("scalar", value, mark, self.file, text)
        if "\x00" in text:
            self.add(event.start_mark, "a text may not hold the character NUL")
        return Node("scalar", text, event.start_mark, self.file, text, event.style or "")

    def _check_comment(self, event: Any) -> None:
        """`Post to #ops` is read as `Post to` by every loader, without a word."""
        if COMMENT.match(self.text, event.end_mark.index):
            self._refuse_comment(event.start_mark, "nothing" if event.value == "" else "only the text before it")

    def _refuse_comment(self, mark: Any, what: str) -> None:
        self.add(
            mark,
            f"the # starts a comment, so that {what} is read here",
            'quote the text ("… #word") or put it after `|`; for a comment put a space after the #',
        )

    def _refuse_tag(self, event: Any) -> None:
        self.add(
            event.start_mark,
            "a text that starts with ! is a YAML tag, which is not part of the language",
            "put the text in quotes or after `|`",
        )

    def _alias(self, event: Any, depth: int) -> Node:
        mark = event.start_mark
        self.aliases += 1
        target = self.anchors.get(event.anchor)
        if target is None:
            known = event.anchor in self.anchors
            message = "an alias inside its own anchor" if known else "* starts an alias, and there is no such anchor"
            raise _StopReading(Reason(_where(self.file, mark), message, hint_for("alias", self._line(mark))))
        size = self.sizes[event.anchor]
        self.count += size
        self.aliased += size
        if self.aliases > MAX_ALIASES or self.aliased > MAX_ALIASED_NODES:
            raise _StopReading(
                Reason(_where(self.file, mark), f"more than {MAX_ALIASES} aliases", "use templates instead of aliases")
            )
        if depth + _height(target) > MAX_DEPTH:
            raise _StopReading(Reason(_where(self.file, mark), f"nested deeper than {MAX_DEPTH} levels"))
        return target.copy()

    def _line(self, mark: Any) -> str:
        start = self.text.rfind("\n", 0, mark.index) + 1
        end = self.text.find("\n", mark.index)
        return _near(self.text[start : end if end >= 0 else None], mark.index - start)


def shown(value: Any, limit: int = 60) -> str:
    """A value as an error message may show it: short, quoted, and never a credential (L5)."""
    text = value if isinstance(value, str) else str(value)
    if looks_secret(text):
        return "(hidden)"
    flat = " ".join(text.split())
    return f'"{flat[:limit]}…"' if len(flat) > limit else f'"{flat}"'


def _syntax(error: yaml.YAMLError, text: str, file: str) -> Reason:
    """libyaml's complaint in words, with the hint that fits the line it stands on."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "this is not YAML")
    if mark is None:
        return Reason(Where(file), "the file is not YAML", "put texts in quotes or after `|`")
    lines = text.split("\n")
    number = min(mark.line, len(lines) - 1)
    # The complaint often stands one line too late: at the first token that no longer fits.
    candidates = [_near(lines[number], mark.column)]
    if mark.column == 0 and number > 0:
        candidates.append(lines[number - 1][:600])
    hint = next((h for h in (hint_for(problem, line) for line in candidates) if h), "")
    return Reason(
        Where(file, number + 1, mark.column + 1), f"not YAML: {problem}", hint or "put texts in quotes or after `|`"
    )
