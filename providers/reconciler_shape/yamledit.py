"""Edits to YAML text that leave every other byte alone: comments, quotes, `${VAR}`, order and indentation.

PyYAML, which Hermes reads with, says where each node stands and how a new value has to be quoted for YAML 1.1.
What an edit gives is read again and compared with what it should be; a text that cannot be edited so is refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

from .plain import NATIVE, same, to_json

yaml: Any = importlib.import_module("yaml")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ODD_BREAK = re.compile("[\r\x85\u2028\u2029]")  # what YAML 1.1 takes for a line break, and people do not
_WIDE = 1 << 30


class CannotEdit(ValueError):
    """The text cannot be changed at this path without changing something else."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Texts of several lines as `|`, so that people can read and edit them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if _ODD_BREAK.search(value) else style)


class _FlowDumper(_Dumper):
    """Everything in one line."""


def _flow_text(dumper: Any, value: str) -> Any:
    # In one line a line break has to be an escape.
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if _BREAK.search(value) else None)


_Dumper.add_representer(str, _text)
_FlowDumper.add_representer(str, _flow_text)


def load(text: str) -> Any:
    return yaml.load(text, Loader=_LOADER)


def edit(text: str, sets: Sequence[tuple[Sequence[str], Any]], unsets: Sequence[Sequence[str]]) -> str:
    """`text` with the paths set and taken away. Raises CannotEdit, and yaml.YAMLError if it does not parse."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text[len(mark) :]
    wanted = to_json(load(text))
    if wanted is None:
        wanted = {}
    if not isinstance(wanted, dict):
        raise CannotEdit("the file is not a mapping")
    try:
        # Sets come first: a mapping that an unset emptied would lose its place in the file.
        for path, value in sets:
            put(wanted, path, value)
            text = _Text(text).set(path, value)
        for path in unsets:
            if take(wanted, path):
                text = _Text(text).unset(path)
        got = to_json(load(text))
    except yaml.YAMLError as error:
        raise CannotEdit("the change would break the file as it is written") from error
    if not same({} if got is None else got, wanted):
        raise CannotEdit("the change would reach beyond its own key (an anchor, or a key that stands there twice)")
    return mark + text


def put(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets a path in a mapping, with the mappings above it. Raises CannotEdit where one of these is none."""
    for segment in path[:-1]:
        below = data.get(segment)
        if below is None:
            below = data[segment] = {}
        if not isinstance(below, dict) or NATIVE in below:
            raise CannotEdit(f"{segment} is no mapping in the file")
        data = below
    data[path[-1]] = to_json(value)


def take(data: dict[str, Any], path: Sequence[str]) -> bool:
    """Takes a key away, and the mappings that it leaves empty, as Hermes's own `config unset` does."""
    trail = []
    for segment in path[:-1]:
        below = data.get(segment)
        if not isinstance(below, dict):
            return False
        trail.append((data, segment))
        data = below
    if path[-1] not in data:
        return False
    del data[path[-1]]
    for parent, segment in reversed(trail):
        if parent[segment]:
            break
        del parent[segment]
    return True


class _Text:
    """One text, its lines and its nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.starts: list[int] = [0, *(match.end() for match in _BREAK.finditer(text))]
        self.root = yaml.compose(text, Loader=_LOADER)

    def at(self, mark: Any) -> int:
        if mark.line >= len(self.starts):
            return len(self.text)
        start: int = self.starts[mark.line]
        return min(start + int(mark.column), len(self.text))

    def line_of(self, index: int) -> int:
        low, high = 0, len(self.starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.starts[middle] <= index:
                low = middle
            else:
                high = middle - 1
        return low

    def line_end(self, line: int) -> int:
        """Where the next line begins."""
        return self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)

    # what to write

    def inline(self, value: Any, flow: bool) -> str:
        """In one line; inside a flow mapping more has to be quoted."""
        out = str(
            yaml.dump(
                [value] if flow else value,
                Dumper=_FlowDumper,
                default_flow_style=True,
                allow_unicode=True,
                width=_WIDE,
                sort_keys=False,
            )
        )
        out = out.removesuffix("\n").removesuffix("\n...").removesuffix("\n")
        return out[1:-1] if flow else out

    def entry(self, key: str, value: Any, column: int) -> str:
        out = yaml.dump(
            {key: value},
            Dumper=_Dumper,
            default_flow_style=False,
            allow_unicode=True,
            width=_WIDE,
            sort_keys=False,
        )
        lines = str(out).rstrip("\n").split("\n") if not str(out).endswith("\n\n") else str(out)[:-1].split("\n")
        return "".join((" " * column + line if line else line) + self.newline for line in lines)

    # where to write

    def pair(self, mapping: Any, key: str) -> tuple[Any, Any] | None:
        """The last entry with this key, as PyYAML takes the last."""
        found = None
        for name, value in mapping.value:
            if isinstance(name, yaml.ScalarNode) and name.value == key:
                found = (name, value)
        return found

    def is_map(self, node: Any) -> bool:
        return isinstance(node, yaml.MappingNode)

    def is_alias(self, key: Any, value: Any) -> bool:
        return self.at(value.start_mark) < self.at(key.end_mark)

    def last_line(self, key: Any, value: Any) -> int:
        """The last line that an entry of a block mapping takes."""
        line = int(key.end_mark.line)
        if self.is_alias(key, value):
            return line
        if isinstance(value, yaml.ScalarNode):
            if value.style in ("|", ">"):
                return self._block_end(value.start_mark.line, key.start_mark.column)
            if value.value == "" and value.style is None:
                return line
            return int(value.end_mark.line)
        if value.flow_style:
            return self.line_of(max(self.at(value.end_mark) - 1, 0))
        if self.is_map(value):
            return self.last_line(*value.value[-1]) if value.value else line
        item = value.value[-1]
        if isinstance(item, yaml.ScalarNode) and item.style in ("|", ">"):
            return self._block_end(item.start_mark.line, value.start_mark.column)
        if isinstance(item, yaml.ScalarNode) or item.flow_style:
            return self.line_of(max(self.at(item.end_mark) - 1, 0))
        return self._block_end(item.start_mark.line, value.start_mark.column)

    def _block_end(self, first: int, column: int) -> int:
        """The last line that is indented deeper than `column`, from line `first` on."""
        last = first
        for line in range(first + 1, len(self.starts)):
            content = self.text[self.starts[line] : self.line_end(line)]
            stripped = content.strip()
            if not stripped:
                continue
            if len(content) - len(content.lstrip(" ")) <= column:
                break
            last = line
        return last

    def set(self, path: Sequence[str], value: Any) -> str:
        if self.root is None or (isinstance(self.root, yaml.ScalarNode) and self.root.value == ""):
            gap = "" if not self.text or self.text.endswith("\n") else self.newline
            return self.text + gap + self.entry(path[0], _nest(path[1:], value), 0)
        node = self.root
        for depth, segment in enumerate(path):
            found = self.pair(node, segment)
            if found is None:
                return self._insert(node, segment, _nest(path[depth + 1 :], value))
            key, below = found
            if depth == len(path) - 1 or not self.is_map(below):
                return self._replace(node, key, below, _nest(path[depth + 1 :], value))
            if self.is_alias(key, below):
                raise CannotEdit(f"{segment} is an alias in the file")
            node = below
        raise AssertionError("a path has at least one part")

    def _insert(self, mapping: Any, key: str, value: Any) -> str:
        if mapping.flow_style:
            end = self.at(mapping.end_mark) - 1
            if self.text[end : end + 1] != "}":
                raise CannotEdit("the mapping is written in an unusual way")
            piece = self.inline({key: value}, flow=True)[1:-1]
            if mapping.value:
                ends = [self.at(k.end_mark if self.is_alias(k, v) else v.end_mark) for k, v in mapping.value]
                last = max(ends)
                piece = (" " if "," in self.text[last:end] else ", ") + piece
            return self.text[:end] + piece + self.text[end:]
        line = max(self.last_line(k, v) for k, v in mapping.value)
        return self._lines_in(self.line_end(line), self.entry(key, value, mapping.value[0][0].start_mark.column))

    def _lines_in(self, at: int, piece: str) -> str:
        gap = "" if at == 0 or self.text[:at].endswith(("\n", "\r")) else self.newline
        return self.text[:at] + gap + piece + self.text[at:]

    def _replace(self, mapping: Any, key: Any, old: Any, value: Any) -> str:
        simple = not isinstance(value, (dict, list)) and not (isinstance(value, str) and "\n" in value)
        inline_old = not self.is_alias(key, old) and (self._is_inline(old))
        if inline_old and (simple or mapping.flow_style or not isinstance(old, yaml.ScalarNode)):
            start, end = self.at(old.start_mark), self.at(old.end_mark)
            return self.text[:start] + self.inline(value, mapping.flow_style) + self.text[end:]
        if mapping.flow_style:
            raise CannotEdit(f"{key.value} is written in an unusual way")
        first, last = key.start_mark.line, self.last_line(key, old)
        begin = self.starts[first]
        if self.text[begin : self.at(key.start_mark)].strip():
            raise CannotEdit(f"{key.value} does not begin its line")
        piece = self.entry(key.value, value, key.start_mark.column)
        comment = self._comment(key, old, first)
        if comment and "\n" in piece:
            head, _, tail = piece.partition(self.newline)
            # Behind the `|` of a text, and behind a bare key, a comment may stand; behind a value too.
            piece = f"{head}{comment}{self.newline}{tail}"
        return self.text[:begin] + piece + self.text[self.line_end(last) :]

    def _is_inline(self, node: Any) -> bool:
        if isinstance(node, yaml.ScalarNode):
            return node.style not in ("|", ">") and self.at(node.end_mark) > self.at(node.start_mark)
        return bool(node.flow_style)

    def _comment(self, key: Any, old: Any, line: int) -> str:
        """The comment at the end of an entry's first line, where no value stands before it."""
        rest = self.text[self.at(key.end_mark) : self.line_end(line)]
        match = re.fullmatch(r"\s*:\s*?[|>]?[-+\d]*(\s+#.*?)\s*", rest)
        return match[1] if match else ""

    def unset(self, path: Sequence[str]) -> str:
        trail: list[tuple[Any, Any, Any]] = []
        node = self.root
        for segment in path:
            found = self.pair(node, segment) if self.is_map(node) else None
            if found is None:
                raise CannotEdit(f"{segment} comes from an anchor in the file")
            trail.append((node, *found))
            node = found[1]
        mapping, key, value = trail.pop()
        while trail and len(mapping.value) == 1:
            mapping, key, value = trail.pop()
        return self._remove(mapping, key, value)

    def _remove(self, mapping: Any, key: Any, value: Any) -> str:
        if not mapping.flow_style:
            first, last = key.start_mark.line, self.last_line(key, value)
            return self.text[: self.starts[first]] + self.text[self.line_end(last) :]
        entries = mapping.value
        at = next(n for n, (name, _) in enumerate(entries) if name is key)
        if len(entries) == 1:
            return self.text[: self.at(mapping.start_mark)] + "{}" + self.text[self.at(mapping.end_mark) :]
        if at + 1 < len(entries):
            start, end = self.at(key.start_mark), self.at(entries[at + 1][0].start_mark)
        else:
            start, end = self.at(entries[at - 1][1].end_mark), self.at(value.end_mark)
        return self.text[:start] + self.text[end:]


def _nest(path: Sequence[str], value: Any) -> Any:
    for segment in reversed(path):
        value = {segment: value}
    return value
