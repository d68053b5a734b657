"""File or text → Setup, with every reason at once, each at its file, line and column."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from . import file, job
from .document import MAX_BYTES, Document, Node, read_document, shown
from .errors import Reason, SpecError, Where
from .exclusive import one_credential_once
from .home import FIELDS as HOME_FIELDS
from .home import NOT_IN_TEMPLATE, PROFILE_FIELDS, Place, read_home
from .include import included
from .notify import read_notify
from .policy import Policy, read_policy
from .reading import THING_KEYS, Field, Fields, Reasons, check_keys, did_you_mean, is_map, ref
from .rekeyed import read_moved, read_released
from .screen import screen
from .secret import read_sources
from .setup import Home, Setup
from .shape import Json
from .sources import Sources, Unusable
from .state import read_state
from .tables import TABLES
from .template import Parameters, merge, read_parameters
from .values import NAME, Refusal, described, names

FIELDS: Fields = {
    "version": Field("Of the language.", {"const": 1}),
    "name": Field("The owner of what is declared here.", {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,62}$"}),
    "formerly": Field("Names that it had before.", {"type": "array", "items": {"type": "string"}}),
    "include": Field(
        "Files with more homes, templates and places: globs, relative to this file.",
        {"type": "array", "items": {"type": "string"}},
    ),
    "parameters": Field("Values that homes fill into templates, $(name).", {"type": "object"}),
    "places": Field("Where homes are, by name.", {"type": "object"}),
    "policy": Field("Policy of every home that says nothing else.", ref("Policy")),
    "state": Field("Where the record of what was applied is kept.", ref("State")),
    "secrets": Field("Where the values of secrets come from, by name, for every home.", {"type": "object"}),
    "templates": Field("What several homes have in common, by name.", {"type": "object"}),
    "homes": Field("The homes, by your own names for them.", {"type": "object"}),
    "moved": Field(
        "Things that have another address now, as {from, to}; `*` for the home means every home.", {"type": "array"}
    ),
    "notify": Field("Who is told what came of a run, by your own names for them.", {"type": "object"}),
    "released": Field(
        "Addresses that are let go of without a delete; `*` for the home means every home.",
        {"type": "array", "items": {"type": "string"}},
    ),
}
INCLUDE_KEYS = ("version", "homes", "templates", "places", "secrets")


def load(
    path: Path | str,
    *,
    only: Collection[str] | None = None,
    stands: Path | None = None,
    edited: Mapping[Path, bytes] = MappingProxyType({}),
) -> Setup:
    """The setup in a file. With `only`, just these homes are read; the others are left out. `stands` is the folder that
    relative paths of homes and of secrets' files are from, if the file is a copy: that of the original. `edited` is
    what files, by their real paths, are about to hold.

    Reads nothing but the file, what it includes and the sources it names, all inside its folder.
    Raises SpecError with every reason.
    """
    name = str(path)
    real = Path(os.path.realpath(path))
    sources = Sources(real.parent, stands, edited)
    try:
        data = sources.bytes(real, MAX_BYTES)
    except Unusable as error:
        hint = "reconciler init  # writes a first one" if "no such file" in str(error) else ""
        raise SpecError([Reason(Where(name), str(error), hint)]) from error
    return _Loader(sources, real, name, only).load(data)


def load_text(
    text: str | bytes, file: str = "setup.yaml", base_dir: Path | str = ".", *, only: Collection[str] | None = None
) -> Setup:
    """As `load`, for a text that is not on disk; `file` names it in messages, `base_dir` is its folder."""
    folder = Path(os.path.realpath(base_dir))
    return _Loader(Sources(folder), folder / Path(file).name, file, only).load(text)


class _Loader:
    """One run of the loader: the reasons, and what the files declare by name."""

    def __init__(self, sources: Sources, root: Path, name: str, only: Collection[str] | None) -> None:
        self.sources = sources
        self.root = root
        self.name = name
        self.only = only
        self.found = Reasons()
        self.homes: dict[str, tuple[Node, Where]] = {}
        self.templates: dict[str, tuple[Node, Where]] = {}
        self.places: dict[str, tuple[Node, Where]] = {}
        self.secrets: dict[str, tuple[Json, Node]] = {}
        self.expanded: dict[str, Node | None] = {}
        self.uses_parameters = False
        self.saw_homes = False
        self.used: set[str] = set()

    def load(self, data: str | bytes) -> Setup:
        with _no_collector():
            document = self._read(data, self.name, self.root)
            setup = self._setup(document.root) if document is not None else None
        if self.found.found or setup is None:
            raise SpecError(_condensed(self.found.found))
        return setup

    def _read(self, data: str | bytes, name: str, path: Path) -> Document | None:
        """A document without its secrets; its `file` is how messages name it."""
        self.sources.folders[name] = path.parent
        document = read_document(data, name, self.found.found)
        if document is None:
            return None
        self.uses_parameters = self.uses_parameters or "$" in document.text or "\\" in document.text
        screen(document, self.found)
        if is_map(document.root, "a setup", self.found):
            return document
        if document.root.is_null:
            self.found.add(Where(name), "the file is empty", "a setup starts with: version: 1")
        return None

    def _setup(self, root: Node) -> Setup:
        found = self.found
        check_keys(root, FIELDS, "", found, extra=True)
        self._version(root)
        name = self._name(root)
        self._collect(root)
        for document_name, path, data in included(root, self.name, self.root, self.sources, found):
            document = self._read(data, document_name, path)
            if document is not None:
                check_keys(document.root, INCLUDE_KEYS, "an included file", found, extra=True)
                self._version(document.root, needed=False)
                self._collect(document.root)
        policy = read_policy(root.get("policy"), "policy", found)
        parameters = read_parameters(root.get("parameters"), found)
        given = root.get("parameters")
        wrong = [k for k in given.value if k not in parameters] if given is not None and given.kind == "map" else []
        places = {name: self._place(name, node, where) for name, (node, where) in self.places.items()}
        for template, (node, _) in self.templates.items():
            self._check_template(template, node)
        homes: dict[str, Home] = {}
        if self.only is not None:
            for wanted in self.only:
                if wanted not in self.homes:
                    found.add(Where(self.name), f"there is no home {shown(wanted)}", did_you_mean(wanted, self.homes))
        for home_id, (node, where) in self.homes.items():
            if self.only is None or home_id in self.only:
                home = self._home(home_id, node, where, policy, places, Parameters(
                    parameters, node.get("with"), home_id, found, wrong
                ))  # fmt: skip
                if home is not None:
                    homes[home_id] = home
        for template in self.templates.keys() - self.used:
            self._check_unused(template)
        if not self.saw_homes:
            found.add(root.where_key("homes"), "a setup has at least one home", "homes: {main: {harness: …, path: …}}")
        self._one_home_twice(homes)
        one_credential_once(homes, self.found)
        return Setup(
            name=name,
            homes=homes,
            root=self.root,
            formerly=self._formerly(root),
            moved=read_moved(root, homes, self.found),
            released=read_released(root, homes, self.found),
            policy=policy,
            parameters=parameters,
            notify=read_notify(root.get("notify"), found),
            state=read_state(root.get("state"), found),
            files=tuple(self.sources.files),
            stands=self.sources.stands,
        )

    def _version(self, root: Node, needed: bool = True) -> None:
        version = root.get("version")
        if version is None:
            if needed:
                self.found.add(root.where, "version is needed: the version of the language", "write version: 1")
            return
        if version.value != 1 or isinstance(version.value, bool) or version.text != "1" or version.style:
            newer = isinstance(version.value, int) and version.value > 1
            self.found.add(
                version.where,
                f"version: 1 is expected, got {described(version.plain())}",
                "this setup is for a newer reconciler" if newer else "write version: 1",
            )

    def _name(self, root: Node) -> str:
        name = root.get("name")
        if name is None:
            self.found.add(
                root.where_key("name"), "name is needed: the owner of what is declared here", "write name: solo"
            )
        elif not isinstance(name.value, str) or not NAME.match(name.value):
            self.found.add(name.where, f"name: {described(name.plain())} is no name", "a-z, 0-9, _, . and -, up to 63")
        else:
            return name.value
        return ""

    def _formerly(self, root: Node) -> tuple[str, ...]:
        node = root.get("formerly")
        return tuple(self._texts(node, "formerly")) if node is not None else ()

    def _texts(self, node: Node, what: str) -> list[str]:
        try:
            return names(node.plain())
        except Refusal as refusal:
            self.found.add(node.descend(refusal.path).where, f"{what}: {refusal.message}", refusal.hint)
            return []

    def _collect(self, root: Node) -> None:
        """Homes, templates, places and secrets of one file; a key that another file has names both."""
        for name, said in read_sources(root.get("secrets"), "secrets", self.found).items():
            if name in self.secrets:
                at, first = said[1].where, self.secrets[name][1].where
                self.found.add(at, f"secrets: {name} stands in {first} already", "one name, one place to look")
            else:
                self.secrets[name] = said
        for what, into in (("homes", self.homes), ("templates", self.templates), ("places", self.places)):
            node = root.get(what)
            if node is None or not is_map(node, what, self.found):
                continue
            self.saw_homes = self.saw_homes or (what == "homes" and bool(node.value))
            for key, child in node.value.items():
                where = node.where_key(key)
                if not NAME.match(key):
                    self.found.add(where, f"{what}: {shown(key)} is no name", "a-z, 0-9, _, . and -, up to 63")
                if key in into:
                    first = into[key][1]
                    self.found.add(
                        where, f"{what}: {shown(key)} stands in {first} already", "one name, one place to look"
                    )
                elif child.is_null:
                    self.found.add(where, f"{what}: {shown(key)} is empty", "take the line away, or fill it")
                elif is_map(child, f"{what} {key}", self.found):
                    into[key] = (child, where)

    def _place(self, name: str, node: Node, where: Where) -> Place | None:
        what = f"places {name}"
        check_keys(node, ("exec", "host"), what, self.found)
        command, host = node.get("exec"), node.get("host")
        if command is not None and host is not None:
            self.found.add(where, f"{what}: exec or host, not both")
            return None
        if command is not None:
            argv = command.plain()
            if command.kind != "seq" or not argv or not all(isinstance(a, str) and a for a in argv):
                self.found.add(
                    command.where,
                    f"{what} exec: a list of texts is expected",
                    "write exec: [docker, compose, exec, -T, hermes]; quote numbers",
                )
                return None
            return Place(exec=tuple(argv))
        if host is not None:
            if not isinstance(host.value, str) or not host.value.strip():
                self.found.add(host.where, f"{what} host: a machine's name is expected")
                return None
            return Place(host=host.value)
        return Place()

    # --- homes and templates ---

    def _check_template(self, name: str, node: Node) -> None:
        what = f"templates {name}"
        for key in NOT_IN_TEMPLATE & node.value.keys():
            self.found.add(node.where_key(key), f"{what}: {shown(key)} is a home's own, not a template's")
        check_keys(node, HOME_FIELDS, what, self.found)
        self._template(name, ())

    def _check_unused(self, name: str) -> None:
        """The keys of a template that no home extends; of the others the homes show every fault."""
        profiles = self.templates[name][0].get("profiles")
        for profile, node in profiles.items() if profiles is not None else ():
            what = f"templates {name} {profile}"
            if not is_map(node, what, self.found):
                continue
            check_keys(node, (*PROFILE_FIELDS, *THING_KEYS), what, self.found)
            tables = ((kind.value, table.written) for kind, table in TABLES.items())
            for key, fields in (("jobs", job.FIELDS), ("files", file.FIELDS), *tables):
                things = node.get(key)
                for thing, child in things.items() if things is not None else ():
                    if is_map(child, f"{what}/{key}/{thing}", self.found):
                        check_keys(child, (*fields, *THING_KEYS), f"{what}/{key}/{thing}", self.found)

    def _template(self, name: str, open_: tuple[str, ...]) -> Node | None:
        """A template with all that it extends below it, every node marked with where it came by."""
        if name not in self.expanded:
            node, where = self.templates[name]
            if name in open_:
                ring = " → ".join((*open_[open_.index(name) :], name))
                self.found.add(where, f"templates {name}: extends itself ({ring})")
                return None
            own = node.copy(f"template {name}")
            self.expanded[name] = self._extended(own, f"templates {name}", (*open_, name))
        return self.expanded[name]

    def _extended(self, node: Node, what: str, open_: tuple[str, ...] = ()) -> Node | None:
        """`node` on what it extends; None if that is wrong: what is missing in it then is no fault of its own."""
        bases = node.get("extends")
        if bases is None:
            return node
        merged: Node | None = None
        wrong = False
        for i, name in enumerate(self._texts(bases, f"{what} extends")):
            if name not in self.templates:
                self.found.add(
                    bases.descend((i,)).where,
                    f"{what} extends: there is no template {shown(name)}",
                    did_you_mean(name, self.templates) if self.templates else "declare it in templates",
                )
                wrong = True
                continue
            self.used.add(name)
            template = self._template(name, open_)
            if template is None:
                wrong = True
            else:
                merged = template if merged is None else merge(merged, template)
        if wrong:
            return None
        return node if merged is None else merge(merged, node)

    def _home(
        self,
        home_id: str,
        node: Node,
        where: Where,
        policy: Policy,
        places: Mapping[str, Place | None],
        parameters: Parameters,
    ) -> Home | None:
        bases = node.get("extends")
        extends = tuple(v for v in bases.plain() if isinstance(v, str)) if bases and bases.kind == "seq" else ()
        merged = self._extended(node, home_id)
        if merged is None:
            return None
        if self.uses_parameters:
            merged = _without(merged, "with")
            merged = parameters.resolve(merged)
        return read_home(merged, home_id, where, policy, places, extends, self.secrets, self.sources, self.found)

    def _one_home_twice(self, homes: Mapping[str, Home]) -> None:
        """Rule 8, as far as the text tells; whether links lead two paths together is seen when they are observed."""
        seen: dict[tuple[object, ...], Home] = {}
        for home in homes.values():
            path = os.path.normpath(os.path.expanduser(home.path) if home.at is None else home.path)  # noqa: PTH111
            other = seen.setdefault((home.at, home.host, path), home)
            if other is not home:
                self.found.add(
                    home.where,
                    f"{home.id} and {other.id} ({other.where}) are one physical home: {shown(home.path)}",
                    "declare it once",
                )


@contextmanager
def _no_collector() -> Iterator[None]:
    """Loading makes many small objects and no garbage: the cyclic collector would double its time on a large setup."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _without(node: Node, key: str) -> Node:
    if key not in node.value:
        return node
    new = Node("map", {k: v for k, v in node.value.items() if k != key}, node.mark, node.file, via=node.via)
    new.keys = node.keys
    return new


_HOME_PREFIX = re.compile(r"^[^/\s:]+")


def _condensed(reasons: list[Reason]) -> list[Reason]:
    """Without the repetitions that a template's fault makes in every home that extends it."""
    kept: dict[tuple[Where, str, str], Reason] = {}
    for reason in reasons:
        kept.setdefault((reason.where, _HOME_PREFIX.sub("", reason.message), reason.hint), reason)
    return list(kept.values())
