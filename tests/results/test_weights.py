"""Weighted statistics are those of numpy and statsmodels, and weights that may be negative are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpnb
from dpnb.errors import PlanError
from dpnb.ledger import MEMORY

SIZE = 2000
CHANCE = np.random.default_rng(7)
T = pd.DataFrame(
    {"x": CHANCE.uniform(0, 10, SIZE), "g": CHANCE.choice(["a", "b"], SIZE), "w": CHANCE.uniform(0, 4, SIZE)}
)
T["y"] = 3 + 2 * T["x"] + (T["g"] == "b") * T["w"] + CHANCE.normal(0, 2, SIZE)
T.loc[:100, "w"] = np.nan
SEEN = T.dropna()
SCHEMA = {
    "x": dpnb.Bounded(0, 10),
    "y": dpnb.Bounded(-10, 50),
    "g": dpnb.Categories(["a", "b"]),
    "w": dpnb.Bounded(0, 4),
    "signed": dpnb.Bounded(-1, 1),
}


def frame(**changes: Any) -> dpnb.Frame:
    table, options = changes.pop("table", T.assign(signed=0.5)), {"budget": dpnb.Budget.gdp(1e7), **changes}
    return dpnb.Session(table, name="w", schema=SCHEMA, ledger=MEMORY, not_private_test_seed=1, **options).frame


def of_groups(function: Callable[[pd.DataFrame], float]) -> list[float]:
    return [function(rows) for _, rows in SEEN.groupby("g")]


STATISTICS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "mean": (lambda f: f["x"].mean(weights="w"), np.average(SEEN["x"], weights=SEEN["w"])),
    "mean of numpy": (lambda f: np.average(f["y"], weights=f["w"] / 2), np.average(SEEN["y"], weights=SEEN["w"])),
    "share": (lambda f: (f["x"] > 5).mean(weights=f["w"]), np.average(SEEN["x"] > 5, weights=SEEN["w"])),
    "means": (
        lambda f: f.groupby("g")["y"].mean(weights="w", population=True),
        of_groups(lambda rows: np.average(rows["y"], weights=rows["w"])),
    ),
    "counts": (lambda f: f["g"].value_counts(weights="w"), of_groups(lambda rows: rows["w"].sum())),
    "counts of a frame": (lambda f: f.value_counts("g", weights="w"), of_groups(lambda rows: rows["w"].sum())),
    "shares of groups": (
        lambda f: f["g"].value_counts(normalize=True, weights="w"),
        of_groups(lambda rows: rows["w"].sum() / SEEN["w"].sum()),
    ),
    "slopes": (
        lambda f: f.regress("y ~ x + C(g)", weights="w"),
        smf.wls("y ~ x + C(g)", SEEN, weights=SEEN["w"]).fit().params[["Intercept", "x", "C(g)[T.b]"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATISTICS)
def test_with_next_to_no_noise_they_are_those_of_other_libraries(name: str) -> None:
    ask, wanted = STATISTICS[name]
    found = np.ravel(ask(frame()).release(mu=1e5).estimate).tolist()
    assert found == pytest.approx(np.ravel(wanted).tolist(), rel=2e-3, abs=1e-3)


def test_their_errors_are_those_of_a_ratio() -> None:
    theta, z = np.average(SEEN["x"], weights=SEEN["w"]), 2.05  # of a first observation, which may be refined
    wanted = z * np.sqrt((SEEN["w"] ** 2 * (SEEN["x"] - theta) ** 2).sum()) / SEEN["w"].sum()
    df = frame()
    answers = [
        df["x"].mean(weights="w", population=True).release(mu=1e3),
        df["x"].mean(weights="w").release(mu=1e3).population(mu=1e3),
    ]
    for answer in answers:
        low, high = answer.population_interval
        assert (high - low) / 2 == pytest.approx(wanted, rel=0.03)


def test_their_errors_are_clustered_by_the_unit() -> None:
    doubled = pd.concat([SEEN, SEEN]).assign(p=np.tile(np.arange(len(SEEN)), 2), signed=0.5)
    people = frame(table=doubled, privacy_unit="p", max_rows_per_unit=2)
    whole = people["x"].mean(weights="w", population=True).release(mu=1e3)
    once = frame()["x"].mean(weights="w", population=True).release(mu=1e3)
    widths = [float(np.diff(answer.population_interval)[0]) for answer in (whole, once)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)  # rows as units: 0.71 times


def test_standard_errors_of_a_weighted_regression_are_robust() -> None:
    fitted = smf.wls("y ~ x + C(g)", SEEN, weights=SEEN["w"]).fit(cov_type="HC0")
    answer = frame().regress("y ~ x + C(g)", weights="w", population=True).release(mu=2e3)
    assert answer.bse.to_dict() == pytest.approx(fitted.bse.to_dict(), rel=0.03)
    assert float(answer.rsquared) == pytest.approx(fitted.rsquared, abs=0.01)
    free = frame().regress("y ~ x", weights="w").release(mu=2e3)
    assert not free.has_population_intervals  # errors of one variance are not assumed
    assert free.numbers.nobs is None


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "negative": (lambda f: f["x"].mean(weights="signed"), r"df\['signed'\]\.clip\(0, 1\)"),
    "negative in counts": (lambda f: f["g"].value_counts(weights="signed"), "at least 0"),
    "negative in a regression": (lambda f: f.regress("y ~ x", weights="signed"), "at least 0"),
    "always 0": (lambda f: f["x"].mean(weights=f["w"].clip(0, 0)), "not all 0"),
    "a category": (lambda f: f["x"].mean(weights="g"), "needs a number"),
    "an array": (lambda f: f["x"].mean(weights=[1, 2]), "not in this view"),
    "logistic": (lambda f: f.regress("g ~ x", family="logistic", weights="w"), "family='linear' only"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused_before_a_charge(case: str) -> None:
    ask, message = REFUSED[case]
    with pytest.raises(PlanError, match=message):
        ask(frame())


def test_fixed_effects_have_no_weights() -> None:
    people = frame(table=T.assign(p=np.arange(SIZE) // 2, signed=0.5), privacy_unit="p", max_rows_per_unit=2)
    with pytest.raises(PlanError, match="leave out one of them"):
        people.regress("y ~ x | p", weights="w")
