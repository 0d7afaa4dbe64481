"""Tables with margins, against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import NotReleasedError, PlanError

TOWNS, PLANS = ["north", "south", "west"], ["free", "paid"]


def table(rows: int = 60_000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "town": rng.choice([*TOWNS, None], rows, p=[0.5, 0.2, 0.2, 0.1]),
            "plan": rng.choice([*PLANS, None], rows, p=[0.5, 0.4, 0.1]),
            "visits": rng.integers(0, 11, rows).astype(float),
        }
    )


def session(data: pd.DataFrame) -> dpnb.Session:
    return dpnb.Session(
        data,
        name="margins",
        ledger=":memory:",
        budget=dpnb.Budget.gdp(20),
        schema={
            "town": dpnb.Categories(TOWNS),
            "plan": dpnb.Categories(PLANS),
            "visits": dpnb.Bounded(0, 10, integer=True),
        },
        not_private_test_seed=3,
    )


def test_crosstab_with_margins_is_that_of_pandas() -> None:
    data = table()
    df = session(data).frame
    answer = dpnb.crosstab(df["town"], df["plan"], margins=True).release(mu=10)
    expected = pd.crosstab(data["town"], data["plan"], margins=True)
    assert list(answer.estimate.index) == list(expected.index)
    assert list(answer.estimate.columns) == list(expected.columns)
    np.testing.assert_allclose(answer.estimate, expected, atol=2)
    assert answer["All"].estimate.iloc[-1] == pytest.approx(answer.estimate.iloc[:-1, :-1].to_numpy().sum())


def test_margins_add_up_to_rounding() -> None:
    estimate = (
        lambda df: dpnb.crosstab(df["town"], df["plan"], margins=True, margins_name="total").release(mu=0.01).estimate
    )(session(table(100)).frame)
    np.testing.assert_allclose(estimate.loc["total"], estimate.iloc[:-1].sum())
    np.testing.assert_allclose(estimate["total"], estimate.iloc[:, :-1].sum(axis=1))


def test_pivot_table_with_margins_is_that_of_pandas() -> None:
    data = table()
    df = session(data).frame
    answer = df.pivot_table(values="visits", index="town", columns="plan", margins=True).release(mu=10)
    expected = data.pivot_table(values="visits", index="town", columns="plan", margins=True)
    assert list(answer.estimate.index) == list(expected.index)
    np.testing.assert_allclose(answer.estimate, expected, atol=0.01)


def test_pivot_table_without_columns_has_one_total() -> None:
    data = table()
    query = session(data).frame.pivot_table(values=["visits"], index="town", aggfunc=["mean", "std"], margins=True)
    answer = query.release(mu=10)
    assert list(answer.estimate.index) == [*TOWNS, "All"]
    known = data[data["town"].notna()]["visits"]
    np.testing.assert_allclose(answer.estimate.loc["All"], [known.mean(), known.std()], atol=0.01)


def test_rows_of_several_levels_have_the_key_of_pandas() -> None:
    data = table()
    data["seen"] = data["visits"] > 5
    df = session(data).frame
    answer = dpnb.crosstab([df["town"], df["visits"] > 5], df["plan"], margins=True).release(mu=10)
    expected = pd.crosstab([data["town"], data["seen"]], data["plan"], margins=True)
    assert [tuple(key) for key in answer.estimate.index] == [tuple(key) for key in expected.index]
    np.testing.assert_allclose(answer.estimate, expected, atol=2)


def test_answers_of_a_table_with_margins_can_be_refined() -> None:
    own = session(table(1000))
    query = dpnb.crosstab(own.frame["town"], own.frame["plan"], margins=True)
    answer = query.release(mu=0.5)
    total = answer.batch[3].refine(mu=2)
    assert total.n_observations == 2
    assert total.total_loss.mu == pytest.approx(2)


def test_query_with_margins_is_not_a_number() -> None:
    df = session(table(100)).frame
    query = dpnb.crosstab(df["town"], df["plan"], margins=True)
    with pytest.raises(NotReleasedError, match="release"):
        query.to_pandas()
    assert "expected error" in query._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"normalize": True}, "margins=True is not offered with normalize="),
        ({"margins_name": "free"}, "also the key of a group"),
        ({"margins_name": 3}, "must be a non-empty str"),
    ],
)
def test_margins_are_refused(arguments: dict[str, object], message: str) -> None:
    df = session(table(100)).frame
    with pytest.raises(PlanError, match=message):
        dpnb.crosstab(df["town"], df["plan"], margins=True, **arguments)  # type: ignore[call-overload]


def test_several_levels_of_columns_are_refused() -> None:
    df = session(table(100)).frame
    with pytest.raises(PlanError, match="at most one level of columns"):
        dpnb.crosstab(df["town"], [df["plan"], df["visits"] > 5], margins=True)
