"""With next to no noise every public verb gives what plain pandas gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb

MU = 1e5
SIZE = 3000
SCHEMA = {
    "x": dpnb.Bounded(0, 30),
    "y": dpnb.Bounded(-20, 120),
    "g": dpnb.Categories(["a", "b", "c", "never"]),
    "k": dpnb.Categories([0, 25, 95]),
    "t": dpnb.Text(),
    "d": dpnb.Dates("2020-01-01", "2021-12-31"),
}


def made(seed: int = 11) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    x = chance.poisson(4, SIZE).astype(float)
    return pd.DataFrame(
        {
            "p": chance.integers(0, 900, SIZE),
            "x": np.where(chance.random(SIZE) < 0.05, np.nan, x),
            "y": 3 * x + chance.normal(40, 15, SIZE),
            "g": chance.choice(["a", "b", "c"], SIZE, p=[0.6, 0.3, 0.1]),
            "k": chance.choice([0, 25, 95], SIZE),
            "t": chance.choice(["foo", "bar", "baz"], SIZE, p=[0.5, 0.4, 0.1]),
            "d": pd.Timestamp("2020-01-01") + pd.to_timedelta(chance.integers(0, 700 * 24, SIZE), unit="h"),
        }
    )


T = made()
BILLS = pd.DataFrame({"p": np.repeat(np.arange(0, 1200), 2), "x": np.tile([1.0, 4.0], 1200), "h": np.arange(2400) % 3})
PUBLIC = pd.DataFrame({"g": ["a", "b"], "size": [10.0, 30.0], "zone": ["north", "south"]})


def session(**changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "people",
        "budget": dpnb.Budget.gdp(1e7),
        "schema": SCHEMA,
        "ledger": ":memory:",
        "not_private_test_seed": 5,
    }
    return dpnb.Session(**{"table": T, **arguments, **changes})


@pytest.fixture(scope="module")
def views() -> dict[str, Any]:
    """The same table with rows as the unit, and with persons none of whom is cut short."""
    return {
        "rows": session().frame,
        "persons": session(privacy_unit="p", max_rows_per_unit=20).frame,
    }


def close(answer: Any, wanted: Any, rel: float = 1e-4, abs: float = 1e-3) -> None:
    found = answer.estimate
    if isinstance(found, float):
        assert found == pytest.approx(float(wanted), rel=rel, abs=abs)
        return
    assert found.to_numpy(float).ravel().tolist() == pytest.approx(
        np.asarray(wanted, float).ravel().tolist(), rel=rel, abs=abs, nan_ok=True
    )


def least_squares(outcome: pd.Series, *columns: pd.Series) -> list[float]:
    table = pd.concat([outcome, *columns], axis=1).dropna().astype(float).to_numpy()
    design = np.column_stack([np.ones(len(table)), table[:, 1:]])
    return list(np.linalg.lstsq(design, table[:, 0], rcond=None)[0])


JUNE = pd.Timestamp("2020-06-01")
BOTH = T.dropna(subset=["x"])
MERGED = T.merge(PUBLIC, on="g")
GROUPS = ["a", "b", "c", "never"]
by_g = T.groupby("g")

VERBS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "count": (lambda f: f.count(), SIZE),
    "count of a column": (lambda f: f["x"].count(), T.x.count()),
    "sum": (lambda f: f["x"].sum(), T.x.sum()),
    "mean": (lambda f: f["y"].mean(), T.y.clip(-20, 120).mean()),
    "var": (lambda f: f["x"].var(), T.x.var()),
    "std": (lambda f: f["y"].std(), T.y.clip(-20, 120).std()),
    "cov": (lambda f: f["x"].cov(f["y"]), BOTH.x.cov(BOTH.y.clip(-20, 120))),
    "var over the count": (lambda f: f["x"].var(ddof=0), T.x.var(ddof=0)),
    "std over the count": (lambda f: f["y"].std(ddof=0), T.y.clip(-20, 120).std(ddof=0)),
    "cov over the count": (lambda f: f["x"].cov(f["y"], ddof=0), BOTH.x.cov(BOTH.y.clip(-20, 120), ddof=0)),
    "corr": (lambda f: f["x"].corr(f["y"]), BOTH.x.corr(BOTH.y.clip(-20, 120))),
    "ratio": (lambda f: f["x"].ratio(f["y"]), BOTH.x.sum() / BOTH.y.clip(-20, 120).sum()),
    "median": (lambda f: f["x"].round().median(), np.quantile(BOTH.x, 0.5, method="inverted_cdf")),
    "quantiles": (
        lambda f: f["x"].round().quantile([0.05, 0.25, 0.9]),
        np.quantile(BOTH.x, [0.05, 0.25, 0.9], method="inverted_cdf"),
    ),
    "min": (lambda f: f["x"].round().min(), T.x.min()),
    "max": (lambda f: f["x"].round().max(), T.x.max()),
    "proportion": (lambda f: (f["g"] == "b").mean(), (T.g == "b").mean()),
    "masks": (
        lambda f: f[(f["x"] > 2) & ~f["g"].isin(["a"])]["y"].mean(),
        T[(T.x > 2) & (T.g != "a")].y.clip(-20, 120).mean(),
    ),
    "computed": (lambda f: np.log1p(f["x"] * 2).mean(), np.log1p(T.x * 2).mean()),
    "assigned": (lambda f: f.assign(z=f["y"] - 2 * f["x"])["z"].mean(), (BOTH.y.clip(-20, 120) - 2 * BOTH.x).mean()),
    "filled": (lambda f: f["x"].fillna(10).mean(), T.x.fillna(10).mean()),
    "numeric categories": (lambda f: f["k"].astype(float).mean(), T.k.mean()),
    "dates": (lambda f: (f["d"] - JUNE).dt.days.mean(), (T.d - JUNE).dt.days.mean()),
    "groupby count": (lambda f: f.groupby("g").count(), by_g.size().reindex(GROUPS, fill_value=0)),
    "groupby mean": (lambda f: f.groupby("g", keys=["c", "a"])["x"].mean(), by_g.x.mean()[["c", "a"]]),
    "groupby sum": (lambda f: f.groupby("k")["x"].sum(), T.groupby("k").x.sum()),
    "groupby two": (
        lambda f: f.groupby(["k", f["x"] > 3])["y"].count(),
        BOTH.groupby(["k", BOTH.x > 3]).y.count(),
    ),
    "groupby quarter": (lambda f: f.groupby(f["d"].dt.quarter).count(), T.groupby(T.d.dt.quarter).size()),
    "groupby bins": (
        lambda f: f.groupby(dpnb.cut(f["y"], [-20, 30, 60, 120]))["x"].mean(),
        BOTH.groupby(pd.cut(BOTH.y.clip(-20, 120), [-20, 30, 60, 120], include_lowest=True), observed=True).x.mean(),
    ),
    "groupby text": (
        lambda f: f.groupby("t", keys=["baz", "nobody", "foo"]).count(),
        T.groupby("t").size().reindex(["baz", "nobody", "foo"], fill_value=0),
    ),
    "groupby text and category": (
        lambda f: f.groupby(["t", "g"], keys=[("foo", "b"), ("bar", "a")])["x"].sum(),
        T.groupby(["t", "g"]).x.sum()[[("foo", "b"), ("bar", "a")]],
    ),
    "groupby std": (lambda f: f.groupby("k")["x"].std(), T.groupby("k").x.std()),
    "groupby median": (
        lambda f: f.groupby("k")["x"].median(),
        BOTH.groupby("k").x.quantile(0.5, interpolation="lower"),
    ),
    "value_counts": (lambda f: f["g"].value_counts(), T.g.value_counts().reindex(GROUPS, fill_value=0)),
    "shares": (
        lambda f: f["g"].value_counts(normalize=True),
        T.g.value_counts(normalize=True).reindex(GROUPS, fill_value=0),
    ),
    "two-way table of conditions": (
        lambda f: dpnb.crosstab(f["y"] > 40, f["k"] > 0),
        pd.crosstab(T.y > 40, T.k > 0),
    ),
    "histogram": (lambda f: f["x"].histogram([0, 3, 6, 30]), np.histogram(BOTH.x, [0, 3, 6, 30])[0]),
    "regress": (
        lambda f: f.regress("y", on=["x", "k"]),
        least_squares(T.y.clip(-20, 120), T.x, T.k == 25, T.k == 95),
    ),
    "regress on one": (lambda f: f.regress(f["y"], on=f["x"]), least_squares(T.y.clip(-20, 120), T.x)),
    "merge public": (
        lambda f: f.merge(PUBLIC, on="g").groupby("zone")["size"].sum(),
        MERGED.groupby("zone")["size"].sum(),
    ),
    "merge public, all rows": (lambda f: f.merge(PUBLIC, on="g", how="left").count(), SIZE),
    "logarithm": (lambda f: np.log(f["x"] + 1).mean(), np.log(T.x + 1).mean()),
    "map": (lambda f: f["g"].map({"a": 1, "b": 2.5, "c": -3}).mean(), T.g.map({"a": 1, "b": 2.5, "c": -3}).mean()),
    "replace": (lambda f: f["k"].replace(95, 25).value_counts(), T.k.replace(95, 25).value_counts().sort_index()),
    "where without a second value": (lambda f: f["y"].where(f["x"] > 3).mean(), T.y.clip(-20, 120)[T.x > 3].mean()),
    "numpy.where": (lambda f: np.where(f["x"] > 3, f["x"], -1).sum(), np.where(BOTH.x > 3, BOTH.x, -1).sum()),
    "larger of two": (lambda f: np.maximum(f["x"], f["k"].astype(float)).mean(), np.maximum(BOTH.x, BOTH.k).mean()),
    "shares within groups": (
        lambda f: f.groupby("k")["g"].value_counts(normalize=True),
        pd.crosstab(T.k, T.g, normalize="index").reindex(columns=GROUPS, fill_value=0).to_numpy().ravel(),
    ),
    "whole part": (lambda f: f["y"].astype(int).mean(), np.trunc(T.y.clip(-20, 120)).mean()),
    "upper case": (
        lambda f: f["g"].str.upper().value_counts(),
        [*T.g.str.upper().value_counts().sort_index(), 0],
    ),
    "contains": (lambda f: f["t"].str.contains("BA", case=False).mean(), T.t.str.contains("ba").mean()),
    "months": (
        lambda f: f.groupby(f["d"].dt.to_period("M"))["y"].sum(),
        [*T.y.clip(-20, 120).groupby(T.d.dt.to_period("M")).sum(), *[0] * (24 - T.d.dt.to_period("M").nunique())],
    ),
    "weeks": (
        lambda f: f["d"].dt.floor("W").value_counts(),
        T.d.dt.to_period("W").value_counts().reindex(pd.period_range("2020", "2021-12-31", freq="W"), fill_value=0),
    ),
    "day names": (
        lambda f: f["d"].dt.day_name().value_counts(),
        T.d.dt.day_name().value_counts()[pd.date_range("2024-01-01", periods=7).day_name()],
    ),
    "bins of dates": (
        lambda f: dpnb.cut(f["d"], ["2020-01-01", "2020-07", "2022"], right=False).value_counts(),
        pd.cut(T.d, pd.to_datetime(["2020-01-01", "2020-07-01", "2022-01-01"]), right=False).value_counts(sort=False),
    ),
    "limit of nothing": (lambda f: f[["x", "y"]]["x"].sum(), T.x.sum()),
    "cumulative count": (lambda f: f.groupby("g").size().cumsum(), by_g.size().reindex(GROUPS, fill_value=0).cumsum()),
    "cumulative count of values": (
        lambda f: f.groupby("k")["x"].count().cumsum(),
        T.groupby("k")["x"].count().cumsum(),
    ),
}  # fmt: skip
ROUGHER = {"groupby median": 30 / 4096 * 2, "cov": 4e-3, "regress": 4e-3, "regress on one": 4e-3, "months": 0.1}
"""Quantiles of real numbers are known to the width of a leaf; of moments the noise is some 1e-4."""


@pytest.mark.parametrize("unit", ["rows", "persons"])
@pytest.mark.parametrize("name", VERBS)
def test_an_answer_is_what_pandas_gives(views: dict[str, Any], name: str, unit: str) -> None:
    ask, wanted = VERBS[name]
    close(ask(views[unit]).release(mu=MU), wanted, abs=ROUGHER.get(name, 1e-3))


def test_units_are_distinct_persons(views: dict[str, Any]) -> None:
    f = views["persons"]
    close(f[f["x"] > 6].count_units().release(mu=MU), T[T.x > 6].p.nunique())
    close(f.groupby("k").count_units().release(mu=MU), T.groupby("k").p.nunique())


def test_quantiles_of_real_numbers_are_known_to_a_leaf(views: dict[str, Any]) -> None:
    levels = [0.0105, 0.2505, 0.5001, 0.9905]  # no level falls between two rows, where either is right
    answer = views["rows"]["y"].quantile(levels).release(mu=MU)
    wanted = np.quantile(T.y.clip(-20, 120), levels, method="inverted_cdf")
    assert np.abs(answer.estimate.to_numpy() - wanted).max() <= 140 / 4096 * 1.01


def test_agg_gives_each_column_its_own_statistic(views: dict[str, Any]) -> None:
    for f in views.values():
        columns = {"n": "count", "seen": ("x", "count"), "total": ("x", "sum"), "mean": ("x", "mean")}
        question = f.groupby("k").agg(**columns, sd=("x", "std"), top=(f["x"].round(), "max"))
        answer = question.release(mu=MU)
        groups = T.groupby("k")
        wanted = pd.DataFrame(
            {
                "n": groups.size(),
                "seen": groups.x.count(),
                "total": groups.x.sum(),
                "mean": groups.x.mean(),
                "sd": groups.x.std(),
                "top": groups.x.max(),
            }
        )
        assert list(answer.estimate.columns) == list(wanted.columns)
        for name in wanted:  # noise can move the largest value by one leaf of the tree
            close(answer[name], wanted[name], abs=1 if name == "top" else 2e-3)
        close(answer["mean"], wanted["mean"])


def test_describe_is_that_of_pandas(views: dict[str, Any]) -> None:
    f = views["rows"]
    found = f["x"].describe().release(mu=MU).estimate
    wanted = BOTH.x.describe()
    assert list(found.index) == list(wanted.index)
    wanted["std"] = BOTH.x.std()
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=30 / 4096 * 4)


def test_discover_finds_the_texts_and_their_units() -> None:
    budget = dpnb.Budget(epsilon=1_000_000, delta=1e-6, discovery_delta=1e-7)
    f = session(privacy_unit="p", max_rows_per_unit=20, budget=budget).frame
    found = f[f["x"] > 2].discover("t").release(mu=700)
    wanted = T[T.x > 2].groupby("t").p.nunique()
    assert sorted(key for (key,) in found.keys) == sorted(wanted.index)
    assert found.estimate[wanted.index].tolist() == pytest.approx(wanted.tolist(), abs=0.05)
    means = f.groupby("t", keys=found)["x"].mean().release(mu=700)
    close(means, T.groupby("t").x.mean()[found.estimate.index], abs=1e-2)


def test_two_private_tables_are_merged_as_by_pandas() -> None:
    several = session(
        table={"visits": T, "bills": BILLS},
        schema={"visits": SCHEMA, "bills": {"x": dpnb.Bounded(0, 5), "h": dpnb.Categories([0, 1, 2])}},
        privacy_unit="p",
        max_rows_per_unit={"visits": 20, "bills": 2},
    )
    both = several.table("visits").merge(several.table("bills"), on="p")
    wanted = T.merge(BILLS, on="p")
    close(both.count().release(mu=MU), len(wanted), abs=1e-2)
    close(
        both[both["x_x"] > 2].groupby("h")["x_y"].mean().release(mu=MU), wanted[wanted.x_x > 2].groupby("h").x_y.mean()
    )
    close(several.table("bills")["x"].sum().release(mu=MU), BILLS.x.sum())


def test_some_groups_can_be_refined_and_the_others_stay() -> None:
    f = session().frame
    question = f.groupby("g")["x"].mean()
    rough = question.release(mu=1)
    better = rough.refine(mu=MU, groups=["c", "b"])
    groups = T.groupby("g").x.mean()
    assert [better["b"].estimate, better["c"].estimate] == pytest.approx([groups["b"], groups["c"]], abs=1e-4)
    assert better["a"].estimate == rough["a"].estimate
    assert better["a"].interval[1] - better["a"].interval[0] > 100 * (better["b"].interval[1] - better["b"].interval[0])
    every = better.refine(mu=2 * MU).estimate
    assert every[["a", "b", "c"]].tolist() == pytest.approx(groups.tolist(), abs=1e-4)
