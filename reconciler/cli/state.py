"""`reconciler state list|repair|migrate`: the record of what was applied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import File, Json, State
from .group import Group

if TYPE_CHECKING:
    from reconciler_state.local import LocalStore


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Group, no_args_is_help=True, rich_markup_mode=None, help="Look at, repair and move what was recorded."
    )
    group.command("list")(list_homes)
    group.command("repair", short_help="Set damaged files aside; settle what was cut off.")(repair)
    group.command("migrate", short_help="Copy state between local folder and branch.")(migrate)
    app.add_typer(group, name="state")


def _store(file: Path | None, state: Path | None) -> LocalStore:
    """The store of the setup, where there is one; else the local folder. Raises SpecError."""
    from reconciler_specs.load import load
    from reconciler_state.local import LocalStore

    from ..errors import UsageError
    from ..stores import store_of
    from .common import setup_path, state_dir

    try:
        path = setup_path(file)
    except UsageError:
        return LocalStore(state_dir(state))
    return store_of(load(path), state_dir(state))


def list_homes(json: Json = False, file: File = None, state: State = None) -> int:
    """The homes that have state: who owns how much of each."""
    from .render.state import list_json, list_text
    from .render.style import out

    store = _store(file, state)
    for line in [list_json(store)] if json else list_text(store):
        out(line)
    return 0


def repair(
    home: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="The path of a home whose state is damaged (default: all).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without it, only say what would be done.")] = False,
    file: File = None,
    state: State = None,
) -> int:
    """Set damaged state files aside (nothing is deleted) and settle what runs that were cut off have left open."""
    from .render.style import out, safe

    found = _store(file, state).repair(home, do=yes)
    for step in (*found.aside, *found.left):
        out(safe(step))
    if not found.aside:
        out("Nothing to repair.")
    elif not yes:
        out("Nothing was done; to do it: reconciler state repair --yes")
    return 1 if found.left else 0


def migrate(
    to: Annotated[
        str, typer.Option("--to", metavar="WHERE", help="git: from the local folder to the branch; local: back.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without it, only say what would be done.")] = False,
    file: File = None,
    state: State = None,
) -> int:
    """Copy the setup's state between the local folder and its branch. What it is copied from stays."""
    from reconciler_specs.load import load
    from reconciler_state.local import LocalStore

    from ..errors import UsageError
    from ..migrate import migrate as copy
    from ..stores import shared_store
    from .common import setup_path, state_dir
    from .render.state import migrated_text
    from .render.style import out

    if to not in ("git", "local"):
        raise UsageError(f"--to {to}: not a place for state", hint="--to git or --to local")
    setup = load(setup_path(file))
    if setup.state.backend != "git":
        raise UsageError(f"{setup.root.name} names no branch", hint="write state: {backend: git} first")
    local, shared = LocalStore(state_dir(state)), shared_store(setup, state_dir(state))
    source, target = (local, shared) if to == "git" else (shared, local)
    homes = []
    for home in copy(setup, source, target, do=yes):
        homes.append(home)
        for line in migrated_text(home):
            out(line)
    if not homes:
        out(f"Nothing of {setup.name} is in {source.where}.")
    elif any(home.done for home in homes):
        after = "the setup may be used" if to == "git" else "take `state:` out of the setup"
        out(f"{source.where} still has its copy; from now on {target.where} counts: {after}.")
    elif not yes and any(not home.refused for home in homes):
        out(f"Nothing was done; to do it: reconciler state migrate --to {to} --yes")
    return 4 if any(home.refused for home in homes) else 0
