"""`reconciler plan`: what apply would do. It only reads (L18)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Allow, File, Json, State, Targets, Undo

if TYPE_CHECKING:
    from ..plan import Plan


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


def plan(
    targets: Targets = None,
    out: Annotated[Path | None, typer.Option("--out", help="Save the plan, for `apply --plan`.")] = None,
    unmanaged: Annotated[bool, typer.Option("--unmanaged", help="List what nobody declared, too.")] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="2: would write; 3: something is held.")
    ] = False,
    restore: Annotated[list[str] | None, typer.Option("--restore", help="Plan to put TARGET back.")] = None,
    undo: Undo = "",
    allow: Allow = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what is only recorded, too.")] = False,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Show what apply would do to each home."""
    from ..plan import Options
    from .common import check_guards, check_selected, check_targets, check_undo, workspace
    from .render.style import out as line

    space = workspace(file, state)
    options = Options(
        targets=check_targets(space, targets or []),
        restore=check_targets(space, restore or []),
        allow=check_guards(allow or []),
        unmanaged=unmanaged,
        undo=check_undo(space, undo),
    )
    made = space.plan(options)
    check_selected(made, (*options.targets, *options.restore))
    if out is not None:
        from datetime import UTC, datetime

        from ..planfile import write

        write(out, made, datetime.now(UTC), space.caller().run)
    if json:
        from .render.json import plan_json

        line(plan_json(made))
    else:
        import sys

        from .render.plan import plan_text
        from .render.style import Style

        for text in plan_text(made, Style(sys.stdout), verbose=verbose):
            line(text)
        if out is not None:
            again = f" --undo {options.undo}" if options.undo else ""
            line(f"Saved to {out}; carry it out with: reconciler apply{again} --plan {out}")
    return code(made, detailed=detailed)


def code(made: Plan, *, detailed: bool) -> int:
    """The exit code of a plan (laws): a home that failed or a refused row is 4 whatever the flag says."""
    from ..action import Row
    from ..event import exit_code

    codes = {0}
    for home in made.homes:
        if home.failed or any(a.row is Row.REFUSED for a in home.actions):
            codes.add(4)
        if detailed:
            held = home.hold or any(a.hold is not None or a.held_fields for a in home.actions)
            codes.add(3 if held else 0)
            codes.add(2 if any(a.writes for a in home.open) else 0)
    return exit_code(codes)
