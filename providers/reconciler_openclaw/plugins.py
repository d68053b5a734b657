"""Plugins: `plugins.entries.ID.enabled` and `.config`; what else an entry has are settings. OpenClaw has them for all
agents, and installs them itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from reconciler_specs.table import named_in

from . import terms
from .edits import GONE, Config, Edit, changes_of, differences, seen
from .view import Path, View, look_up

ROOT: Path = ("plugins", "entries")
_OWN = ("enabled", "config")


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    why = "plugins.entries belong to the plugins: declare them as plugins: {ID: {enabled: …}}"
    return why if terms.in_table(path, ROOT, _OWN) else ""


def paths(key: str, agent: Path) -> list[Path]:
    return [(*ROOT, key)]


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    found = {}
    for key, entry in terms.table(view.tree, *map(str, ROOT)).items():
        if not view.first or not isinstance(entry, Mapping) or not (everything or key in wanted):
            continue
        own = {word: entry[word] for word in _OWN if word in entry}
        if not own:
            continue
        fields: dict[str, Json] = {"enabled": own["enabled"]} if "enabled" in own else {}
        if own.get("config"):
            fields["config"] = terms.read(own["config"], view.hider)
        mark = digest(own, view.hider.key)
        found[key] = Observed(Kind.PLUGIN, view.profile, key, fields, key, fingerprint=mark)
    return found


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    """Without `enabled` OpenClaw decides by itself, which no setup can say."""
    if not isinstance(thing.get("enabled"), bool):
        return {}
    more = terms.sayable(thing.get("config")) if "config" in thing.fields else None
    return {"enabled": thing.fields["enabled"], **({"config": more} if more else {})}


def canon(resource: Resource, near: terms.Near) -> Canon:
    why = terms.of_home("plugins", resource.address.profile)
    held = near.missing(named_in(resource.fields.get("config")))
    return Canon(dict(resource.fields), refused={"": why} if why else {}, held=held)


def edits(action: Action, config: Config) -> Iterator[Edit]:
    path: Path = (*ROOT, action.address.key)
    if action.row is Row.DELETE:
        entry = look_up(config.authored.tree, path) or {}
        if set(entry) <= set(_OWN):
            yield path, GONE
        else:
            yield from (((*path, word), GONE) for word in _OWN if word in entry)
        return
    for change in changes_of(action):
        place = (*path, change.field)
        if change.write is CLEAR:
            yield place, GONE
        else:
            yield from differences(place, seen(change), change.write, config)


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    rows = {change.field: change for change in changes_of(action)}
    found = {Fact.RUNS_CODE} if "enabled" in rows and rows["enabled"].write is not False else set()
    return found | ({Fact.LOOSENS_SECURITY} if "config" in rows else set())
