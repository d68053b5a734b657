"""Past: the runs of a setup over all its homes, from their journals. It reads, and is asked by `history`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, selects
from reconciler_specs.errors import ReconcilerError
from reconciler_state.decisions import Decision
from reconciler_state.history import Done, Run, runs
from reconciler_state.store import Physical

from .apply import decisions
from .errors import UsageError
from .left import left
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class Command:
    """One command that wrote something: its run id, and its run in each home by the home's id."""

    run: str
    homes: Mapping[str, Run]

    @property
    def began(self) -> str:
        return min(r.began for r in self.homes.values())

    @property
    def seconds(self) -> float:
        return max(r.seconds for r in self.homes.values())

    @property
    def first(self) -> Run:
        """Any of its runs: who it was is the same in all."""
        return next(iter(self.homes.values()))

    @property
    def rows(self) -> list[tuple[str, Done]]:
        """(address, row), home by home."""
        return [
            (f"{home}/{row.path}" if row.path else home, row) for home, run in self.homes.items() for row in run.rows
        ]


@dataclass(frozen=True, slots=True)
class Past:
    """`commands`, newest first; `unread` says of homes why not all that was done there is told. `decisions` are those
    of the gate about the target, oldest first: what was approved, and what waits or was refused."""

    commands: Sequence[Command]
    unread: Mapping[str, str]
    decisions: Sequence[Decision] = ()


def _address(home: str, row: Done) -> str:
    return f"{home}/{row.path}" if row.path else home


def past(space: Workspace, which: str = "") -> Past:
    """All that this setup did; with a run's id that run alone, with a target the rows that it takes in.

    Raises UsageError for what is neither.
    """
    found: dict[str, dict[str, Run]] = {}
    unread: dict[str, str] = {}
    names = {space.setup.name, *space.setup.formerly}
    for home, where in _homes(space).items():
        try:
            journal = space.store.journal(where)
            told = runs(journal)
            if gone := journal.gone():
                unread[home] = f"{', '.join(gone)} of its journal is gone: what was done before is told in part"
        except ReconcilerError as error:
            unread[home] = f"its journal cannot be read: {error}"
            continue
        for run in told:
            if run.owner in names and run.rows:
                found.setdefault(run.run, {})[home] = run
    commands = [Command(run, homes) for run, homes in found.items()]
    commands.sort(key=lambda c: c.began, reverse=True)
    if not which:
        return Past(commands, unread)
    if which in found:
        return Past([c for c in commands if c.run == which], unread)
    said = [d for d in decisions(space).read() if selects(which, Address.parse(d.address))]
    return Past(_taken_in(commands, which, space), unread, said)


def _homes(space: Workspace) -> dict[str, Physical]:
    """The homes of the setup, and those that it has left."""
    found = {}
    for home in space.setup.homes:
        try:
            found[home] = space.physical(home)
        except ReconcilerError:
            continue  # a place that cannot be reached: its runs are told once it can
    return {**found, **{label: Physical.of(state) for label, state in left(space)}}


def _taken_in(commands: Sequence[Command], target: str, space: Workspace) -> list[Command]:
    chosen = []
    for command in commands:
        homes = {}
        for home, run in command.homes.items():
            rows = [r for r in run.rows if selects(target, Address.parse(_address(home, r)))]
            if rows:
                homes[home] = replace(run, rows=tuple(rows))
        if homes:
            chosen.append(Command(command.run, homes))
    if not chosen and target.partition("/")[0] not in space.setup.homes:
        from difflib import get_close_matches

        close = get_close_matches(target, [c.run for c in commands] + list(space.setup.homes), 1)
        hint = f"did you mean {close[0]}?" if close else "reconciler history"
        raise UsageError(f"{target}: neither a run nor a home of this setup", hint=hint)
    return chosen
