"""Box plots of quantiles by group, and heat maps of two-way tables."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.notebook.plots.figure import SVG

MUS = (1e-4, 4.0)
"""At the first every number is unknown or far outside its bounds: the figure is drawn all the same."""


@pytest.fixture(scope="module")
def df() -> Any:
    random = np.random.default_rng(5)
    table = pd.DataFrame({
        "age": random.uniform(25, 65, 900),
        "income": random.uniform(0, 10, 900),
        "visits": random.poisson(0.4, 900).astype(float),
        "level": random.integers(1, 4, 900),
    })  # fmt: skip
    schema = {
        "age": dpnb.Bounded(25, 65),
        "income": dpnb.Bounded(0, 10),
        "visits": dpnb.Bounded(0, 60),
        "level": dpnb.Categories([1, 2, 3]),
    }
    budget = dpnb.Budget.gdp(50)
    return dpnb.Session(table, name="t", budget=budget, schema=schema, ledger=":memory:", not_private_test_seed=3).frame


@pytest.mark.parametrize("mu", MUS)
def test_quantiles_by_group_are_boxes(df: Any, mu: float) -> None:
    answer = df.boxplot("age", by="level").release(mu=mu)
    figure = answer.plot()
    five = answer.estimate.to_numpy().reshape(3, 5)
    known = [row for row in five if np.isfinite(row).all()]
    boxes = [trace for trace in figure.data if trace.type == "box"]
    assert len(boxes) == bool(known)
    for box in boxes:
        drawn = np.array([box.lowerfence, box.q1, box.median, box.q3, box.upperfence]).T
        assert drawn == pytest.approx(np.sort(np.array(known)))
    marks = next(trace for trace in figure.data if trace.type == "scatter")
    assert len(marks.error_y.array) == 15  # each number keeps its interval
    assert list(figure.layout.xaxis.ticktext) == ["1", "2", "3"]
    assert "<svg" in figure._repr_mimebundle_()[SVG]


@pytest.mark.parametrize("mu", MUS)
def test_a_large_two_way_table_is_a_heat_map(df: Any, mu: float) -> None:
    answer = df.plot.hexbin("age", "income").release(mu=mu)
    figure = answer.plot()
    (heat,) = figure.data
    assert (heat.type, len(heat.x), len(heat.y)) == ("heatmap", 10, 10)
    drawn = np.array(heat.z, dtype=float)
    assert pytest.approx(np.array(answer.estimate)) == drawn.T
    assert heat.zmin < heat.zmax
    assert "hover for intervals" in " ".join(re.sub("<[^>]*>", " ", figure.layout.title.text).split())
    assert figure._repr_mimebundle_()[SVG].count("<rect") == 100 + 6  # and the colours of the legend


def test_a_small_two_way_table_keeps_its_bars_and_intervals(df: Any) -> None:
    figure = dpnb.crosstab(df["level"], dpnb.cut(df["age"], [25, 45, 65])).release(mu=1).plot()
    assert all(trace.type != "heatmap" for trace in figure.data)
    assert any(trace.error_y.array is not None for trace in figure.data)


def test_numbers_beside_zero_have_few_digits(df: Any) -> None:
    answer = df["visits"].quantile([0.25, 0.5]).release(mu=4)
    assert answer.estimate.iloc[0] == 0
    assert "0.0000000" not in repr(answer)
    low, high = answer.interval.iloc[0]
    assert low == 0
    assert math.isfinite(high)
