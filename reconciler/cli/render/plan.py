"""A plan as text: per home the rows that matter, each with its reason and, where held, the next command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler_specs.resource import Mode

from ...action import Action, FieldChange, FieldRow, Row, Tier
from ...fields import FOUND
from ...plan import HomePlan, Plan
from ...words import show, sides
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
    for homes in _alike(plan.homes):
        yield from _home(homes, style, verbose)
    yield from _summary(plan, style)


def _alike(homes: Sequence[HomePlan]) -> list[list[HomePlan]]:
    """Homes grouped by equal rows, so that one change in forty homes is read once."""
    groups: dict[object, list[HomePlan]] = {}
    for home in homes:
        rows = tuple(
            (str(a.row), a.address.path, a.reason, tuple((c.field, str(c.row), str(c.declared)) for c in a.changes))
            for a in home.actions
        )
        same = (home.hold, home.failed, home.notes, home.version, home.unchanged, rows) if rows else home.id
        groups.setdefault(same if _hashable(same) else home.id, []).append(home)
    return list(groups.values())


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def quiet(home: HomePlan) -> bool:
    """Whether there is nothing to say of a home but how much of it is as it should be."""
    return not (home.actions or home.hold or home.failed or home.left_out)


def _home(homes: list[HomePlan], style: Style, verbose: bool) -> Iterator[str]:
    home = homes[0]
    names = ", ".join(safe(h.id) for h in homes[:6]) + (f" and {len(homes) - 6} more" if len(homes) > 6 else "")
    version = f" {home.version}" if home.version else ""
    place = "" if home.ref.place.local else f" at {safe(home.ref.place.name)}"
    where = f"  {safe(home.ref.path)}{place}" if len(homes) == 1 else ""
    yield style(names, "bold") + style(f"  {home.ref.harness}{version}{where}", "dim")
    for note in home.notes:
        yield style(f"  note: {safe(note)}", "dim")
    if home.elsewhere:
        yield style(f"  elsewhere: for the runner on {safe(home.elsewhere)}", "dim")
    if home.failed:
        yield f"  {style('✗', 'red')} {safe(home.failed)}"
        if home.remedy:
            yield f"      next: {style(safe(home.remedy), 'cyan')}"
    if home.hold:
        yield f"  {style('!', 'yellow')} held: {safe(home.hold.why)}"
        if home.hold.command:
            yield f"      next: {style(safe(home.hold.command), 'cyan')}"
    for action in home.actions:
        yield from action_lines(action, style, verbose=verbose)
    if home.unchanged:
        yield style(f"  {home.unchanged} unchanged", "dim")
    if home.left_out:
        yield style(f"  {home.left_out} other row(s) left out by the targets", "dim")
    yield ""


def action_lines(action: Action, style: Style, *, verbose: bool = False) -> Iterator[str]:
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
    for command in next_commands(action):
        yield f"      next: {style(safe(command), 'cyan')}"


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
        yield f"      {change.field:<12} {show(before)} → {show(after)}{tail}"
    if change.row is FieldRow.CONFLICT:
        yield f"      {'':<12} the setup now says {show(change.declared)}"
    if change.note and not change.writes:
        yield style(f"      {'':<12} {safe(change.note)}", "dim")


def next_commands(action: Action) -> list[str]:
    """What a person can type about a held row; empty if it is not held."""
    if action.hold is not None:
        return [action.hold.command] if action.hold.command else []
    if any(c.row in (FieldRow.DRIFT, FieldRow.CONFLICT) and c.held for c in action.changes):
        restore = f"reconciler apply --restore {action.address}"
        # A secret's value has no place in a setup: it is put back, or its source is brought up to date.
        return [restore] if action.source else [restore, f"reconciler capture {action.address}"]
    return []


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
