"""`reconciler native …`: init, serve, status, and every verb of the operator by its cold door."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .program import operate, say

Root = Annotated[Path, typer.Option("--root", help="The home's folder.")]
ProfileName = Annotated[str, typer.Option("--profile", help="The profile that the verb acts in.")]
At = Annotated[str, typer.Option("--at", help="The clock, RFC 3339 (default: now).", show_default=False)]
Arguments = Annotated[str, typer.Option("--json", help="The verb's arguments, a JSON object.")]
DoorName = Annotated[
    str, typer.Option("--door", help="cold, live (the daemon's socket), or auto: live where a daemon serves.")
]


class _Group(TyperGroup):
    """Unknown verbs are answered as the orchestrator answers them: one line of JSON, exit 2."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from .operator import OPS

            say({"event": "error", "message": f"unknown argument `{args[0]}`; the verbs are: {', '.join(OPS)}"})
            raise typer.Exit(2)
        return super().resolve_command(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds the group to the program."""
    from .operator import VERBS

    group = typer.Typer(
        name="native",
        cls=_Group,
        help="A home of our own: make it, serve it, and its operator's verbs.",
        short_help="A home of our own: make it, serve it, change it.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("init", short_help="Make an empty home.")(init)
    group.command("serve", short_help="Hold its lease and answer on its socket.")(serve)
    group.command("restart", short_help="Have its daemon start anew.")(restart)
    group.command("status", short_help="Who serves it, and can it be read?")(status)
    for op, verb in VERBS.items():
        group.command(op, help=f"Arguments: {', '.join(sorted(verb.args)) or 'none'}.")(_command(op))
    app.add_typer(group)


def _command(op: str) -> Any:
    def run(
        root: Root, profile: ProfileName = "default", at: At = "", json: Arguments = "{}", door: DoorName = "cold"
    ) -> int:
        return operate(op, root, profile, at, json, door)

    return run


def init(root: Root) -> int:
    """Make an empty home: a folder that only its owner can look into."""
    from .errors import NativeError
    from .home import init as make

    root = root.expanduser().resolve()
    try:
        made = make(root)
    except NativeError as error:
        say({"event": "error", "root": str(root), "message": str(error)})
        return 1
    say({"event": "initialised" if made else "exists", "root": str(root)})
    return 0


def serve(root: Root) -> int:
    """Hold the home's lease and answer on its socket, until SIGTERM."""
    import gc
    import os
    import sys

    from .errors import NativeError
    from .server import serve as run

    gc.enable()  # the program does without for its short-lived commands; this one stays
    root = root.expanduser().resolve()
    try:
        again = run(root, say)
    except NativeError as error:
        say({"event": "error", "root": str(root), "message": str(error)})
        return 1
    if again:
        # The same process begins anew, so that whoever supervises it sees neither an end nor another pid.
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    return 0


def restart(root: Root) -> int:
    """Have the daemon that serves the home start anew, and wait until it does."""
    from .restart import restart as ask

    root = root.expanduser().resolve()
    answer = ask(root)
    say({**answer, "root": str(root)})
    return 0 if answer["ok"] else 6 if answer.get("uncertain") else 1


def status(root: Root) -> int:
    """Who serves the home, and whether it can be read. 1 if it cannot."""
    from . import lease
    from .errors import NativeError
    from .home import Home, is_home

    root = root.expanduser().resolve()
    found = lease.inspect(root)
    line: dict[str, Any] = {"event": "status", "root": str(root), "lease": str(found.state)}
    if found.words:
        line["words"] = found.words
    if found.lease is not None:
        line["pid"] = found.lease.pid
    if (root / lease.GUARD).exists():
        line["guard"] = lease.guard_words(root / lease.GUARD)
    try:
        folder = Home(root).load()
        folder.check()
        line["profiles"] = {name: len(p.jobs.records()) for name, p in sorted(folder.profiles.items())}
        good = is_home(root)
        line["home"] = "proper" if good else "not a home"
    except NativeError as error:
        good, line["home"] = False, str(error)
    say(line)
    return 0 if good else 1
