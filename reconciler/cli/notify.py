"""After a run: the targets of `notify:` are told. What cannot be told is said on stderr, and changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ..event import Event
from ..plan import Plan
from ..workspace import Workspace


def tell_others(space: Workspace, plan: Plan, events: Sequence[Event], *, whole: bool) -> None:
    """`events` are those of an apply of `plan`; none after a mere look at the homes. `whole`: no target narrowed it,
    so that what is not there any more is over."""
    from ..notices import of_plan, of_run
    from ..outbox import tell
    from .render.style import err, safe

    sentences = tell(
        space.setup.notify,
        space.setup.name,
        [*of_plan(plan), *of_run(events)],
        looked={h.id for h in plan.homes if whole and not h.elsewhere},
        ran={e.home for e in events if whole},
        root=space.store.root,
        vault=space.vault,
    )
    for sentence in sentences:
        err(f"  ! {safe(sentence)}")
