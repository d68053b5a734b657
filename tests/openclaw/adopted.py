"""`adopt PATH` without its command: a home is taken as it is, and planned again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.adopt import adopt_home
from reconciler.draft import Draft, draft, survey
from reconciler.plan import HomePlan, Options
from reconciler.provider import Provider
from reconciler.workspace import Workspace
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup
from reconciler_state.local import LocalStore


def adopt(path: Path, folder: Path, provider: Provider, door: dict[str, Any]) -> tuple[Draft, Workspace]:
    """The home in a setup and in state of its own below `folder`."""
    found = survey(str(path), {provider.harness: provider})
    made = draft(found, "main", str(path), everything=True)
    made.block["door"] = door
    setup = load_text(render_setup("solo", {"main": made.block}), "setup.yaml", folder)
    space = Workspace(setup, LocalStore(folder / "state"), {provider.harness: provider})
    adopt_home(space, "main", ["main"], made.ids)
    return made, space


def plan(space: Workspace) -> HomePlan:
    """What apply would do next; empty is what an adopted home gives."""
    return space.plan(Options()).homes[0]
