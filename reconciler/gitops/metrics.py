"""Metrics: how the loop stands, as values and as Prometheus text (format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..event import Event, Outcome
from ..plan import Plan
from .drift import drifts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "reconciler_gitops"
_WRONG = frozenset({Outcome.REFUSED, Outcome.NOT_APPLIED, Outcome.UNCERTAIN, Outcome.FAILED})
_NOT_APPLIED = _WRONG | {Outcome.INERT, Outcome.SKIPPED}
# A round may be late by so many intervals before the loop counts as stuck.
_LATE = 3


@dataclass(frozen=True, slots=True)
class HomeCounts:
    """Of one home. `applied` are rows since the loop was started; the others are as of the last look: rows that are
    held, drifts, and rows that were not applied when it was last tried (a home that cannot be read counts one)."""

    applied: int = 0
    held: int = 0
    drift: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """The loop after its last round. Times are seconds since 1970, 0 for never; `code` is the round's exit code.
    `failing` is set if the branch, a setup or a home cannot be read, or a revision is to be tried again.

    `working` is set while a round is under way. `unreachable` counts the rounds in a row whose fetch failed.
    """

    revision: str = ""
    code: int = 0
    failing: bool = False
    rounds: int = 0
    ended_at: float = 0.0
    success_at: float = 0.0
    seconds: float = 0.0
    unreachable: int = 0
    working: bool = False
    homes: Mapping[str, HomeCounts] = field(default_factory=dict)


def counted(plan: Plan, events: Sequence[Event], before: Mapping[str, HomeCounts]) -> dict[str, HomeCounts]:
    """The counts of the plan's homes after a round that told `events`; those of other places have none."""
    moved = [drift.home for drift in drifts(plan)]
    found = {}
    for home in plan.homes:
        if home.elsewhere:
            continue
        was, own = before.get(home.id, HomeCounts()), [e for e in events if e.home == home.id]
        failed = sum(e.outcome in _NOT_APPLIED for e in own) if own else was.failed if home.open else 0
        found[home.id] = HomeCounts(
            was.applied + sum(e.outcome is Outcome.APPLIED for e in own),
            sum(a.hold is not None or bool(a.held_fields) for a in home.actions) + bool(home.hold),
            moved.count(home.id),
            failed + bool(home.failed),
        )
    return found


def unfinished(plan: Plan, events: Sequence[Event]) -> bool:
    """Whether trying the same revision again may do more: a row went wrong, and not only for want of a person."""
    wait_for_a_person = {e.home for e in events if e.outcome is Outcome.WAITS}
    return any(home.failed for home in plan.homes) or any(
        e.outcome in _WRONG or (e.outcome is Outcome.SKIPPED and e.home not in wait_for_a_person) for e in events
    )


def unhealthy(standing: Standing, now: float, interval: float) -> str:
    """Why the loop does not do its work, "" if it does. What is held or waits for consent is no fault of the loop."""
    if not standing.rounds:
        return "" if standing.working else "no round has ended yet"
    if standing.failing:
        return f"the last round ended with {standing.code}"
    if not standing.working and now - standing.ended_at > _LATE * interval:
        return f"no round has ended for {now - standing.ended_at:.0f} s"
    return ""


def text(standing: Standing) -> str:
    """The metrics, one family after the other, each with its type and what it means."""
    return "".join(f"{line}\n" for line in _lines(standing))


def _lines(s: Standing) -> Iterator[str]:
    one: tuple[tuple[str, str, str, float], ...] = (
        ("rounds_total", "counter", "Rounds that have ended.", s.rounds),
        ("last_success_timestamp_seconds", "gauge", "When a round last did all that it could.", s.success_at),
        ("last_round_timestamp_seconds", "gauge", "When a round last ended.", s.ended_at),
        ("last_duration_seconds", "gauge", "How long the last round took.", s.seconds),
        ("last_exit_code", "gauge", "The exit code of the last round.", s.code),
        ("unreachable_rounds", "gauge", "Rounds in a row whose fetch failed.", s.unreachable),
    )
    for name, kind, about, value in one:
        yield from _family(name, kind, about, [({}, value)])
    known = [({"revision": s.revision}, 1.0)] if s.revision else []
    yield from _family("revision_info", "gauge", "The revision that the homes are compared with.", known)
    for name, kind, about in (
        ("applied_total", "counter", "Rows applied."),
        ("held", "gauge", "Rows that are held."),
        ("drift", "gauge", "Fields and things that somebody else changed."),
        ("failed", "gauge", "Rows that were not applied when last tried, or a home that cannot be read."),
    ):
        key = name.removesuffix("_total")
        values = [({"home": home}, float(getattr(counts, key))) for home, counts in sorted(s.homes.items())]
        yield from _family(f"home_{name}", kind, about, values)


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {about}"
    yield f"# TYPE {_PREFIX}_{name} {kind}"
    for labels, value in samples:
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{_PREFIX}_{name}{f'{{{said}}}' if said else ''} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
