"""Values of openclaw.json that a setup says whole (`extra`, a plugin's `config`), and what a thing of the config has to
know of its home. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.observe import Observation
from reconciler.provider import Resolve
from reconciler_shape.hiding import HIDDEN, Hider, is_hidden
from reconciler_shape.plain import holds_native
from reconciler_specs.address import Address
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import home, roster, secretrefs
from .view import Path

NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,127}\Z")
"""What a setup can name a secret."""


@dataclass(frozen=True, slots=True)
class Near:
    """What surrounds a declared thing: the config as it is read (references by name, secrets hidden), the secrets that
    the home has or will have (None if that cannot be told), those of them that only OpenClaw's own store has, and
    all that the setup declares for the home."""

    profile: str
    tree: Mapping[str, Any]
    roster: roster.Roster
    names: frozenset[str] | None
    stored: frozenset[str] = frozenset()
    declared: Mapping[Address, Resource] = field(default_factory=dict)
    resolve: Resolve = lambda path: None

    def missing(self, names: Iterable[str], env_only: str = "") -> str:
        """Why a row that needs these secrets waits, "" if it need not; `env_only` is what takes a secret from the
        environment alone."""
        wanted = set(names)
        gone = sorted(wanted - self.names) if self.names is not None else []
        if gone:
            return f"the home has no secret {', '.join(gone)} (.env, env.vars or its secret store)"
        inside = sorted(wanted & self.stored) if env_only else []
        if inside:
            return (
                f"{', '.join(inside)} is in OpenClaw's secret store only, and {env_only} takes it from the environment"
            )
        return ""

    def elsewhere(self, resource: Resource) -> str:
        """Another profile that declares the same thing of the home, "" if none does."""
        here = resource.address
        for other in self.declared:
            if (other.kind, other.key) == (here.kind, here.key) and other.profile != here.profile:
                return other.profile
        return ""


def near(profile: str, observation: Observation, names: frozenset[str] | None, resolve: Resolve) -> Near:
    """What surrounds the things of a profile, out of a prepared observation."""
    facts = observation.facts
    tree: Mapping[str, Any] = facts.get("tree", {})
    stored = frozenset(facts.get("secret_store", ())) - frozenset(facts.get("environment", ()))
    declared = facts.get("declared", {}).get("things", {})
    return Near(profile, tree, roster.read(tree, facts.get("ran")), names, stored, declared, resolve)


def of_home(what: str, profile: str) -> str:
    """Why another profile cannot have what all agents share."""
    return (
        "" if profile == home.DEFAULT else f"OpenClaw has its {what} for all agents: declare them for profile default"
    )


def in_table(path: Path, root: Path, own: Collection[str] = ()) -> bool:
    """Whether a path is the table at `root`, what that lies in, or of an entry what the kind itself says: `own` of its
    keys, all of them where none are named."""
    return path == root[:1] or (path[:2] == root and (not own or len(path) < 4 or path[3] in own))


def table(tree: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path, {} where there is none."""
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, Mapping) else {}


def read(value: Any, hider: Hider, under: str = "") -> Json:
    """A value of the config as a setup says it."""
    return secretrefs.hidden(secretrefs.named(value, under), hider, under)


def sayable(value: Any) -> Json:
    """A value that was read without what a setup must not, or cannot, say; None if nothing is left."""
    if isinstance(value, Mapping):
        if set(value) == {"secret"}:
            return dict(value) if NAME.match(str(value["secret"])) else None
        if HIDDEN in value or any(str(key).startswith("$") for key in value):
            return None
        kept = {key: said for key, item in value.items() if (said := sayable(item)) is not None}
        return kept if kept or not value else None
    if isinstance(value, list):
        return None if is_hidden(value) or holds_native(value) else value
    return value
