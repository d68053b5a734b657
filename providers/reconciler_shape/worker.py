"""A profile's worker in the block `worker:` of its config.yaml: its form, and what a change of it does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.action import CLEAR, Action, Fact
from reconciler.observe import Unknown
from reconciler_specs.secrets import looks_secret, secret_key
from reconciler_specs.shape import Json

from . import dotted, security
from .hiding import Hider, is_hidden
from .shaped import by_reference

FIELD = "worker"
"""The profile's field, and the block's name in the file."""
_RUNS = ("harness", "preset", "cwd", "env")


def canonical(value: Mapping[str, Json]) -> tuple[dict[str, Json], set[str]]:
    """A declared worker as the file holds it, and the secrets that it names."""
    found, names = dotted.referenced(dict(value))
    return found, names


def observed(raw: Mapping[str, Any], hider: Hider) -> Json | Unknown | None:
    """The worker in a config, None if it names none. A process's environment is texts, whatever YAML makes of them."""
    block = raw.get(FIELD)
    if block is None:
        return None
    if not isinstance(block, dict):
        return Unknown(f"{FIELD} is no mapping")
    found = {key: value for key, value in block.items() if value is not None}
    env = found.get("env")
    if isinstance(env, dict):
        found["env"] = {
            key: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
            for key, value in env.items()
        }
    shown: Json = hider.value(found)
    return shown


def facts(action: Action) -> set[Fact]:
    """What a written worker would do: its program, folder and environment are code that runs here."""
    found: set[Fact] = set()
    for change in action.changes:
        if change.field != FIELD or not change.writes:
            continue
        old = change.observed if isinstance(change.observed, dict) else {}
        new = {} if change.write is CLEAR or not isinstance(change.write, dict) else change.write
        if any(old.get(key) != new.get(key) for key in _RUNS):
            found.add(Fact.RUNS_CODE)
        if security.loosens("worker.permission", old.get("permission", {}), new.get("permission", {}), (FIELD,)):
            found.add(Fact.LOOSENS_SECURITY)
        env, before = new.get("env"), old.get("env")
        for key, text in env.items() if isinstance(env, dict) else ():
            same = isinstance(before, dict) and before.get(key) == text
            if not same and isinstance(text, str) and not text.startswith("${"):
                found |= {Fact.SECRET_IN_CLEAR} if looks_secret(text) or secret_key(key) else set()
    return found


def express(value: Json) -> Json | None:
    """A worker as a setup says it, None if it cannot without a secret."""
    if not isinstance(value, dict) or is_hidden(value):
        return None
    env = value.get("env")
    said = {**value, **({"env": by_reference(env)} if isinstance(env, dict) else {})}
    return said if isinstance(said.get("harness"), str) else None


def kept(new: Json, old: Json) -> Json:
    """A value to write with what is hidden in it left as it stands."""
    if isinstance(new, dict):
        if is_hidden(new) and "$hidden" in new:
            return old
        before = old if isinstance(old, dict) else {}
        return {key: kept(item, before.get(key)) for key, item in new.items()}
    return new
