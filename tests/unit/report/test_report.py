"""Reports of a plan: golden files, a size, hostile names, and no secret. `UPDATE_REPORTS=1` writes the golden files."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from plans import CANARY, HOSTILE, ORIGIN, every_sort, hostile, many, secrets_in_the_clear
from reconciler import planfile
from reconciler.cli.render.json import plan_json
from reconciler.cli.render.picture import direct, layers, plan_dot, plan_mermaid
from reconciler.cli.render.report import Risk, report
from reconciler.cli.render.report_html import POLICY, report_html
from reconciler.cli.render.report_md import LIMIT, code, report_md, text
from reconciler.plan import Plan

GOLDEN = Path(__file__).parent / "golden"
WRITERS: dict[str, Callable[[Plan], str]] = {
    "md": lambda plan: report_md(report(plan, ORIGIN), whole=["plan.html"]),
    "html": lambda plan: report_html(report(plan, ORIGIN)),
    "json": lambda plan: plan_json(plan, ORIGIN) + "\n",
    "mmd": lambda plan: plan_mermaid(plan) + "\n",
    "dot": lambda plan: plan_dot(plan) + "\n",
}
ALL = [(name, form) for name in ("every", "hostile") for form in WRITERS]
PLANS = {"every": every_sort, "hostile": hostile}


@pytest.mark.parametrize(("name", "form"), ALL)
def test_golden(name: str, form: str) -> None:
    made = WRITERS[form](PLANS[name]())
    path = GOLDEN / f"{name}.{form}"
    if os.environ.get("UPDATE_REPORTS"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8"), "look at the difference, then UPDATE_REPORTS=1"


def test_500_changes_over_40_homes_fit() -> None:
    made = report_md(report(many(), ORIGIN), whole=["plan.html"])
    assert len(made) <= LIMIT
    assert all(f"<code>agent-{n:02}</code>" in made for n in range(40)), "each home is in the table"
    assert made.count("- **delete**") == 50, "no delete is cut"
    cut = re.search(r"\*\*Cut to 60000 characters:\*\* (.*)\n$", made)
    assert cut and "plan.html" in cut[1]
    listed = made.count("- **")
    rows = re.search(r"(\d+) row\(s\) of", cut[1])
    assert listed + (int(rows[1]) if rows else 0) == 500
    values = re.search(r"values of (\d+) row", cut[1])
    assert made.count("```diff") + (int(values[1]) if values else 0) == listed - 50


@pytest.mark.parametrize("limit", [2_000, 3_000, 5_000, 10_000, 40_000])
@pytest.mark.parametrize(
    "make", [many, hostile, every_sort, lambda: many(400, 3000)], ids=["many", "hostile", "all", "vast"]
)
def test_any_size_is_kept(make: Callable[[], Plan], limit: int) -> None:
    made = report_md(report(make(), ORIGIN), limit)
    assert len(made) <= limit
    rest = markdown_structure(made)
    assert rest.count("<details>") == rest.count("</details>") == rest.count("<summary>")


def test_all_of_it_is_there_when_there_is_room() -> None:
    made = report_md(report(many(), ORIGIN), 10**6)
    assert "Cut to" not in made and made.count("- **") == 500 and made.count("```diff") == 450


def test_dangerous_homes_come_first() -> None:
    made = report(every_sort(), ORIGIN)
    assert [home.risk for home in made.homes] == sorted((h.risk for h in made.homes), key=list(Risk).index)
    assert [home.id for home in made.homes][:3] == ["far", "work", "main"]
    for home in made.homes:
        assert [row.risk for row in home.rows] == sorted((r.risk for r in home.rows), key=list(Risk).index)


def markdown_structure(made: str) -> str:
    """The report without its code spans and fences: what a forge would read as marks."""
    lines, fence = [], ""
    for line in made.splitlines():
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opened := re.match(r"\s*(`{3,})diff$", line):
            fence = opened[1]
        else:
            lines.append(re.sub(r"<code>[^<>]*</code>", "X", line))
    assert not fence
    return "\n".join(lines)


def test_no_name_breaks_the_markdown_or_calls_anyone() -> None:
    made = report_md(report(hostile(), ORIGIN))
    rest = markdown_structure(made)
    assert not re.search(r"@\w|(?<![\w&])#\w|https?://|www\.", rest)
    assert set(re.findall(r"</?[a-z]+|<!--", rest)) == {"<details", "</details", "<summary", "</summary", "<br", "<!--"}
    table = [line for line in rest.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(hostile().homes) and {line.count("|") for line in table} == {8}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x09\x0b-\x1f]", made)
    # Inside <code> every mark is an entity too: a forge reads Markdown there.
    for span in re.findall(r"<code>(.*?)</code>", made):
        assert not re.search(r"[@#`*_\[\]<>|~!](?!\d+;)", span.replace("&#", "")), span


class Rendered(HTMLParser):
    """Rendered Markdown: its elements, how deep they stand, and the text that is in no code."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()
        self.open: list[str] = []
        self.plain = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs or (tag in ("th", "td", "code") and [name for name, _ in attrs] in (["style"], ["class"])), (
            attrs
        )
        self.count[tag] += 1
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"code", "pre"} & set(self.open):
            self.plain += data


@pytest.mark.parametrize("make", [hostile, every_sort, many])
def test_a_renderer_sees_one_table_folded_homes_and_nobody_called(make: Callable[[], Plan]) -> None:
    """By a CommonMark renderer that lets HTML through, as a forge does before it cleans."""
    plan = make()
    seen = Rendered()
    seen.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(report_md(report(plan, ORIGIN), 10**6)))
    shown = [home for home in report(plan, ORIGIN).homes if home.risk is not Risk.REST]
    assert seen.open == [] and seen.count["table"] == 1 and seen.count["tr"] == 1 + len(shown)
    assert seen.count["td"] == 7 * len(shown) and seen.count["details"] == seen.count["summary"] == len(shown)
    assert seen.count["h2"] == 1 and seen.count["li"] == sum(len(home.rows) for home in shown)
    assert seen.count["pre"] == sum(1 for home in shown for row in home.rows if row.fields)
    known = {"h2", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "ul", "li"}
    assert set(seen.count) <= known | {"pre", "strong", "em", "br"}
    assert not re.search(r"[@#]\w|https?://|www\.\w", seen.plain)


@given(st.text(max_size=80))
def test_any_words_are_one_plain_line(words: str) -> None:
    for made in (text(words), code(words)):
        inner = made.removeprefix("<code>").removesuffix("</code>")
        assert "\n" not in inner and not set(re.sub(r"&#\d+;", "", inner)) & set("|`<>*[]@#!~$\\&")
        assert not re.search(r"(?<![^\W_])_|_(?![^\W_])", inner)


class Tags(HTMLParser):
    """Counts elements and keeps attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("make", [hostile, every_sort, many, secrets_in_the_clear])
def test_the_page_has_no_element_and_no_address_but_ours(make: Callable[[], Plan]) -> None:
    page = report_html(report(make(), ORIGIN))
    tags = Tags()
    tags.feed(page)
    assert tags.tags.count("script") == 1 and not {"img", "link", "iframe", "object", "base", "form"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on") or name in ("src", "style", "srcset")]
    assert [value for name, value in tags.attributes if name == "href"] == [ORIGIN.pipeline]
    assert ("content", POLICY) in tags.attributes
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x0b-\x1f]", page)


def test_a_pipeline_that_is_no_web_address_is_no_link() -> None:
    from dataclasses import replace

    page = report_html(report(every_sort(), replace(ORIGIN, pipeline="javascript:alert(1)")))
    assert "javascript:" not in page and "<a " not in page


@pytest.mark.parametrize("form", ["md", "html", "mmd", "dot"])
def test_no_report_has_a_secret(form: str) -> None:
    made = WRITERS[form](secrets_in_the_clear())
    assert CANARY not in made and CANARY[10:] not in made and "3" * 32 not in made and "4" * 32 not in made
    assert "hidden" in made or form in ("mmd", "dot")


def test_no_plan_file_has_a_secret() -> None:
    made = json.dumps(planfile.document(secrets_in_the_clear(), datetime(2031, 1, 1, tzinfo=UTC), ORIGIN))
    assert CANARY not in made and CANARY[10:] not in made and "3" * 32 not in made and "4" * 32 not in made
    assert "value from env TOKEN" in made


def test_json_is_the_same_document_with_where_it_is_from() -> None:
    plain, full = json.loads(plan_json(every_sort())), json.loads(plan_json(every_sort(), ORIGIN))
    assert full.pop("provenance") == ORIGIN.to_json() and full == plain


def test_layers_and_direct_edges() -> None:
    edges = [(0, 1), (1, 2), (0, 2), (3, 2)]
    assert layers(4, edges) == [0, 1, 2, 0]
    assert direct(4, edges) == [(0, 1), (1, 2), (3, 2)]
    deep = [(n, n + 1) for n in range(3000)]
    assert layers(3001, deep)[-1] == 3000


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40))
def test_a_picture_goes_from_left_to_right(pairs: list[tuple[int, int]]) -> None:
    edges = sorted({(a, b) for a, b in pairs if a < b})
    column = layers(12, edges)
    assert all(column[a] < column[b] for a, b in edges)
    kept = direct(12, edges)
    assert layers(12, kept) == column, "what is left out is said by a longer way"


def test_diagrams_have_a_node_per_row_and_quote_every_word() -> None:
    plan = hostile()
    for made in (plan_mermaid(plan), plan_dot(plan)):
        assert len(re.findall(r"^ +h\d+r\d+ ?\[", made, re.MULTILINE)) == len(HOSTILE)
        assert len(re.findall(r"^ +h\d+r\d+ --?> h\d+r\d+;?$", made, re.MULTILINE)) == sum(range(len(HOSTILE)))
        assert "\x1b" not in made and "\u202e" not in made
    labels = re.findall(r'\["(.*)"\]', plan_mermaid(plan))
    assert labels and not any(set('"<>`[]{}|&') & set(label) for label in labels)
    for line in plan_dot(plan).splitlines():
        assert len(re.sub(r'\\[\\"]', "", line).split('"')) % 2, line
