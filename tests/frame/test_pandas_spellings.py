"""A spelling of pandas builds the plan and the view of the spelling that was there first: they share observations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import DpnbError, PlanError, UnsupportedError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(0, 20),
    "y": Bounded(-1, 3),
    "g": Categories(["a", "b", "c"]),
    "count": Bounded(0, 5, integer=True),
    "two words": Bounded(0, 1),
    "t": Text(),
    "d": Dates("2020-01-01", "2021-12-31"),
}


class Built(NamedTuple):
    """What a query consists of."""

    plan: Any
    view: Any

    def unstack(self) -> Built:
        return self


def table(schema: Schema = SCHEMA) -> Frame:
    return Frame(TableView("", {"": schema}, {"": PrivacyUnit("u", 5)}, Built, str))  # type: ignore[arg-type]


@pytest.fixture
def f() -> Any:
    return table()


PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "attribute": (lambda f: f.x.mean(), lambda f: f["x"].mean()),
    "loc": (lambda f: f.loc[f["x"] > 1].count(), lambda f: f[f["x"] > 1].count()),
    "loc of a column": (lambda f: f.loc[f["x"] > 1, "y"].mean(), lambda f: f[f["x"] > 1]["y"].mean()),
    "loc of columns": (lambda f: f.loc[:, ["x", "y"]].mean(), lambda f: f[["x", "y"]].mean()),
    "loc of a range": (lambda f: f.loc[:, "x":"y"].mean(), lambda f: f[["x", "y"]].mean()),
    "query": (lambda f: f.query("x > 1 and g == 'a'").count(), lambda f: f[(f["x"] > 1) & (f["g"] == "a")].count()),
    "query with &": (lambda f: f.query("x > 1 & y < 2").count(), lambda f: f[(f["x"] > 1) & (f["y"] < 2)].count()),
    "query with or": (lambda f: f.query("not x > 1 or y < 2").count(),
                      lambda f: f[~(f["x"] > 1) | (f["y"] < 2)].count()),
    "query with a chain": (lambda f: f.query("1 < x < 2").count(), lambda f: f[(f["x"] > 1) & (f["x"] < 2)].count()),
    "query with a list": (lambda f: f.query("g in ['a', 'b']").count(), lambda f: f[f["g"].isin(["a", "b"])].count()),
    "query not in": (lambda f: f.query("g not in ('a',)").count(), lambda f: f[~f["g"].isin(["a"])].count()),
    "query == list": (lambda f: f.query("g == ['a', 'b']").count(), lambda f: f[f["g"].isin(["a", "b"])].count()),
    "query with arithmetic": (lambda f: f.query("x + 2 * y >= -1").count(),
                              lambda f: f[f["x"] + 2 * f["y"] >= -1].count()),
    "query with backticks": (lambda f: f.query("`two words` > 0.5").count(), lambda f: f[f["two words"] > 0.5].count()),
    "query with a method": (lambda f: f.query("x.isna() or d.dt.year == 2020").count(),
                            lambda f: f[f["x"].isna() | (f["d"].dt.year == 2020)].count()),
    "query of an operator in a text": (lambda f: f.query("t == 'a & b | `c` @d'").count(),
                                       lambda f: f[f["t"] == "a & b | `c` @d"].count()),
    "eval": (lambda f: f.eval("x * 2").mean(), lambda f: (f["x"] * 2).mean()),
    "named comparisons": (lambda f: (f["x"].gt(1) & f["x"].le(5)).mean(),
                          lambda f: ((f["x"] > 1) & (f["x"] <= 5)).mean()),
    "named equality": (lambda f: f[f["g"].eq("a") | f["g"].ne("b")].count(),
                       lambda f: f[(f["g"] == "a") | (f["g"] != "b")].count()),
    "named arithmetic": (lambda f: f["x"].add(f["y"]).mul(2).sub(1).div(4).mean(),
                         lambda f: (((f["x"] + f["y"]) * 2 - 1) / 4).mean()),
    "one numeric column": (lambda f: f[["x"]].mean(), lambda f: f["x"].mean()),
    "one numeric column among others": (lambda f: f[["g", "x"]].std(), lambda f: f["x"].std()),
    "one column of groups": (lambda f: f.groupby("g")[["x"]].median(), lambda f: f.groupby("g")["x"].median()),
    "groupby attribute": (lambda f: f.groupby("g").x.mean(), lambda f: f.groupby("g")["x"].mean()),
    "groupby of a column": (lambda f: f["x"].groupby(f["g"]).mean(), lambda f: f.groupby("g")["x"].mean()),
    "groupby options": (lambda f: f.groupby("g", as_index=False, sort=False, observed=False)["x"].mean(),
                        lambda f: f.groupby("g")["x"].mean()),
    "dict agg": (lambda f: f.agg({"x": "mean", "y": ["mean", "std"]}),
                 lambda f: f.agg(x=("x", "mean"), y_mean=("y", "mean"), y_std=("y", "std"))),
    "list agg": (lambda f: f.groupby("g")["x"].agg(["mean", "std"]),
                 lambda f: f.groupby("g").agg(mean=("x", "mean"), std=("x", "std"))),
    "agg by name": (lambda f: f["x"].agg("mean"), lambda f: f["x"].mean()),
    "agg by function": (lambda f: f["x"].agg(np.mean), lambda f: f["x"].mean()),
    "several columns": (lambda f: f[["x", "y"]].mean(), lambda f: f.agg(x=("x", "mean"), y=("y", "mean"))),
    "numpy": (lambda f: np.mean(f["x"]), lambda f: f["x"].mean()),
    "numpy's deviation": (lambda f: np.std(f["x"]), lambda f: f["x"].std(ddof=0)),
    "numpy's percentile": (lambda f: np.percentile(f["x"], 90), lambda f: f["x"].quantile(0.9)),
    "numpy on a frame": (lambda f: np.mean(f[["x", "y"]]), lambda f: f[["x", "y"]].mean()),
    "hist": (lambda f: f["x"].hist(bins=5), lambda f: f["x"].histogram(5)),
    "plot.hist": (lambda f: f["x"].plot.hist(bins=5), lambda f: f["x"].histogram(5)),
    "plot of a kind": (lambda f: f["x"].plot(kind="hist"), lambda f: f["x"].histogram()),
    "value_counts of a frame": (lambda f: f[["g", "count"]].value_counts(),
                                lambda f: f.groupby(["g", "count"]).count()),
    "hist of a frame": (lambda f: f.hist("x", bins=5), lambda f: f["x"].histogram(5)),
    "boxplot": (lambda f: f.boxplot("x", by="g"),
                lambda f: f.groupby("g")["x"].quantile([0.05, 0.25, 0.5, 0.75, 0.95])),
    "boxplot of a column": (lambda f: f["x"].plot.box(), lambda f: f.boxplot("x")),
    "scatter": (lambda f: f.plot.scatter("x", "y", bins=4), lambda f: f.groupby(dpnb.cut(f["x"], 4))["y"].mean()),
    "scatter of groups": (lambda f: f.plot.scatter(x="g", y="y"), lambda f: f.groupby("g")["y"].mean()),
    "plot of two columns": (lambda f: f.plot(kind="bar", x="g", y="y"), lambda f: f.groupby("g")["y"].mean()),
    "hexbin": (lambda f: f.plot.hexbin("x", "y", gridsize=3),
               lambda f: f.groupby([dpnb.cut(f["x"], 3), dpnb.cut(f["y"], 3)]).size()),
    "numpy's histogram": (lambda f: np.histogram(f["x"], bins=5),
                          lambda f: f["x"].histogram(5)),
    "numpy's polynomial": (lambda f: np.polyfit(f["x"], f["y"], 2), lambda f: f.regress("y", on=[f["x"] ** 2, "x"])),
    "numpy's correlations": (lambda f: np.corrcoef(f["x"], f["y"]), lambda f: f[["x", "y"]].corr()),
    "numpy's covariances": (lambda f: np.cov(f["x"], f["y"]), lambda f: f[["x", "y"]].cov()),
    "numpy's count_nonzero": (lambda f: np.count_nonzero(f["x"]), lambda f: (f["x"] != 0).sum()),
    "codes of bins": (lambda f: dpnb.cut(f["x"], 3, labels=False).value_counts(),
                      lambda f: dpnb.cut(f["x"], 3, labels=[0, 1, 2]).value_counts()),
    "value_counts in bins": (lambda f: f["x"].value_counts(bins=4), lambda f: f.groupby(dpnb.cut(f["x"], 4)).count()),
    "value_counts options": (lambda f: f["g"].value_counts(sort=True, dropna=True), lambda f: f["g"].value_counts()),
    "value_counts of groups": (lambda f: f.groupby("count")["g"].value_counts(),
                               lambda f: f.groupby(["count", "g"]).count()),
    "crosstab": (lambda f: dpnb.crosstab(f["g"], f["count"]), lambda f: f.groupby(["g", "count"]).count()),
    "crosstab of values": (lambda f: dpnb.crosstab(f["g"], f["count"], values=f["x"], aggfunc="mean"),
                           lambda f: f.groupby(["g", "count"])["x"].mean()),
    "pivot_table": (lambda f: f.pivot_table(values="x", index="g", columns="count"),
                    lambda f: f.groupby(["g", "count"])["x"].mean()),
    "pivot_table by columns": (lambda f: f.pivot_table(values="x", index=f["g"], columns=[f["count"]]),
                               lambda f: f.groupby(["g", "count"])["x"].mean()),
    "get_dummies": (lambda f: dpnb.get_dummies(f["g"])["b"].mean(), lambda f: (f["g"] == "b").mean()),
    "rename": (lambda f: f.rename(columns={"x": "z"})["z"].mean(), lambda f: f["x"].mean()),
    "drop, copy, reset_index, sort_values": (
        lambda f: f.drop(columns=["t"]).copy().reset_index(drop=True).sort_values("x", ascending=False)["x"].mean(),
        lambda f: f["x"].mean(),
    ),
    "filter, in the order of the list": (lambda f: f.filter(["y", "x"]).mean(), lambda f: f[["y", "x"]].mean()),
    "filter": (lambda f: f.filter(like="x").mean(), lambda f: f["x"].mean()),
    "select_dtypes": (lambda f: f[["x", "y", "g"]].select_dtypes("number").mean(), lambda f: f[["x", "y"]].mean()),
    "isna of a frame": (lambda f: f[["x"]].isna().mean(), lambda f: f["x"].isna().mean()),
    "dropna": (lambda f: f.dropna(subset=["x"]).count(), lambda f: f[f["x"].notna()].count()),
    "fillna": (lambda f: f.fillna({"x": 0})["x"].mean(), lambda f: f["x"].fillna(0).mean()),
    "unit": (lambda f: f["u"].nunique(), lambda f: f.count_units()),
    "unit as an attribute": (lambda f: f[f["x"] > 1].u.nunique(), lambda f: f[f["x"] > 1].count_units()),
    "dot": (lambda f: f["x"] @ f["y"], lambda f: (f["x"] * f["y"]).sum()),
    "formula": (lambda f: f.regress("x ~ y + C(g)"), lambda f: f.regress("x", on=["y", "g"])),
    "formula in backticks": (lambda f: f.regress("x ~ `two words`"), lambda f: f.regress("x", on=["two words"])),
    "formula without interaction": (lambda f: f.regress("x ~ 1 + y + y"), lambda f: f.regress("x", on="y")),
    "agg of named aggregations": (lambda f: f["x"].agg(m="mean", s="std"),
                                  lambda f: f.agg(m=("x", "mean"), s=("x", "std"))),
    "agg of a dict": (lambda f: f.groupby("g")["x"].agg({"m": "mean", "n": "count"}),
                      lambda f: f.groupby("g").agg(m=("x", "mean"), n=("x", "count"))),
    "map by a function": (lambda f: f["x"].map(lambda x: x * 2).mean(), lambda f: (f["x"] * 2).mean()),
    "units of groups": (lambda f: f.groupby("g")["u"].nunique(), lambda f: f.groupby("g").count_units()),
    "units of groups in agg": (lambda f: f.groupby("g").agg(n=("u", "nunique"), m=("x", "mean")),
                               lambda f: f.groupby("g").agg(n="units", m=("x", "mean"))),
    "dates in agg": (lambda f: f.agg({"d": ["min", "max"]}), lambda f: f.agg(d_min=("d", "min"), d_max=("d", "max"))),
    "regress by position": (lambda f: f.regress("x", ["y"]), lambda f: f.regress("x", on=["y"])),
    "defaults of pandas": (lambda f: f["x"].mean(axis=0, skipna=True), lambda f: f["x"].mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_both_spellings_are_one_query(f: Any, name: str) -> None:
    pandas_spelling, known = (spelling(f) for spelling in PAIRS[name])
    assert pandas_spelling[0].to_json() == known[0].to_json()
    assert pandas_spelling[1] == known[1]


def test_a_column_named_like_a_method_is_reached_by_its_name(f: Any) -> None:
    assert isinstance(f.count(), tuple)
    assert f["count"].mean()[0].words == "mean of count"
    named = table({"mode": Bounded(0, 1)})
    with pytest.raises(UnsupportedError, match=r"the column of this name is df\['mode'\]"):
        named.mode  # noqa: B018


def test_names_for_completion_are_public_ones(f: Any) -> None:
    assert {"x", "g", "mean", "query"} <= set(dir(f))
    assert "two words" not in dir(f)
    assert f._ipython_key_completions_() == list(SCHEMA)
    assert {"x", "mean"} <= set(dir(f.groupby("g")))


def test_a_frame_is_a_mapping_of_names_but_shows_no_rows(f: Any) -> None:
    assert list(f) == list(f.keys()) == list(SCHEMA)
    assert "x" in f
    assert "z" not in f
    with pytest.raises(DpnbError):
        list(f["x"])


def test_declared_values_are_public(f: Any) -> None:
    assert f["g"].unique() == ["a", "b", "c"]
    assert dict(f.dtypes)["x"] == "number from 0 to 20"
    assert dict(f.items())["x"].name == "x"
    assert f.groupby(["g", "count"]).ngroups == 18
    assert f.pipe(lambda view: view.columns) == f.columns


def test_groups_have_no_columns_of_their_own_keys(f: Any) -> None:
    plan, view = f[["count", "x", "y"]].groupby("count").mean()
    assert [column.name for column in view.columns] == ["x", "y"]
    assert plan.words == "mean of x, mean of y by count"


def test_an_interaction_is_a_product_of_columns_and_indicators(f: Any) -> None:
    plan, view = f.regress("x ~ y * count + g + y:g")
    assert view.labels == ("x", "y", "count", "g == 'b'", "g == 'c'", "y:count", "y:g == 'b'", "y:g == 'c'")
    assert len(plan.aggregation.columns) == 6
    assert plan.aggregation.categories == (f["g"]._node,)


def test_whole_numbers_can_be_categories_of_a_formula(f: Any) -> None:
    plan, view = f.regress("x ~ C(count)")
    assert view.labels == ("x", *(f"count == {value}" for value in range(1, 6)))
    assert plan.aggregation.categories == (f["count"]._node,)


@pytest.mark.parametrize(
    "formula",
    ["x ~", "~ x", "x", "x ~ y -1", "x ~ 0 + y", "x ~ y + 0", "x ~ log(y)", "x ~ np.log(y)", "x ~ I(y**2)",
     "x ~ y ** 2", "x ~ C(y)", "x ~ C(t)", "x ~ z", "x ~ y:g", "x ~ y +", "x ~ y y", "C(x) ~ y", "x ~ C()", "x ~ C(y",
     "x ~ x", "x ~ y~g", "x ~ `y", "x ~ __import__('os')", "x ~ y.__class__", "x ~ (y)", "1 ~ x",
     "x ~ " + "y:" * 6000 + "y",
     "x ~ 1", "x ~ C(1)", "x ~ \x00", "x ~ y;g"],
)  # fmt: skip
def test_what_is_not_a_formula_is_refused(f: Any, formula: str) -> None:
    with pytest.raises(PlanError):
        f.regress(formula)


def test_an_interaction_of_very_many_products_is_refused_before_they_are_made() -> None:
    frame: Any = table({f"c{number}": Categories(range(50)) for number in range(20)} | {"x": Bounded(0, 1)})
    names = [f"c{number}" for number in range(20)]
    with pytest.raises(PlanError, match="more than 60 terms"):
        frame.regress(f"x ~ {' + '.join(names)} + {':'.join(names)}")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda f: f["X"], "did you mean 'x'"),
        (lambda f: f.groupby("G"), "did you mean 'g'"),
        (lambda f: f["two word"], "did you mean 'two words'"),
        (lambda f: f.meen(), r"did you mean \.mean"),
        (lambda f: f["x"].meen(), r"did you mean \.mean"),
        (lambda f: f.agg(x=("x", "avg")), "is not offered"),
        (lambda f: f.head(), r"df\['x'\]\.mean\(\)"),
        (lambda f: f["y"].head(), r"df\['y'\]\.mean\(\)"),
        (lambda f: f.shape, r"df\.count\(\)"),
        (lambda f: len(f), r"\.count\(\)"),
        (lambda f: f["d"].mean(), r"df\['d'\]\.dt\.month"),
        (lambda f: f["g"].mean(), r"\(df\['g'\] == 'a'\)\.mean\(\)"),
        (lambda f: f["t"].nunique(), r"df\.discover\('t'\)"),
        (lambda f: 1 < f["x"] < 2, r"df\['x'\]\.between\(1, 2\)"),
        (lambda f: f.sum(axis=1), r"df\['x'\] \+ df\['y'\]"),
        (lambda f: f["x"].mean(skipna=False), r"df\['x'\]\.isna\(\)\.sum\(\)"),
        (lambda f: f.groupby("g", observed=True), "keys="),
        (lambda f: f.groupby("u")["x"].shift(1), r"df\.sort_values\('d'\)\.groupby\('u'\)\['x'\]\.shift\(1\)"),
        (lambda f: f["u"] == 3, "count_units"),
        (lambda f: f["u"].unique(), "declared"),
        (lambda f: f["t"].unique(), "declared"),
        (lambda f: f.groupby("g")["x"].dropna(), "filter before grouping"),
        (lambda f: f.groupby("g")["x"].isna(), "before grouping"),
        (lambda f: f.groupby("g").corr(), r"df\['x'\]\.corr\(df\['y'\]\)"),
        (lambda f: pd.cut(f["x"], 3), r"dpnb\.cut\(f\['x'\]"),
        (lambda f: pd.crosstab(f["g"], f["count"]), r"dpnb\.crosstab\(f\['g'\]"),
        (lambda f: pd.concat([f, f]), "merge"),
        (lambda f: f[f["x"] > 1] if f["x"] > 1 else None, r"df\[df\['x'\] > 1\]"),
        (lambda f: f.rename(columns={"x": "y"}), "different"),
        (lambda f: f.rename(columns={"q": "y"}), "column 'q'"),
        (lambda f: f.crosstab("g"), r"dpnb\.crosstab"),
        (lambda f: dpnb.crosstab(f["g"], f["g"]), "twice"),
        (lambda f: dpnb.crosstab(f["g"], f[f["x"] > 1]["count"]), "other rows"),
        (lambda f: dpnb.get_dummies(f["t"]), "private"),
        (lambda f: f.fillna(0), r"fillna\(\{'x': 0\}\)"),
        (lambda f: f.corr(method="spearman"), "Pearson"),
    ],
)
def test_a_refusal_names_what_works_with_the_columns_of_the_view(f: Any, wrong: Any, text: str) -> None:
    with pytest.raises(DpnbError, match=text):
        wrong(f)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.__setitem__(0, 1),
        lambda f: f.__setitem__(["x", "y"], f["x"]),
        lambda f: f.__setitem__(f["x"] > 1, 0),
        lambda f: f.__setitem__("z", [1, 2, 3]),
        lambda f: f.__setitem__("u", f["x"]),
        lambda f: setattr(f, "z", 1),
        lambda f: setattr(f, "columns", []),
        lambda f: f.__delitem__("q"),
        lambda f: f.loc.__setitem__("x", 1),
        lambda f: f["x"].__setitem__(0, 1),
        lambda f: f["x"].__delitem__(0),
        lambda f: f.groupby("g").__setitem__("x", 1),
    ],
)
def test_rows_cannot_be_changed(f: Any, change: Any) -> None:
    with pytest.raises(PlanError):
        change(f)
    assert f.columns == list(SCHEMA)


def test_a_column_can_be_set_and_deleted(f: Any) -> None:
    before, groups = f.copy(), f.groupby("g")
    f["z"] = f["x"] * 2
    assert f["z"].mean() == before.assign(z=before["x"] * 2)["z"].mean()
    f["z"] = f["z"] + 1
    assert f["z"].mean()[0].words == "mean of (x * 2) + 1"
    assert "z" not in before
    with pytest.raises(PlanError):
        groups["z"]
    del f["z"]
    assert f.columns == before.columns


def test_examples_need_no_column_of_a_kind() -> None:
    """Every refusal can be written for every view, whatever its columns are and are called."""
    from dpnb.frame.compatibility.calls import REMEDIES

    for schema in ({"{number}": Bounded(0, 1)}, {"t": Text()}, {"d": Dates("2020-01-01", "2021-01-01")},
                   {"g": Categories(["{x}", "%s"])}):  # fmt: skip
        frame = table(schema)
        for name in REMEDIES:
            for receiver in (frame, frame[next(iter(schema))], frame.isna()):
                if name in dir(receiver):
                    continue
                with pytest.raises(UnsupportedError) as caught:
                    getattr(receiver, name)
                assert not re.search(r"\{(category|condition|self|periods)", str(caught.value))


BUILT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "agg by a lambda": (lambda f: f["x"].agg(lambda s: s.mean()), lambda f: f["x"].mean()),
    "agg of groups by a lambda": (lambda f: f.groupby("g")["x"].agg(lambda s: (s > 1).mean()),
                                  lambda f: (f["x"] > 1).groupby(f["g"]).mean()),
    "apply to a grouped column": (lambda f: f.groupby("g")["count"].apply(lambda s: (s == 2).mean()),
                                  lambda f: (f["count"] == 2).groupby(f["g"]).mean()),
    "apply to groups": (lambda f: f.groupby("g").apply(lambda group: (group["x"] + group.y).mean()),
                        lambda f: (f["x"] + f["y"]).groupby(f["g"]).mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILT)
def test_what_a_function_builds_is_the_same_query(name: str) -> None:
    session = dpnb.Session.rehearse(name="t", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema=SCHEMA)
    built, known = (spelling(session.frame) for spelling in BUILT[name])
    assert built.plan == known.plan
    assert built.view == known.view


def test_the_names_of_columns_are_a_list_with_the_conversions_of_an_index(f: Any) -> None:
    assert f.columns == f.columns.tolist() == f.columns.to_list() == list(SCHEMA)
    assert isinstance(f.columns, list)
    with pytest.raises(UnsupportedError, match=r"use pandas\.Index\(df\.columns\)"):
        f.columns.str.lower()


def test_columns_are_inserted_and_removed_in_place(f: Any) -> None:
    x = f["x"].mean()
    f.insert(0, "new", f["x"] * 2)
    assert f["new"].mean() == (f["x"] * 2).mean()
    assert f.pop("x").mean() == x
    assert "x" not in f


def test_declared_values_are_counted_without_a_query(f: Any) -> None:
    assert f["g"].nunique() == len(f["g"].unique()) == 3
    for column in (f["x"], f["t"], f.groupby("g")["count"], f.groupby("g")["g"]):
        with pytest.raises(UnsupportedError, match="depends on which values occur"):
            column.nunique()


def test_a_grouped_column_is_computed_with_only_inside_apply(f: Any) -> None:
    with pytest.raises(PlanError, match=r"can only be aggregated; compute it before grouping, with \.assign"):
        f.groupby("g")["x"] * 2
    with pytest.raises(UnsupportedError, match="takes an aggregation"):
        f.groupby("g")["x"].apply(lambda x: x * 2)


@pytest.mark.parametrize("use", [lambda f: f * 2, lambda f: 2 * f, lambda f: f > 1, lambda f: f == 1, lambda f: -f,
                                 lambda f: f + f, lambda f: f.groupby("g") / 2])  # fmt: skip
def test_operators_of_whole_tables_are_refused(f: Any, use: Callable[[Any], Any]) -> None:
    with pytest.raises(
        PlanError, match=r"is not offered for a whole table; write it for a column, as in df\['x'\] \* 2"
    ):
        use(f)
    assert f == f
    assert f != f.copy()
    assert hash(f) == hash(f)


def test_a_function_that_cannot_use_a_column_is_refused(f: Any) -> None:
    """The error of the function itself is kept; it follows from the code alone, never from rows."""
    with pytest.raises(UnsupportedError, match="the function raised TypeError: descriptor 'upper'"):
        f["x"].apply(str.upper)


def test_a_long_list_of_methods_is_not_printed(f: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"column x: is not offered; dir\(\) of it lists what is$"):
        f["x"].xyz  # noqa: B018


def test_no_example_sorts_by_an_outcome() -> None:
    """A column that may be the outcome is no order of a person's rows: without a date or a year it is a gap."""
    schema = {"lwage": Bounded(0, 5), "educ": Bounded(0, 20)}
    session = dpnb.Session.rehearse(
        name="wages", budget=dpnb.Budget.gdp(1), schema=schema, privacy_unit="nr", max_rows_per_unit=8
    )
    with pytest.raises(PlanError, match=r"as in df\.sort_values\(\.\.\.\)\.groupby\('nr'\)\['lwage'\]\.diff\(\)$"):
        session.frame.groupby("nr")["lwage"].diff()
    with pytest.raises(PlanError, match=r"df\.sort_values\(\.\.\.\)\.drop_duplicates\('nr', keep='last'\)$"):
        session.frame.drop_duplicates("nr", keep="last")
