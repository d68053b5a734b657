"""Settings: values of openclaw.json by their dotted path.

The default profile's are the home's own; another profile's are those of its agent's entry (`tools.profile` of profile
`ops` is `agents.entries.ops.tools.profile`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.observe import Observed, Things, Unknown
from reconciler_shape import dotted
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import digest, holds_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import inference, kinds, secretrefs, webhooks
from .roster import Roster
from .view import Path, View, look_up

SECURITY = (
    "accessGroups", "acp", "approvals", "auth", "bindings", "browser", "channels", "commands", "cron", "desktop", "env",
    "gateway", "hooks", "mcp", "nodeHost", "plugins", "sandbox", "secrets", "security", "session", "skills",
    "subagents", "surfaces", "tools", "agents.defaults.sandbox", "agents.defaults.subagents", "agents.entries",
)  # fmt: skip
"""What decides who may do what, or runs code; looser cannot be told from tighter."""

_OWN_MARKS = ("meta", "wizard", "$schema", "$include")
_MODELS = ("model", *inference.TASKS.values())


def split(key: str, roster: Roster, profile: str) -> Path:
    """Where a setting stands in openclaw.json. Raises dotted.BadKey."""
    path: Path = dotted.split(key)
    agent = roster.agent(profile)
    if agent.id != roster.default:
        return (*agent.path, *path)
    # The default agent's entry has no profile of its own besides; a list has it by position.
    if path[:3] == ("agents", "entries", agent.id):
        return (*agent.path, *path[3:])
    return path


def owned(path: Path, roster: Roster, profile: str) -> str:
    """Why a path is no plain setting, "" if it is one."""
    first = profile == roster.profiles[0]
    why = kinds.owned(path, roster.agent(profile).path)
    if why:
        return why
    if path[0] in _OWN_MARKS:
        return f"{path[0]} is OpenClaw's own mark"
    if path[:2] == inference.PROVIDERS and len(path) == 4 and path[3] in inference.PROVIDER.values():
        return f"{'.'.join(map(str, path))} belongs to inference: say it with the model there"
    if path[:2] == ("agents", "defaults") and len(path) > 2 and path[2] in _MODELS:
        return f"agents.defaults.{path[2]} belongs to inference: declare it there"
    if path == ("agents",) or path[:2] == ("agents", "ownership"):
        return "the roster of agents belongs to the profiles"
    if path[:2] in (("agents", "entries"), ("agents", "list")):
        entry = roster.agent(profile).path
        if path[: len(entry)] != entry or len(path) == len(entry):
            return "agents are profiles: declare it there, with settings of its own"
        name = path[len(entry)]
        if name in ("id", "default", "description"):
            return f"{name} of an agent belongs to its profile"
        if name in _MODELS and (name == "model" or not first):
            return f"{name} of an agent belongs to inference: declare it there"
    return ""


def refusal(key: str, tree: Mapping[str, Any], roster: Roster, profile: str) -> str:
    """Why `key` cannot be a setting here, "" if it can."""
    try:
        path = split(key, roster, profile)
    except dotted.BadKey as error:
        return str(error)
    why = owned(path, roster, profile)
    if why:
        return why
    for at in range(1, len(path)):
        here = look_up(tree, path[:at])
        if here is not None and not isinstance(here, Mapping) and not isinstance(path[at], int):
            kind = "list" if isinstance(here, list) else "single value"
            return f"{'.'.join(map(str, path[:at]))} is a {kind} in openclaw.json: declare it as a whole"
    return ""


def read(view: View, wanted: Sequence[str], everything: bool) -> Things | Unknown:
    """The wanted settings that are there; with `everything`, all that no other kind stands for."""
    if view.config.unknown:
        return view.config.unknown
    things = {}
    for key, path in _paths(view, wanted, everything).items():
        value = look_up(view.tree, path)
        if value is None:
            continue
        under = str(path[-1])
        inside = any(step in ("headers", "env") for step in path[:-1])
        seen = secretrefs.hidden(secretrefs.named(value, under), view.hider, under, inside)
        things[key] = Observed(
            Kind.SETTING,
            view.profile,
            key,
            {"value": seen},
            name=key,
            fingerprint=digest(value, view.hider.key),
        )
    return things


def _paths(view: View, wanted: Sequence[str], everything: bool) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for key in wanted:
        try:
            path = split(key, view.roster, view.profile)
        except dotted.BadKey:
            continue  # `canon` refuses it, with the reason
        if not owned(path, view.roster, view.profile):
            found[key] = path
    shared = webhooks.TOKEN if any(True for _ in webhooks.mappings(view.tree)) else ()
    for key, path in _leaves(view) if everything else ():
        if path == shared and key not in wanted:
            continue  # it is the secret of the webhooks
        if path not in found.values() and not owned(path, view.roster, view.profile):
            found[key] = path
    return found


def _leaves(view: View) -> Iterator[tuple[str, Path]]:
    """Every value of the profile's own part of the config, by its key in a setup and its path."""
    entry = view.agent.path
    if view.first:
        rest = {key: value for key, value in view.tree.items() if key != "agents"}
        yield from ((dotted.join(path), path) for path in dotted.leaves(rest))
        agents = view.tree.get("agents")
        if isinstance(agents, Mapping):
            others = {"agents": {k: v for k, v in agents.items() if k not in ("entries", "list")}}
            yield from ((dotted.join(path), path) for path in dotted.leaves(others))
    for path in dotted.leaves(view.agent.entry):
        name = ("agents", "entries", view.agent.id, *path) if view.first else path
        yield dotted.join(name), (*entry, *path)


def express(thing: Observed) -> Json:
    """The setting's value, None where it holds something that a setup must not, or cannot, say."""
    value = thing.get("value")
    if isinstance(value, Unknown) or is_hidden(value) or holds_native(value):
        return None
    return value
