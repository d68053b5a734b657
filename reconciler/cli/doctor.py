"""`reconciler doctor`: whether everything that plan and apply stand on is in order. It writes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import File, State


def register(app: typer.Typer) -> None:
    app.command("doctor", short_help="Check state, homes, doors and locks.")(doctor)


def doctor(
    home: Annotated[str | None, typer.Argument(metavar="[HOME]", help="A home of the setup (default: all).")] = None,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="Look for values of secrets in backups, rejected files and the trash.")
    ] = False,
    file: File = None,
    state: State = None,
) -> int:
    """Check state, homes, doors and locks, and say what to do about each finding."""
    import sys

    from ..doctor import examine
    from ..doctor import secrets as look_for_secrets
    from .common import check_targets, workspace
    from .render.style import Style, out, safe

    space = workspace(file, state)
    if home is not None:
        check_targets(space, [home])
    style = Style(sys.stdout)
    bad = False
    for finding in look_for_secrets(space, home) if secrets else examine(space, home):
        bad = bad or finding.bad
        mark = style("✗", "red") if finding.bad else style("✓", "green")
        out(f"{mark} {safe(finding.what)}")
        if finding.command:
            out(f"    next: {style(safe(finding.command), 'cyan')}")
    return 4 if bad else 0
