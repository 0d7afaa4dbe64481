"""Aggregations of several columns in one charge: their answers, their shapes, their errors and what they share."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import BudgetExceeded, PlanError

SIZE = 4_000
RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, SIZE)
TABLE = pd.DataFrame(
    {
        "x": X,
        "y": np.clip(0.4 * X + RNG.uniform(-2, 2, SIZE), -5, 10),
        "z": RNG.integers(0, 5, SIZE),
        "g": RNG.choice(["a", "b"], SIZE),
    }
)
SCHEMA = {
    "x": dpnb.Bounded(0, 10),
    "y": dpnb.Bounded(-5, 10),
    "z": dpnb.Bounded(0, 4, integer=True),
    "g": dpnb.Categories(["a", "b"]),
}


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return dpnb.Session(
        TABLE, name="s", budget=dpnb.Budget.gdp(500), schema=SCHEMA, ledger=tmp_path / "l", not_private_test_seed=1
    )


NUMERIC = TABLE[["x", "y", "z"]]


@pytest.mark.parametrize("verb", ["mean", "sum", "std", "var", "median", "min", "max"])
def test_each_numeric_column_has_its_statistic(session: dpnb.Session, verb: str) -> None:
    answer = getattr(session.frame, verb)().release(mu=40)
    expected = getattr(NUMERIC, verb)()
    assert answer.outputs == ("statistic", ("x", "y", "z"))
    for name in expected.index:
        low, high = answer[name].interval
        slack = 0.02 * (TABLE[name].max() - TABLE[name].min()) * (SIZE if verb == "sum" else 1)
        assert low - slack <= expected[name] <= high + slack


def test_groups_have_the_statistics_side_by_side(session: dpnb.Session) -> None:
    answer = session.frame.groupby("g")[["x", "y"]].mean().release(mu=40)
    expected = TABLE.groupby("g")[["x", "y"]].mean()
    pd.testing.assert_frame_equal(answer.estimate, expected, check_names=False, atol=0.05)


def test_a_correlation_matrix_is_that_of_pandas(session: dpnb.Session) -> None:
    query = session.frame.corr()
    answer = query.release(mu=100)
    expected = NUMERIC.corr()
    assert isinstance(answer.estimate, pd.DataFrame)
    pd.testing.assert_frame_equal(answer.estimate, expected, check_names=False, atol=0.02)
    assert np.array_equal(answer.arrays.value, answer.arrays.value.T)
    assert np.array_equal(np.diag(answer.arrays.low), np.ones(3))
    inside = (answer.arrays.low <= expected.to_numpy() + 1e-9) & (expected.to_numpy() - 1e-9 <= answer.arrays.high)
    assert inside.all()
    assert float(answer["x"]["y"]) == float(answer["y"]["x"])
    for text in (repr(answer), answer._repr_html_()):
        assert "correlations of x, y, z" in text


def test_a_covariance_matrix_has_the_variances(session: dpnb.Session) -> None:
    answer = session.frame.cov().release(mu=100)
    pd.testing.assert_frame_equal(answer.estimate, NUMERIC.cov(), check_names=False, atol=0.2)
    variance = session.frame[["x"]].var().release(mu=100)
    assert float(answer["x"]["x"]) == pytest.approx(float(variance), rel=0.1)


def test_a_matrix_and_a_single_pair_share_their_measurement(session: dpnb.Session) -> None:
    matrix = session.frame[["x", "y"]].corr().release(mu=1)
    again = session.frame["y"].corr(session.frame["x"])
    assert again.preview(mu=1).cost.mu == 0
    assert float(again.release(mu=1)) == float(matrix["x"]["y"])
    regression = session.frame.regress("y ~ x")
    assert regression.preview(mu=1).cost.mu == 0


def test_a_matrix_can_be_refined_copied_and_read_again(session: dpnb.Session) -> None:
    query = session.frame[["x", "y", "z"]].corr()
    first = query.release(mu=1)
    better = first.refine(mu=5)
    assert better.n_observations == 2
    assert (better.arrays.half_width <= first.arrays.half_width + 1e-12).all()
    assert query.release(mu=1) == first
    assert query.best is not None
    assert query.best.keys == first.keys
    for other in (copy.copy(first), pickle.loads(pickle.dumps(first))):
        assert other == first
        assert repr(other) == repr(first)
    assert len(better.history) == 2
    assert len(better.history.to_pandas()) == 2 * 9
    assert repr(better.history)
    assert first.to_pandas().shape == (9, 4)


def test_a_description_has_a_row_for_each_column(session: dpnb.Session) -> None:
    answer = session.frame.describe().release(mu=60)
    expected = NUMERIC.describe().T
    assert list(answer.estimate.columns) == list(expected.columns)
    assert list(answer.estimate.index) == ["x", "y", "z"]
    assert float(answer["x"]["mean"]) == pytest.approx(expected.loc["x", "mean"], abs=0.1)
    assert float(answer["z"]["max"]) == 4


def test_the_description_of_groups_names_column_and_statistic(session: dpnb.Session) -> None:
    answer = session.frame.groupby("g")[["x", "y"]].describe().release(mu=60)
    assert answer.outputs is not None
    assert answer.outputs[1][:2] == ("x count", "x mean")
    assert answer.names == ("g",)


@pytest.mark.parametrize("count", [2, 3])
def test_the_charge_is_divided_between_the_columns(session: dpnb.Session, count: int) -> None:
    """k columns have 1/k of mu squared each: the expected error is that of one column at mu / sqrt(k)."""
    names = ["x", "y", "z"][:count]
    joint = session.frame[names].sum().preview(mu=1).half_widths
    alone = [session.frame[name].sum().preview(mu=1 / math.sqrt(count)).half_widths for name in names]
    assert joint is not None
    for index, single in enumerate(alone):
        assert single is not None
        assert joint[0, index] == pytest.approx(single[0, 0], rel=0.02)


def test_the_expected_error_is_that_of_the_answer(session: dpnb.Session) -> None:
    session.frame.count().release(mu=10)
    query = session.frame[["x", "y"]].mean()
    expected = query.preview(mu=2).half_widths
    answer = query.release(mu=2)
    assert expected is not None
    # Between the smallest and the largest error that is possible with this number of rows.
    assert (answer.arrays.half_width <= 1.05 * expected).all()
    assert (answer.arrays.half_width >= 0.3 * expected).all()


def test_missing_values_are_counted_for_all_columns(session: dpnb.Session) -> None:
    answer = session.frame.isna().sum().release(mu=5)
    assert answer.outputs == ("statistic", ("x", "y", "z", "g"))
    assert (np.abs(answer.arrays.value) < 20).all()


def test_a_matrix_is_charged_before_it_is_answered(tmp_path: Path) -> None:
    session = dpnb.Session(
        TABLE, name="s", budget=dpnb.Budget.gdp(1), schema=SCHEMA, ledger=tmp_path / "l", not_private_test_seed=1
    )
    session.frame.corr().release(mu=0.9)
    with pytest.raises(BudgetExceeded):
        session.frame.describe().release(mu=0.9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f: f[["g"]].mean(),
        lambda f: f[["x"]].corr(),
        lambda f: f.assign(w=f["x"]).corr(),
        lambda f: f.quantile([0.1, 0.9]),
        lambda f: f.mean(axis=1),
        lambda f: f[[]].mean(),
    ],
)
def test_what_has_no_columns_to_aggregate_is_refused(session: dpnb.Session, wrong: Any) -> None:
    with pytest.raises(PlanError):
        wrong(session.frame)


def test_a_matrix_of_many_columns_is_computed_in_one_pass(tmp_path: Path) -> None:
    names = [f"c{index}" for index in range(12)]
    data = pd.DataFrame(RNG.uniform(0, 1, (500, 12)), columns=names)
    schema = {name: dpnb.Bounded(0, 1) for name in names}
    session = dpnb.Session(data, name="s", budget=dpnb.Budget.gdp(500), schema=schema, ledger=tmp_path / "l")
    answer = session.frame.corr().release(mu=400)
    assert answer.estimate.shape == (12, 12)
    assert np.abs(answer.estimate.to_numpy() - data.corr().to_numpy()).max() < 0.5
