"""Steps: a run's actions as the batches that its door takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .action import Action


def steps(actions: Sequence[Action], batch: Callable[[Action], str]) -> Iterator[list[Action]]:
    """Actions with one `batch` key in a row, in plan order; what only records goes with its neighbours. A delete is not
    in one step with what of its kind it comes after: how that ended has to be seen first. A batch of several kinds is
    one write (all of a config), and stays one."""
    step: list[Action] = []
    key: str | None = None
    for action in actions:
        mine = batch(action) if action.writes else None
        other = mine is not None and key is not None and mine != key
        first = {a for a in action.after if a.kind is action.address.kind}
        if step and (other or (first and not first.isdisjoint(a.address for a in step))):
            yield step
            step, key = [], None
        step.append(action)
        key = key if mine is None else mine
    if step:
        yield step
