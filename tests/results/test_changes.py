"""Groups of an answer, selected, compared and rearranged with the names of pandas; and the same before the release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import RequestError

YEARS = [1984, 1985, 1986, 1987]


@pytest.fixture(scope="module")
def df() -> Any:
    rows = {
        "year": [YEARS[i % 7 % 4] for i in range(2800)],
        "g": [("a", "b")[i % 2] for i in range(2800)],
        "x": [float(i % 11) for i in range(2800)],
    }
    session = dpnb.Session(
        pd.DataFrame(rows),
        name="changes",
        budget=dpnb.Budget(epsilon=1000, delta=1e-6),
        schema={"year": dpnb.Categories(YEARS), "g": dpnb.Categories(["a", "b"]), "x": dpnb.Bounded(0, 10)},
        ledger=":memory:",
    )
    return session.frame


@pytest.fixture(scope="module")
def counts(df: Any) -> Any:
    return df.groupby("year").size().release(mu=1)


def test_groups_are_selected_by_key(counts: Any) -> None:
    assert counts.loc[1985] == counts[1985]
    assert counts.at[1985] == counts[1985]
    assert counts.loc[[1987, 1984]].index.tolist() == [1987, 1984]
    assert counts.loc[1985:1986].index.tolist() == [1985, 1986]
    assert counts.loc[:1985][1984].interval == counts[1984].interval
    for key in (1990, [1984, 1990], slice(1984, 1990), slice(1986, 1984), slice(None, None, 2)):
        with pytest.raises(RequestError):
            counts.loc[key]


def test_a_cell_is_selected_by_group_and_statistic(df: Any) -> None:
    answer = df.groupby("g")["x"].agg(["mean", "count"]).release(mu=1)
    assert answer.loc["a", "mean"] == answer["a"]["mean"]
    two_way = df.groupby(["g", "year"]).size().release(mu=1)
    assert two_way.loc["a", 1984] == two_way["a", 1984]
    assert two_way.loc[[("a", 1984)]].index.tolist() == [("a", 1984)]


def test_labels_are_those_of_the_table(counts: Any, df: Any) -> None:
    assert counts.index.equals(counts.to_pandas().index)
    assert counts.reset_index()["year"].tolist() == YEARS
    assert counts.idxmax() == counts.estimate.idxmax()
    assert counts.idxmin() == counts.estimate.idxmin()
    named = df.assign(estimate=df["g"]).groupby("estimate").size().release(mu=1)
    assert named.reset_index().columns[0] == "estimate (group)"
    with pytest.raises(RequestError, match="several numbers"):
        df["x"].mean().release(mu=1).idxmax()


@pytest.mark.parametrize("periods", [1, 2])
def test_changes_are_the_differences_of_groups(counts: Any, periods: int) -> None:
    change, relative = counts.diff(periods), counts.pct_change(periods)
    assert change.index.tolist() == relative.index.tolist() == YEARS[periods:]
    for before, after in zip(YEARS, YEARS[periods:], strict=False):
        expected = counts[after] - counts[before]
        assert change[after].estimate == pytest.approx(expected.estimate)
        assert change[after].interval == pytest.approx(expected.interval)
        assert change[after].population_interval == pytest.approx(expected.population_interval)
        ratio = counts[after] / counts[before]
        assert relative[after].interval == pytest.approx([end - 1 for end in ratio.interval])


def test_changes_need_an_order_and_noise_of_their_own(df: Any, counts: Any) -> None:
    for answer, periods in ((counts, 4), (counts, 0), (df["x"].mean().release(mu=1), 1)):
        with pytest.raises(RequestError, match="needs groups of one level"):
            answer.diff(periods)
    totals = df.groupby("year").size().cumsum().release(mu=1)
    with pytest.raises(RequestError, match="same noise"):
        totals.diff()


@pytest.mark.parametrize("function", [np.log, np.log1p, np.sqrt, np.exp, np.log10])
def test_increasing_functions_move_the_ends_of_intervals(df: Any, function: Any) -> None:
    answer = df.groupby("g")["x"].mean().release(mu=1)
    moved = function(answer)
    for group in ("a", "b"):
        assert moved[group].estimate == pytest.approx(function(answer[group].estimate))
        assert moved[group].interval == pytest.approx([function(end) for end in answer[group].interval])
    with pytest.raises(RequestError, match="is not offered"):
        np.sin(answer)


def test_the_logarithm_of_what_may_be_negative_has_no_lower_limit(df: Any) -> None:
    empty = df[df["x"] > 10].count().release(mu=0.1)
    logarithm = np.log(empty - 5)
    assert logarithm.interval[0] == -np.inf
    assert repr(logarithm)


def test_a_group_says_beside_its_own_name_what_it_is_made_from(df: Any) -> None:
    """Not beside the name of the aggregated column."""
    df["early"], df["odd"] = df["year"] <= 1985, np.where(df["g"] == "a", "a (", "'b")
    answer = df[df["x"] > 0].groupby(["early", "odd"])["x"].mean().release(mu=3)
    group = "early True (made from year <= 1985), odd a ( (made from where(g == 'a', 'a (', \"'b\"))"
    assert answer[True, "a ("].description == f"mean of x where x > 0, {group}"
    one = df.groupby("early")["x"].mean().release(mu=3)
    assert one[True].description == "mean of x, early True (made from year <= 1985)"
    assert df.groupby("g")["x"].mean().release(mu=3)["b"].description == "mean of x, g b"


def test_odds_ratios_are_the_exponentials_of_coefficients(df: Any) -> None:
    fit = df.regress("g ~ x", family="logistic").release(mu=3)
    odds = np.exp(fit)
    low, high = fit["x"].population_interval
    assert odds["x"].population_interval == pytest.approx((np.exp(low), np.exp(high)))


def test_pandas_functions_of_tables_name_the_table(counts: Any) -> None:
    for combined in (lambda: pd.concat([counts, counts]), lambda: pd.merge(counts, counts)):
        with pytest.raises(RequestError, match=r"to_pandas\(\)"):
            combined()


@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")
def test_figures_of_other_libraries_get_no_answer_as_their_table(counts: Any) -> None:
    """They would draw positions in place of the groups."""
    import plotly.express as px

    for drawn in (lambda: px.bar(counts), lambda: px.bar(counts, x="year", y="estimate")):
        with pytest.raises(
            RequestError, match=r"^plotly.bar: .*\.plot\(\), or give it \.reset_index\(\).* columns year, est"
        ):
            drawn()
    assert px.bar(counts.reset_index(), x="year", y="estimate").data[0].x.tolist() == counts.index.tolist()


ARRANGED = {
    "sort_values": {"ascending": False},
    "sort_index": {"ascending": False},
    "nlargest": {"n": 2},
    "nsmallest": {"n": 2},
    "round": {"decimals": -1},
    "diff": {},
    "pct_change": {"periods": 2},
}


@pytest.mark.parametrize("name", ARRANGED)
def test_a_query_is_rearranged_before_its_release(name: str, df: Any, counts: Any) -> None:
    query = df.groupby("year").size()
    arranged = getattr(query, name)(**ARRANGED[name])
    assert arranged.description.startswith(f"count of rows by year, then .{name}(")
    assert arranged.preview(mu=1).cost == query.preview(mu=1).cost
    expected = getattr(counts, name)(**ARRANGED[name])
    released = arranged.release(mu=1)  # the recorded answer, at no cost
    assert released == expected
    assert arranged.answer.index.tolist() == getattr(query.answer, name)(**ARRANGED[name]).index.tolist()


def test_arrangements_follow_each_other(df: Any, counts: Any) -> None:
    arranged = df.groupby("year").size().sort_values(ascending=False).round(1)
    assert arranged.release(mu=1) == counts.sort_values(ascending=False).round(1)


def test_wrong_arguments_are_refused_before_the_charge(df: Any) -> None:
    for wrong in (
        lambda: df["x"].mean().diff(),
        lambda: df.groupby("year").size().sort_values(by="missing"),
        lambda: df.groupby("year").size().nlargest(n=0),
        lambda: df.groupby("year").size().round(decimals="two"),
    ):
        with pytest.raises(RequestError):
            wrong()
