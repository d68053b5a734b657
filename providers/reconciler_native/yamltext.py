"""`config.yaml` as Hermes reads it (YAML 1.1), and edits to it that keep every other byte. The only module with YAML.

What an edit gives is read again and compared with what it should be; a text that cannot be edited so is refused.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any

import yaml

from .errors import LoadFailed, Refused
from .jsontext import same

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_WIDE = 1 << 30
Path = Sequence[str]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as `|`, nothing as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(dumper: Any, value: str) -> Any:
    odd = re.search("[\r\x85\u2028\u2029]", value)
    style = '"' if odd else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent)


def parse(data: bytes, path: str) -> dict[str, Any]:
    """The file's mapping as plain JSON, {} for an empty one. Raises LoadFailed naming line and column."""
    try:
        found = yaml.load(data.decode("utf-8-sig"), Loader=_LOADER)
    except UnicodeDecodeError as error:
        raise LoadFailed(path, f"not UTF-8 at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise LoadFailed(f"{path}{where}", error.problem or "not proper YAML") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise LoadFailed(path, str(error).splitlines()[0] if str(error) else "not proper YAML") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise LoadFailed(f"{path}:1:1", f"a {type(found).__name__} where Hermes keeps a mapping")
    plain: dict[str, Any] = _plain(found)
    return plain


def _plain(value: Any) -> Any:
    """Plain JSON: dates, NaN and bytes become `{"$native": text}`, keys become text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date):
        return {"$native": value.isoformat()}
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return {"$native": str(value)}


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


class YamlFile:
    """One YAML file with its text and its value. `encode()` gives its own bytes while nothing has changed."""

    def __init__(self, data: bytes | None, path: str) -> None:
        """Raises LoadFailed naming the file and the place."""
        self.path = path
        self.original = data
        self.raw = parse(data or b"", path)
        text = (data or b"").decode("utf-8")
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._text = text[len(self._mark) :]

    @property
    def changed(self) -> bool:
        return self.encode("") != (self.original or b"")

    def get(self, path: Path) -> Any:
        """The value at a path, None if there is none."""
        here: Any = self.raw
        for segment in path:
            if not isinstance(here, dict) or segment not in here:
                return None
            here = here[segment]
        return here

    def set(self, path: Path, value: Any) -> None:
        """Raises Refused if that cannot be done without touching something else."""
        if value is not None and same(self.get(path), value):
            return
        wanted = _copy(self.raw)
        here = wanted
        for segment in path[:-1]:
            below = here.get(segment)
            if below is None:
                below = here[segment] = {}
            if not isinstance(below, dict) or "$native" in below:
                raise Refused(f"{self.path}: {segment} is no mapping there")
            here = below
        here[path[-1]] = value
        self._become(lambda text: _Edit(text).set(list(path), value), wanted)

    def unset(self, path: Path) -> bool:
        """Takes a key away, and the mappings that it leaves empty. False iff it was not there."""
        wanted = _copy(self.raw)
        trail, here = [], wanted
        for segment in path[:-1]:
            below = here.get(segment)
            if not isinstance(below, dict):
                return False
            trail.append((here, segment))
            here = below
        if path[-1] not in here:
            return False
        del here[path[-1]]
        for parent, segment in reversed(trail):
            if parent[segment]:
                break
            del parent[segment]
        self._become(lambda text: _Edit(text).unset(list(path)), wanted)
        return True

    def snapshot(self) -> tuple[str, dict[str, Any]]:
        """What `restore` takes back to."""
        return self._text, self.raw

    def restore(self, snapshot: tuple[str, dict[str, Any]]) -> None:
        self._text, self.raw = snapshot

    def _become(self, edit: Any, wanted: dict[str, Any]) -> None:
        try:
            text = edit(self._text)
            got = _plain(yaml.load(text, Loader=_LOADER) or {})
        except (yaml.YAMLError, RecursionError) as error:
            raise Refused(f"{self.path}: the change would break the file as it is written") from error
        if not same(got, wanted):
            raise Refused(
                f"{self.path}: the change would reach beyond its own key (an anchor, or a key that stands there twice)"
            )
        self._text, self.raw = text, wanted

    def settle(self, data: bytes) -> None:
        """`data`, what `encode` gave, is on the disk now."""
        self.original = data

    def encode(self, now: str) -> bytes:
        del now  # such a file bears no stamp
        if self.original is None and not self._text:
            return b""
        return (self._mark + self._text).encode("utf-8")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


class _Edit:
    """One edit of one text, by PyYAML's marks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _BREAK.finditer(text))]
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root: Any = yaml.compose(text, Loader=_LOADER)

    # where things stand

    def at(self, mark: Any) -> int:
        if mark.line >= len(self.starts):
            return len(self.text)
        return min(int(self.starts[mark.line]) + int(mark.column), len(self.text))

    def line_end(self, line: int) -> int:
        return self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)

    def entry_of(self, mapping: Any, key: str) -> tuple[Any, Any] | None:
        found = None  # the last one counts, as PyYAML reads it
        for name, value in mapping.value:
            if isinstance(name, yaml.ScalarNode) and name.value == key:
                found = (name, value)
        return found

    def is_alias(self, key: Any, value: Any) -> bool:
        return self.at(value.start_mark) < self.at(key.end_mark)

    def last_line(self, key: Any) -> int:
        """The last line of a block entry: the lines that are indented deeper than its key, and list items at its
        own depth. Comments and blank lines at the end belong to what follows."""
        last, column = int(key.start_mark.line), int(key.start_mark.column)
        for line in range(int(key.end_mark.line) + 1, len(self.starts)):
            content = self.text[self.starts[line] : self.line_end(line)]
            stripped = content.strip()
            indent = len(content) - len(content.lstrip(" "))
            if not stripped:
                continue
            if indent < column or (indent == column and not stripped.startswith(("- ", "-\n")) and stripped != "-"):
                break
            if indent == column and stripped.startswith("#"):
                break
            last = line
        return last

    def value_end(self, key: Any, value: Any) -> int:
        """The last line of an entry, by its value's end where that is known better than by indentation."""
        inline = not self.is_alias(key, value) and self.inline(value)
        end = self.at(value.end_mark)
        if inline:
            return max(int(value.end_mark.line) if self.text[:end][-1:] not in "\r\n" else value.end_mark.line - 1, 0)
        return self.last_line(key)

    def inline(self, node: Any) -> bool:
        if isinstance(node, yaml.ScalarNode):
            return node.style not in ("|", ">") and self.at(node.end_mark) > self.at(node.start_mark)
        return bool(node.flow_style)

    # what is written

    def one_line(self, value: Any, flow: bool = True) -> str:
        """In one line; inside a flow mapping more has to be quoted."""
        out = str(
            yaml.dump(
                [value] if flow else value,
                Dumper=yaml.SafeDumper,
                default_flow_style=True,
                allow_unicode=True,
                width=_WIDE,
                sort_keys=False,
            )
        )
        return out.strip()[1:-1] if flow else out.removesuffix("\n").removesuffix("\n...")

    def lines(self, key: str, value: Any, column: int) -> str:
        out = str(
            yaml.dump(
                {key: value},
                Dumper=_Dumper,
                default_flow_style=False,
                allow_unicode=True,
                width=_WIDE,
                sort_keys=False,
            )
        )
        return "".join(
            (" " * column + line if line else line) + self.newline for line in out.removesuffix("\n").split("\n")
        )

    def set(self, path: list[str], value: Any) -> str:
        if self.root is None or (isinstance(self.root, yaml.ScalarNode) and not self.root.value):
            gap = "" if not self.text or self.text.endswith("\n") else self.newline
            return self.text + gap + self.lines(path[0], _nest(path[1:], value), 0)
        node = self.root
        for depth, segment in enumerate(path):
            found = self.entry_of(node, segment)
            rest = path[depth + 1 :]
            if found is None:
                return self._insert(node, segment, _nest(rest, value))
            key, below = found
            if rest and isinstance(below, yaml.MappingNode) and not self.is_alias(key, below):
                node = below
                continue
            return self._replace(node, key, below, _nest(rest, value))
        raise AssertionError("a path has at least one part")

    def _insert(self, mapping: Any, key: str, value: Any) -> str:
        if mapping.flow_style:
            end = self.at(mapping.end_mark) - 1
            inside = self.text[self.at(mapping.start_mark) + 1 : end].strip()
            gap = "" if not inside else " " if inside.endswith(",") else ", "
            return self.text[:end] + gap + self.one_line({key: value})[1:-1] + self.text[end:]
        line = max(self.value_end(k, v) for k, v in mapping.value)
        at = self.line_end(line)
        gap = "" if self.text[:at].endswith(("\n", "\r")) else self.newline
        return self.text[:at] + gap + self.lines(key, value, mapping.value[0][0].start_mark.column) + self.text[at:]

    def _replace(self, mapping: Any, key: Any, old: Any, value: Any) -> str:
        simple = not isinstance(value, dict | list) and "\n" not in str(value)
        was_inline = not self.is_alias(key, old) and self.inline(old)
        if was_inline and (mapping.flow_style or simple or not isinstance(old, yaml.ScalarNode)):
            piece = self.one_line(value, bool(mapping.flow_style))
            return self.text[: self.at(old.start_mark)] + piece + self.text[self.at(old.end_mark) :]
        if mapping.flow_style:
            raise Refused(f"{key.value} is written in an unusual way in the file")
        begin = self.starts[key.start_mark.line]
        if self.text[begin : self.at(key.start_mark)].strip():
            raise Refused(f"{key.value} does not begin its line in the file")
        end = self.line_end(self.value_end(key, old))
        return self.text[:begin] + self.lines(key.value, value, key.start_mark.column) + self.text[end:]

    def unset(self, path: list[str]) -> str:
        trail: list[tuple[Any, Any, Any]] = []
        node = self.root
        for segment in path:
            found = self.entry_of(node, segment) if isinstance(node, yaml.MappingNode) else None
            if found is None:
                raise Refused(f"{segment} comes from an anchor in the file")
            trail.append((node, *found))
            node = found[1]
        mapping, key, value = trail.pop()
        while trail and len(mapping.value) == 1:
            mapping, key, value = trail.pop()
        if not mapping.flow_style:
            return (
                self.text[: self.starts[key.start_mark.line]] + self.text[self.line_end(self.value_end(key, value)) :]
            )
        entries = mapping.value
        index = next(n for n, (name, _) in enumerate(entries) if name is key)
        if len(entries) == 1:
            return self.text[: self.at(mapping.start_mark)] + "{}" + self.text[self.at(mapping.end_mark) :]
        if index + 1 < len(entries):
            return self.text[: self.at(key.start_mark)] + self.text[self.at(entries[index + 1][0].start_mark) :]
        return self.text[: self.at(entries[index - 1][1].end_mark)] + self.text[self.at(value.end_mark) :]


def _nest(path: list[str], value: Any) -> Any:
    for segment in reversed(path):
        value = {segment: value}
    return value
