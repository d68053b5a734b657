"""`reconciler native …`: init, serve, status, and every verb of the operator by its cold door."""

from __future__ import annotations

import json as codec
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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

            _say({"event": "error", "message": f"unknown argument `{args[0]}`; the verbs are: {', '.join(OPS)}"})
            raise typer.Exit(2)
        return super().resolve_command(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds the group to the program."""
    from .operator import VERBS

    group = typer.Typer(
        name="native",
        cls=_Group,
        help="A home of our own: make it, serve it, and its operator's verbs.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("init")(init)
    group.command("serve")(serve)
    group.command("status")(status)
    for op, verb in VERBS.items():
        group.command(op, help=f"Arguments: {', '.join(sorted(verb.args)) or 'none'}.")(_command(op))
    app.add_typer(group)


def _command(op: str) -> Any:
    def run(
        root: Root, profile: ProfileName = "default", at: At = "", json: Arguments = "{}", door: DoorName = "cold"
    ) -> int:
        return operate(op, root, profile, at, json, door)

    return run


def operate(op: str, root: Path, profile: str, at: str, text: str, door: str) -> int:
    """One verb: 0 done, 1 refused, 2 a word of the command line that is none. Prints one line of JSON."""
    from . import lease

    root = root.expanduser().resolve()
    try:
        args = codec.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        _say({"ok": False, "error": f"--json is not JSON: {error}"})
        return 1
    if not isinstance(args, dict):
        _say({"ok": False, "error": "--json is not JSON: an object is expected"})
        return 1
    clock = _clock(at)
    if clock is None or door not in ("cold", "live", "auto"):
        said = f"--door {door}" if clock is not None else f"--at {at}"
        _say({"event": "error", "message": f"unknown argument `{said}`"})
        return 2
    live = door == "live" or (door == "auto" and lease.inspect(root).state is lease.State.LIVE)
    answer = _live(root, op, args, profile) if live else _cold(root, op, args, profile, clock)
    # What the door adds stands beside the result: a verb's own row is never changed by it.
    _say({**answer, "root": str(root), "door": "live" if live else "cold", "context_profile": profile})
    return 0 if answer["ok"] else 6 if answer.get("uncertain") else 1


def _cold(root: Path, op: str, args: dict[str, Any], profile: str, clock: datetime) -> dict[str, Any]:
    from .home import Home
    from .operator import apply_operator

    return apply_operator(Home(root), op, args, profile, clock)


def _live(root: Path, op: str, args: dict[str, Any], profile: str) -> dict[str, Any]:
    from reconciler.errors import DoorLost

    from . import wire
    from .errors import NativeError

    try:
        return wire.call(root, {"op": op, "args": args, "profile": profile})
    except DoorLost as error:
        return {"ok": False, "error": str(error), "uncertain": True}
    except NativeError as error:
        return {"ok": False, "error": str(error), "held": True}


def _clock(at: str) -> datetime | None:
    from datetime import UTC

    from . import schedule

    return schedule.instant(at) if at else datetime.now(UTC)


def init(root: Root) -> int:
    """Make an empty home: a folder that only its owner can look into."""
    from .errors import NativeError
    from .home import init as make

    root = root.expanduser().resolve()
    try:
        made = make(root)
    except NativeError as error:
        _say({"event": "error", "root": str(root), "message": str(error)})
        return 1
    _say({"event": "initialised" if made else "exists", "root": str(root)})
    return 0


def serve(root: Root) -> int:
    """Hold the home's lease and answer on its socket, until SIGTERM."""
    from .errors import NativeError
    from .server import serve as run

    root = root.expanduser().resolve()
    try:
        run(root, _say)
    except NativeError as error:
        _say({"event": "error", "root": str(root), "message": str(error)})
        return 1
    return 0


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
    _say(line)
    return 0 if good else 1


def _say(event: dict[str, Any]) -> None:
    sys.stdout.write(codec.dumps(event, ensure_ascii=False) + "\n")
    sys.stdout.flush()
