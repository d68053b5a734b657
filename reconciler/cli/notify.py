"""After a run: the targets of `notify:` are told. What cannot be told is said on stderr, and changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ..event import Event
from ..plan import Plan
from ..workspace import Workspace


def tell_others(space: Workspace, plan: Plan, events: Sequence[Event], *, whole: bool) -> None:
    """As `told`, with what could not be told on stderr."""
    from .render.style import err, safe

    for sentence in told(space, plan, events, whole=whole):
        err(f"  ! {safe(sentence)}")


def told(space: Workspace, plan: Plan, events: Sequence[Event], *, whole: bool) -> Sequence[str]:
    """Tells, and gives a sentence for each target that could not be told. `events` are of an apply of `plan`,
    none after a mere look at the homes. `whole`: no target narrowed it, so that what is not there any more is over."""
    from ..notices import of_plan, of_run
    from ..outbox import tell

    return tell(
        space.setup.notify,
        space.setup.name,
        [*of_plan(plan), *of_run(events)],
        looked={h.id for h in plan.homes if whole and not h.elsewhere},
        ran={e.home for e in events if whole},
        root=space.store.root,
        vault=space.vault,
    )
