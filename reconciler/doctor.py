"""Doctor: looks at what plan and apply stand on, and says what is wrong in words. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler_specs.errors import ReconcilerError

from .left import state_of
from .leftovers import leftovers
from .plan import Options
from .secret import digests
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `bad` iff somebody has to do something, `command` what."""

    what: str
    bad: bool = False
    command: str = ""


def examine(space: Workspace, home: str | None) -> Iterator[Finding]:
    """State first, then each home: read, version, door, open intents, trash."""
    yield Finding(f"setup {space.setup.name}: {len(space.setup.homes)} home(s)")
    broken = space.store.broken()
    for error in broken:
        yield Finding(str(error), bad=True, command="reconciler state repair")
    if not broken:
        yield Finding(f"state in {space.store.root}: {len(space.store.list())} home(s)")
    for home_id in [home] if home else list(space.setup.homes):
        yield from _home(space, home_id)


def _home(space: Workspace, home_id: str) -> Iterator[Finding]:
    try:
        ref = space.ref(home_id)
    except ReconcilerError as error:
        yield Finding(f"{home_id}: {error}", bad=True, command=error.hint or "")
        return
    plan = space.plan_home(home_id, Options())
    if plan.failed:
        yield Finding(f"{home_id}: {plan.failed}", bad=True)
        return
    yield Finding(f"{home_id}: {ref.harness} {plan.version or '(version unknown)'} at {ref.path}")
    if plan.hold:
        yield Finding(f"{home_id}: held: {plan.hold.why}", bad=True, command=plan.hold.command)
    for note in plan.notes:
        yield Finding(f"{home_id}: {note}")
    if plan.intents:
        yield Finding(
            f"{home_id}: {len(plan.intents)} intent(s) of a run that was cut off are open; the next apply settles them",
            bad=True,
            command=f"reconciler plan {home_id}",
        )
    if plan.observation.exists:
        try:
            space.provider(ref.harness).preflight(ref, ())
        except ReconcilerError as error:
            yield Finding(f"{home_id}: the door: {error}", bad=True, command=error.hint or "")
        else:
            yield Finding(f"{home_id}: the door can be used")
        for line in space.provider(ref.harness).examine(ref):
            yield Finding(f"{home_id}: {line}")


def secrets(space: Workspace, home: str | None) -> Iterator[Finding]:
    """Copies in each home that hold a secret's value, the present one or an earlier one that we replaced."""
    for home_id in [home] if home else list(space.setup.homes):
        try:
            ref = space.ref(home_id)
        except ReconcilerError as error:
            yield Finding(f"{home_id}: {error}", bad=True, command=error.hint or "")
            continue
        state = state_of(space, home_id)
        now, before = digests(state.state.owned(space.setup.name) if state else {})
        found = list(leftovers(ref.place, ref.path, bytes.fromhex(str(ref.options["$key"])), now, before))
        for left in found:
            age = "an earlier value" if left.former else "the present value"
            yield Finding(f"{home_id}: {left.path} holds {age} of {left.name}", bad=True)
        if not found:
            known = len(set(now.values()) | set(before.values()))
            yield Finding(f"{home_id}: no copy holds a value of the {known} secret(s) that are declared")
