"""openclaw.json as somebody wrote it: JSON5 with comments, `$include`s taken in, `${VAR}` left as text.

The running program's own answers are no substitute: they add defaults, hide the names of secrets, and say that an
invalid file is an empty one. The only module that knows JSON5.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyjson5

from reconciler.observe import Store, Unknown
from reconciler.place import Place, Stat
from reconciler_shape import places
from reconciler_shape.plain import to_json
from reconciler_specs.shape import Json

from . import home

INCLUDE = "$include"
_DEPTH = 10  # includes in one another, as OpenClaw allows
_NESTED = 200  # values in one another
_INCLUDE_LIMIT = 2 << 20  # bytes, OpenClaw's own
_NEAR = re.compile(r"near (\d+)")
_WRITTEN_BY = re.compile(r"""lastTouchedVersion["']?\s*:\s*["']([0-9][^"']{0,40})["']""")
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n\r\u2028\u2029]*|/\*.*?\*/)"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<mark>[{}\[\],:])|(?P<word>[^\s{}\[\],:"'/]+)""",
    re.DOTALL,
)


class NotReadable(ValueError):
    """The text is not what OpenClaw reads; the message is `path:line:column: what`."""


@dataclass(frozen=True, slots=True)
class Authored:
    """The config of a home. `tree` is {} where there is none, or where `unknown` says why it cannot be read.

    `files` are the config and what it includes, with the SHA-256 of each; `includes` maps the dotted path at which
    something is included to the file. `comments` names the files that have any: OpenClaw's next write of one drops
    them. `written_by` is the version that last wrote it, even where the file itself cannot be read.
    """

    path: str
    tree: Mapping[str, Json] = field(default_factory=dict, repr=False)  # it holds secrets
    store: Store = Store.MISSING
    unknown: Unknown | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    includes: Mapping[str, str] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    written_by: str | None = None
    notes: tuple[str, ...] = ()


def read(here: home.Home) -> Authored:
    """The home's config with its includes. Never raises: what cannot be read is `unknown`."""
    data = home.text(here.place, here.config, home.CONFIG_LIMIT)
    if data is None:
        return Authored(here.config, unknown=_gone(here), written_by=_written_by(here, b""))
    if isinstance(data, Unknown):
        # OpenClaw reads through a link, and refuses to write through it; where it leads is the operator's own.
        found = places.lstat(here.place, here.config)
        target = found.target if isinstance(found, Stat) and found.kind == "link" else ""
        linked = home.text(here.place, target, home.CONFIG_LIMIT) if target else None
        if not isinstance(linked, bytes):
            return Authored(here.config, store=Store.IMPROPER, unknown=data)
        data = linked
    reading = _Reading(here)
    try:
        tree = reading.file(here.config, data, (here.config,), ())
        if not isinstance(tree, dict):
            raise NotReadable(f"{here.config}:1:1: a {_name(tree)} where OpenClaw keeps an object")
    except NotReadable as error:
        writer = _written_by(here, data)
        said = f" (last written by OpenClaw {writer})" if writer else ""
        why = Unknown(f"{error}{said}")
        return Authored(here.config, store=Store.IMPROPER, unknown=why, files=reading.files, written_by=writer)
    meta = tree.get("meta")
    writer = meta.get("lastTouchedVersion") if isinstance(meta, dict) else None
    return Authored(
        here.config,
        tree,
        Store.PROPER if tree else Store.EMPTY,
        None,
        reading.files,
        reading.includes,
        tuple(reading.comments),
        str(writer) if isinstance(writer, str) else None,
        tuple(reading.notes),
    )


def _gone(here: home.Home) -> Unknown | None:
    """Why a missing config is no fresh home's: the home has run, so that it was lost, and its agents with it."""
    for left, what in ((home.LAST_GOOD, "the last good one is beside it"), (home.DATABASE, "the home has run before")):
        if places.lstat(here.place, here.path(left)) is not None:
            return Unknown(f"{here.config} is gone, and {what} ({left}): put it back first")
    return None


def _written_by(here: home.Home, data: bytes) -> str | None:
    """The version that last wrote a config that cannot be read: from its text, else from the last good copy."""
    found = _WRITTEN_BY.search(data.decode("utf-8", "replace"))
    if found is None:
        copy = home.text(here.place, here.path(home.LAST_GOOD), home.CONFIG_LIMIT)
        found = _WRITTEN_BY.search(copy.decode("utf-8", "replace")) if isinstance(copy, bytes) else None
    return found[1] if found else None


class _Reading:
    """Takes one config and its includes in."""

    def __init__(self, here: home.Home) -> None:
        self.place: Place = here.place
        self.root = posixpath.dirname(here.config)
        self.files: dict[str, str] = {}
        self.includes: dict[str, str] = {}
        self.comments: list[str] = []
        self.notes: list[str] = []

    def file(self, path: str, data: bytes, above: tuple[str, ...], at: tuple[str, ...]) -> Any:
        """A file's value with all that it includes; `above` are the files that lead to it. Raises NotReadable."""
        self.files[path] = hashlib.sha256(data).hexdigest()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise NotReadable(f"{path}: not UTF-8 at byte {error.start}") from error
        tree = parse(text, path)
        comments, twice = scan(text)
        self.comments += [path] if comments and path not in self.comments else []
        self.notes += [f"{path}:{where}: the key {key} stands there twice; the last one counts" for key, where in twice]
        return self._inside(tree, path, above, at)

    def _inside(self, value: Any, path: str, above: tuple[str, ...], at: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [self._inside(item, path, above, (*at, str(index))) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        rest = {k: self._inside(v, path, above, (*at, k)) for k, v in value.items() if k != INCLUDE}
        if INCLUDE not in value:
            return rest
        said = value[INCLUDE]
        names = said if isinstance(said, list) else [said]
        if not all(isinstance(name, str) for name in names):
            raise NotReadable(f"{path}: {'.'.join((*at, INCLUDE))}: a file name, or a list of them, is expected")
        found = [self._included(name, path, above, at) for name in names]
        base: Any = found[0] if not isinstance(said, list) else {}
        for item in found if isinstance(said, list) else ():
            base = _merged(base, item)
        if not rest:
            return base
        if not isinstance(base, dict):
            raise NotReadable(f"{path}: {'.'.join((*at, INCLUDE))}: {said} is no object, and there are keys beside it")
        return _merged(base, rest)

    def _included(self, name: str, path: str, above: tuple[str, ...], at: tuple[str, ...]) -> Any:
        where = f"{path}: {'.'.join((*at, INCLUDE))}: {name}"
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        real = self.place.resolve(wanted)
        for each in (wanted, real):
            if not each.startswith(f"{self.root}/"):
                raise NotReadable(f"{where} leads out of {self.root}; it is not followed")
        if wanted in above:
            raise NotReadable(f"{where} includes itself, by way of {' → '.join((*above, wanted))}")
        if len(above) > _DEPTH:
            raise NotReadable(f"{where}: more than {_DEPTH} includes in one another")
        data = home.text(self.place, real, _INCLUDE_LIMIT)
        if not isinstance(data, bytes):
            raise NotReadable(f"{where}: {data.reason if isinstance(data, Unknown) else 'there is no such file'}")
        self.includes[".".join(at)] = wanted
        return self.file(wanted, data, (*above, wanted), at)


def parse(text: str, path: str) -> Any:
    """A JSON5 text as plain JSON; what JSON has no word for (`NaN`) is marked. Raises NotReadable."""
    try:
        return to_json(pyjson5.decode(text, maxdepth=_NESTED))
    except pyjson5.Json5DecoderException as error:
        raise NotReadable(f"{path}{_where(text, error)}: {_said(error)}") from error


def _where(text: str, error: Any) -> str:
    """`:line:column` of an error; the parser tells it only in its sentence, as the number of characters it has read."""
    found = _NEAR.search(str(error))
    if found is None:
        return ""
    at = max(int(found[1]) - 1, 0)
    wrong = error.args[2] if len(error.args) > 2 else None
    if isinstance(wrong, str) and wrong and text[at : at + 1] != wrong:
        at = max(text.find(wrong, at), at)
    return ":" + position(text, min(at, len(text)))


def _said(error: Any) -> str:
    """The parser's sentence without its offsets, and never with what it has read: that may be a secret."""
    words = re.sub(r" (?:starting )?near \d+", "", str(error.args[0])) if error.args else "not JSON5"
    words = re.sub(r"b'([^']*)'", r"\1", words)
    return re.sub(r"U\+([0-9a-fA-F]{4,6})", lambda match: repr(chr(int(match[1], 16))), words)


def position(text: str, at: int) -> str:
    """`line:column`, both from 1, of a place in a text."""
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def scan(text: str) -> tuple[bool, list[tuple[str, str]]]:
    """Whether a proper JSON5 text has comments, and the keys that stand twice in one object with where."""
    comments = False
    twice: list[tuple[str, str]] = []
    stack: list[set[str] | None] = []  # the keys of each open object, None for a list
    last: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "comment":
            comments = True
            continue
        mark = token[0] if token.lastgroup == "mark" else ""
        if mark in ("{", "["):
            stack.append(set() if mark == "{" else None)
        elif mark in ("}", "]") and stack:
            stack.pop()
        elif mark == ":" and stack and last is not None:
            keys, key = stack[-1], last[0].strip("\"'")
            if keys is not None and key in keys:
                twice.append((key, position(text, last.start())))
            elif keys is not None:
                keys.add(key)
        last = token
    return comments, twice


def _merged(below: Any, above: Any) -> Any:
    """As OpenClaw merges includes: objects by key, lists one behind the other, else the later one."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{k: _merged(below[k], v) if k in below else v for k, v in above.items()}}
    if isinstance(below, list) and isinstance(above, list):
        return [*below, *above]
    return above


def _name(value: Any) -> str:
    return {list: "list", str: "text", type(None): "null"}.get(type(value), "single value")
