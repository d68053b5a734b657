"""The order of a plan's rows and who waits for whom; the only module that knows networkx, and loads it late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reconciler_specs.address import Address, Kind
from reconciler_specs.errors import ReconcilerError
from reconciler_specs.tables import TABLES

from .action import Action, Row
from .secret import clears

if TYPE_CHECKING:
    import networkx as nx

# Makes what others stand on first, where nothing else decides.
_FIRST = (Kind.HOME, Kind.PROFILE, Kind.SECRET, Kind.FILE, Kind.SETTING, Kind.INFERENCE, *TABLES, Kind.JOB)
_KINDS = {kind: place for place, kind in enumerate(_FIRST)}

_LATE = {Row.DELETE: 1, Row.RESTART: 3}

Edge = tuple[int, int]


class CycleError(ReconcilerError):
    """Things that need each other: none of them can come first. `path` is the round, its first address twice."""

    def __init__(self, path: Sequence[Address]) -> None:
        self.path = tuple(path)
        names = " → ".join(str(a) for a in path)
        super().__init__(f"these need each other: {names}", hint="take one of the references out of the setup")


def order(actions: Sequence[Action]) -> list[Action]:
    """The actions so that each comes after those it needs; deletes last, and before what they need; then the restart.

    A need that has no action is met already. Equal among equals: by kind, then by address, so that the same rows
    always come in the same order; so do deletes of things that use each other. Raises CycleError.
    """
    ranks = [(_phase(a), _KINDS[a.address.kind], str(a.address), i) for i, a in enumerate(actions)]
    found = edges(actions)
    if not found:
        return [actions[i] for i in sorted(range(len(actions)), key=ranks.__getitem__)]
    graph = _graph(actions, found)
    # Deletes come last as a whole; only among themselves do edges decide.
    out: list[Action] = []
    import networkx as nx

    for phase in range(4):
        part = graph.subgraph(i for i, a in enumerate(actions) if _phase(a) == phase)
        try:
            out += [actions[i] for i in nx.lexicographical_topological_sort(part, key=ranks.__getitem__)]
        except nx.NetworkXUnfeasible:
            if phase == 1:
                out += [actions[i] for i in sorted(part, key=ranks.__getitem__)]
                continue
            # An edge leads from what comes first; people read a cycle as “a needs b”.
            cycle = nx.find_cycle(part.reverse(copy=False))
            raise CycleError([actions[i].address for i, _ in cycle] + [actions[cycle[0][0]].address]) from None
    return out


def _phase(action: Action) -> int:
    """What is there first, then deletes, then the secrets that both have named, then the restart that all ask for."""
    if action.row in _LATE:
        return _LATE[action.row]
    return 2 if clears(action) else 0


def edges(actions: Sequence[Action]) -> list[Edge]:
    """(first, then) by index. A delete goes before the delete of what it needs, and after what it says; across the
    phases none."""
    places: dict[Address, list[int]] = {}
    for index, action in enumerate(actions):
        places.setdefault(action.address, []).append(index)
    found: list[Edge] = []
    for then, action in enumerate(actions):
        for need in action.needs:
            for first in places.get(need, ()):
                if _phase(actions[first]) != _phase(action):
                    continue
                found.append((then, first) if action.row is Row.DELETE else (first, then))
        for before in action.after:
            found += [(first, then) for first in places.get(before, ()) if _phase(actions[first]) == _phase(action)]
    return found


def _graph(actions: Sequence[Action], edges: Sequence[Edge]) -> nx.DiGraph[Any]:
    import networkx as nx

    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(range(len(actions)))
    graph.add_edges_from(edges)
    return graph
