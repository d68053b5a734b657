"""A plan as text: per home the rows that matter, each with its reason and, where held, the next command."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from reconciler_specs.resource import Mode

from ...action import Action, FieldChange, FieldRow, Row, Tier
from ...fields import FOUND
from ...observe import ABSENT, Unknown
from ...plan import HomePlan, Plan
from ...redact import unsayable
from ...words import between, show, sides
from .style import Style, safe, width
from .value import is_long, text_diff

_SYMBOLS = {
    Row.PROVISION: ("+", "green"),
    Row.ADOPT: ("=", "cyan"),
    Row.SETTLED: ("=", "cyan"),
    Row.CREATE: ("+", "green"),
    Row.MISSING: ("+", "yellow"),
    Row.UPDATE: ("~", "yellow"),
    Row.FOLLOW: ("~", "yellow"),
    Row.RESTART: ("↻", "yellow"),
    Row.DELETE: ("-", "red"),
    Row.FORGET: ("·", "dim"),
    Row.MOVED: ("→", "cyan"),
    Row.RELEASED: ("·", "dim"),
    Row.EXPIRED: ("·", "dim"),
    Row.SPENT: ("·", "dim"),
    Row.UNMANAGED: ("?", "dim"),
    Row.REFUSED: ("✗", "red"),
}
_HELD = ("!", "yellow")
FIELD_WORDS = {
    FieldRow.DRIFT: "changed in the home",
    FieldRow.CONFLICT: "changed in the home and in the setup",
    FieldRow.CLAIM: "",
    FieldRow.STAMP: "already as declared",
    FieldRow.RELEASE: "let go; stays as it is",
    FieldRow.UNSET: "left the setup",
    FieldRow.RESTORE: "back to the setup's value",
    FieldRow.BLOCKED: "cannot be read",
}


def plan_text(plan: Plan, style: Style, *, verbose: bool = False, head: str = "") -> Iterator[str]:
    """The lines of a plan; `head` is one about where the setup is from. Homes whose rows are the same are shown once,
    with all their names."""
    if head:
        yield style(head, "dim")
    for homes in _alike(plan.homes, verbose):
        yield from _home(homes, style, verbose)
    yield from _summary(plan, style)


def _alike(homes: Sequence[HomePlan], verbose: bool) -> list[list[HomePlan]]:
    """Homes grouped by what would be printed of them, so that one change in forty homes is read once, and two values
    never as one."""
    plain = Style(io.StringIO())
    groups: dict[object, list[HomePlan]] = {}
    for home in homes:
        said = tuple(_body(home, plain, verbose, _unnamed(home.id)))
        # What is printed of a long value is cut short.
        whole = tuple((c.field, repr((c.observed, c.write, c.declared))) for a in home.actions for c in a.changes)
        groups.setdefault((home.ref.harness, home.version, home.ref.place.name, said, whole), []).append(home)
    return list(groups.values())


def _unnamed(home: str) -> Callable[[str], str]:
    """Commands without the home's id in them."""
    own = re.compile(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])")
    return lambda command: own.sub("HOME", command)


def _home(homes: list[HomePlan], style: Style, verbose: bool) -> Iterator[str]:
    home, *others = homes
    version = f" {home.version}" if home.version else ""
    place = "" if home.ref.place.local else f" at {safe(home.ref.place.name)}"
    where = "" if others else f"  {safe(home.ref.path)}"
    *above, last = wrap(", ".join(safe(h.id) for h in homes), width() - 30, break_on_hyphens=False)
    yield from (style(names, "bold") for names in above)
    yield style(last, "bold") + style(f"  {home.ref.harness}{version}{where}{place}", "dim")
    unnamed = _unnamed(home.id)

    def command(words: str) -> str:
        likewise = (
            f"  # and so for {', '.join(safe(h.id) for h in others)}" if others and unnamed(words) != words else ""
        )
        return style(words, "cyan") + style(likewise, "dim")

    yield from _body(home, style, verbose, command)
    for words, number in (
        ("unchanged", sum(h.unchanged for h in homes)),
        ("other row(s) left out by the targets", sum(h.left_out for h in homes)),
    ):
        if number:
            yield style(f"  {number} {words}" + (f" in these {len(homes)} homes" if others else ""), "dim")
    yield ""


def _body(home: HomePlan, style: Style, verbose: bool, command: Callable[[str], str]) -> Iterator[str]:
    """What there is to say of a home, without its name and its numbers."""
    for note in home.notes:
        yield style(f"  note: {safe(note)}", "dim")
    if home.elsewhere:
        yield style(f"  elsewhere: for the runner on {safe(home.elsewhere)}", "dim")
    if home.failed:
        yield f"  {style('✗', 'red')} {safe(home.failed)}"
        if home.remedy:
            yield f"      next: {command(safe(home.remedy))}"
    if home.hold:
        yield f"  {style('!', 'yellow')} held: {safe(home.hold.why)}"
        if home.hold.command:
            yield f"      next: {command(safe(home.hold.command))}"
    why = home.hold.why if home.hold else ""
    same = [action for action in home.actions if action.row is Row.BLOCKED and action.reason == why]
    for action in home.actions:
        if len(same) < 3 or action not in same:
            yield from action_lines(action, style, verbose, command)
    if len(same) >= 3:
        yield f"  {style('!', 'yellow')} {len(same)} thing(s)  {style('blocked', 'yellow')}  for that reason"


def action_lines(action: Action, style: Style, verbose: bool, command: Callable[[str], str]) -> Iterator[str]:
    """One row: symbol, address without its home, row name, reason; then its fields and the next command."""
    held = action.hold is not None or (bool(action.held_fields) and not action.writes)
    symbol, colour = _HELD if held else _SYMBOLS.get(action.row, ("·", "dim"))
    name = action.address.path or "the home"
    word = str(action.row) if action.row is not Row.UPDATE else update_word(action)
    parts = [f"  {style(symbol, colour)} {style(safe(name), 'bold' if action.writes else 'dim')}", style(word, colour)]
    reason = action.hold.why if action.hold is not None else action.reason
    if reason:
        parts.append(safe(reason))
    line = "  ".join(parts)
    if (action.writes or action.records) and action.tier is not Tier.AUTO:
        line += style(f"  [{action.tier}: {safe(action.rule)}]", "red" if action.tier is Tier.REFUSE else "yellow")
    yield line
    if action.row in (Row.CREATE, Row.MISSING) and action.hold is None:
        for change in action.changes:
            if not (change.field == "name" and change.write == action.address.key):  # said by the address
                yield f"      {change.field:<12} {show(change.write, width() - 40)}"
    elif action.source:
        if action.writes:
            yield f"      {'value':<12} from {safe(action.source)}"
    elif action.row in (Row.UPDATE, Row.FOLLOW):
        for change in action.changes:
            if verbose or change.row not in (FieldRow.STAMP, FieldRow.RELEASE):
                yield from _field(change, style)
    for note in action.notes:
        yield style(f"      note: {safe(note)}", "dim")
    for line in next_commands(action):
        yield f"      next: {command(safe(line))}"


def update_word(action: Action) -> str:
    rows = {c.row for c in action.changes}
    for field_row in (FieldRow.CONFLICT, FieldRow.BLOCKED, FieldRow.DRIFT, FieldRow.RESTORE, FieldRow.SET):
        if field_row in rows:
            return str(field_row)
    if FieldRow.CLAIM in rows and not any(c.note == FOUND for c in action.changes):
        return "set"  # nothing is there to be claimed, or only what the harness fills in
    for field_row in (FieldRow.CLAIM, FieldRow.UNSET, FieldRow.RELEASE, FieldRow.STAMP):
        if field_row in rows:
            return str(field_row)
    return "update"


def _field(change: FieldChange, style: Style) -> Iterator[str]:
    before, after = sides(change)
    words = FIELD_WORDS.get(change.row, "")
    if change.row is FieldRow.DRIFT and change.mode is Mode.WATCH:
        words += " (watched)"
    tail = style(f"  {words}", "dim") if words else ""
    if is_long(before, after):
        yield f"      {change.field:<12}{tail}"
        for line in text_diff(str(before), str(after)):
            colour = {"+": "green", "-": "red"}.get(line[:1])
            yield "        " + (style(line, colour) if colour else line)
    else:
        yield f"      {change.field:<12} {between(before, after)}{tail}"
    if change.row is FieldRow.CONFLICT:
        yield f"      {'':<12} the setup now says {show(change.declared)}"
    if change.note and not change.writes:
        yield style(f"      {'':<12} {safe(change.note)}", "dim")


def next_commands(action: Action) -> list[str]:
    """What a person can type about a held row; empty if it is not held."""
    if action.hold is not None:
        return [action.hold.command] if action.hold.command else []
    held = [c for c in action.changes if c.row in (FieldRow.DRIFT, FieldRow.CONFLICT) and c.held]
    if not held:
        return []
    restore = f"reconciler apply --restore {action.address}"
    # A secret's value has no place in a setup: it is put back, or its source is brought up to date.
    said = [] if action.source else [c for c in held if _sayable(c)]
    if len(said) == len(held):
        return [restore, f"reconciler capture {action.address}"]
    return [restore, *(f"reconciler capture {action.address}#{change.field}" for change in said)]


def _sayable(change: FieldChange) -> bool:
    """Whether the home has a value that can stand in a setup."""
    seen = change.observed
    return seen is not ABSENT and not isinstance(seen, Unknown) and not unsayable(seen)


def _summary(plan: Plan, style: Style) -> Iterator[str]:
    counts = tally(plan)
    words = [
        f"{counts['create']} to create",
        f"{counts['change']} to change",
        f"{counts['delete']} to delete",
    ]
    for name in ("record", "held", "watched"):
        if counts[name]:
            words.append(f"{counts[name]} {name if name != 'record' else 'to record'}")
    words.append(f"{counts['unchanged']} unchanged")
    if counts["failed"]:
        words.append(f"{counts['failed']} home(s) failed")
    yield style("Plan: ", "bold") + ", ".join(words) + "."
    if any(h.open for h in plan.homes):
        yield style(f"digest {plan.digest}", "dim")


def tally(plan: Plan) -> Counter[str]:
    """How many rows of each sort: create, change, delete, record, held, watched, unchanged, failed."""
    counts: Counter[str] = Counter()
    for home in plan.homes:
        counts["unchanged"] += home.unchanged
        counts["failed"] += bool(home.failed)
        counts["held"] += bool(home.hold)
        for action in home.actions:
            counts[_sort(action)] += 1
            if action.writes and action.held_fields:
                counts["held"] += 1
    return counts


def _sort(action: Action) -> str:
    if action.hold is not None:
        return "held"
    if action.writes:
        return {Row.CREATE: "create", Row.MISSING: "create", Row.PROVISION: "create", Row.DELETE: "delete"}.get(
            action.row, "change"
        )
    if action.records:
        return "record"
    if action.held_fields:
        return "held"
    return "watched" if action.row is Row.UPDATE else str(action.row)
