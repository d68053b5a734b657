"""`reconciler viable-sandbox`: a stand-in for the platform on this machine, to try a setup out."""

from __future__ import annotations

from typing import Annotated

import typer

from .sandbox import MOODS, PROJECTS, TOKEN, TRICKS


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("viable-sandbox", short_help="Serve a stand-in for the viable platform here.")(sandbox)


def sandbox(
    port: Annotated[int, typer.Option("--port", help="The port on 127.0.0.1; 0 is any free one.")] = 0,
    mood: Annotated[str, typer.Option("--mood", help=f"One of {', '.join(MOODS)}.")] = MOODS[0],
    seconds: Annotated[float, typer.Option("--seconds", help="How late a slow answer is.")] = 60.0,
    trick: Annotated[str, typer.Option("--trick", help="What a hostile one does; each in turn if left out.")] = "",
) -> int:
    """Serve a stand-in for the viable platform on this machine, until Ctrl-C."""
    from reconciler.errors import UsageError

    if mood not in MOODS:
        raise UsageError(f"--mood {mood}: one of {', '.join(MOODS)}")
    if trick and trick not in TRICKS:
        raise UsageError(f"--trick {trick}: one of {', '.join(TRICKS)}")
    try:
        from .sandbox import Sandbox
        from .serving import bound, serve
    except ModuleNotFoundError as error:
        raise UsageError("uvicorn is not installed", hint="pip install 'agent-home-reconciler[sandbox]'") from error
    try:
        sock, url = bound(port)
    except OSError as error:
        raise UsageError(f"127.0.0.1:{port} cannot be used ({error.strerror})") from error
    typer.echo(f"{url}  ({mood}{f': {trick}' if trick else ''})")
    typer.echo(f"token: {TOKEN}")
    for name, what in PROJECTS.items():
        typer.echo(f"project {name}: {what}")
    import sys

    sys.stdout.flush()
    serve(Sandbox(mood, seconds=seconds, trick=trick), sock)
    return 0
