"""The static picture of counts of ordered groups is an upright histogram, drawn from the released numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb.render.charts import HEIGHT, WIDTH, Ticks, bin_edges, histogram_html, is_histogram
from dpnb.results.answer import Answer

EDGES = [0, 5, 10, 20]


@pytest.fixture(scope="module")
def frame() -> Any:
    chance = np.random.default_rng(4)
    table = pd.DataFrame({"x": chance.gamma(2, 2, 500), "n": chance.integers(0, 4, 500), "g": ["a", "b"] * 250})
    schema = {
        "x": dpnb.Bounded(0, 20),
        "n": dpnb.Bounded(0, 3, integer=True),
        "g": dpnb.Categories(["a", "b"]),
    }
    arguments: dict[str, Any] = {"name": "h", "schema": schema, "ledger": ":memory:", "not_private_test_seed": 5}
    return dpnb.Session(table, budget=dpnb.Budget.gdp(1000), **arguments).frame


def drawn(page: str) -> ET.Element:
    return ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def bars(picture: ET.Element) -> list[tuple[float, float, float]]:
    """Middle, top and bottom of each bar."""
    found = []
    for bar in picture.findall("rect"):
        x, y, width, height = (float(bar.get(name) or "nan") for name in ("x", "y", "width", "height"))
        found.append((x + width / 2, y, y + height))
    return found


def scale(picture: ET.Element) -> tuple[float, float]:
    """Slope and intercept of the axis of values, from its labels."""
    ticks = [text for text in picture.findall("text") if text.get("text-anchor") == "end"]
    values = [float((text.text or "").replace(",", "")) for text in ticks]
    return tuple(np.polyfit(values, [float(text.get("y") or "nan") - 4 for text in ticks], 1))  # type: ignore[return-value]


@pytest.mark.parametrize("mu", [0.5, 0.005])
def test_bars_stand_upright_in_order_and_reach_each_estimate_also_below_zero(frame: Any, mu: float) -> None:
    some = frame[frame["x"] > mu]  # another query, since a looser target than an earlier one is its answer
    answer = some.groupby(dpnb.cut(some["x"], [0, 1, 2, 5, 10, 15, 16, 20])).size().release(mu=mu)
    picture = drawn(answer._repr_html_())
    slope, zero = scale(picture)
    assert slope < 0
    found = bars(picture)
    assert [middle for middle, _, _ in found] == sorted(middle for middle, _, _ in found)
    for value, (_, top, bottom) in zip(answer.estimate, found, strict=True):
        end = zero + slope * value
        assert top == pytest.approx(min(end, zero), abs=0.3)
        assert bottom == pytest.approx(max(end, zero, top + 0.5), abs=0.3)
    assert (min(answer.estimate) < 0) == (mu < 0.1)  # the noisy one has negative estimates
    lines = picture.findall("line")
    for low, high in answer.interval.to_numpy():
        ends = zero + slope * np.array([low, high])
        assert any(
            (float(line.get("y1") or 0), float(line.get("y2") or 0)) == pytest.approx(tuple(ends), abs=0.3)
            for line in lines
            if line.get("x1") == line.get("x2")
        )


def test_everything_is_inside_the_picture(frame: Any) -> None:
    for bins in (2, 40, 200):
        picture = drawn(frame["x"].histogram(bins).release(mu=0.3)._repr_html_())
        for element in picture.iter():
            for name, limit in {"x": WIDTH, "x1": WIDTH, "x2": WIDTH, "y": HEIGHT, "y1": HEIGHT, "y2": HEIGHT}.items():
                assert 0 <= float(element.get(name) or 0) <= limit
        labels = [text for text in picture.findall("text") if text.get("text-anchor") == "middle"]
        places = [(float(text.get("x") or 0), len(text.text or "")) for text in labels]
        for (x, length), (other, others) in pairwise(places):
            assert other - x > (length + others) / 2 * 6  # labels do not overlap


def test_edges_of_ranges_are_labelled_between_the_bars(frame: Any) -> None:
    answer = frame.groupby(dpnb.cut(frame["x"], EDGES)).size().release(mu=0.5)
    picture = drawn(answer._repr_html_())
    labels = [text for text in picture.findall("text") if text.get("text-anchor") == "middle"]
    assert [text.text for text in labels] == [str(edge) for edge in EDGES]
    middles = [middle for middle, _, _ in bars(picture)]
    for left, middle, right in zip(labels, middles, labels[1:], strict=False):
        assert float(left.get("x") or 0) < middle < float(right.get("x") or 0)


def test_only_counts_and_sums_of_ordered_groups_are_histograms(frame: Any) -> None:
    cut = dpnb.cut(frame["x"], EDGES)
    assert is_histogram(frame.groupby(cut).size().release(mu=0.5))
    assert is_histogram(frame.groupby("n").size().release(mu=0.5))
    assert is_histogram(frame.groupby("n")["x"].sum().release(mu=0.5))
    for query in (
        frame.groupby("g").size(),
        frame.groupby(cut)["x"].mean(),
        frame.groupby(["n", cut]).size(),
        frame.count(),
        frame.groupby("n").agg(n="count", s=("x", "sum")),
    ):
        answer = query.release(mu=0.5)
        assert not is_histogram(answer)
        assert "<rect" not in answer._repr_html_()


def test_the_picture_shows_released_numbers_alone(frame: Any) -> None:
    """The same numbers, released from any table, are the same picture."""
    answer = frame.groupby(dpnb.cut(frame["x"], EDGES)).size().release(mu=0.5)
    schema = {"x": dpnb.Bounded(0, 20)}
    session = dpnb.Session.rehearse(name="h", budget=dpnb.Budget.gdp(1000), schema=schema)
    other = session.frame.groupby(dpnb.cut(session.frame["x"], EDGES)).size().release(mu=0.5)
    assert histogram_html(other) != histogram_html(answer)
    same = Answer(**{**vars(other), "arrays": answer.arrays, "population_arrays": answer.population_arrays})
    assert histogram_html(same) == histogram_html(answer)


def test_negative_counts_of_categories_are_drawn_left_of_zero(frame: Any) -> None:
    answer = frame[frame["x"] > 19].groupby("g").size().release(mu=0.002)
    page = answer._repr_html_()
    assert min(answer.estimate) < 0
    axis, *rows = re.findall(r"<svg.*?</svg>", page)
    assert "<text" in axis
    zero = float(re.findall(r'x1="([\d.]+)" x2="\1" y1="0" [^>]*stroke-opacity="0.5"', rows[0])[0])
    for value, row in zip(answer.estimate, rows, strict=True):
        assert (float(re.findall(r'cx="([\d.]+)"', row)[0]) < zero) == (value < 0)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 8))
def test_ticks_are_few_distinct_labels_of_equal_decimals(low: float, length: float, most: int) -> None:
    ticks = Ticks.between(low, low + length, most)
    if ticks is None:
        return
    found = ticks.within(low, low + length)
    labels = [ticks.label(tick) for tick in found]
    assert 1 <= len(found) <= most + 1
    assert len(set(labels)) == len(labels)
    assert len({label.partition(".")[2] != "" for label in labels}) == 1
    for tick, label in zip(found, labels, strict=True):
        assert float(label.replace(",", "")) == pytest.approx(tick, rel=1e-9, abs=ticks.step * 1e-6)


def test_ticks_that_need_exponents_are_left_to_the_page() -> None:
    assert Ticks.between(0, 1e-12, 5) is None
    assert Ticks.between(1e300, 1e301, 5) is None
    assert Ticks.between(3, 3, 5) is None


def test_only_adjacent_ranges_have_edges() -> None:
    assert bin_edges(["[0, 5]", "(5, 10]"]) == ["0", "5", "10"]
    assert bin_edges(["[2020-01-01, 2020-02-01)"]) == ["2020-01-01", "2020-02-01"]
    for labels in (["(5, 10]", "[0, 5]"], ["[0, 5]", "(6, 10]"], ["low", "high"], ["1", "2"], ["[0, 5]", "low"], []):
        assert bin_edges(labels) is None
