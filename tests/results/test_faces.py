"""Figures are shown with the digits their error leaves, and never to our advantage."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.render.answers import footer
from dpnb.render.numbers import describe_error, format_cost, format_number, number_with_interval
from dpnb.results.estimates import IntervalArrays
from dpnb.results.tables.table import Estimates


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1234.567, 100, "1,235"),
        (1234.567, 0.5, "1,234.57"),
        (0.00123456, 0.0001, "0.00123"),
        (math.nan, 1, "unknown"),
        (math.inf, 1, "∞"),
        (5.0, 0, "5"),
        (5.0, math.inf, "5"),
    ],
)
def test_a_figure_has_the_digits_that_its_error_leaves(value: float, error: float, text: str) -> None:
    assert format_number(value, error) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "texts"),
    [
        (426.31, 306.092, math.inf, ("426", "306 to ∞")),
        (0.5, -math.inf, 0.1234, ("0.50", "-∞ to 0.13")),
        (math.nan, 306.092, math.inf, ("unknown", "306 to ∞")),
        (math.nan, -math.inf, math.inf, ("unknown", "-∞ to ∞")),
        (3.0, 3.0, math.inf, ("3", "3 to ∞")),
    ],
)
def test_an_interval_with_one_end_has_the_digits_that_this_end_leaves(
    value: float, low: float, high: float, texts: tuple[str, str]
) -> None:
    assert number_with_interval(value, low, high) == texts


def test_a_price_is_rounded_up() -> None:
    assert format_cost(GDP("0.123449"), 0.10001) == "10.1% of the budget (mu 0.1235)"
    assert format_cost(GDP(0), 0).startswith("free")


# --- why ---


def number(value: float, low: float, high: float) -> Estimates:
    cells = IntervalArrays.of(*(np.array([x]) for x in (value, low, high, 1.0)))
    return Estimates(description="x < y", names=(), keys=((),), outputs=None, arrays=cells, confidence=0.95)


@pytest.mark.parametrize(
    ("figures", "explained"),
    [
        (number(1, 0, 2), []),
        (number(math.nan, 0, 2), ["unknown"]),
        (number(-1, 0, 2), ["outside"]),
    ],
)
def test_what_looks_odd_is_said_and_linked_to_its_explanation(figures: Estimates, explained: list[str]) -> None:
    assert [name for name, _ in figures.warnings] == explained
    assert [text for _, text in figures.warnings] == footer(figures)
    page = figures._repr_html_()
    assert page.count("Why?") == len(explained)
    for name, text in figures.warnings:
        assert f'{text} <a href="#dpnb-explain-{name}">Why?</a>' in page
        assert text in repr(figures)
    assert "Why?" not in repr(figures)


@pytest.mark.parametrize(
    ("target", "explained"),
    [
        ({"mu": 0.5}, []),
        ({"mu": 2}, ["budget-exceeded"]),
    ],
)
def test_a_preview_links_to_why_it_does_not_fit(target: dict[str, float], explained: list[str]) -> None:
    session = dpnb.Session(
        pd.DataFrame({"x": [1.0]}),
        name="faces",
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 10)},
        ledger=":memory:",
    )
    for query, more in ((session.frame.count(), []), (session.frame["x"].mean(), ["error-estimate-unavailable"])):
        preview = query.preview(**target)
        ids = sorted([*more, *explained])
        for shown in (preview, query.preview(**{name: [amount] for name, amount in target.items()})):
            page = shown._repr_html_()
            assert sorted(re.findall(r'<a href="#dpnb-explain-([\w-]+)">Why\?</a>', page)) == ids
            assert "Why?" not in repr(shown)


def test_errors_of_statistics_are_told_each_by_itself_also_beside_an_unknown_one() -> None:
    errors = np.array([[1.0, np.nan], [2.0, np.inf]])
    said = describe_error(errors, ("statistic", ("mean", "std")), 0.95)
    assert said == "mean ± 2.0, std unknown at 95% (noise)"
    many = describe_error(np.ones((1, 20)), ("statistic", tuple(map(str, range(20)))), 0.95)
    assert many.endswith("7 ± 1.0 at 95% (noise), and 12 more"), "a log shows no whole table in one cell"
    assert describe_error(errors[:, :1], None, 0.95, "visits") == "± 2.0 visits at 95% or better (noise)"
    assert describe_error(np.array([[1.0], [np.inf]]), None, 0.95) == "± 1.0 at 95% (noise), unknown for some"
    assert describe_error(np.array([[np.nan]]), None, 0.95) == "unknown"


def test_numbers_of_the_same_noise_have_the_same_digits_also_where_an_interval_was_clipped() -> None:
    value, reach = np.array([[-98.3], [55.5], [-300.0]]), 103.0
    raw = (value, value - reach, value + reach)
    cells = IntervalArrays(value, raw[1].clip(0), raw[2].clip(0), value * 0 + 50, raw)
    keys = (("a",), ("b",), ("c",))
    shown = repr(Estimates(description="w", names=("g",), keys=keys, outputs=None, arrays=cells, confidence=0.95))
    assert [line.split() for line in shown.splitlines()[2:5]] == [
        ["a", "-98", "0", "to", "5"],
        ["b", "56", "0", "to", "159"],
        ["c", "-300", "0", "to", "0"],
    ]
    assert "0 to 0: the noise moved the whole interval outside" in shown
    assert format_number(-0.3, 10) == "0"  # not -0


def clipped(value: list[float], reach: list[float]) -> Estimates:
    """Means between 0 and 50."""
    middle, noise = np.array(value), np.array(reach)
    cells = IntervalArrays.of(middle, middle - noise, middle + noise, noise / 2).clipped(0, 50)
    keys = tuple((name,) for name in ("unknown", "b", "c")[: len(value)])
    return Estimates(description="mean", names=("g",), keys=keys, outputs=None, arrays=cells, confidence=0.95)


def test_number_whose_interval_is_the_whole_range_is_displayed_as_unknown() -> None:
    answer = clipped([70.0, 24.0, 20.0], [90.0, 5.0, 25.0])
    lines = [line.split() for line in repr(answer).splitlines()[2:5]]
    assert [line[1] for line in lines] == ["unknown", "24.0", "20"], "an interval from 0 to 45 excludes values"
    assert lines[0][2:] == ["0", "to", "50"]
    assert answer.estimate.isna().tolist() == [True, False, False], "nothing takes it for a number"
    assert answer.to_pandas()["estimate"].dropna().tolist() == [24, 20]
    assert math.isnan(float(answer["unknown"]))
    assert answer.sort_values(ascending=False).index.tolist() == ["b", "c", "unknown"]
    assert answer.idxmax() == "b"
    assert answer["unknown"].arrays.value.item() == 50, "arithmetic has the value"
    page = answer._repr_html_()
    assert page.count("The noise is too large, or the statistic is not defined.") == 1, "not at the group of that name"
    assert page.count("<circle") == 2
    assert "| unknown | unknown |" in answer.to_markdown()
    assert [name for name, _ in answer.warnings] == ["unknown"]
    assert "unknown" in repr(answer["unknown"])
    assert "unknown" in repr(answer["unknown"] - answer["b"])
    assert "unknown" not in repr(answer["b"] - answer["c"])
    assert "unknown" in repr(answer.round(1)["unknown"])
    assert "unknown" in repr(-answer["unknown"])


def test_number_whose_interval_a_second_one_narrows_is_known() -> None:
    whole, half = clipped([20.0], [90.0]).arrays, clipped([20.0], [15.0]).arrays
    assert whole.is_unknown.tolist() == [[True]]
    assert whole.within(half).is_unknown.tolist() == [[False]]
    assert half.within(whole).is_unknown.tolist() == [[False]]
