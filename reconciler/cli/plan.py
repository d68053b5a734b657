"""`reconciler plan`: what apply would do. It only reads (L18)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Allow, File, Json, State, Targets, Undo

if TYPE_CHECKING:
    from ..plan import Plan
    from ..provenance import Provenance


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


class Format(StrEnum):
    """How a plan is printed."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"


def plan(
    targets: Targets = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the plan, for `apply --plan`.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the plan for a reviewer, too: FILE.md, FILE.html or FILE.json. May be repeated.",
        ),
    ] = None,
    report_limit: Annotated[
        int, typer.Option("--report-limit", metavar="N", min=2000, help="Characters of a Markdown report, at most.")
    ] = 60_000,
    unmanaged: Annotated[bool, typer.Option("--unmanaged", help="List what nobody declared, too.")] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="2: would write; 3: something is held.")
    ] = False,
    restore: Annotated[
        list[str] | None,
        typer.Option(
            "--restore", metavar="TARGET", help="Plan to put TARGET back to the setup's value. May be repeated."
        ),
    ] = None,
    undo: Undo = "",
    allow: Allow = None,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="Plan a setup from somebody else: look at no home, start nothing."),
    ] = False,
    base: Annotated[
        str,
        typer.Option(
            "--base", metavar="BRANCH", help="With --untrusted: the target branch, whose places and policy count."
        ),
    ] = "",
    observed: Annotated[
        Path | None,
        typer.Option(
            "--observed", metavar="FILE", help="With --untrusted: the homes, as `observe --out` published them."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what is only recorded, too.")] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="mermaid and dot: which row waits for which, as a picture's source.")
    ] = Format.TEXT,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Show what apply would do to each home."""
    from ..plan import Options
    from .common import check_guards, check_selected, check_targets, check_undo, workspace
    from .render.style import out as line
    from .untrusted import under_review

    reports = _reports(report or [])
    space = under_review(file, base, observed, out) if untrusted else workspace(file, state)
    options = Options(
        targets=check_targets(space, targets or []),
        restore=check_targets(space, restore or []),
        allow=check_guards(allow or []),
        unmanaged=unmanaged,
        undo=check_undo(space, undo),
    )
    made = space.plan(options)
    check_selected(made, (*options.targets, *options.restore))
    # Asking git takes longer than a small plan: not for one that says there is nothing to do.
    shown = Format.JSON if json else format_
    known = None
    if out is not None or reports or shown is Format.JSON or (shown is Format.TEXT and any(h.open for h in made.homes)):
        known = space.provenance()
    if out is not None:
        from datetime import UTC, datetime

        from ..planfile import write

        write(out, made, datetime.now(UTC), provenance=known or space.caller(), undo=options.undo)
    for path in reports:
        _write_report(path, made, known, report_limit, [p for p in reports if p.suffix != ".md"])
    if shown is not Format.TEXT:
        line(_printed(made, shown, known))
        return code(made, detailed=detailed)
    import sys

    from .render.plan import plan_text
    from .render.report import origin
    from .render.style import Style

    head = f"setup: {origin(known)}" if known is not None and known.commit else ""
    for text in plan_text(made, Style(sys.stdout), verbose=verbose, head=head):
        line(text)
    if out is not None:
        from shlex import quote

        from ..action import Row

        again = f" --undo {options.undo}" if options.undo else ""
        deletes = any(a.row is Row.DELETE and a.writes for h in made.homes for a in h.actions)
        line(
            f"Saved to {out}; carry it out with: reconciler apply{again} --plan {quote(str(out))}"
            + (" --reviewed" if deletes else "")
        )
    for path in reports:
        line(f"Report: {path}")
    return code(made, detailed=detailed)


def _printed(made: Plan, shown: Format, known: Provenance | None) -> str:
    if shown is Format.JSON:
        from .render.json import plan_json

        return plan_json(made, known)
    from .render.picture import plan_dot, plan_mermaid

    return plan_mermaid(made) if shown is Format.MERMAID else plan_dot(made)


def _reports(paths: list[Path]) -> list[Path]:
    """The reports asked for, each once. Raises UsageError for a name whose ending says no format."""
    from ..errors import UsageError

    for path in paths:
        if path.suffix not in (".md", ".html", ".json"):
            raise UsageError(f"--report {path}: its name ends in none of .md, .html, .json", hint="--report plan.html")
    return list(dict.fromkeys(paths))


def _write_report(path: Path, made: Plan, known: Provenance | None, limit: int, whole: list[Path]) -> None:
    from .. import outfile
    from .render.report import MARK, report

    if path.suffix == ".json":
        from .render.json import plan_json

        text = plan_json(made, known) + "\n"
    elif path.suffix == ".md":
        from .render.report_md import report_md

        text = report_md(report(made, known), limit, [str(p) for p in whole])
    else:
        from .render.report_html import report_html

        text = report_html(report(made, known))
    marks = (MARK.encode(), b'"format": "reconciler.plan/1"')
    outfile.write(
        path, text, lambda data: any(mark in data[:2000] for mark in marks), "report", f"--report new{path.suffix}"
    )


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
