"""Skills of a Hermes-shaped home: members of `skills.disabled`, and folders with a SKILL.md. Reading only.

The form of a folder is told in `skillfolder`, which writes it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from reconciler.action import Action, FieldRow, Row
from reconciler.errors import ProviderError
from reconciler.observe import ABSENT, Absent, Observation, Observed, Store, Things, Unknown
from reconciler.place import Place
from reconciler.provider import Canon
from reconciler_specs.address import Kind
from reconciler_specs.folder import digest
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import parts, places, skillfolder
from .hiding import Hider

DISABLED = ["skills", "disabled"]


def read(
    place: Place,
    folder: str,
    below: Sequence[str],
    profile: str,
    raw: Mapping[str, Json],
    wanted: Sequence[str],
    everything: bool,
    hider: Hider,
) -> Things | Unknown:
    """The wanted skills, with a digest of what is in them; with `everything`, all others too, without one."""
    if not wanted and not everything:
        return {}
    listed = parts.at(raw, DISABLED)
    if listed is not None and not isinstance(listed, list):
        return Unknown("skills.disabled in config.yaml is no list")
    try:
        return _read(place, folder, below, profile, set(parts.members(raw, DISABLED)), wanted, everything, hider)
    except ProviderError as error:
        return Unknown(str(error))  # a folder that cannot be looked at


def _read(
    place: Place,
    folder: str,
    below: Sequence[str],
    profile: str,
    off: set[str],
    wanted: Sequence[str],
    everything: bool,
    hider: Hider,
) -> Things | Unknown:
    for top in below:
        stat = places.lstat(place, posixpath.join(folder, top))
        if isinstance(stat, Unknown) or (stat is not None and stat.kind == "link"):
            return stat if isinstance(stat, Unknown) else Unknown(f"{top}: {skillfolder.LINK}")
    found = _folders(place, folder, below)
    things = {}
    for name in sorted({*wanted, *(found.keys() | off if everything else ())}):
        thing = _one(place, folder, profile, name, found.get(name, []), name in off, name in wanted, hider)
        if thing is not None:
            things[name] = thing
    return things


def _one(
    place: Place, home: str, profile: str, name: str, folders: Sequence[str], off: bool, whole: bool, hider: Hider
) -> Observed | None:
    if not folders and not off:
        return None
    fields: dict[str, Json | Unknown] = {"enabled": not off}
    files: dict[str, str] | str | None = None
    if len(folders) > 1:
        why = Unknown(f"{len(folders)} folders are called {name}: {', '.join(folders)}")
        fields = dict.fromkeys(("enabled", "content"), why)
    elif folders:
        files = _files(place, posixpath.join(home, folders[0])) if whole else ""
        if isinstance(files, dict):
            fields["content"] = digest(files)
            called = skillfolder.called(files[skillfolder.SKILL])
            if called and called != name:
                fields["enabled"] = Unknown(
                    f"{folders[0]}: its {skillfolder.SKILL} says `name: {called}`, which counts"
                )
        elif whole:
            fields["content"] = Unknown(f"{folders[0]}: {files}")
    return Observed(
        Kind.SKILL,
        profile,
        name,
        fields,
        name=name,
        defaults=frozenset() if off else frozenset({"enabled"}),
        fingerprint=skillfolder.fingerprint(folders[0] if folders else "", files, off, hider.key),
    )


def _folders(place: Place, home: str, below: Sequence[str]) -> dict[str, list[str]]:
    """The folders with a SKILL.md by name, as paths relative to the home; so are links, which are no skill of ours."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for top in below for path in _walk(place, home, top)):
        found.setdefault(posixpath.basename(path), []).append(path)
    return found


def _walk(place: Place, home: str, here: str) -> Iterator[str]:
    names = places.names(place, posixpath.join(home, here))
    if skillfolder.SKILL in names:
        yield here
    skip = skillfolder.NOT_SKILLS | (skillfolder.SUPPORT if skillfolder.SKILL in names else frozenset())
    for name in names:
        stat = None if name in skip else places.lstat(place, posixpath.join(home, here, name))
        if isinstance(stat, Unknown) or stat is None or stat.kind not in ("dir", "link"):
            continue
        path = posixpath.join(here, name)
        if stat.kind == "dir":
            yield from _walk(place, home, path)
        elif skillfolder.SKILL in places.visible(place, posixpath.join(home, path)):
            yield path


def _files(place: Place, folder: str) -> dict[str, str] | str:
    """A skill's files, or why they cannot be told."""
    found: dict[str, str] = {}
    waiting = [""]
    if (stat := places.lstat(place, folder)) is None or isinstance(stat, Unknown) or stat.kind != "dir":
        return skillfolder.LINK
    while waiting:
        here = waiting.pop()
        for name in places.names(place, posixpath.join(folder, here)):
            path = posixpath.join(here, name)
            stat = places.lstat(place, posixpath.join(folder, path))
            if isinstance(stat, Unknown):
                return stat.reason
            if stat is not None and stat.kind == "dir":
                waiting += [] if name in skillfolder.IGNORED else [path]
                continue
            if len(found) >= skillfolder.MOST:
                return f"it holds more than {skillfolder.MOST} files"
            if stat is None or stat.kind != "file":
                return f"{path} is no regular file"
            if stat.size > skillfolder.LARGEST:
                return f"{path} is larger than {skillfolder.LARGEST >> 20} MiB"
            try:
                found[path] = place.read(posixpath.join(folder, path), skillfolder.LARGEST).decode("utf-8")
            except UnicodeDecodeError:
                return f"{path} is not UTF-8 text"
            except OSError as error:
                return f"{path}: {error.strerror or error}"
    return found


def store(kind: Kind, config: Store) -> Store:
    """The state of what holds things of a kind: config.yaml for all but skills, whose folders need none."""
    return Store.PROPER if kind is Kind.SKILL and config is not Store.IMPROPER else config


def canon(resource: Resource, observation: Observation) -> Canon:
    """A declared skill; held where only a switch is declared of one that is not there."""
    address, fields = resource.address, dict(resource.fields)
    refused: dict[str, str] = {}
    text = resource.options.get("files", {}).get(skillfolder.SKILL, "")
    called = skillfolder.called(text)
    if "content" in fields and called and called != address.key:
        refused["content"] = f"its {skillfolder.SKILL} says `name: {called}`: the harness would know it by that name"
    there: Observed | Absent | Unknown = observation.at(address.profile, Kind.SKILL, address.key)
    held = ""
    if there is ABSENT and "content" not in fields and fields.get("enabled") is True:
        held = f"the profile has no skill {address.key}; say `source` to bring it"
    return Canon(fields, refused=refused, held=held)


def express(thing: Observed) -> dict[str, Json]:
    """Its switch; what is in its folder has to lie beside a setup, and cannot be said in one."""
    on = thing.get("enabled")
    return {"enabled": on} if isinstance(on, bool) and "enabled" not in thing.defaults else {}


def written(action: Action) -> dict[str, Json]:
    """What an update or a create writes: `files` (None: they stay), `enabled` (None: it stays), and whether a copy of
    what is there is kept, since it is not what we wrote."""
    rows = {c.field: c for c in action.changes if action.row is not Row.UPDATE or c.writes}
    content, switch = rows.get("content"), rows.get("enabled")
    return {
        "files": dict(action.carries["files"]) if content is not None else None,
        "enabled": None if switch is None else switch.write is not False,
        "keep": content is not None and content.row in (FieldRow.CLAIM, FieldRow.RESTORE),
    }
