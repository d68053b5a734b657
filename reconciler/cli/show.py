"""`reconciler status` and `reconciler show`: how things stand, and one thing seen from all sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .common import File, Json, State, Targets

if TYPE_CHECKING:
    from ..action import Action
    from ..plan import Plan


def register(app: typer.Typer) -> None:
    app.command("status", short_help="Two letters per thing: the setup's side, the home's.")(status)
    app.command("show", short_help="One thing from all sides.")(show)


def status(
    targets: Targets = None,
    everything: Annotated[bool, typer.Option("--all", help="List what is in sync, too.")] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="3: a home is not as it was applied, or something is held.")
    ] = False,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Two letters per thing: the setup since the last apply, the home since the last apply."""
    from ..plan import Options
    from .common import check_selected, check_targets, workspace
    from .render.status import status_json, status_text
    from .render.style import out

    space = workspace(file, state)
    named = check_targets(space, targets or [])
    # Who asks for secrets wants to know of each how it stands, and not only of those that moved.
    secrets = any("secrets" in target.split("/") for target in named)
    made = space.plan(Options(targets=named, in_sync=everything or secrets or json))
    check_selected(made, named)
    for line in [status_json(made)] if json else status_text(made, everything=everything, secrets=secrets):
        out(line)
    return code(made, detailed=detailed)


def code(made: Plan, *, detailed: bool) -> int:
    """The exit code of a status: 4 as for a plan; with `detailed` 3 for drift and what is held, and never 2. What the
    setup alone has changed is no drift."""
    from .plan import code as of_plan

    drifted = detailed and any(
        home.hold or any(_drifted(action) for action in home.actions) for home in made.homes if not home.failed
    )
    return of_plan(made, detailed=False) or (3 if drifted else 0)


def _drifted(action: Action) -> bool:
    """Whether it is held, or puts back what somebody else has changed or taken away."""
    from ..action import FieldRow, Row

    held = action.hold is not None or bool(action.held_fields)
    return held or action.row is Row.MISSING or any(c.row is FieldRow.RESTORE for c in action.changes)


def show(
    target: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="The address of one thing, or of one field of it (ADDRESS#field).")
    ],
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """One thing from all sides: declared, last applied, observed; where each value comes from; what was done to it."""
    from .common import check_targets, workspace
    from .render.show import show_json, show_text
    from .render.style import out

    space = workspace(file, state)
    check_targets(space, [target])
    for line in [show_json(space, target)] if json else show_text(space, target):
        out(line)
    return 0
