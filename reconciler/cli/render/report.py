"""A plan as a report: the homes and rows in the order in which a reviewer wants them, in words. Pure.

Markdown and HTML are made from this one value, so that they say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reconciler_specs.resource import Mode

from ...action import Action, FieldChange, FieldRow, Row, Tier
from ...graph import edges
from ...plan import HomePlan, Plan
from ...provenance import Provenance
from ...words import show, sides
from .plan import FIELD_WORDS, next_commands, tally, update_word
from .style import safe
from .value import is_long, text_diff

MARK = "reconciler.report/1"  # in every report, so that the next one may be written over it
VALUE = 400  # characters of a value on one line
LINES = 120  # lines of one field's diff


class Risk(StrEnum):
    """What a reviewer has to look at, the most dangerous first."""

    FAILED = "failed"
    DELETE = "delete"
    CONFIRM = "confirm"
    HELD = "held"
    AUTO = "auto"
    REST = "at rest"


ORDER = {risk: place for place, risk in enumerate(Risk)}


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field: what it is and what it is to be, each on one line, or `diff`, lines that begin with + - or a space.
    `before` is "" where nothing is replaced. `words` say what the change is, "" if nothing is to be said."""

    name: str
    before: str = ""
    after: str = ""
    diff: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class RowView:
    """One row. `name` is its address without the home; `why` its reason, or what holds it."""

    address: str
    name: str
    word: str
    risk: Risk
    why: str = ""
    rule: str = ""
    fields: tuple[FieldView, ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeView:
    """One home. `edges` are (first, then) places in `rows`; `why` says why the home as a whole failed or is held."""

    id: str
    harness: str
    where: str
    risk: Risk
    counts: Mapping[Risk, int]
    rows: tuple[RowView, ...]
    edges: tuple[tuple[int, int], ...]
    why: str = ""
    command: str = ""
    notes: tuple[str, ...] = ()
    unchanged: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A whole plan, its homes the most dangerous first. `digest` is "" if there is nothing to carry out."""

    setup: str
    headline: str
    digest: str
    counts: Mapping[Risk, int]
    homes: tuple[HomeView, ...]
    origin: str = ""
    made_by: str = ""
    link: str = ""


def report(plan: Plan, provenance: Provenance | None = None) -> Report:
    """The plan in a reviewer's order."""
    homes = sorted((_home(home) for home in plan.homes), key=lambda home: (ORDER[home.risk], not home.why))
    counts: Counter[Risk] = Counter()
    for home in homes:
        counts.update(home.counts)
    known = provenance or Provenance()
    return Report(
        safe(plan.owner),
        headline(plan),
        plan.digest if any(h.open for h in plan.homes) else "",
        counts,
        tuple(homes),
        origin(known),
        _made_by(known),
        known.pipeline if known.pipeline.startswith(("https://", "http://")) else "",
    )


def _made_by(provenance: Provenance) -> str:
    """Who made the plan, and in which run of a pipeline; a login session says nothing to anybody else."""
    run = provenance.run if provenance.run.startswith("ci ") else ""
    return " in ".join(safe(part) for part in (provenance.actor, run) if part)


def headline(plan: Plan) -> str:
    """What the plan comes to, on one line."""
    counts = tally(plan)
    words = [
        f"{counts[name]} {said}"
        for name, said in (
            ("create", "to create"),
            ("change", "to change"),
            ("delete", "to delete"),
            ("record", "to record"),
            ("held", "held"),
            ("watched", "watched"),
            ("failed", "home(s) failed"),
        )
        if counts[name]
    ]
    return ", ".join(words) or "nothing to do"


def origin(provenance: Provenance) -> str:
    """Which commit the setup is at, on one line; "" where it is in no repository."""
    if not provenance.commit:
        return ""
    ref = f"{safe(provenance.ref)} at " if provenance.ref else ""
    author = f" by {safe(provenance.author)}" if provenance.author else ""
    return f"{ref}{provenance.commit[:12]}{author}{', not as committed' if provenance.dirty else ''}"


def _home(home: HomePlan) -> HomeView:
    risks = [_risk(home, action) for action in home.actions]
    places = sorted(range(len(risks)), key=lambda i: (ORDER[risks[i]], i))
    now = {old: new for new, old in enumerate(places)}
    counts = Counter(risks[i] for i in places)
    if home.failed:
        counts[Risk.FAILED] += 1
    elif home.hold and not counts[Risk.HELD]:
        counts[Risk.HELD] += 1
    place = "" if home.ref.place.local else f" at {home.ref.place.name}"
    why = f"elsewhere: for the runner on {home.elsewhere}" if home.elsewhere else home.failed
    return HomeView(
        safe(home.id),
        safe(f"{home.ref.harness} {home.version or ''}".strip()),
        safe(f"{home.ref.path}{place}"),
        min(counts, key=ORDER.__getitem__, default=Risk.REST),
        counts,
        tuple(_row(home.actions[i], risks[i]) for i in places),
        tuple(sorted({(now[first], now[then]) for first, then in edges(home.actions)})),
        safe(why or (home.hold.why if home.hold else "")),
        safe(home.hold.command if home.hold else ""),
        tuple(safe(note) for note in home.notes),
        home.unchanged,
        home.left_out,
    )


def _risk(home: HomePlan, action: Action) -> Risk:
    if action.row is Row.REFUSED or (action.tier is Tier.REFUSE and action.writes):
        return Risk.FAILED
    if action.hold is not None or (action.held_fields and not action.writes):
        return Risk.HELD
    if home.hold and (action.writes or action.records):
        return Risk.HELD
    if action.writes or action.records:
        if action.row is Row.DELETE:
            return Risk.DELETE
        return Risk.CONFIRM if action.tier is Tier.CONFIRM else Risk.AUTO
    return Risk.REST


def _row(action: Action, risk: Risk) -> RowView:
    return RowView(
        safe(str(action.address)),
        safe(action.address.path or "the home"),
        str(action.row) if action.row is not Row.UPDATE else update_word(action),
        risk,
        safe(action.hold.why if action.hold is not None else action.reason),
        safe(action.rule) if action.writes and action.tier is not Tier.AUTO else "",
        tuple(_fields(action)),
        tuple(safe(note) for note in action.notes),
        tuple(safe(command) for command in next_commands(action)),
    )


def _fields(action: Action) -> Iterator[FieldView]:
    if action.source:
        if action.writes:
            yield FieldView("value", after=f"from {safe(action.source)}")
    elif action.row in (Row.CREATE, Row.MISSING) and action.hold is None:
        for change in action.changes:
            if not (change.field == "name" and change.write == action.address.key):  # said by the address
                yield _created(change)
    elif action.row in (Row.UPDATE, Row.FOLLOW):
        for change in action.changes:
            yield _changed(change)


def _created(change: FieldChange) -> FieldView:
    name = safe(change.field)
    if is_long(change.write) and isinstance(change.write, str):
        return FieldView(name, diff=tuple(text_diff("", change.write, LINES)))
    return FieldView(name, after=show(change.write, VALUE))


def _changed(change: FieldChange) -> FieldView:
    before, after = sides(change)
    words = FIELD_WORDS.get(change.row, "")
    if change.row is FieldRow.DRIFT and change.mode is Mode.WATCH:
        words += " (watched)"
    if change.row is FieldRow.CONFLICT:
        words += f"; the setup now says {show(change.declared)}"
    if change.note and not change.writes:
        words = "; ".join(part for part in (words, safe(change.note)) if part)
    name = safe(change.field)
    if is_long(before, after):
        return FieldView(name, diff=tuple(text_diff(str(before), str(after), LINES)), words=words)
    return FieldView(name, show(before, VALUE), show(after, VALUE), words=words)


def risks(counts: Mapping[Risk, int], skip: Sequence[Risk] = (Risk.REST,)) -> list[tuple[Risk, int]]:
    """How many rows of each risk there are, the most dangerous first."""
    return [(risk, counts[risk]) for risk in Risk if counts.get(risk) and risk not in skip]
