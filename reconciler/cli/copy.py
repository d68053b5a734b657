"""`reconciler copy`: a home as the block of another home. Writes the setup, never a home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import File, Json, State

if TYPE_CHECKING:
    from reconciler_specs.address import Kind

    from ..copy import Copy, Target
    from ..draft import Survey
    from ..provider import Provider
    from ..workspace import Workspace


def register(app: typer.Typer) -> None:
    app.command("copy", short_help="Write a home as the block of a new home.")(copy)


def copy(
    home: Annotated[str, typer.Argument(metavar="HOME", help="A home of the setup, or the path of one.")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="The new home's id in the setup.")],
    harness: Annotated[str, typer.Option("--harness", metavar="HARNESS", help="The harness that the new home is for.")],
    path: Annotated[
        str | None,
        typer.Option(
            "--path", metavar="PATH", help="Where the new home will be (default: beside the old one, by its id)."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="HARNESS", help="Whose home a path is, where several harnesses could have it."),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the new block; write nothing.")] = False,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Write a home as the block of a new home, for another harness or the same. Touches no home: the move is a plan."""
    from reconciler_specs.render import render_home

    from .adopt import write_home
    from .common import check_harness
    from .render.copy import copy_json, tell
    from .render.style import out

    space, setup = _setup(file, state)
    _free(space, name)
    check_harness("--harness", harness)
    if source is not None:
        check_harness("--from", source)
    made = _made(space, setup, home, name, harness, path, source)
    if not show:
        write_home(setup, name, made.block)
    if json:
        out(copy_json(made, "" if show else str(setup)))
    elif show:
        out("homes:\n" + render_home(name, made.block).rstrip("\n"))
    else:
        tell(made, home, str(setup))
    return 0


def _setup(file: Path | None, state: Path | None) -> tuple[Workspace | None, Path]:
    """The setup to write to, with its workspace if it is there already."""
    from ..errors import UsageError
    from .common import setup_path, workspace

    try:
        path = setup_path(file)
    except UsageError:
        path = Path("setup.yaml")
    return (workspace(path, state) if path.exists() else None), path


def _free(space: Workspace | None, name: str) -> None:
    """Raises UsageError for a name that is none, or that the setup has."""
    from reconciler_specs.values import NAME

    from ..errors import UsageError

    if not NAME.match(name):
        raise UsageError(f"--as {name}: not an id: small letters, digits, '.', '_' and '-', a letter or digit first")
    if space is not None and name in space.setup.homes:
        raise UsageError(f"--as {name}: {space.setup.root.name} has a home {name} already", hint="choose another id")


def _made(
    space: Workspace | None,
    setup: Path,
    home: str,
    name: str,
    harness: str,
    path: str | None,
    source: str | None,
) -> Copy:
    from ..copy import copy as engine
    from ..draft import draft
    from ..provider import Portable
    from .common import providers

    installed = providers()
    narrow = f"reconciler copy {home} --as {name} --harness {harness} --from"
    known = {source: installed[source]} if source else installed
    found, keys, timezone = _source(space, known, home, narrow)
    said = space.setup.homes[home].path if space is not None and home in space.setup.homes else found.ref.path
    where, folder = path or _beside(found, said, setup, name), setup.resolve().parent
    blocks, besides = _blocks(space, home, folder), _besides(space, home)
    made = draft(found, name, where, keys=keys, blocks=blocks, said=besides, folder=folder)
    if timezone:
        made.block["timezone"] = timezone
    target = _target(space, setup, found, installed[harness], {**made.block, "harness": harness}, name)
    behind = found.provider.behind(found.ref) if isinstance(found.provider, Portable) else None
    return engine(found, made, target, behind)


def _blocks(space: Workspace | None, home: str, folder: Path) -> dict[tuple[str, str], str]:
    """The sources, relative to `folder`, of the marked blocks that the setup declares in the home."""
    from reconciler_specs.address import Kind
    from reconciler_specs.edit import SetupEditor

    found: dict[tuple[str, str], str] = {}
    if space is None or home not in space.setup.homes:
        return found
    editor = SetupEditor(space.setup.root)
    for address, resource in space.setup.homes[home].resources.items():
        if address.kind is Kind.FILE and "block" in resource.fields:
            spot = editor.spot(space.setup, address, "block")
            source = spot.file.resolve()
            if not spot.path and source.is_file() and source.is_relative_to(folder):
                found[address.profile, address.key] = str(source.relative_to(folder))
    return found


def _besides(space: Workspace | None, home: str) -> dict[tuple[str, Kind, str], dict[str, Any]]:
    """What the setup says of the home's things and no home shows: where a skill comes from, and what a kit becomes
    where a harness has statuses of its own."""
    from reconciler_specs.address import Kind

    found: dict[tuple[str, Kind, str], dict[str, Any]] = {}
    if space is None or home not in space.setup.homes:
        return found
    for address, resource in space.setup.homes[home].resources.items():
        options, key = resource.options, (address.profile, address.kind, address.key)
        if address.kind is Kind.SKILL and "folder" in options:
            found[key] = {"source": options["folder"]}
        elif address.kind is Kind.KIT and "on_unsupported" in options:
            found[key] = {"on_unsupported": options["on_unsupported"]}
    return found


def _source(
    space: Workspace | None, installed: dict[str, Provider], home: str, narrow: str
) -> tuple[Survey, dict[tuple[str, str], str], str]:
    """The home as it is, the keys under which the setup knows its jobs, and the time zone that it says for the home."""
    from dataclasses import replace

    from reconciler_specs.address import Address, Kind

    from ..contact import as_named
    from ..draft import Survey, survey
    from ..errors import UsageError
    from ..observe import Wanted
    from ..workspace import physical

    if space is None or home not in space.setup.homes:
        if "/" not in home and not home.startswith((".", "~")) and not Path(home).is_dir():
            known = ", ".join(space.setup.homes) if space is not None else "there is no setup"
            raise UsageError(f"{home}: no home of the setup, and no folder", hint=f"homes: {known}")
        found = survey(str(Path(home).expanduser()), installed, narrow=narrow)
        return replace(found, ref=replace(found.ref, id=home)), {}, ""
    ref = space.ref(home)
    provider = space.provider(ref.harness)
    # By its address a skill is read with what is in its folder.
    skills = frozenset(a for a in space.setup.homes[home].resources if a.kind is Kind.SKILL)
    observation = space.observe(ref, Wanted(skills, everything=True))
    if not observation.exists:
        raise UsageError(
            f"{home}: there is no home at {ref.path}, so there is nothing to copy",
            hint="declare it for the other harness: change `harness:` and `path:` of its block",
        )
    keys = {}
    known_state = space.store.read(physical(ref))
    ours = as_named(known_state, space.setup).owned(space.setup.name) if known_state else {}
    for below, thing in ours.items():
        address = Address.parse(f"{home}/{below}")
        if address.kind is Kind.JOB:
            keys[address.profile, thing.id] = address.key
    return Survey(ref, provider, observation), keys, space.setup.homes[home].timezone


def _beside(found: Survey, said: str, setup: Path, name: str) -> str:
    """A path beside the old home, as a person would write it. Raises UsageError where that is not on this machine."""
    from ..errors import UsageError

    if not found.ref.place.local:
        raise UsageError(f"where {name} will be on this machine has to be said", hint="--path PATH")
    beside = Path(said).parent / name
    folder = setup.resolve().parent
    return f"./{beside.relative_to(folder)}" if beside.is_relative_to(folder) else str(beside)


def _target(
    space: Workspace | None, setup: Path, found: Survey, provider: Provider, block: dict[str, Any], name: str
) -> Target:
    """The new home as it is, or as it would be made. Raises UsageError where something else is at its path."""
    import secrets

    from reconciler_specs.load import load_text
    from reconciler_specs.render import render_setup

    from ..copy import Target
    from ..errors import ProviderError, UsageError
    from ..observe import Wanted
    from ..place import LocalPlace
    from ..provider import HomeRef

    place = LocalPlace()
    loaded = load_text(render_setup("copy", {name: block}), str(setup), setup.resolve().parent).homes[name]
    where = provider.home_path(loaded.path, place)
    refs = [space.ref(other) for other in space.setup.homes] if space is not None else []
    for ref in (found.ref, *refs):
        if (ref.place.name, ref.path) == (place.name, where):
            raise UsageError(f"{where} is the home {ref.id}; a copy needs a path of its own", hint="--path PATH")
    options = {"$key": secrets.token_hex(32), "$owner": space.setup.name if space is not None else "copy"}
    ref = HomeRef(name, provider.harness, place, where, options, loaded.timezone)
    try:
        observation = provider.observe(ref, Wanted())
    except (ProviderError, OSError) as error:
        raise UsageError(f"{where} cannot become the new home: {error}", hint="--path PATH") from error
    if observation.exists:
        return Target(ref, provider, observation, blank=False)
    return Target(ref, provider, provider.blank(ref), blank=True)
