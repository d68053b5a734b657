"""Agents as OpenClaw's config has them, `agents.list` (7.1) or `agents.entries` (9.6), as one roster.

An agent is a profile. The default one is the profile `default`, whatever its id (S0-15).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import home

MAIN = "main"
"""The agent that a config without a roster has."""

_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Agent:
    """`path` leads to its entry: in a list the last step is a number, and -1 where it has none yet."""

    id: str
    entry: Tree = field(default_factory=dict)
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Roster:
    """`form` is `list` or `entries`: how this config has it, or would get it. `default` is the default agent's id.
    `notes` name the entries that cannot be profiles."""

    form: str
    agents: Mapping[str, Agent]
    default: str
    notes: tuple[str, ...] = ()

    @property
    def profiles(self) -> list[str]:
        """The profiles' names, the default one first."""
        return [home.DEFAULT, *(name for name in self.agents if name != self.default)]

    def agent(self, profile: str) -> Agent:
        """A profile's agent; one that is not there yet has an empty entry."""
        name = self.default if profile == home.DEFAULT else profile
        return self.agents.get(name) or Agent(name, {}, self._path(name, -1))

    def profile(self, agent: str) -> str:
        """The profile that an agent's id, as a job or a binding has it, stands for."""
        return home.DEFAULT if agent in ("", self.default) else agent

    def _path(self, name: str, index: int) -> tuple[str | int, ...]:
        return ("agents", "entries", name) if self.form == "entries" else ("agents", "list", index)


def read(tree: Tree, version: str | None) -> Roster:
    """The roster of a config. `version` decides the form where the config has neither."""
    agents = _map(tree.get("agents"))
    notes: list[str] = []
    if isinstance(agents.get("entries"), Mapping):
        form = "entries"
        pairs = [(str(key), _map(entry), ("agents", "entries", str(key))) for key, entry in agents["entries"].items()]
    elif isinstance(agents.get("list"), Sequence) and not isinstance(agents.get("list"), str):
        form = "list"
        rows = [(index, _map(entry)) for index, entry in enumerate(agents["list"])]
        pairs = [(str(entry.get("id", "")), entry, ("agents", "list", index)) for index, entry in rows]  # type: ignore[misc]
    else:
        form = "list" if is_old(version) else "entries"
        pairs = []
    found: dict[str, Agent] = {}
    for key, entry, path in pairs:
        name = key.strip().lower()  # OpenClaw: `normalizeAgentId`
        if name in found:
            notes.append(f"two agents have the id {name}; OpenClaw goes by the first")
        elif name:
            found[name] = Agent(name, entry, path)
    default = _default(found, agents)
    roster = Roster(form, found, default)
    for name in list(found):
        if name != default and (name == home.DEFAULT or not _PROFILE.fullmatch(name)):
            notes.append(f"agent {name} cannot be a profile (its name); it is left alone")
            del found[name]
    if default not in found:
        found[default] = Agent(default, {}, roster._path(default, -1))
    return Roster(form, found, default, tuple(notes))


def _default(found: Mapping[str, Agent], agents: Tree) -> str:
    """Flagged `default`, else the one that 9.6 recorded when it took the flag away, else the first, else `main`."""
    flagged = [name for name, agent in found.items() if agent.entry.get("default") is True]
    recorded = str(_map(_map(agents.get("defaults")).get("systemAgent")).get("agentId") or "").lower()
    if flagged:
        return flagged[0]
    return recorded if recorded in found else next(iter(found), MAIN)


def workspace(tree: Tree, roster: Roster, agent: Agent, root: str, user: str, version: str | None) -> str:
    """Where an agent's files (SOUL.md …) lie: its own `workspace`, else one below that of the defaults, else OpenClaw's
    own place (`resolveAgentWorkspaceDir`; measured with `agents.list`).

    `user` is the home directory of the user. Only one agent has the shared folder itself, every other one a folder of
    its own: the default one in 7.1, the only one in 9.6, which writes it down when a second agent comes.
    """
    own, shared = agent.entry.get("workspace"), _map(_map(tree.get("agents")).get("defaults")).get("workspace")
    if isinstance(own, str) and own.strip():
        return _absolute(own.strip(), user)
    first = agent.id == roster.default and (is_old(version) or len(roster.agents) == 1)
    if isinstance(shared, str) and shared.strip():
        common = _absolute(shared.strip(), user)
        return common if first else posixpath.join(common, agent.id)
    if not first:
        return posixpath.join(root, f"workspace-{agent.id}")
    return posixpath.join(user, ".openclaw", "workspace") if is_old(version) else posixpath.join(root, "workspace")


def is_old(version: str | None) -> bool:
    """Whether this version keeps its agents in a list, and its default workspace outside the state directory."""
    return () < home.version(version) < (2026, 8)


def _absolute(path: str, user: str) -> str:
    return posixpath.normpath(user + path[1:] if path == "~" or path.startswith("~/") else posixpath.join(user, path))


def _map(value: Any) -> Tree:
    return value if isinstance(value, Mapping) else {}
