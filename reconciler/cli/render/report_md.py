"""A report as Markdown for a pull request: within a size, and nothing that a home says can break it or call anyone.

What comes from a setup or a home is either in a code span or a fence, where nobody is called, or has its marks written
as entities. A fence is longer than any run of backticks in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .report import MARK, FieldView, HomeView, Report, Risk, RowView, risks

LIMIT = 60_000  # characters: a comment on the big forges takes 65,536
LEAST = 2_000
_NAMED = 5  # homes that what was cut names
_NAME, _TEXT = 160, 300  # characters of a name and of a sentence
_HOMES = 60  # rows of the table

_ACTIVE = re.compile(r"[^\w /.,=()+→…‹›?;:'-]|(?<![^\W_])_+|_+(?![^\W_])|(?<=www)\.|://", re.IGNORECASE)
# What a forge looks for in text that is rendered already: mentions, references, addresses.
_CALLS = re.compile(r"(&#(?:64|35|33|126|37|36|38);)(?=\w)|(&#58;)(?=&#47;&#47;)|(?<=www)(?=&#46;)", re.IGNORECASE)


def report_md(report: Report, limit: int = LIMIT, whole: Sequence[str] = ()) -> str:
    """The report in at most `limit` characters. `whole` names the files that have all of it, for what is cut."""
    head = _head(report)
    shown = [home for home in report.homes if home.risk is not Risk.REST]
    table, hidden = _table(report, shown, limit // 2)
    blocks = [_Block(home) for home in shown]
    most = _Cut(10**6, 10**6, 10**6, (*_longest(blocks), "and a number more"))
    used = len(head) + len(table) + len(_cut_words(most, limit, whole))
    # First every home gets its rows, then, while there is room, their values: a name without a value can be looked up.
    for block in blocks:
        used += block.take_rows(limit - used)
    for block in blocks:
        used += block.take_values(limit - used)
    made = head + table + "".join(block.text() for block in blocks) + _cut_words(_cut(blocks, hidden), limit, whole)
    if len(made) <= limit:
        return made
    return f"<!-- {MARK} -->\n## Plan: {report.headline}\n\nToo long for {limit} characters.\n"


def _head(report: Report) -> str:
    lines = [f"<!-- {MARK} -->", f"## Plan for {code(report.setup)}: {text(report.headline)}", ""]
    if report.digest:
        lines += [f"digest `{report.digest}`", ""]
    about = []
    if report.origin:
        about.append(f"from {text(report.origin, 160)}")
    if report.made_by:
        about.append(f"made by {text(report.made_by, 120)}")
    if about:
        lines += [" · ".join(about), ""]
    return "\n".join(lines) + "\n"


def _table(report: Report, shown: Sequence[HomeView], room: int) -> tuple[str, int]:
    """The table of homes, the most dangerous first, and how many homes had no place in it."""
    lines = []
    if shown:
        lines += ["| home | harness | delete | confirm | held | auto | |", "|---|---|--:|--:|--:|--:|---|"]
    hidden = 0
    for home in shown:
        numbers = [str(home.counts.get(risk, 0) or "") for risk in (Risk.DELETE, Risk.CONFIRM, Risk.HELD, Risk.AUTO)]
        word = {Risk.FAILED: "**failed**" if home.why else "**refused**", Risk.DELETE: "**deletes**"}.get(home.risk, "")
        why = text(home.why, 120)
        last = f"{word}: {why}" if word and why else word or why
        line = f"| {code(home.id)} | {text(home.harness, 40)} | {' | '.join(numbers)} | {last} |"
        if len(lines) - 2 >= _HOMES or sum(map(len, lines)) + len(line) > room:
            hidden += 1
        else:
            lines.append(line)
    rest = [home for home in report.homes if home.risk is Risk.REST]
    if rest:
        names = ", ".join(code(home.id, 40) for home in rest[:20]) + (
            f" and {len(rest) - 20} more" if rest[20:] else ""
        )
        things = sum(home.unchanged for home in rest)
        lines += ["", f"At rest: {names} ({things} thing(s) as declared)."]
    return "\n".join(lines) + "\n\n", hidden


@dataclass
class _Block:
    """One home's details, at first none; `rows` of them are listed, with values for the first `values`."""

    home: HomeView
    rows: int = 0
    values: int = 0
    shown: bool = False

    def take_rows(self, room: int) -> int:
        """Lists as many rows as there is room for; the characters that it took."""
        needs = len(self._open()) + len(self._close())
        if needs > room:
            return 0
        self.shown = True
        for row in self.home.rows:
            size = len(_row(row)) + 1
            if needs + size > room:
                break
            needs += size
            self.rows += 1
        return needs

    def take_values(self, room: int) -> int:
        taken = 0
        for row in self.home.rows[: self.rows]:
            size = len(_values(row))
            if taken + size > room:
                break
            taken += size
            self.values += 1
        return taken

    def _open(self) -> str:
        home = self.home
        counts = ", ".join(f"{number} {risk}" for risk, number in risks(home.counts))
        lines = ["<details>", f"<summary>{code(home.id)}: {counts or 'notes'}</summary>", ""]
        said = [f"{text(home.why)}" + (f" Next: {code(home.command)}" if home.command else "")] if home.why else []
        said += [f"note: {text(note)}" for note in home.notes[:5]]
        return "\n".join([*lines, *(part for line in said for part in (line, "")), ""])

    def _close(self) -> str:
        home = self.home
        more = f"{home.unchanged} unchanged" + (f", {home.left_out} left out by the targets" if home.left_out else "")
        return f"\n{more}. {text(home.where, 120)}\n\n</details>\n\n"

    def text(self) -> str:
        """The home's details as far as they were taken."""
        if not self.shown:
            return ""
        rows = [
            _row(row) + (_values(row) if place < self.values else "") + "\n"
            for place, row in enumerate(self.home.rows[: self.rows])
        ]
        return f"{self._open()}{''.join(rows)}{self._close()}"

    @property
    def without_values(self) -> int:
        return sum(1 for row in self.home.rows[self.values : self.rows] if row.fields)

    @property
    def left_out(self) -> int:
        return len(self.home.rows) - self.rows


def _row(row: RowView) -> str:
    why = f" {text(row.why)}" if row.why else ""
    rule = f" _[{text(row.rule, 120)}]_" if row.rule else ""
    line = f"- **{row.word}** {code(row.name)}{why}{rule}"
    line += "".join(f"<br>note: {text(note)}" for note in row.notes[:3])
    return line + "".join(f"<br>next: {code(command)}" for command in row.commands)


def _values(row: RowView) -> str:
    """The row's fields as one diff, indented below its line; "" if it has none."""
    lines = [line for field in row.fields for line in _field(field)]
    if not lines:
        return ""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n" + "\n".join(f"  {line}" for line in (f"{fence}diff", *lines, fence))


def _field(field: FieldView) -> list[str]:
    words = f"  # {_flat(field.words)}" if field.words else ""
    name = _flat(field.name)
    if field.diff:
        return [f"  {name}:{words}", *(line if line[:1] in "+-" else f" {line}" for line in map(_flat, field.diff))]
    before = [f"- {name}: {_flat(field.before)}"] if field.before else []
    return [*before, f"+ {name}: {_flat(field.after)}{words}"]


@dataclass(frozen=True, slots=True)
class _Cut:
    """What had no room: homes of the table, rows, values of rows that are listed, and the homes of those rows."""

    homes: int
    rows: int
    values: int
    names: tuple[str, ...]


def _cut(blocks: Sequence[_Block], hidden: int) -> _Cut:
    return _Cut(
        hidden,
        sum(block.left_out for block in blocks),
        sum(block.without_values for block in blocks),
        tuple(code(block.home.id, 40) for block in blocks if block.left_out),
    )


def _longest(blocks: Sequence[_Block]) -> tuple[str, ...]:
    return tuple(sorted((code(block.home.id, 40) for block in blocks), key=len, reverse=True)[:_NAMED])


def _cut_words(cut: _Cut, limit: int, whole: Sequence[str]) -> str:
    """What was cut, and where it is. "" if nothing was."""
    parts = []
    if cut.homes:
        parts.append(f"{cut.homes} home(s) of the table")
    if cut.rows:
        more = f" and {len(cut.names) - _NAMED} more" if cut.names[_NAMED:] else ""
        parts.append(f"{cut.rows} row(s) of {', '.join(cut.names[:_NAMED])}{more}")
    if cut.values:
        parts.append(f"the values of {cut.values} row(s)")
    if not parts:
        return ""
    where = ", ".join(code(name, 60) for name in whole[:3]) or code("reconciler plan --report plan.html")
    return f"**Cut to {limit} characters:** {'; '.join(parts)}. The whole is in {where}.\n"


def text(words: str, most: int = _TEXT) -> str:
    """Words from anywhere as one line of Markdown text, with no mark, link, mention or reference in it."""
    return _CALLS.sub(lambda found: f"{found[0]}&#8203;", _entities(words, most))


def code(words: str, most: int = _NAME) -> str:
    """A name from anywhere as a code span, which no character in it can end."""
    return f"<code>{_entities(words, most)}</code>"


def _entities(words: str, most: int) -> str:
    flat = _flat(words)
    if len(flat) > most:
        flat = flat[: most - 1] + "…"
    return _ACTIVE.sub(lambda found: "".join(f"&#{ord(char)};" for char in found[0]), flat)


def _flat(words: str) -> str:
    return re.sub(r"\s*\n\s*", " ⏎ ", words).replace("\t", " ")
