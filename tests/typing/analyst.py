"""What an analyst writes, with the types that a type checker must see; `tests/test_typing.py` checks it with mypy."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Literal, assert_type

import numpy as np
import pandas as pd

import dpnb
from dpnb import Answer, Frame, GroupBy, LargestGroups, Preview, Query, Series, Session
from dpnb._core.core import SessionCore
from dpnb._request import Release
from dpnb._target import Target, target_from
from dpnb.accounting import Filter
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers import Odometer
from dpnb.interactive import RelativeError
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.interactive.noise_reduction import NoiseReduction
from dpnb.interactive.scan import ThresholdScan
from dpnb.interactive.sub_session import Partition
from dpnb.ledger import Charge, Ledger
from dpnb.query.arranged import ArrangedQuery
from dpnb.query.newton import NewtonRegression
from dpnb.query.regression import RegressionQuery
from dpnb.results.answer import History
from dpnb.results.batch import BatchAnswer, TableWithMargins
from dpnb.results.display import Explanation
from dpnb.results.preview import Previews
from dpnb.results.regression import FitResult, RegressionAnswer
from dpnb.results.schema import TableSchema, TablesSchema
from dpnb.results.selection import SelectedGroups, SelectionPreview, SelectionPreviews
from dpnb.results.survival import SurvivalAnswer
from dpnb.results.tables.intervals import Comparison, ThresholdResult
from dpnb.results.tables.table import Estimates
from dpnb.results.testing import HypothesisTest
from dpnb.session.base import PartSession, SubSession

Number = float | pd.Series | pd.DataFrame

table = pd.DataFrame({"x": [1.0, 2.0], "site": ["a", "b"], "day": ["2024-01-01", "2024-02-01"], "who": [1, 2]})
schema = {
    "x": dpnb.Bounded(0, 10, outside="drop"),
    "site": dpnb.Categories(["a", "b"]),
    "day": dpnb.Dates("2024-01-01", date(2024, 12, 31)),
    "note": dpnb.Text(),
}
session = dpnb.Session(
    table,
    name="clinic",
    budget=dpnb.Budget(epsilon=1.0, delta=1e-6),
    schema=schema,
    privacy_unit="who",
    max_rows_per_unit=2,
    filter="gdp",
    accounting="individual",
    on_exhausted="skip",
)
assert_type(session, Session)
assert_type(dpnb.Session.rehearse(table, name="clinic", budget=session.budget, schema=schema, filter="zcdp"), Session)
assert_type(dpnb.Session.from_toml("clinic.toml", table), Session)
assert_type(session.budget, dpnb.Budget | None)
assert_type(dpnb.Budget.gdp(0.5), dpnb.Budget)
assert_type(session.spent, Loss)
assert_type(session.headroom, float)
assert_type(session.accounting, Literal["worst-case", "individual"])
assert_type(session.filter, Filter)
assert_type(session.odometer, Odometer)
assert_type(session.ledger, Ledger)
assert_type(session.schema, TableSchema | TablesSchema)
assert_type(session.frame["x"].find_bounds().release(share=0.1).bounds, dpnb.Bounded | None)
assert_type(session.guarantee, str)
assert_type(session.explain(), Explanation)
assert_type(session.log, pd.DataFrame)
assert_type(session.count_active_units("now"), Query)

# --- frames and columns ---

frame = session.frame
assert_type(frame, Frame)
assert_type(session.table("visits"), Frame)
assert_type(frame.columns, list[str])
assert_type(frame["x"], Series)
assert_type(frame[["x", "site"]], Frame)
assert_type(frame["x"] > 1, Series)
assert_type(frame["x"] == 1, Series)
assert_type(frame[(frame["x"] > 1) & ~(frame["site"] == "a")], Frame)
assert_type(frame["x"][frame["x"] > 1], Series)
assert_type(1 - frame["x"] / 2, Series)
assert_type(frame["x"].clip(0, 5).round(), Series)
assert_type(frame["x"].between(1, 2, inclusive="left"), Series)
assert_type(frame["x"].where(frame["x"] > 1, 0), Series)
assert_type(frame["x"].round().astype(int), Series)
assert_type(frame["x"].astype(bool), Series)
assert_type(frame["x"].where(frame["x"] > 1).log10(), Series)
assert_type(frame["site"].map({"a": 1, "b": 0}).replace(1, 2), Series)
assert_type(frame["site"].str.lower().str[:3], Series)
assert_type(frame["note"].str.contains("a", na=False) & frame["note"].str.endswith(("b", "c")), Series)
assert_type(frame["day"].dt.to_period("M"), Series)
assert_type(frame["day"].dt.day_name(), Series)
assert_type(frame["day"].dt.month, Series)
assert_type(frame["day"].dt.total_seconds(), Series)
assert_type(dpnb.cut(frame["x"], [0, 5, 10]), Series)
assert_type(frame.assign(y=frame["x"] * 2, z=lambda view: view["x"]), Frame)
assert_type(frame.bound_contributions(max_rows_per_unit=1), Frame)
assert_type(frame.merge(pd.DataFrame({"site": ["a"], "beds": [3]}), on="site", how="left"), Frame)
assert_type(frame.groupby("site"), GroupBy)
assert_type(frame.x, Series)
assert_type(frame.x.gt(1) & frame.x.isnull(), Series)
assert_type(frame.loc[frame.x > 1], Frame)
assert_type(frame.loc[frame.x > 1, "x"], Series)
assert_type(frame.loc[:, ["x", "site"]], Frame)
assert_type(frame.query("x > 1"), Frame)
assert_type(frame.drop(columns=["x"]).rename(columns={"site": "place"}), Frame)
assert_type(frame.isna(), Frame)
assert_type(frame.groupby("site")[["x"]], GroupBy)
assert_type(frame["site"].unique(), list[bool | int | float | str])
assert_type(dpnb.get_dummies(frame["site"]), Frame)

# --- queries ---

mean = frame["x"].mean()
assert_type(mean, Query)
assert_type(frame.count(), Query)
assert_type(frame.count_units(), Query)
assert_type(frame.discover("site"), Query)
assert_type(frame.agg(n="count", x=("x", "mean"), late=(frame["x"], "std"), weights={"n": 2.0}), Query)
assert_type(frame.regress("x", on=["site"]), RegressionQuery)
assert_type(frame.regress("x ~ site", family="poisson"), NewtonRegression)
assert_type(frame.survival("x", "site").release(share=0.1), SurvivalAnswer)
assert_type(frame[["x"]].mean(), Query)
assert_type(frame.describe(), Query)
assert_type(frame.corr(), Query)
assert_type(frame.groupby("site").std(), Query)
assert_type(frame.groupby("site").x.mean(axis=0), Query)
assert_type(frame.agg({"x": ["mean", "std"]}), Query)
assert_type(frame.groupby("site").agg({"x": "mean"}), Query)
assert_type(frame["x"].agg(["mean", "std"]), Query)
assert_type(frame["x"].groupby("site").mean(), Query)
assert_type(frame.pivot_table("x", index="site"), Query)
assert_type(dpnb.crosstab(frame["site"], frame["x"] > 1), Query)
assert_type(frame.regress("x ~ site", population=True), RegressionQuery)
fitted = frame.regress("x ~ site").release(share=0.1)
assert_type(fitted, RegressionAnswer)
assert_type(fitted.test("x"), HypothesisTest)
assert_type(fitted.bse, pd.Series)
assert_type(fitted.conf_int(alpha=0.1), pd.DataFrame)
assert_type(fitted.rsquared, Estimates)
assert_type(frame["x"].count(), Query)
assert_type(frame["x"].sum(), Query)
assert_type(frame["x"].var(ddof=0), Query)
assert_type(frame["x"].std(), Query)
assert_type(frame["x"].min(), Query)
assert_type(frame["x"].max(), Query)
assert_type(frame["x"].median(), Query)
assert_type(frame["x"].quantile([0.25, 0.75]), Query)
assert_type(frame["x"].describe(), Query)
assert_type(frame["x"].histogram(5), Query)
assert_type(frame["x"].corr(frame["x"] ** 2), Query)
assert_type(frame["x"].ratio(frame["x"] + 1), Query)
assert_type(frame["site"].value_counts(normalize=True), Query)
by_site = frame.groupby("site")["x"].mean()
assert_type(by_site, Query)
assert_type(frame.groupby(["site", frame["day"].dt.month]).count(), Query)
assert_type(frame.groupby("site").size(), Query)
assert_type(frame.groupby("site").agg(n="units", x=("x", "median")), Query)

# --- previews and answers ---

preview = mean.preview(within=0.3, confidence=0.9)
assert_type(preview, Preview)
assert_type(preview.cost, GDP)
assert_type(preview.fits, bool)
assert_type(preview.expected_error, float | None)
assert_type(mean.preview(mu=[0.1, 0.2]), Previews)
assert_type(mean.preview(), Previews)
assert_type(mean.preview()[0], Preview)
assert_type(mean.explain(), Explanation)
assert_type(mean.best, Answer | None)

answer = mean.release(mu=0.1)
assert_type(answer, Answer)
assert_type(by_site.release(within={"a": 0.3}, simultaneous=True), Answer)
assert_type(answer.estimate, Number)
assert_type(answer.noise_scale, Number)
assert_type(answer.interval, tuple[float, float] | pd.DataFrame)
assert_type(float(answer), float)
assert_type(answer.cost, GDP)
assert_type(answer.cost_fraction, float)
assert_type(answer.to_pandas(), pd.DataFrame)
assert_type(answer.refine(within=0.1, final=True), Answer)
assert_type(session.plan([mean], mu=0.1).release(), BatchAnswer)
assert_type(dpnb.crosstab(frame["site"], frame["x"] > 1, margins=True).release(mu=0.1), TableWithMargins)
largest = frame.groupby("site").size().top(2)
assert_type(largest, LargestGroups)
assert_type(frame["site"].value_counts().idxmax(), LargestGroups | ArrangedQuery)
assert_type(largest.preview(epsilon=0.1), SelectionPreview)
assert_type(largest.preview(within=30), SelectionPreview)
assert_type(largest.preview(), SelectionPreviews)
assert_type(largest.preview(epsilon=[0.1, 0.2]), SelectionPreviews)
assert_type(largest.release(epsilon=0.1), SelectedGroups)
assert_type(answer.history, History)
assert_type(answer.history[0], Answer)
assert_type(answer.proportions(), Answer)
assert_type(answer["a"], Estimates)
assert_type(answer - answer, Estimates)
assert_type(answer / 2, Estimates)
assert_type(answer.sort_values(ascending=False).head(3), Estimates)
assert_type(answer.unstack(), Estimates)
assert_type(answer.round(2), Estimates)
assert_type(round(answer, 2), Estimates)
assert_type(answer > 2, Comparison)
assert_type(answer.test(2), HypothesisTest)
assert_type((answer > 2).outcome, bool | pd.Series | None)
assert_type(mean.unstack(), Query)

# --- from the method to the ledger ---

target = target_from(mu=0.1)
assert_type(target, Target)
assert_type(target.amount, Fraction | None)
assert_type(mean.runner, SessionCore)
request = Release(mean.plan, mean.view, target)
assert_type(request.target, Target)
assert_type(mean.runner.executor.run(request), list[Charge])
assert_type(mean.runner.executor.find(request), list[Charge])
assert_type(mean.runner.executor.run(session.plan([mean])._planned.request([target])), list[Charge])
assert_type(mean.runner.releases.release(request), Answer)

# --- interactive mechanisms ---

scan = session.above_threshold(100, name="busy", epsilon="0.1", max_positives=2, monotonic=True)
assert_type(scan, ThresholdScan)
assert_type(scan.ask(frame.count()), ThresholdResult)
assert_type(scan.ask(frame.count(), threshold=5).above, bool)
assert_type(session.above_threshold(100, name="busy", epsilon="0.1", dry_run=True), Explanation)

fit = frame.fit("x", on=["site"], family="linear", mu="0.01", steps=20, clip_norm=2)
assert_type(fit, GradientDescent)
assert_type(fit.run(), FitResult)
assert_type(fit.coefficients, FitResult)
assert_type(frame.fit("x", on="site", family="linear", mu=0.01, steps=20, dry_run=True), Explanation)

steps = session.noise_reduction(mean, initial_mu=0.01, max_mu=0.2)
assert_type(steps, NoiseReduction)
assert_type(steps.step(), Answer)
assert_type(steps.until(RelativeError(0.05)), Answer)
assert_type(steps.met, bool | None)

parts = session.partition("site", name="sites")
assert_type(parts, Partition[PartSession])
assert_type(parts["a"], PartSession)
assert_type(parts["a"].frame["x"].mean().release(share=0.1), Answer)

colleague = session.delegate(share=0.2, name="colleague", filter="gdp")
assert_type(colleague, SubSession)
assert_type(colleague.frame, Frame)
assert_type(session.delegate(share=0.2, name="colleague", dry_run=True), Explanation)


def share_above(view: Frame, limit: float) -> Query:
    """Annotations of an analyst's own function."""
    return (view["x"] > limit).mean()


assert_type(share_above(frame, 3).release(rho=np.float64(0.01)), Answer)
