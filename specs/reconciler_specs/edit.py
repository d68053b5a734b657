"""Edits to a setup on disk that keep its comments and order (adopt, capture, init); the one module that knows ruamel.

Every plain scalar goes through as the text that stands in the file, so that an edit changes what it names and
nothing else; what was written is read again to prove it.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from .address import Address, Kind
from .document import Document, Node
from .errors import ReconcilerError, SpecError
from .load import load
from .render import HIDDEN, ambiguous, blockable, escaped, flow, literal, quoted, render_home
from .resource import Origin
from .setting import split_setting
from .setup import Setup
from .shape import Json
from .tables import TABLES
from .values import Refusal

KeyPath = tuple[str, ...]


class EditRefused(ReconcilerError):
    """The edit cannot be made without changing more than it names; the file is as it was."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a field's value is to be edited: `path` in `file`; with `path` empty the file itself is the value.

    `note` says so in words where it is not where one would look (an override of a template, a source file).
    """

    file: Path
    path: KeyPath = ()
    note: str = ""


class _TextResolver(VersionedResolver):
    """Leaves every plain scalar the text it is."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode:
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


class _Quoted(DoubleQuotedScalarString):
    """Its hidden characters are written as escapes."""

    __slots__ = ()


_OURS = "\0"  # before a text of `_Quoted` on its way to the emitter; no text of a file begins with it


class _Representer(RoundTripRepresenter):
    """Knows `_Quoted`."""

    def quoted(self, value: _Quoted) -> ScalarNode:
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", _OURS + value, style='"')
        return node


_Representer.add_representer(_Quoted, _Representer.quoted)


class _Emitter(RoundTripEmitter):
    """Writes a `_Quoted` text by our own rules, and all else as ruamel does."""

    def write_double_quoted(self, text: Any, split: Any = True) -> None:
        if not text.startswith(_OURS):
            super().write_double_quoted(text, split)
            return
        body = quoted(text.removeprefix(_OURS))
        self.write_indicator('"', True)
        self.column += len(body) - 2
        self.stream.write(body[1:-1])
        self.write_indicator('"', False)


def _yaml(text: str) -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Resolver = _TextResolver
    yaml.Representer = _Representer
    yaml.Emitter = _Emitter
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.allow_unicode = True
    mapping, sequence, offset = _indents(text)
    yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
    return yaml


def _indents(text: str) -> tuple[int, int, int]:
    """How a text indents maps and lists, by its first map in a map and its first list under a key."""
    mapping = re.search(
        r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(\1 +)[^\s#-]", text, re.MULTILINE
    )
    listed = re.search(r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(\1 *)- ", text, re.MULTILINE)
    step = len(mapping[2]) - len(mapping[1]) if mapping else 2
    offset = len(listed[2]) - len(listed[1]) if listed else 2
    return step, offset + 2, offset


class SetupEditor:
    """Edits the files of one setup. Nothing is on disk before `write`.

    Raises EditRefused, and SpecError for a file that cannot be read.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._files: dict[Path, _File] = {}
        self._sources: dict[Path, str] = {}
        self._models: dict[tuple[str, str], dict[str, Json]] = {}  # what this edit added, by home and profile

    def set(self, path: Sequence[str], value: Json, *, file: Path | None = None) -> None:
        """Give the value at a key path, making the maps on the way. `$(` in texts is kept literal."""
        self._file(file).set(tuple(path), literal(value))

    def remove(self, path: Sequence[str], *, file: Path | None = None) -> None:
        """Take a key away, with the maps that are empty by that. Nothing if it is not there."""
        self._file(file).remove(tuple(path))

    def add_home(self, home_id: str, home: Mapping[str, Json], *, file: Path | None = None) -> None:
        """A new block below `homes:`, in the form of `render_home`. EditRefused if the home is declared there."""
        self._file(file).add_home(home_id, home)

    def spot(self, setup: Setup, address: Address, field: str) -> Spot:
        """Where to edit a field of a declared thing. KeyError if the setup does not declare the thing."""
        home = setup.homes[address.home]
        resource = home.resources[address]
        file = Path(home.where.file)
        table = TABLES.get(address.kind)
        if table is not None and (field not in table.written or (field == "kit" and "source" in resource.options)):
            raise EditRefused(f"{address}#{field} is made from the thing's source", hint="edit that, beside the setup")
        inside = ("profiles", address.profile) if address.profile else ()
        path = ("homes", address.home, *inside, *_below(address, field))
        origin = resource.origin(field)
        if field not in resource.fields:
            return Spot(file, self._as_written(file, path))
        if address.kind is Kind.FILE and field in ("text", "block"):
            said = self._said(origin)
            if said is not None and said[0] in ("source", "block"):
                source = Path(origin.where.file).parent / said[1]
                return Spot(source, note=f"the text stands in {source}")
        if origin.via:
            return Spot(file, self._as_written(file, path), f"an override in the home, of {origin.via}")
        return Spot(file, self._as_written(file, path))

    def capture(self, setup: Setup, address: Address, field: str, value: Json) -> Spot:
        """Bring a home's value of a field into the setup; says where it was put."""
        spot = self.spot(setup, address, field)
        if not spot.path:
            if not isinstance(value, str):
                raise EditRefused(f"{address}#{field}: a file's text is expected")
            self._sources[spot.file] = value
            return spot
        spot, value = self._shortened(spot, address, field, value)
        said = self._in_words(setup, spot, address, field, value)
        self._file(spot.file).set(spot.path, literal(said))
        return spot

    def text(self, file: Path | None = None) -> str:
        """A file's text with the edits made so far."""
        return self._file(file).text()

    def check(self) -> None:
        """Raises EditRefused if the setup could not be loaded with the edits."""
        edited = {Path(os.path.realpath(path)): text.encode() for path, text in self._texts().items()}
        try:
            load(self.path, edited=edited)
        except SpecError as error:
            first = error.reasons[0]
            raise EditRefused(f"{first.where}: with this edit: {first.message}", hint=first.hint) from error

    def _texts(self) -> dict[Path, str]:
        return {f.path: f.text() for f in self._files.values() if f.changed} | self._sources

    def write(self) -> list[Path]:
        """Write every file that changed, each by rename; the files written. A file that did not change is not."""
        written = []
        for path, text in self._texts().items():
            real = Path(os.path.realpath(path))
            before = _bytes(real)
            data = text.encode()
            if data == before:
                continue
            known = self._files.get(path)
            if known is not None and before is not None and before != known.original:
                raise EditRefused(f"{path} changed while it was edited", hint="run the command again")
            put(real, data)
            if known is not None:
                known.original = data
            written.append(path)
        return written

    def _file(self, file: Path | None) -> _File:
        path = self.path if file is None else file
        if path not in self._files:
            self._files[path] = _File(path)
        return self._files[path]

    def _as_written(self, file: Path, path: KeyPath) -> KeyPath:
        """`path` with a setting's key as the author spelled it."""
        if len(path) < 6 or path[4] != "settings":
            return path
        node = self._file(file).tree().descend(path[:5])
        for key in node.value if node.kind == "map" else ():
            with suppress(Refusal):
                if split_setting(key) == split_setting(path[5]):
                    return (*path[:5], key, *path[6:])
        return path

    def _said(self, origin: Origin) -> tuple[str, str] | None:
        """(key, text) of the scalar at an origin."""
        tree = self._file(Path(origin.where.file)).tree()
        return _find(tree, origin.where.line, origin.where.column)

    def _shortened(self, spot: Spot, address: Address, field: str, value: Json) -> tuple[Spot, Json]:
        """A thing that the author wrote as its one field (`telegram: [web]`) keeps that form, and a set its `only`."""
        table = TABLES.get(address.kind)
        if table is None or table.short != field or spot.path[-1] != field:
            return spot, value
        node = self._file(spot.file).tree().descend(spot.path[:-1])
        if node.kind == "map" and node.value.keys() == {"only"}:
            return replace(spot, path=spot.path[:-1]), {"only": value}
        if node.kind == "map" and node.get(field) is not None and node.value[field].kind == "map":
            return spot, {"only": value}
        return (replace(spot, path=spot.path[:-1]) if node.kind == "seq" else spot), value

    def _in_words(self, setup: Setup, spot: Spot, address: Address, field: str, value: Json) -> Json:
        """An exchanged value as an author says it: models by name, jobs by key."""
        if address.kind is Kind.JOB and field == "context_from" and isinstance(value, list):
            return [str(v).rpartition("/jobs/")[2] or v for v in value]
        if address.kind is Kind.JOB and field == "model" and isinstance(value, dict):
            return self._name_of(setup, address, value) or value
        if address.kind is Kind.INFERENCE:
            if field == "fallbacks":
                return [self._named(setup, spot, address, v) for v in value]
            if field == "auxiliary":
                return {task: self._named(setup, spot, address, v) for task, v in value.items()}
            return self._named(setup, spot, address, value)
        return value

    def _known(self, setup: Setup, address: Address) -> dict[str, Json]:
        """The profile's models by name, with those that this edit added."""
        declared = setup.homes[address.home].models.get(address.profile, {})
        return {**declared, **self._models.get((address.home, address.profile), {})}

    def _name_of(self, setup: Setup, address: Address, model: Json) -> str | None:
        return next((name for name, known in self._known(setup, address).items() if same(known, model)), None)

    def _named(self, setup: Setup, spot: Spot, address: Address, model: Json) -> str:
        """The name of a model of the profile; one is made in the home's own block if none has this definition."""
        name = self._name_of(setup, address, model)
        if name is not None:
            return name
        last = str(model.get("model", "")).rpartition("/")[2].lower()
        stem = re.sub(r"[^a-z0-9_.-]+", "-", last).strip("-._")[:50] or "model"
        taken = self._known(setup, address)
        name = next(n for n in (stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3))) if n not in taken)
        self._file(spot.file).set((*spot.path[:4], "inference", "models", name), literal(model))
        self._models.setdefault((address.home, address.profile), {})[name] = model
        return name


def _below(address: Address, field: str) -> KeyPath:
    if address.kind is Kind.PROFILE:
        return (field,)
    if address.kind is Kind.INFERENCE:
        return ("inference", field)
    if address.kind is Kind.SETTING:
        return ("settings" if address.profile else "project_settings", address.key)
    return (address.kind.value, address.key, field)


def _find(node: Node, line: int, column: int, key: str = "") -> tuple[str, str] | None:
    if node.kind == "scalar":
        at = node.where
        return (key, node.text) if (at.line, at.column) == (line, column) else None
    entries = node.value.items() if node.kind == "map" else ((key, v) for v in node.value)
    return next((f for k, v in entries if (f := _find(v, line, column, k)) is not None), None)


class _File:
    """One YAML (or JSON) file under edit, with the tree that it has to read back to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = _bytes(Path(os.path.realpath(path)))
        if data is None:
            raise EditRefused(f"{path}: there is no such file")
        self.original = data
        self.document = Document.parse(data, str(path))
        self.expected: dict[str, Any] = self.document.root.plain(nulls=True)
        if not isinstance(self.expected, dict):
            raise EditRefused(f"{path}: a setup is a map")
        self.json = path.suffix == ".json"
        self.changed = False
        self.yaml = _yaml(self.document.text)
        try:
            self.data = self.yaml.load(self.document.text)
        except YAMLError as error:
            raise EditRefused(f"{path}: this file can be read, but not edited by program") from error
        self._tree: Node | None = self.document.root

    def tree(self) -> Node:
        """The file as it stands with the edits."""
        if self._tree is None:
            self._tree = Document.parse(self.text(), str(self.path)).root
        return self._tree

    def set(self, path: KeyPath, value: Json) -> None:
        at, expected = self.data, self.expected
        for part in path[:-1]:
            if not isinstance(expected.get(part), dict):
                if expected.get(part) is not None:
                    raise EditRefused(f"{self.path}: {'.'.join(path)} leads through {part}, which is no map")
                at[_key(part)] = CommentedMap()
                expected[part] = {}
            at, expected = at[part], expected[part]
        last = path[-1]
        if last in expected and same(expected[last], value):
            return
        expected[last] = value
        at[last if last in at else _key(last)] = _node(value, inline=_is_flow(at))
        self._edited()

    def remove(self, path: KeyPath) -> None:
        chain: list[tuple[Any, dict[str, Any], str]] = []
        at, expected = self.data, self.expected
        for part in path:
            if not isinstance(expected, dict) or part not in expected:
                return
            chain.append((at, expected, part))
            at, expected = at[part], expected[part]
        for at, expected, part in reversed(chain):
            del at[part], expected[part]
            if expected or len(chain) == 1:
                break
        self._edited()

    def add_home(self, home_id: str, home: Mapping[str, Json]) -> None:
        homes = self.expected.get("homes")
        if isinstance(homes, dict) and home_id in homes:
            raise EditRefused(f"{self.path}: the home {home_id} is declared already")
        # ruamel keeps a comment's column, which would be wrong in a file with another indentation.
        text = "homes:\n" + render_home(home_id, home, comments=_indents(self.document.text)[0] == 2)
        block = Document.parse(text, "home").root.plain(nulls=True)["homes"][home_id]
        if not isinstance(homes, dict):
            self.data["homes"] = CommentedMap()
            self.expected["homes"] = {}
        self.data["homes"][_key(home_id)] = _shown(_yaml(text).load(text)["homes"][home_id])
        self.expected["homes"][home_id] = block
        self._edited()

    def _edited(self) -> None:
        self.changed = True
        self._tree = None

    def text(self) -> str:
        """The edited text. Raises EditRefused if it would not read back to what was asked for."""
        if not self.changed:
            return self.document.text
        if self.json:
            text = escaped(json.dumps(self.expected, indent=2, ensure_ascii=False), is_json=True) + "\n"
        else:
            stream = io.StringIO()
            self.yaml.dump(self.data, stream)
            text = stream.getvalue()
            if "\r\n" in self.document.text:
                text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        try:
            back = Document.parse(text, str(self.path)).root.plain(nulls=True)
        except SpecError as error:
            raise EditRefused(f"{self.path} cannot be edited by program: {error.reasons[0].message}") from error
        if not same(back, self.expected):
            raise EditRefused(f"{self.path}: the edit would change more than it names", hint="edit the file by hand")
        return text


def same(a: Any, b: Any) -> bool:
    """Equal values of equal types, maps in any order."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if numbers and isinstance(a, bool) == isinstance(b, bool):
        return isinstance(a, int) == isinstance(b, int) and (a == b or (a != a and b != b))
    return bool(type(a) is type(b) and a == b)


def _quote(text: str) -> DoubleQuotedScalarString:
    made: DoubleQuotedScalarString = _Quoted(text) if HIDDEN.search(text) else DoubleQuotedScalarString(text)
    return made


def _key(key: str) -> str:
    return _quote(key) if ambiguous(key) else key


def _shown(loaded: Any) -> Any:
    """What was loaded, with the texts that hold hidden characters so that they are written as escapes again."""
    if isinstance(loaded, CommentedMap):
        for place, key in enumerate(list(loaded)):
            if isinstance(key, str) and HIDDEN.search(key):
                loaded.insert(place, _Quoted(key), loaded.pop(key))
            loaded[key] = _shown(loaded[key])
    elif isinstance(loaded, CommentedSeq):
        for index, item in enumerate(loaded):
            loaded[index] = _shown(item)
    elif isinstance(loaded, str) and HIDDEN.search(loaded):
        return _Quoted(loaded)
    return loaded


def _is_flow(node: Any) -> bool:
    return isinstance(node, CommentedMap) and bool(node.fa.flow_style())


def _node(value: Json, *, inline: bool = False) -> Any:
    """A value as ruamel writes it: small maps and lists on one line, long texts after `|`, safely quoted."""
    if isinstance(value, str):
        if not inline and blockable(value):
            return LiteralScalarString(value)
        return _quote(value) if ambiguous(value) or (inline and re.search(r"[][{},]", value)) else value
    if isinstance(value, Mapping):
        short = inline or (
            len(flow(value)) <= 80 and not any(isinstance(v, str) and blockable(v) for v in value.values())
        )
        made = CommentedMap((_key(k), _node(v, inline=short)) for k, v in value.items())
        if short:
            made.fa.set_flow_style()
        return made
    if isinstance(value, list | tuple):
        items = CommentedSeq(_node(v, inline=True) for v in value)
        items.fa.set_flow_style()
        return items
    return flow(value)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def put(path: Path, data: bytes) -> None:
    """Writes a file by temporary file, fsync and rename; the mode stays. Raises OSError: then the old one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        mode = path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105
    except OSError:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
