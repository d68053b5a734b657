"""The HTML report in a real Chromium: readable on a phone, dark and light, filtered, and closed to the outside.

`REPORT_PICTURES=FOLDER` keeps the screenshots for somebody to look at; docs/report.png is made of two of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browser
from plans import ORIGIN, every_sort, hostile, many
from reconciler.cli.render.report import report
from reconciler.cli.render.report_html import report_html

SHOWN = "[...document.querySelectorAll('.row')].filter(e => e.offsetParent !== null).length"
HOMES = "[...document.querySelectorAll('main > .home')].filter(e => e.offsetParent !== null).length"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name, plan in (("every", every_sort()), ("hostile", hostile()), ("many", many())):
        found[name] = folder / f"{name}.html"
        found[name].write_text(report_html(report(plan, ORIGIN)), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", ["every", "hostile", "many"])
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1100, False), (1100, True)])
def test_it_opens_fits_and_asks_for_nothing(
    page: Page, files: dict[str, Path], name: str, width: int, dark: bool, tmp_path: Path
) -> None:
    page.open(files[name], width, dark=dark)
    assert page.asked == [files[name].as_uri()] and page.said == []
    assert page.value("document.documentElement.scrollWidth") <= width, "nothing is wider than the screen"
    assert page.value("document.querySelectorAll('script').length") == 1
    ink, paper = (page.value(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert _bright(ink) > _bright(paper) if dark else _bright(ink) < _bright(paper)
    assert page.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 14
    folder = Path(os.environ.get("REPORT_PICTURES", tmp_path))
    shot = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
    page.picture(shot)
    assert shot.stat().st_size > 10_000


def _bright(colour: str) -> float:
    red, green, blue = (float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue


def test_filters_by_risk_and_by_home(page: Page, files: dict[str, Path]) -> None:
    page.open(files["every"], 1100)
    assert page.value(SHOWN) == 14 and page.value(HOMES) == 6
    for risk in ("held", "confirm", "auto", "at-rest", "failed"):
        page.value(f"document.querySelector('button[data-risk={risk}]').click()")
    assert page.value(SHOWN) == 2, "only the deletes are left"
    assert page.value("[...document.querySelectorAll('.row.delete')].every(e => e.offsetParent !== null)")
    assert page.value(HOMES) == 1
    page.value("document.querySelector('button[data-risk=delete]').click()")
    assert page.value(HOMES) == 0 and page.value("document.querySelector('.none').offsetParent !== null")
    page.open(files["every"], 1100)
    page.value("var s = document.querySelector('select'); s.value = 'h1'; s.dispatchEvent(new Event('change'))")
    assert page.value(HOMES) == 1 and page.value(SHOWN) == 2


def test_without_scripts_it_is_a_plain_list(page: Page, files: dict[str, Path]) -> None:
    page.open(files["every"], 390, scripts=False)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.value(SHOWN) == 14, "nothing needs the script to be seen"
    assert page.value("document.querySelector('nav').offsetParent === null"), "what would do nothing is not shown"


def test_the_order_is_drawn(page: Page, files: dict[str, Path]) -> None:
    page.open(files["every"], 1100)
    page.value("document.querySelector('details.order').open = true")
    boxes = page.value(
        "[...document.querySelectorAll('svg .node')].map(g => ({t: g.querySelector('text').getBBox().width + 14,"
        " w: +g.querySelector('rect').getAttribute('width')}))"
    )
    assert len(boxes) == 5 and all(box["t"] <= box["w"] for box in boxes), "each name fits its box"
    assert page.value("document.querySelectorAll('svg path.edge').length") == 3
