"""Steps: a run's actions as the batches that its door takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .action import Action


def steps(actions: Sequence[Action], batch: Callable[[Action], str]) -> Iterator[list[Action]]:
    """Actions with one `batch` key in a row, in plan order; what only records goes with its neighbours."""
    step: list[Action] = []
    key: str | None = None
    for action in actions:
        mine = batch(action) if action.writes else None
        if step and mine is not None and key is not None and mine != key:
            yield step
            step, key = [], None
        step.append(action)
        key = key if mine is None else mine
    if step:
        yield step
