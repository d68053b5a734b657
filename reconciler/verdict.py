"""Verdict: what became of one action, as its read-back shows (L9, L10). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind
from reconciler_state.record import Owned

from .action import Action, Row
from .event import Outcome
from .provider import Answer, Code


@dataclass(frozen=True, slots=True)
class Verdict:
    """One action after its read-back: the outcome, why, the fields that do not hold, and what state now says."""

    outcome: Outcome
    reason: str = ""
    fields: tuple[str, ...] = ()
    owned: Owned | None = None  # None: the address is no longer owned


def look_row(action: Action) -> Row:
    """The row by which a written action is looked at again: what was made is now there by its id."""
    return Row.UPDATE if action.row in (Row.CREATE, Row.MISSING) else action.row


def missed(answer: Answer | None, lost: str, owned: Owned | None, fields: tuple[str, ...]) -> Verdict:
    """The outcome of what the read-back does not show."""
    if lost:
        return Verdict(Outcome.UNCERTAIN, lost, fields, owned)
    if answer is None:
        return Verdict(Outcome.NOT_APPLIED, "the door gave no answer for it", fields, owned)
    if answer.code is Code.REFUSED:
        return Verdict(Outcome.REFUSED, answer.words, fields, owned)
    if answer.code is Code.STALE:
        return Verdict(Outcome.REFUSED, answer.words or "it changed between plan and write", fields, owned)
    if answer.code in (Code.LOST, Code.HARMED):
        return Verdict(Outcome.UNCERTAIN, answer.words, fields, owned)
    said = "the door said yes, and the read-back does not show it"
    return Verdict(Outcome.NOT_APPLIED, said, fields, owned)


def in_the_clear(
    verdicts: Sequence[tuple[Action, Verdict]], turned: Collection[str]
) -> tuple[list[tuple[Action, Verdict]], str]:
    """The verdicts of a step after which secrets stand in the clear where only references stood, and why the home
    stops, "" if it goes on: the door did that, whatever it answered."""
    if not turned or not any(action.writes for action, _ in verdicts):
        return list(verdicts), ""
    why = f"a reference became a secret in the clear: {', '.join(sorted(turned))}"
    judged = [(a, replace(v, outcome=Outcome.NOT_APPLIED, reason=why) if a.writes else v) for a, v in verdicts]
    return judged, f"{why}: this home stops"


def harmed(
    verdicts: Sequence[tuple[Action, Verdict]], answers: Mapping[Address, Answer]
) -> tuple[list[tuple[Action, Verdict]], str]:
    """The verdicts of a step whose write touched what was not its own, and why the home stops, "" if none did (L16).
    That a row shows as it should is not all that its write has done, and a person has to look."""
    found = {address: answer.words for address, answer in answers.items() if answer.code is Code.HARMED}
    judged = [
        (a, replace(v, outcome=Outcome.UNCERTAIN, reason=found[a.address]) if a.address in found else v)
        for a, v in verdicts
    ]
    return judged, "the write touched a neighbour: this home stops (L16)" if found else ""


def waits_for_failed(action: Action, failed: Collection[Address]) -> Address | None:
    """Which failed row keeps this one from going on (L12): one that it needs or comes after, or, for the delete of a
    profile, one in it, which would go all the same."""
    if action.row is Row.DELETE and action.address.kind is Kind.PROFILE:
        return next((f for f in failed if f.profile == action.address.profile and f != action.address), None)
    return next((n for n in (*action.needs, *action.after) if n in failed), None)
