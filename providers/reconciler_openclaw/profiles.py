"""Profiles: the agents of a home."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.observe import Observed, Unknown
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home
from .roster import MAIN
from .view import View

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def refusal(name: str) -> str:
    """Why OpenClaw would not take `name` as an agent's id, "" if it would."""
    if not _NAME.fullmatch(name):
        return f"{name}: OpenClaw takes small letters, digits, - and _ (at most 64)"
    return ""


def observed(view: View) -> Observed:
    """The agent with its description; what deleting it would take along keeps it (`holds`)."""
    if view.config.unknown:
        return Observed(Kind.PROFILE, "", view.profile, {"description": view.config.unknown}, name=view.profile)
    entry = view.agent.entry
    fields: dict[str, Json | Unknown] = {}
    text = entry.get("description")
    if isinstance(text, str) and text.strip():
        fields["description"] = view.hider.value(text.strip())
    about: dict[str, Json] = {"agent": view.agent.id, "workspace": view.workspace}
    identity = entry.get("identity")
    name = entry.get("name") or (identity.get("name") if isinstance(identity, Mapping) else None)
    if isinstance(name, str):
        about["called"] = view.hider.text(name)
    bound = bindings(view)
    if bound:
        about["holds"] = bound
    return Observed(
        Kind.PROFILE,
        "",
        view.profile,
        fields,
        name=view.profile,
        fingerprint=digest([entry, bound], view.hider.key),
        about=about,
    )


def bindings(view: View) -> list[str]:
    """The routes that lead to the agent: OpenClaw deletes them with it."""
    found = view.tree.get("bindings")
    names = []
    for item in found if isinstance(found, list) else ():
        if isinstance(item, Mapping) and str(item.get("agentId", "")).lower() == view.agent.id:
            names.append(f"the binding of {_matched(item.get('match'))}")
    return names


def _matched(match: Any) -> str:
    if not isinstance(match, Mapping):
        return "any channel"
    return " ".join(str(match[key]) for key in ("channel", "accountId") if match.get(key)) or "any channel"


def permanent(name: str, default: str) -> bool:
    """Whether an agent is never deleted: the default one, and `main`, which OpenClaw itself falls back to."""
    return name in (home.DEFAULT, MAIN, default)
