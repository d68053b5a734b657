"""What commands share: the options that name the setup and the state, and the way to a Workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler_specs.setup import Setup

    from ..plan import Plan
    from ..provider import Provider
    from ..workspace import Workspace

File = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", help="The setup (default: setup.yaml here or in a parent folder)."),
]
State = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="Where state is kept (default: $XDG_STATE_HOME/reconciler)."),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TARGET]...", help="An address, a prefix of one, or a glob.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="GUARD", help="Lift a guard by name (see `reconciler explain guards`). May be repeated."
    ),
]

Undo = Annotated[
    str,
    typer.Option(
        "--undo", metavar="RUN", help="Plan to undo a run of this setup: its id, or `last` (see `reconciler history`)."
    ),
]


def setup_path(file: Path | None) -> Path:
    """The setup to use. Raises UsageError when there is none."""
    from ..errors import UsageError

    if file is not None:
        return file
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "setup.yaml").exists():
            return folder / "setup.yaml"
    raise UsageError("There is no setup.yaml here or in a parent folder.", hint="reconciler init")


def state_dir(state: Path | None) -> Path:
    """The folder of state, journal and keys; it need not exist."""
    if state is not None:
        return state.absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "reconciler"


def providers(names: set[str] | None = None) -> dict[str, Provider]:
    """Installed providers by harness name, found by entry point; only those named, if names are given."""
    from importlib.metadata import entry_points

    found: dict[str, Any] = {}
    for entry in entry_points(group="reconciler.providers"):
        if names is None or entry.name in names:
            found[entry.name] = entry.load()
    return found


class Installed(Mapping[str, "Provider"]):
    """Providers by harness name, each loaded when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Provider] = {}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._loaded:
            self._loaded.update(providers({name}))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(providers())

    def __len__(self) -> int:
        return len(providers())


def workspace(file: Path | None, state: Path | None, *, stands: Path | None = None) -> Workspace:
    """The setup, its state and the providers it needs; `stands` as in `load`. Raises SpecError, StateError or
    UsageError."""
    from reconciler_specs.load import load

    from ..stores import store_of
    from ..workspace import Workspace

    setup = load(setup_path(file), stands=stands)
    installed = Installed()
    check_doors(setup, installed)
    return Workspace(setup, store_of(setup, state_dir(state)), installed)


def check_doors(setup: Setup, found: Mapping[str, Provider]) -> None:
    """Raises SpecError for `door:` blocks that their provider does not take: only it knows what they may hold."""
    from reconciler_specs.errors import Reason, SpecError

    reasons = [
        Reason(home.where, f"{home.id}: {wrong}", f"reconciler explain {home.harness}")
        for home in setup.homes.values()
        if home.harness in found
        for wrong in found[home.harness].options(home.door)
    ]
    if reasons:
        raise SpecError(reasons)


def check_targets(space: Workspace, targets: list[str]) -> tuple[str, ...]:
    """Targets that can select something. Raises UsageError with “did you mean” for a home that is not declared."""
    from difflib import get_close_matches

    from ..errors import UsageError
    from ..left import left

    homes = list(space.setup.homes)
    for target in targets:
        home = target.partition("/")[0]
        if home not in homes and not any(c in home for c in "*?[") and home not in [label for label, _ in left(space)]:
            close = get_close_matches(home, homes, 1)
            hint = f"did you mean {close[0]}?" if close else f"homes: {', '.join(homes) or 'none'}"
            raise UsageError(f"{target}: no home {home!r} in {space.setup.root.name}", hint=hint)
    return tuple(targets)


def check_undo(space: Workspace, undo: str) -> str:
    """The id of the run that --undo names. Raises UsageError for `last` where there is none."""
    if undo != "last":
        return undo
    from ..errors import UsageError
    from ..past import past

    commands = past(space).commands
    if not commands:
        raise UsageError("--undo last: this setup has not written anything yet", hint="reconciler history")
    return commands[0].run


def check_known(space: Workspace, targets: Sequence[str]) -> None:
    """Raises UsageError, with the nearest address, for a target that takes in nothing that is declared or owned."""
    from difflib import get_close_matches

    from reconciler_specs.address import Address, selects, split_field

    from ..errors import UsageError
    from ..left import left, state_of

    known = [str(address) for home in space.setup.homes for address in space.desired(home)]
    for home in [*space.setup.homes, *(label for label, _ in left(space))]:
        state = state_of(space, home)
        known += [f"{home}/{path}" for path in (state.state.owned(space.setup.name) if state else {})]
    for target in targets:
        if target in space.setup.homes or any(selects(target, Address.parse(text)) for text in known):
            continue
        close = get_close_matches(split_field(target)[0], known, 1)
        raise UsageError(
            f"{target}: nothing of this setup is there",
            hint=f"did you mean {close[0]}?" if close else "reconciler plan",
        )


def check_selected(plan: Plan, targets: Sequence[str]) -> None:
    """Raises UsageError, with the nearest address, for a target that selects nothing at all."""
    from difflib import get_close_matches

    from reconciler_specs.address import Address, selects

    from ..errors import UsageError

    known = {Address(h.id) for h in plan.homes} | {a.address for h in plan.homes for a in h.actions}
    for home in plan.homes:
        known.update(home.resources)
        known.update(Address.parse(f"{home.id}/{path}") for path in home.state.owned(plan.owner))
    for target in targets:
        if not any(selects(target, address) for address in known):
            close = get_close_matches(target, [str(a) for a in known], 1)
            hint = f"did you mean {close[0]}?" if close else "reconciler status --all  # lists what there is"
            raise UsageError(f"{target} selects nothing", hint=hint)


def check_harness(option: str, name: str) -> None:
    """Raises UsageError, with “did you mean”, for a harness that no installed provider is for."""
    from difflib import get_close_matches
    from importlib.metadata import entry_points

    from ..errors import UsageError

    installed = sorted(entry.name for entry in entry_points(group="reconciler.providers"))
    if name not in installed:
        close = get_close_matches(name, installed, 1)
        hint = f"did you mean {close[0]}?" if close else f"installed: {', '.join(installed)}"
        raise UsageError(f"{option} {name}: no provider for it is installed", hint=hint)


def check_guards(names: list[str]) -> frozenset[str]:
    """Guard names as given with --allow. Raises UsageError for one that is not."""
    from difflib import get_close_matches

    from ..errors import UsageError
    from ..guards import GUARDS

    for name in names:
        if name not in GUARDS:
            close = get_close_matches(name, GUARDS, 1)
            raise UsageError(f"--allow {name}: no such guard", hint=f"one of: {', '.join(close or GUARDS)}")
    return frozenset(names)
