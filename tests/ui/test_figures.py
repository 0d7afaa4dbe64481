"""Figures and static pictures of answers in a real browser: nothing is cut off, in a wide and in a narrow cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page
from plotly.offline import get_plotlyjs

import dpnb

STYLE = Path(__file__).resolve().parents[2] / "labextension" / "style" / "outputs.css"
"""What JupyterLab adds to figures."""

SHAPES = [f"a kind of industry, number {number}" for number in range(12)]
OUTSIDE = """() => [...document.querySelectorAll('svg text')]
  .filter(text => text.textContent.trim() && !text.closest('.hoverlayer'))
  .map(text => [text.textContent, text.getBoundingClientRect()])
  .filter(([_, box]) => box.width && (box.left < -1 || box.right > window.innerWidth + 1 || box.top < -1))
  .map(([text, box]) => `${text}: ${box.left} to ${box.right}`)"""
OVERLAPPING = """() => {
  const boxes = [...document.querySelectorAll('.xaxislayer-above text')].map(text => text.getBoundingClientRect());
  return boxes.some((box, index) => index > 0 && box.left < boxes[index - 1].right && box.top === boxes[0].top);
}"""


@pytest.fixture(scope="module")
def frame() -> Any:
    chance = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "wage": chance.gamma(2, 2, 2000),
            "union": chance.choice(["yes", "no"], 2000),
            "industry": chance.choice(SHAPES, 2000),
        }
    )
    schema = {
        "wage": dpnb.Bounded(0, 40),
        "union": dpnb.Categories(["yes", "no"]),
        "industry": dpnb.Categories(SHAPES),
    }
    arguments: dict[str, Any] = {"name": "w", "schema": schema, "ledger": ":memory:", "not_private_test_seed": 5}
    return dpnb.Session(table, budget=dpnb.Budget.gdp(1000), **arguments).frame


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "histogram": lambda f: f["wage"].histogram(10).release(mu=0.5),
    "many bins": lambda f: f["wage"].histogram(80).release(mu=0.05),
    "long edges": lambda f: f.groupby(dpnb.cut(f["wage"], [x / 8 + 1000 for x in range(9)])).size().release(mu=0.5),
    "negative": lambda f: f[f["wage"] > 30].groupby("union").size().release(mu=0.01),
    "hues": lambda f: f.groupby(["union", dpnb.cut(f["wage"], [0, 5, 10, 20, 40])]).size().release(mu=0.1),
    "long names": lambda f: f.groupby("industry").size().release(mu=0.1).sort_values(),
    "statistics": lambda f: f["wage"].describe().release(mu=0.1),
    "number": lambda f: f["wage"].mean().release(mu=0.01),
}


DRAW = """json => {
  const { data, layout } = JSON.parse(json);
  return Plotly.newPlot(document.getElementById('shown'), data, layout, { responsive: true }).then(() => null);
}"""


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[Page]:
    """One page for all figures: it takes longer to load plotly than to draw."""
    page = browser.new_page()
    style = STYLE.read_text(encoding="utf-8")
    page.set_content(
        f'<style>{style}</style><body style="margin:0;font-family:sans-serif">'
        '<div id="shown" style="height:100%; width:100%"></div></body>'
    )
    page.add_script_tag(content=get_plotlyjs())
    yield page
    page.close()


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The page, with nothing in it."""
    yield opened
    opened.evaluate("() => { Plotly.purge('shown'); document.getElementById('shown').replaceChildren(); }")


def draw(page: Page, figure: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate(DRAW, figure.to_json())
    page.wait_for_selector(".xaxislayer-above text")


@pytest.mark.parametrize(("name", "width"), [*((name, 380) for name in ANSWERS), ("many bins", 880)])
def test_no_text_of_a_figure_is_cut_off_and_no_labels_overlap(page: Page, frame: Any, name: str, width: int) -> None:
    draw(page, ANSWERS[name](frame).plot(), width)
    assert page.evaluate(OUTSIDE) == []
    assert not page.evaluate(OVERLAPPING)


def test_the_edges_of_bins_are_between_the_bars(page: Page, frame: Any) -> None:
    draw(page, ANSWERS["histogram"](frame).plot(), 880)
    labels = page.evaluate(
        "() => [...document.querySelectorAll('.xaxislayer-above .xtick text')].map(t => "
        "[t.textContent, t.getBoundingClientRect().left + t.getBoundingClientRect().width / 2])"
    )
    bars = page.evaluate(
        "() => [...document.querySelectorAll('.barlayer .point path')].map(p => p.getBoundingClientRect())"
        ".map(box => [box.left, box.right])"
    )
    assert [text for text, _ in labels] == [str(edge) for edge in range(0, 41, 4)]
    assert len(bars) == 10
    for (_, left), (start, end), (_, right) in zip(labels, bars, labels[1:], strict=False):
        assert left - 3 < start < end < right + 3


@pytest.mark.parametrize("width", [880, 380])
def test_the_static_histogram_fits_its_cell(page: Page, frame: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate(
        "html => { document.getElementById('shown').innerHTML = html; }", ANSWERS["many bins"](frame)._repr_html_()
    )
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("() => document.querySelectorAll('svg rect').length") == 80
