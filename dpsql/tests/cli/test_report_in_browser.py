"""The owner's report in a real browser: on a telephone and a wide screen, by the keyboard alone, and with good contrast."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.studio.report import asset

from ..support.browser import Browser, browsing, missing
from .test_studio import HOSTILE, bench_data, exported

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")

ARROW_RIGHT = "\ue014"

CONTRASTS = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = numbers(colour).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    const [, , , alpha = 1] = numbers(colour);
    if (alpha === 1) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || ["SCRIPT", "STYLE", "title"].includes(element.tagName) || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const drawn = element instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(drawn), light(ground(element))].sort((x, y) => y - x);
  found.push([element.tagName, element.textContent.slice(0, 40), (a + 0.05) / (b + 0.05)]);
}
return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(run, campus: Path, browser: Browser) -> str:  # type: ignore[no-untyped-def]
    """A page with something on it, open at its usual size; returns its text."""
    run("query", "--epsilon", "0.3", HOSTILE)
    text = exported(run, campus)
    browser.size(1280, 900)
    browser.open((campus.parent / "report.html").as_uri())
    return text


def test_a_file_of_it_works_alone_and_runs_nobody_elses_script(page: str, browser: Browser) -> None:
    assert browser.run("return document.title") == "dpsql: campus"
    assert "</script><script>document.title" in browser.run("return document.body.innerText")
    assert browser.run("return document.getElementById('bench-form').hidden") is False
    assert browser.complaints() == []
    browser.run(
        "const one = document.createElement('script'); one.textContent = 'document.title = 1'; document.body.append(one)"
    )
    assert browser.run("return document.title") == "dpsql: campus", "its policy lets no other script run"
    assert browser.complaints()


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_it_fits_the_screen(width: int, page: str, browser: Browser) -> None:
    browser.size(width, 900)
    browser.run("document.querySelector('details').open = true")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    shown = browser.run(
        "return [...document.querySelectorAll('#budget .chart')].filter((one) => one.clientWidth).length"
    )
    assert shown == 1
    sizes = browser.run(
        "return [...document.querySelectorAll('.chart svg')].filter((one) => one.clientWidth)"
        ".map((one) => 11.5 * one.clientWidth / one.viewBox.baseVal.width)"
    )
    assert min(sizes) >= 9, "text in charts can be read"


@pytest.mark.parametrize("width", [360, 1600])
def test_all_text_has_contrast(width: int, page: str, browser: Browser) -> None:
    browser.size(width, 900)
    browser.run("document.querySelector('details').open = true")
    found = browser.run(CONTRASTS)
    assert len(found) > 80
    assert [one for one in found if one[2] < 4.5] == []


def test_the_bench_is_moved_by_the_keyboard(page: str, browser: Browser) -> None:
    statements = bench_data(page)["statements"]
    place, asked = next(
        (n, one) for n, one in enumerate(statements) if one["sql"] == "SELECT COUNT(*) FROM loan"
    )  # type: ignore[arg-type,var-annotated]
    said = "return document.getElementById('said').textContent"
    browser.run("document.getElementById('statement').focus()")
    browser.keys(asked["sql"])
    assert browser.run("return Number(document.getElementById('statement').value)") == place
    epsilon, rows = asked["epsilons"].index(0.1), asked["max_rows"].index(60)
    bars = [
        asked["noises"][row][at][2]
        for row, at in ((rows, epsilon), (rows, epsilon + 1), (rows + 1, epsilon + 1))
    ]
    assert shown_bar(browser.run(said)) == pytest.approx(bars[0], abs=0.5)
    browser.run("document.getElementById('epsilon').focus()")
    browser.keys(ARROW_RIGHT)
    assert shown_bar(browser.run(said)) == pytest.approx(bars[1], abs=0.5)
    browser.run("document.getElementById('rows').focus()")
    browser.keys(ARROW_RIGHT)
    assert shown_bar(browser.run(said)) == pytest.approx(bars[2], abs=0.5)
    assert "Never measured" in browser.run("return document.getElementById('cut').textContent")


def test_everything_is_reached_by_tab_and_is_seen_then(page: str, browser: Browser) -> None:
    reached, outlines = [], []
    for _ in range(40):
        browser.tab()
        name, outline = browser.run(
            "const at = document.activeElement; return [at.id || at.getAttribute('href') || at.tagName, "
            "getComputedStyle(at).outlineStyle + getComputedStyle(at).outlineWidth]"
        )
        if name == "BODY":
            break
        reached.append(name)
        outlines.append(outline)
    wanted = [
        "#budget",
        "#statements",
        "#stored",
        "#bench",
        "#policy",
        "statement",
        "people",
        "epsilon",
        "SUMMARY",
    ]
    assert reached[0] == "#budget", "past the head at once"
    assert [name for name in reached[1:] if name in wanted] == wanted
    assert set(outlines) == {"solid3px"}


def shown_bar(said: str) -> float:
    found = re.search(r"± ([\d,.]+):", said)
    assert found
    return float(found[1].replace(",", ""))


def test_colours_of_charts_stand_out() -> None:
    colours = dict(
        re.findall(r"svg \.(s\d|line|forecast|truth) \{ (?:fill|stroke): #(\w{6})", asset("charts.css"))
    )
    assert len(colours) == 9
    for colour in colours.values():
        parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        r, g, b = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
        assert 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) >= 3
