"""`reconciler adopt`: take what is there. Writes the setup and state, never a home."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler_specs.errors import ReconcilerError

from .common import File, State

if TYPE_CHECKING:
    from reconciler_specs.address import Address

    from ..adopt import Taken
    from ..draft import Draft, Survey


def register(app: typer.Typer) -> None:
    app.command("adopt", short_help="Take a home, or things in it, as they are.")(adopt)


def adopt(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|HOME|ADDRESS]...",
            help="Paths of homes, or homes and addresses of the setup.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The home's id in the setup (for a path).")
    ] = None,
    extends: Annotated[
        str | None, typer.Option("--extends", metavar="TEMPLATE", help="The template that the new block extends.")
    ] = None,
    mapping: Annotated[
        list[str] | None, typer.Option("--map", metavar="ADDRESS=ID", help="Which thing of the home an address means.")
    ] = None,
    harness: Annotated[
        str | None, typer.Option("--harness", metavar="HARNESS", help="Whose home a path is, where several could be.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="TARGET", help="Take only what this glob or address selects.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take defaults too.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the block; write nothing.")] = False,
    file: File = None,
    state: State = None,
) -> int:
    """Take a home, or things in it, as they are: by PATH into the setup, by HOME or address into state."""
    from ..draft import draft
    from ..errors import UsageError
    from .common import setup_path
    from .render.style import out

    pairs = _mapping(mapping or [])
    what = what or sorted(str(a) for a in pairs)
    if not what:
        raise UsageError("what is to be adopted?", hint="reconciler adopt PATH  # or a home or address of the setup")
    first = what[0]
    try:
        path: Path | None = setup_path(file)
    except UsageError:
        path = None
    if path is not None and path.exists() and _names_home(path, first):
        return _adopt_home(path, state, what, pairs)
    if name and len(what) > 1:
        raise UsageError("--as: a name is for one home", hint="give one path, or leave --as out")
    setup = path if path is not None and path.exists() else file or Path("setup.yaml")
    found = [_survey(target, setup, harness, state, show) for target in what]  # all, before the first is written
    once = {survey.ref.path: target for target, survey in zip(what, found, strict=True)}
    if len(once) < len(what):
        raise UsageError("one home is named twice", hint=f"reconciler adopt {' '.join(once.values())}")
    given: set[str] = set()
    if show:
        out("homes:")
    for target, survey in zip(what, found, strict=True):
        home_id = name or _free_name(setup, survey.ref.path, given, alone=len(what) == 1)
        given.add(home_id)
        made = draft(survey, home_id, target, only=only or "", everything=everything, extends=extends or "")
        _adopt_path(made, survey, home_id, setup, state, show)
    if not show:
        out("next: reconciler plan")
    return 0


def _mapping(pairs: list[str]) -> dict[Address, str]:
    from reconciler_specs.address import Address

    from ..errors import UsageError

    found = {}
    for pair in pairs:
        address, mark, harness_id = pair.partition("=")
        try:
            found[Address.parse(address)] = harness_id
        except ValueError as error:
            raise UsageError(f"--map {pair}: {error}") from error
        if not mark or not harness_id:
            raise UsageError(f"--map {pair}: ADDRESS=ID is expected")
    return found


def _names_home(path: Path, target: str) -> bool:
    """Whether a setup declares the home that the target starts with; a relative path may look like an address."""
    from reconciler_specs.load import load

    return target.partition("/")[0] in load(path).homes


def _adopt_home(path: Path, state: Path | None, what: list[str], pairs: dict[Address, str]) -> int:
    from ..adopt import adopt_home
    from .common import check_targets, workspace

    space = workspace(path, state)
    targets = check_targets(space, what)
    for home_id in dict.fromkeys([t.partition("/")[0] for t in targets] + [a.home for a in pairs]):
        mine = [t for t in targets if t.partition("/")[0] == home_id]
        _tell(adopt_home(space, home_id, mine, {a: i for a, i in pairs.items() if a.home == home_id}))
    return 0


def _tell(taken: Taken) -> None:
    from .render.style import out, safe

    for address, open_fields in taken.took:
        tail = f"  (differs: {', '.join(open_fields)}; the plan shows it as claim)" if open_fields else ""
        out(f"  = {safe(str(address))}{tail}")
    for line in taken.left:
        out(f"  ! {safe(line)}")
    out(f"{taken.home}: took {len(taken.took)} thing(s); the home was not written to.")
    out("next: reconciler plan")


def _survey(target: str, setup: Path, harness: str | None, state: Path | None, show: bool) -> Survey:
    """What is at a path. Raises UsageError if nothing can be taken from there, or the setup has it."""
    from ..draft import survey
    from .common import providers

    found = survey(target, providers({harness} if harness else None))
    if not show:
        _not_twice(setup, found, state)
    return found


def _adopt_path(made: Draft, found: Survey, home_id: str, setup: Path, state: Path | None, show: bool) -> None:
    from reconciler_specs.render import render_home

    from ..adopt import adopt_home
    from ..plan import Options
    from .common import workspace
    from .render.style import out, safe

    if show:
        out(render_home(home_id, made.block).rstrip("\n"))
        _remarks(made)
        return
    with _whole_or_not(setup):
        write_home(setup, home_id, made.block)
        space = workspace(setup, state)
        taken = adopt_home(space, home_id, [home_id], made.ids)
    out(f"Adopted {safe(found.ref.path)} ({found.ref.harness}) as {home_id} in {setup}.")
    out(f"  {len(taken.took)} thing(s) taken; the home was not written to.")
    _remarks(made)
    plan = space.plan(Options(targets=(home_id,)))
    rows = [a for h in plan.homes for a in h.actions]
    if rows:
        out("  The plan is not empty; each row says why:")
        for action in rows[:20]:
            why = action.hold.why if action.hold else action.reason or ", ".join(c.field for c in action.changes)
            out(f"    {safe(str(action.address))}  {action.row}  {safe(why)}")
        if len(rows) > 20:
            out(f"    … and {len(rows) - 20} more")


@contextmanager
def _whole_or_not(setup: Path) -> Iterator[None]:
    """What could not be taken does not stay declared: the setup's file is then as it was."""
    from reconciler_specs.edit import put

    before = setup.read_bytes() if setup.exists() else None
    try:
        yield
    except ReconcilerError:
        if before is not None:
            put(setup.resolve(), before)
        else:
            setup.unlink(missing_ok=True)
        raise


def _not_twice(setup: Path, found: Survey, state: Path | None) -> None:
    """Raises UsageError if the setup declares this very home already: two blocks would be one physical home."""
    from ..errors import ProviderError, UsageError
    from .common import workspace

    if not setup.exists():
        return
    space = workspace(setup, state)
    for home_id in space.setup.homes:
        try:
            ref = space.ref(home_id)
        except ProviderError:
            continue
        if (ref.place.name, ref.harness, ref.path) == (found.ref.place.name, found.ref.harness, found.ref.path):
            raise UsageError(f"{setup} declares this home already, as {home_id}", hint=f"reconciler adopt {home_id}")


def _free_name(setup: Path, path: str, given: Collection[str], *, alone: bool) -> str:
    """A home id that the setup does not have, and none that was `given` just now: `main` for the first if it is
    `alone`, else from the folder's name."""
    import re

    from reconciler_specs.load import load

    taken = {*given, *(load(setup).homes if setup.exists() else ())}
    parts = [re.sub(r"[^a-z0-9_-]+", "-", p.lower()).strip("-._") for p in path.rstrip("/").split("/")[-2:]]
    for candidate in [*(["main"] if alone else []), *reversed([p for p in parts if p])]:
        if candidate not in taken:
            return candidate
    number = 2
    while f"main-{number}" in taken:
        number += 1
    return f"main-{number}"


def write_home(setup: Path, home_id: str, block: Mapping[str, Any]) -> None:
    """Adds the block to the setup, or starts one with it."""
    from reconciler_specs.edit import SetupEditor
    from reconciler_specs.render import render_home

    if not setup.exists():
        from ..errors import UsageError

        head = "# What this setup declares is kept as it says; what it does not name is never touched.\n"
        text = f"{head}version: 1\nname: {_owner()}\n\nhomes:\n{render_home(home_id, block)}"
        try:
            with setup.open("x", encoding="utf-8") as handle:
                handle.write(text)
        except OSError as error:
            raise UsageError(f"{setup}: cannot be written ({error.strerror})") from error
        return
    editor = SetupEditor(setup)
    editor.add_home(home_id, block)
    editor.check()
    editor.write()


def _owner() -> str:
    """A name for a new setup: the folder's, if it is one."""
    from reconciler_specs.values import NAME

    folder = Path.cwd().name.lower()
    return folder if NAME.match(folder) else "setup"


def _remarks(made: Draft) -> None:
    from .render.style import out, safe

    for title, lines in (("left as it is (unmanaged)", made.left), ("wants a look", made.look)):
        if lines:
            out(f"  {title}:")
            for line in lines[:20]:
                out(f"    - {safe(line)}")
            if len(lines) > 20:
                out(f"    … and {len(lines) - 20} more")
