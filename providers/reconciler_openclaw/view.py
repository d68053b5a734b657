"""One profile of a home as it was read: what the modules of the kinds make their things from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler_shape.hiding import Hider

from .authored import Authored
from .roster import Agent, Roster

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """`workspace` is the folder of the agent's files; `names` are the secrets that the home keeps, by name. `named`
    hides what is a secret by its key, its look or `.env`, `hider` also whatever else stands in an `env`."""

    profile: str
    agent: Agent
    roster: Roster
    config: Authored
    workspace: str
    hider: Hider
    named: Hider
    names: frozenset[str] = frozenset()

    @property
    def tree(self) -> Mapping[str, Any]:
        return self.config.tree

    @property
    def first(self) -> bool:
        """Whether it is the default profile, whose settings are the home's own."""
        return self.agent.id == self.roster.default


def look_up(tree: Any, path: Path) -> Any:
    """The value at a path of keys and list positions, None if a part of it is not there."""
    for step in path:
        if isinstance(tree, Mapping):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree
