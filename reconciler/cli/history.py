"""`reconciler history`: who changed what, when, and what came of it. It only reads."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import File, Json, State


def register(app: typer.Typer) -> None:
    app.command("history", short_help="Who changed what and when: runs, one run, one thing.")(history)


def history(
    which: Annotated[
        str, typer.Argument(metavar="[TARGET|RUN]", help="An address, a prefix or glob of one, or a run's id.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The newest of them.")] = 20,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """The runs of this setup, newest first; one run with its rows; or what was done to one thing."""
    from ..past import past
    from .common import workspace
    from .render.history import history_json, history_text
    from .render.style import out

    found = past(workspace(file, state), which)
    for line in [history_json(found)] if json else history_text(found, which, limit):
        out(line)
    return 1 if found.unread else 0
