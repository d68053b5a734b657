"""`reconciler gitops run`: the loop that carries out what a branch says, and tells drift between its revisions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import File, State
from .group import Group

if TYPE_CHECKING:
    from ..consent import Consent
    from ..event import Event
    from ..plan import Plan
    from ..workspace import Workspace


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Group, no_args_is_help=True, rich_markup_mode=None, help="Follow a branch of the setup's repository."
    )
    group.callback()(_group)
    group.command("run", short_help="Apply each new revision by policy; tell drift.")(run)
    app.add_typer(group, name="gitops")


def _group() -> None:
    """Follow a branch of the setup's repository."""


def run(
    once: Annotated[bool, typer.Option("--once", help="One round, and its exit code.")] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Only homes whose place says `host:` with this machine's name.")
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="Between two rounds: 60s, 5m, 1h.")
    ] = "60s",
    remote: Annotated[
        str,
        typer.Option("--remote", metavar="REMOTE", help="The remote to follow (default: the checked-out branch's)."),
    ] = "",
    branch: Annotated[
        str,
        typer.Option(
            "--branch", metavar="BRANCH", help="The branch to follow (default: the checked-out branch's upstream)."
        ),
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="rewind", help="`rewind`: take a branch that does not only move forward."),
    ] = None,
    require_signed: Annotated[
        bool, typer.Option("--require-signed", help="Take only a commit that `git verify-commit` finds well signed.")
    ] = False,
    http: Annotated[
        str | None,
        typer.Option("--http", help="Answer /healthz and /metrics on this loopback address.", metavar="HOST:PORT"),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="FILE", help="Append the events to FILE; `-` is stdout (the default)."),
    ] = None,
    file: File = None,
    state: State = None,
) -> int:
    """Follow the setup's branch: plan and apply each new revision by policy, and tell drift between them.

    One JSON object a line per event; at a terminal, words. A person's checkout is never touched: the
    loop has a work tree of its own.
    """
    import gc
    import os
    import time

    from reconciler_state.files import Files

    from ..errors import UsageError
    from ..gitops.loop import Loop, Terms
    from ..gitops.record import alone
    from ..gitops.source import Source
    from .common import check_guards, setup_path, state_dir, workspace

    gc.enable()  # unlike every other command this one stays
    strange = check_guards(allow or []) - {"rewind"}
    if strange:
        raise UsageError(
            f"--allow {min(strange)}: only rewind can be lifted for a whole branch", hint="reconciler apply"
        )
    folder = state_dir(state) / "gitops"
    source = Source.of(setup_path(file), folder, remote, branch)
    terms = Terms(_seconds(interval), frozenset(allow or []), require_signed, os.uname().nodename if here else "")

    def open_(path: Path) -> Workspace:
        return workspace(path, state, stands=source.stands)

    with ExitStack() as stack:
        stack.enter_context(alone(folder, Files()))
        tell = stack.enter_context(_told(events))
        stop, pause = stack.enter_context(_signals())
        loop = Loop(source, open_, terms, tell, now=time.time, agreed=_agreed, notify=_notify, stop=stop)
        if http is not None:
            from ..gitops.serve import address, served

            port = stack.enter_context(served(address(http), lambda: loop.standing, time.time, terms.interval))
            loop.say("serving", port=port)
        return loop.run(pause, once=once)


def _agreed(space: Workspace, plan: Plan, note: Callable[[str], None]) -> Consent:
    """What `apply --yes --reviewed` has without a terminal: policy, approvals, and the trailer of the tip."""
    from ..consent import Consent
    from ..plan import Options
    from .agreed import agreed

    found = agreed(plan, space, Options(), file=None, expect=None, reviewed=True, yes=True, json=True, note=note)
    return found or Consent()


def _notify(space: Workspace, plan: Plan, events: Sequence[Event]) -> Sequence[str]:
    if not space.setup.notify:
        return ()
    from .notify import told

    return told(space, plan, events, whole=True)


def _seconds(said: str) -> float:
    """Raises UsageError for what is no duration, or no time at all."""
    import re

    from ..errors import UsageError

    found = re.fullmatch(r"([0-9]{1,6})([smhd])", said)
    if found is None or not int(found[1]):
        raise UsageError(f"--interval {said}: a duration is expected", hint="--interval 60s")
    return int(found[1]) * float({"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


@contextmanager
def _told(events: Path | None) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Where events go: one JSON object a line, each flushed; and, for a person at a terminal, words on stderr."""
    import json
    import os

    from ..errors import UsageError
    from .render.gitops import words
    from .render.style import err

    watched = sys.stderr.isatty()
    quiet = watched and events is None and sys.stdout.isatty()  # nobody but a person reads
    with ExitStack() as stack:
        stream = sys.stdout
        if events is not None and str(events) != "-":
            try:
                stream = stack.enter_context(events.open("a", encoding="utf-8"))
            except OSError as error:
                raise UsageError(f"--events {events}: cannot be written ({error.strerror})") from error

        def tell(event: Mapping[str, Any]) -> None:
            if quiet:
                if line := words(event):
                    err(line)
                return
            try:
                stream.write(json.dumps(event, ensure_ascii=True) + "\n")
                stream.flush()
            except BrokenPipeError as error:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # nothing more to complain of at exit
                err("Nobody reads the events any more. What was begun is in the journal; the next run looks.")
                raise typer.Exit(6) from error
            if watched and not (stream is sys.stdout and stream.isatty()) and (line := words(event)):
                err(line)

        yield tell


@contextmanager
def _signals() -> Iterator[tuple[Callable[[], bool], Callable[[float], None]]]:
    """(whether we were asked to stop, a pause that such a request ends). The step under way is finished first; a second
    Ctrl-C stops at once, and leaves an intent for the next run."""
    import os
    import select
    import signal

    asked = False
    # A pipe that the interpreter writes to for each signal: a pause sees it, whenever the signal comes.
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def first(_number: int, _frame: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, first) for number in (signal.SIGINT, signal.SIGTERM)}
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield lambda: asked, lambda seconds: _wait(select.select, reader, seconds)
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _wait(select: Callable[..., Any], reader: int, seconds: float) -> None:
    select([reader], [], [], seconds)
