"""Skills: `skills.entries.NAME.enabled`, for all agents; what else an entry has are settings.

A skill's own files are files of a workspace (`files: skills/NAME/SKILL.md`): that is where OpenClaw looks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource

from . import terms
from .edits import GONE, Config, Edit, changes_of
from .view import Path, View, look_up

ROOT: Path = ("skills", "entries")
_OWN = "enabled"


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    why = "skills.entries belong to the skills: declare them as skills: {NAME: {enabled: …}}"
    return why if terms.in_table(path, ROOT, (_OWN,)) else ""


def paths(key: str, agent: Path) -> list[Path]:
    return [(*ROOT, key, _OWN)]


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    found = {}
    for key, entry in terms.table(view.tree, *map(str, ROOT)).items():
        on = entry.get(_OWN) if isinstance(entry, Mapping) else None
        if view.first and isinstance(on, bool) and (everything or key in wanted):
            mark = digest(on, view.hider.key)
            found[key] = Observed(Kind.SKILL, view.profile, key, {_OWN: on}, key, fingerprint=mark)
    return found


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Any]:
    return dict(thing.fields)


def canon(resource: Resource, near: terms.Near) -> Canon:
    key, refused = resource.address.key, {}
    if "content" in resource.fields:
        refused["content"] = f"OpenClaw reads a skill from a workspace: declare it as files: skills/{key}/SKILL.md"
    why = terms.of_home("skills", resource.address.profile)
    return Canon(dict(resource.fields), refused={"": why} if why else refused)


def edits(action: Action, config: Config) -> Iterator[Edit]:
    path: Path = (*ROOT, action.address.key)
    if action.row is Row.DELETE:
        entry = look_up(config.authored.tree, path) or {}
        yield path if set(entry) <= {_OWN} else (*path, _OWN), GONE
        return
    for change in changes_of(action):
        yield (*path, _OWN), GONE if change.write is CLEAR else change.write


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    """A skill may bring programs along."""
    on = any(change.write is not False for change in changes_of(action))
    return {Fact.RUNS_CODE} if on else set()
