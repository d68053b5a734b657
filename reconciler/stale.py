"""Stale: why an approved row is not the one that a fresh plan has (E30, E31). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconciler_specs.address import Address, selects

from .action import Action, Row, Tier
from .binding import block, bound, declared, resolved
from .event import Event, Outcome
from .observe import Observed
from .plan import HomePlan, Plan
from .planfile import Approved, ApprovedHome, ApprovedRow, again
from .words import would

_NOWHERE = ApprovedHome("")


def difference(approved: Approved, home: HomePlan, action: Action) -> str:
    """What has changed at a row since the file was made, and what it would write now."""
    was = approved.said.get(str(action.address))
    other_setup = resolved(home) != approved.homes.get(home.id, _NOWHERE).resolved
    if was is None:
        since = "the setup changed" if other_setup else "the home or our state changed"
        return f"not in the approved plan; since then {since}{_moved(approved, home)}"
    if block(home.ref) != approved.homes.get(home.id, _NOWHERE).block and was.digest in home.digests.values():
        return "approved for a home at another place, path or door: the home's own block in the setup changed"
    parts = _parts(was, home, action) or ("something else of the setup" if other_setup else "what is to be done")
    words = f"not as approved: {parts} changed{_moved(approved, home)}"
    before, after = _said(was.row, was.would), _said(str(action.row), would(action))
    return f"{words}; approved was {before}, now it is {after}" if before != after else words


def explained(event: Event, plan: Plan, approved: Approved) -> Event:
    """An outcome, in the words of `difference` where the row was refused because the file does not have it."""
    if event.outcome is not Outcome.REFUSED or event.address is None:
        return event
    standing = approved.standing(plan)
    for home in plan.homes:
        for action in home.open:
            if action.address == event.address and action.tier is not Tier.REFUSE:
                if home.digests[action.address] in standing:
                    return event
                return replace(
                    event, reason=difference(approved, home, action), command=again(approved.path, approved.undo)
                )
    return event


def no_longer(plan: Plan, approved: Approved, targets: Sequence[str] = ()) -> Iterator[Event]:
    """What the file approved and a fresh plan does not do, as refusals; what is in place by now is none."""
    homes = {home.id: home for home in plan.homes}
    now = {str(action.address): action for home in plan.homes for action in home.actions}
    going_on = {str(action.address) for home in plan.homes for action in home.open}
    for text, was in approved.said.items():
        address = Address.parse(text)
        if text in going_on or (targets and not any(selects(target, address) for target in targets)):
            continue
        home = homes.get(address.home)
        if home is not None and (home.failed or home.elsewhere):
            continue  # told of the home as a whole
        action = now.get(text)
        if action is not None and action.source and action.hold is None and not action.changes:
            continue  # its source was asked, and gives what the home has
        reason = _gone(was, home, address) if action is None or home is None else _held(was, home, action)
        if reason:
            yield Event("outcome", address.home, address, was.row, Outcome.REFUSED, reason, "reconciler plan")


def _held(was: ApprovedRow, home: HomePlan, action: Action) -> str:
    hold = home.hold or action.hold
    held = hold.why if hold else ", ".join(f"{c.field}: {c.row}" for c in action.changes) or "nothing to do"
    parts = _parts(was, home, action)
    return f"not as approved: {f'{parts} changed; ' if parts else ''}now {action.row}, {held}"


def _gone(was: ApprovedRow, home: HomePlan | None, address: Address) -> str:
    """Of a row that the plan does not have at all. "" if what it was for is in place."""
    if home is None:
        return f"not as approved: home {address.home} left the setup"
    if home.hold:
        return f"not as approved: its home is held: {home.hold.why}"
    if declared(home, address) != was.bound.setup:
        return "not as approved: the setup changed, and nothing is to be done here now"
    if was.row == str(Row.DELETE) and isinstance(home.observed(address, was.id), Observed):
        return "not as approved: our state changed, and the thing is not ours by now"
    return ""


def _parts(was: ApprovedRow, home: HomePlan, action: Action) -> str:
    """Which sides of a row are other ones now; "" if none is."""
    if action.row in (Row.RELEASED, Row.MOVED):
        return "the setup"  # by a word outside the thing's own block
    now = bound(home, action, was.id)
    sides = (
        (was.bound.setup, now.setup, "the setup"),
        (was.bound.home, now.home, "the home"),
        (was.bound.state, now.state, "our state"),
    )
    return " and ".join(words for before, after, words in sides if before != after)


def _moved(approved: Approved, home: HomePlan) -> str:
    before = approved.homes.get(home.id, _NOWHERE).version
    now = home.version or ""
    return f", and the harness went from {before} to {now or 'an unknown version'}" if before and before != now else ""


def _said(row: str, lines: Sequence[str]) -> str:
    return f"{row} ({'; '.join(lines)})" if lines else row
