"""`reconciler state list|repair`: the record of what was applied."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Json, State


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at, and repair, what was recorded.")
    group.command("list")(list_homes)
    group.command("repair")(repair)
    app.add_typer(group, name="state")


def list_homes(json: Json = False, state: State = None) -> int:
    """The homes that have state: who owns how much of each."""
    from reconciler_state.local import LocalStore

    from .common import state_dir
    from .render.state import list_json, list_text
    from .render.style import out

    store = LocalStore(state_dir(state))
    for line in [list_json(store)] if json else list_text(store):
        out(line)
    return 0


def repair(
    home: Annotated[
        str | None, typer.Argument(help="The path of a home whose state is damaged (default: all).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without it, only say what would be done.")] = False,
    state: State = None,
) -> int:
    """Set damaged state files aside (nothing is deleted) and settle what runs that were cut off have left open."""
    from reconciler_state.local import LocalStore

    from .common import state_dir
    from .render.style import out, safe

    store = LocalStore(state_dir(state))
    found = store.repair(home, do=yes)
    for step in (*found.aside, *found.left):
        out(safe(step))
    if not found.aside:
        out("Nothing to repair.")
    elif not yes:
        out("Nothing was done; to do it: reconciler state repair --yes")
    return 1 if found.left else 0
