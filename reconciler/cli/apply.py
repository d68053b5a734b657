"""`reconciler apply` and `reconciler provision`: the only commands that write a home."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Allow, File, Json, State, Targets, Undo

if TYPE_CHECKING:
    from ..event import Event
    from ..plan import Options, Plan
    from ..planfile import Approved
    from ..workspace import Workspace

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: agree to `auto` rows and to those you name.")]
Parallel = Annotated[
    int, typer.Option("--parallel", metavar="N", min=1, max=64, help="Homes at once; one home is always serial.")
]
Events = Annotated[
    Path | None, typer.Option("--events", metavar="FILE", help="Append one JSON line per event to FILE.")
]


def register(app: typer.Typer) -> None:
    app.command("apply")(apply)
    app.command("provision", short_help="Make a home that does not exist yet.")(provision)


def apply(
    targets: Targets = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Carry out the rows of a saved plan, and no other.")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option("--expect", metavar="DIGEST", help="Carry out the plan with this digest, and no other."),
    ] = None,
    reviewed: Annotated[bool, typer.Option("--reviewed", help="The plan was reviewed, deletes included.")] = False,
    yes: Yes = False,
    restore: Annotated[
        list[str] | None,
        typer.Option("--restore", metavar="TARGET", help="Put TARGET back to the setup's value. May be repeated."),
    ] = None,
    undo: Undo = "",
    allow: Allow = None,
    parallel: Parallel = 4,
    events: Events = None,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Carry the plan out: write, read back, record."""
    from ..plan import Options
    from .common import check_guards, check_targets, check_undo, workspace

    space = workspace(file, state)
    options = Options(
        targets=check_targets(space, [*(targets or []), *((restore or []) if not targets else [])]),
        restore=check_targets(space, restore or []),
        allow=check_guards(allow or []),
        undo=check_undo(space, undo),
    )
    return _carry_out(
        space,
        options,
        plan=plan,
        expect=expect,
        reviewed=reviewed,
        yes=yes,
        parallel=parallel,
        events=events,
        json=json,
    )


def provision(
    home: Annotated[str, typer.Argument(metavar="HOME", help="A home of the setup that does not exist yet.")],
    yes: Yes = False,
    events: Events = None,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Make a home that does not exist yet, with what the setup declares for it."""
    from ..errors import UsageError
    from ..plan import Options
    from .common import check_targets, workspace

    space = workspace(file, state)
    check_targets(space, [home])
    if home not in space.setup.homes:
        raise UsageError(f"{home}: give the id of a home", hint=f"homes: {', '.join(space.setup.homes)}")
    options = Options(targets=(home,), provision=frozenset({home}))
    return _carry_out(space, options, yes=yes, events=events, json=json)


def _carry_out(
    space: Workspace,
    options: Options,
    *,
    plan: Path | None = None,
    expect: str | None = None,
    reviewed: bool = False,
    yes: bool = False,
    parallel: int = 4,
    events: Path | None = None,
    json: bool = False,
) -> int:
    from ..apply import apply as carry_out
    from ..exits import of_apply
    from ..secret import SOURCE
    from .agreed import agreed, plan_file
    from .common import check_selected
    from .render.outcome import Reporter

    saved = plan_file(plan, space) if plan is not None else None
    if plan is not None and saved is not None:
        _check_undone(plan, saved.approved, options)
    made = space.plan(options)
    check_selected(made, (*options.targets, *options.restore))
    if not json:
        _show(made)
    consent = agreed(made, space, options, file=saved, expect=expect, reviewed=reviewed, yes=yes, json=json)
    if consent is None:
        return 5
    reporter = Reporter(quiet=json)
    with _sink(events) as write, _interrupts() as stop:
        told: list[Event] = []

        def tell(event: Event) -> None:
            write(event)
            reporter.tell(event)

        events_ = carry_out(made, consent, space, options, parallel=parallel, stop=stop, tell=tell)
        for event in _against(saved.approved if saved is not None else None, events_, made, options):
            told.append(event)
            tell(event)
    code = of_apply(made, told)
    if json:
        from .render.json import apply_json
        from .render.style import out

        out(apply_json(made, told, code))
    else:
        checks = [(home.resources[a.address].options, a.address.key) for home in made.homes for a in home.checks]
        unasked = {key for options, key in checks if not space.vault.may_ask(options[SOURCE])}
        reporter.close(made, told, sorted(unasked))
    if space.setup.notify:
        from .notify import tell_others

        tell_others(space, made, told, whole=options.whole)
    return code


def _check_undone(path: Path, saved: Approved, options: Options) -> None:
    """Raises UsageError where the file and the command line undo different runs: the file says what was approved, and
    the command line what is planned."""
    from ..errors import UsageError

    if saved.undo == options.undo:
        return
    what = f"a plan that undoes run {saved.undo}" if saved.undo else f"no plan that undoes run {options.undo}"
    again = f"--undo {saved.undo} " if saved.undo else ""
    raise UsageError(f"{path}: {what}", hint=f"reconciler apply {again}--plan {path}")


def _against(approved: Approved | None, events: Iterator[Event], made: Plan, options: Options) -> Iterator[Event]:
    """The events of a run by a plan file: what it refuses is told by what has changed since, and so is what is left."""
    if approved is None:
        return events
    from ..stale import explained, no_longer

    return chain((explained(event, made, approved) for event in events), no_longer(made, approved, options.targets))


def _show(made: Plan) -> None:
    from .render.plan import plan_text
    from .render.style import Style, out

    for text in plan_text(made, Style(sys.stdout)):
        out(text)


@contextmanager
def _sink(events: Path | None) -> Iterator[Callable[[Event], None]]:
    """Where `--events` lines go: appended, one JSON object a line, each flushed so that a reader sees it."""
    if events is None:
        yield lambda _event: None
        return
    import json

    from ..errors import UsageError

    try:
        handle = events.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--events {events}: cannot be written ({error.strerror})") from error
    with handle:

        def write(event: Event) -> None:
            handle.write(json.dumps(event.to_json(), ensure_ascii=True) + "\n")
            handle.flush()

        yield write


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """E41: the first Ctrl-C finishes what is under way; the second leaves an intent for the next run."""
    import signal

    asked = False

    def first(_number: int, _frame: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nStopping after this step; press Ctrl-C again to stop at once.", file=sys.stderr)

    before = signal.signal(signal.SIGINT, first)
    terminated = signal.signal(signal.SIGTERM, first)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, terminated)
