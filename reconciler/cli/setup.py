"""`reconciler init`, `validate` and `explain`: the setup text itself. They look at no home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import File, Json, check_harness


def register(app: typer.Typer) -> None:
    app.command("init")(init)
    app.command("validate", short_help="Check the setup: every error at once, with its place.")(validate)
    app.command("explain")(explain)


def init(
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Convert the older package form (setup.json).")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option("--harness", metavar="HARNESS", help="The harness that the home is for; its path is then ./home."),
    ] = None,
    out: Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="The file to write.")] = Path("setup.yaml"),
) -> int:
    """Write a commented setup.yaml to start from."""
    from ..errors import UsageError
    from .render.style import out as line

    notes: tuple[str, ...] = ()
    if source is None:
        from reconciler_specs.render import starter

        if harness is not None:
            check_harness("--harness", harness)
        text = starter() if harness is None else starter(harness=harness, path="./home")
    elif harness is not None:
        raise UsageError("--harness and --from: the older form says itself which harness it is for")
    else:
        from reconciler_specs.upgrade import upgrade

        try:
            data = source.read_bytes()
        except OSError as error:
            raise UsageError(f"{source}: cannot be read ({error.strerror})") from error
        converted = upgrade(data, str(source))
        text, notes = converted.text, converted.notes
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{out} is there already; nothing was written.", hint="reconciler validate") from None
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from error
    line(f"Wrote {out}.")
    for note in notes:
        line(f"  note: {note}")
    line("next: edit it, then `reconciler validate` and `reconciler plan`.")
    return 0


def validate(json: Json = False, file: File = None) -> int:
    """Check the setup: every error at once, each with its place and a hint."""
    from reconciler_specs.errors import SpecError
    from reconciler_specs.load import load

    from .common import check_doors, providers, setup_path
    from .render.style import out

    path = setup_path(file)
    try:
        setup = load(path)
        check_doors(setup, providers({home.harness for home in setup.homes.values()}))
    except SpecError as error:
        if not json:
            raise
        from .render.json import reasons_json

        out(reasons_json(error.reasons))
        return 1
    if json:
        from .render.json import reasons_json

        out(reasons_json([]))
    else:
        things = sum(len(setup.desired(home)) for home in setup.homes)
        out(f"{path} is in order: {len(setup.homes)} home(s), {things} thing(s).")
    return 0


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="A kind (job), a field (job.schedule), a harness, or guards."),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="The JSON Schema of the whole language.")] = False,
) -> int:
    """What can be declared, and what a harness can store of it."""
    from .render.explain import explain_text
    from .render.style import out

    if schema:
        import json as encoder

        from reconciler_specs.schema import generate

        out(encoder.dumps(generate(), indent=2))
        return 0
    for text in explain_text(topic):
        out(text)
    return 0
