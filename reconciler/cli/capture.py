"""`reconciler capture` and `reconciler release`: the other two answers to what a home shows."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import File, State


def register(app: typer.Typer) -> None:
    app.command("capture")(capture)
    app.command("release")(release)


def capture(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="TARGET...", help="What to take from the home: an address, prefix, glob, or A#field."),
    ],
    file: File = None,
    state: State = None,
) -> int:
    """Write the home's value into the setup, comments kept. Touches no home."""
    from ..capture import capture as take
    from .common import check_known, check_targets, setup_path, workspace
    from .render.style import out, safe

    space = workspace(file, state)
    check_targets(space, targets)
    taken = take(space, targets, lambda: workspace(setup_path(file), state))
    for item in taken:
        out(f"  captured {safe(item.address)}#{item.field} → {safe(item.where)}")
    if not taken:
        check_known(space, targets)
        out("Nothing to capture: none of these differs from the setup.")
    return 0


def release(
    targets: Annotated[
        list[str], typer.Argument(metavar="TARGET...", help="What to let go of: an address, prefix or glob.")
    ],
    file: File = None,
    state: State = None,
) -> int:
    """Let go of things: forget that we own them. Touches no home."""
    from ..capture import release as let_go
    from .common import check_known, check_targets, workspace
    from .render.style import out, safe

    space = workspace(file, state)
    check_targets(space, targets)
    gone = let_go(space, targets)
    for address in gone:
        declared = address in space.desired(address.home)
        hint = "  (still declared: take it out of the setup, or add it to `released:`)" if declared else ""
        out(f"  released {safe(str(address))}{hint}")
    if not gone:
        check_known(space, targets)
        out("Nothing to release: none of these is owned by this setup.")
    return 0
