"""A report as one HTML page: no other file, no address; everything in it is escaped, and readable without script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .picture import NODES, slug, svg
from .report import MARK, FieldView, HomeView, Report, Risk, RowView, risks
from .report_page import SCRIPT, STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_WORDS = {
    Risk.FAILED: "failed or refused",
    Risk.DELETE: "delete",
    Risk.CONFIRM: "needs a person",
    Risk.HELD: "held",
    Risk.AUTO: "automatic",
    Risk.REST: "nothing to do",
}


def report_html(report: Report) -> str:
    """The page. Hidden values are words in it already; a link is only made of the pipeline's own address."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<meta name="generator" content="{MARK}">',
            f"<title>Plan for {escape(report.setup)}: {escape(report.headline)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *_header(report),
            *_filters(report),
            "<main>",
            *(line for home in report.homes for line in _home(home)),
            '<p class="none" hidden>Nothing of this plan is like that.</p>',
            "</main>",
            *_footer(report),
            f"<script>{SCRIPT}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _header(report: Report) -> Iterator[str]:
    yield "<header>"
    yield f'<p class="over">Plan for</p><h1>{escape(report.setup)}</h1>'
    yield f'<p class="headline">{escape(report.headline)}</p>'
    about = []
    if report.origin:
        about.append(f"<dt>setup</dt><dd>{escape(report.origin)}</dd>")
    if report.made_by:
        by = escape(report.made_by)
        if report.link:
            by = f'<a href="{escape(report.link)}" rel="noreferrer">{by}</a>'
        about.append(f"<dt>made by</dt><dd>{by}</dd>")
    if report.digest:
        about.append(f"<dt>digest</dt><dd><code>{escape(report.digest)}</code></dd>")
    if about:
        yield f"<dl>{''.join(about)}</dl>"
    yield "</header>"


def _filters(report: Report) -> Iterator[str]:
    """Shown by the script only: without it everything is there to be read."""
    yield '<nav class="filters" hidden aria-label="Filter">'
    yield '<div class="risks">'
    for risk, count in risks(report.counts, skip=()):
        yield (
            f'<button type="button" class="{slug(risk)}" data-risk="{slug(risk)}" aria-pressed="true">'
            f'<span class="dot"></span>{escape(_WORDS[risk])} <b>{count}</b></button>'
        )
    yield "</div>"
    if len(report.homes) > 1:
        yield '<label>Home <select><option value="">all homes</option>'
        for number, home in enumerate(report.homes):
            yield f'<option value="h{number}">{escape(home.id)}</option>'
        yield "</select></label>"
    yield "</nav>"
    yield "<noscript><p>Without scripts nothing is filtered: all of the plan is below.</p></noscript>"


def _home(home: HomeView) -> Iterator[str]:
    is_open = " open" if home.risk is not Risk.REST else ""
    yield f'<details class="home {slug(home.risk)}" data-risk="{slug(home.risk)}"{is_open}>'
    chips = "".join(
        f'<span class="chip {slug(risk)}">{count} {escape(str(risk))}</span>' for risk, count in risks(home.counts)
    )
    rest = f'<span class="chip at-rest">{home.unchanged} unchanged</span>' if home.unchanged else ""
    yield (
        f'<summary><span class="title"><b>{escape(home.id)}</b> <span class="harness">{escape(home.harness)}</span>'
        f'</span><span class="chips">{chips}{rest}</span></summary>'
    )
    yield f'<p class="where">{escape(home.where)}</p>'
    if home.why:
        yield f'<p class="why">{escape(home.why)}</p>'
    if home.command:
        yield f'<p class="next">next: <code>{escape(home.command)}</code></p>'
    for note in home.notes:
        yield f'<p class="note">{escape(note)}</p>'
    if home.rows:
        yield "<ul>"
        for row in home.rows:
            yield from _row(row)
        yield "</ul>"
    if home.left_out:
        yield f'<p class="note">{home.left_out} other row(s) are left out by the targets.</p>'
    picture = svg(home)
    if picture:
        joined = len({place for edge in home.edges for place in edge})
        more = f" (the first {NODES} of {joined})" if joined > NODES else ""
        yield f'<details class="order"><summary>What waits for what{more}</summary>'
        yield f'<div class="picture" tabindex="0">{picture}</div></details>'
    yield "</details>"


def _row(row: RowView) -> Iterator[str]:
    yield f'<li class="row {slug(row.risk)}" data-risk="{slug(row.risk)}">'
    rule = f'<span class="rule">{escape(row.rule)}</span>' if row.rule else ""
    name = f'<code class="name">{escape(row.name)}</code>'
    yield f'<p class="what"><span class="word">{escape(row.word)}</span> {name}{rule}</p>'
    if row.why:
        yield f'<p class="why">{escape(row.why)}</p>'
    if row.fields:
        yield '<dl class="fields">'
        for field in row.fields:
            yield from _field(field)
        yield "</dl>"
    for note in row.notes:
        yield f'<p class="note">{escape(note)}</p>'
    for command in row.commands:
        yield f'<p class="next">next: <code>{escape(command)}</code></p>'
    yield "</li>"


def _field(field: FieldView) -> Iterator[str]:
    words = f' <span class="said">{escape(field.words)}</span>' if field.words else ""
    yield f"<dt>{escape(field.name)}{words}</dt>"
    if field.diff:
        lines = "".join(_diff_line(line) for line in field.diff)
        yield f'<dd><pre class="diff">{lines}</pre></dd>'
    elif field.before:
        yield f"<dd><del>{escape(field.before)}</del><ins>{escape(field.after)}</ins></dd>"
    else:
        yield f"<dd><ins>{escape(field.after)}</ins></dd>"


def _diff_line(line: str) -> str:
    name = {"+": "plus", "-": "minus"}.get(line[:1], "same")
    return f'<span class="{name}">{escape(line) or " "}</span>'


def _footer(report: Report) -> Iterator[str]:
    yield "<footer>"
    if report.digest:
        yield (
            "<p>Nothing is done by reading this. A saved plan is carried out by "
            "<code>reconciler apply --plan FILE --reviewed</code>: only rows that are still as they are here.</p>"
        )
    yield "</footer>"
