"""Intervals of logistic and Poisson regressions cover 93 to 97%, and those of two real tables what statsmodels finds.

Each coefficient of each setting must be covered in at least as many samples as a correct program would reach with
probability 1 - 1e-7 if its coverage were 93%; there are fewer than a hundred, twice each.  All of them together must be
within 93 and 97%, with six standard errors, in which the coefficients of a sample count as one number.  Where little is
known of the squares, for persons with much noise and Poisson regressions of few rows, intervals cover up to 99%: there
the allowance for their noise is large (`dpnb.results.estimates.newton`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import binom, rankdata

import dpnb
from dpnb._plan.measurements import Family
from dpnb.ledger import MEMORY
from dpnb.results.estimates import newton
from statistical.newton_samples import Fit, Setting, fits
from statistical.quick import compiled_once, prepared_once, summed_once

pytestmark = pytest.mark.statistical
Z = 1.959963984540054
QUICK = [Setting("logistic", 1000, 1.0), Setting("logistic", 5000, 1.0, persons=5), Setting("poisson", 20_000, 0.5)]
MORE = [
    Setting("logistic", 50_000, 0.24),
    Setting("logistic", 5000, 1.0, "categories"),
    Setting("logistic", 20_000, 0.5, "collinear"),
    Setting("logistic", 20_000, 0.5, "categories", 5),
    Setting("logistic", 5000, 1.0, "steep"),
    Setting("logistic", 20_000, 5.0, persons=5),
    Setting("poisson", 2000, 1.0),
    Setting("poisson", 20_000, 1.0, "categories"),
    Setting("poisson", 50_000, 1.0, "collinear"),
    Setting("poisson", 20_000, 5.0, persons=4),
    Setting("poisson", 20_000, 0.5, "steep"),
]


def known(setting: Setting, number: int, **options: Any) -> list[Fit]:
    """The fits that have intervals, which are nearly all."""
    found = [fit for fit in fits(setting, number, **options) if not fit.found.flaw]
    assert len(found) > 0.85 * number
    return found


def covered(found: list[Fit]) -> Any:
    """For each fit and coefficient, whether the population's and the table's value are in their intervals."""
    population = [np.abs(fit.coefficients - fit.truth) < Z * fit.errors for fit in found]
    table = [np.abs(fit.coefficients - fit.exact) < Z * fit.noise for fit in found]
    return np.array([population, table])


def check(settings: list[Setting], number: int) -> None:
    shares: list[Any] = []
    for setting in settings:
        found = covered(known(setting, number))
        least = binom.ppf(1e-7, found.shape[1], 0.93)
        assert (found.sum(axis=1) >= least).all(), (setting, found.mean(axis=1))
        shares.append(found.mean(axis=2))
    of_fits = np.concatenate(shares, axis=1)
    error = 6 * of_fits.std(axis=1) / np.sqrt(of_fits.shape[1])
    mean = of_fits.mean(axis=1)
    assert (mean > 0.93 - error).all(), mean
    assert (mean < 0.97 + error).all(), mean


@pytest.mark.smoke
def test_intervals_cover() -> None:
    check(QUICK, 60)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_intervals_cover_in_more_settings(family: str) -> None:
    check([setting for setting in MORE if setting.family == family], 80)


@pytest.mark.slow
def test_where_noise_is_large_intervals_of_persons_are_too_wide_not_too_narrow() -> None:
    found = covered(known(Setting("poisson", 20_000, 1.0, persons=4), 100))
    assert (found.mean(axis=(1, 2)) > 0.94).all()


# --- controls: what the same test finds to be wrong -------------------------------------------------------------------


def is_wrong(share: float, number: int) -> bool:
    """Whether it is a coverage that a program with 93% would have with probability below 1e-7."""
    return bool(share < binom.ppf(1e-7, number, 0.93) / number)


def wrong(share: float, number: int) -> None:
    assert is_wrong(share, number)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        pytest.param("logistic", "plain", marks=pytest.mark.smoke),
        pytest.param("logistic", "categories"),
        pytest.param("logistic", "collinear", marks=pytest.mark.smoke),
        pytest.param("logistic", "steep"),
        pytest.param("poisson", "plain"),
        pytest.param("poisson", "categories", marks=pytest.mark.smoke),
        pytest.param("poisson", "collinear"),
        pytest.param("poisson", "steep", marks=pytest.mark.smoke),
    ],
)
def test_the_control_noise_alone_is_found_out(family: Family, kind: str) -> None:
    found = known(Setting(family, 5000, 5.0, kind), 60)
    wrong(float(np.mean([np.abs(fit.coefficients - fit.truth) < Z * fit.noise for fit in found])), len(found))
    assert not is_wrong(float(covered(found)[0].mean()), len(found))


@pytest.mark.smoke
@pytest.mark.parametrize(
    "setting",
    [Setting("logistic", 5000, 20.0, persons=10), Setting("poisson", 8000, 100.0, persons=20)],
    ids=lambda setting: setting.family,
)
def test_the_control_rows_of_persons_as_units_are_found_out(setting: Setting) -> None:
    """The meat of rows, for persons whose outcomes are correlated."""
    found = known(setting, 100, row_products=True)
    wrong(float(np.mean([abs(fit.coefficients[0] - fit.truth[0]) < Z * fit.errors[0] for fit in found])), 100)


@pytest.mark.smoke
def test_the_control_shortened_steps_taken_as_whole_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are shortened say so, and the covariance of a whole step is not theirs."""
    monkeypatch.setattr(newton, "LONGEST", 0.1)
    found = [*fits(Setting("logistic", 5000, 5.0), 60)]
    assert {fit.found.flaw for fit in found} == {"shortened"}
    wrong(float(covered(found)[0].mean()), 60)


# --- two real tables --------------------------------------------------------------------------------------------------


@cache
def table(name: str) -> pd.DataFrame:
    found: pd.DataFrame = getattr(sm.datasets, name).load_pandas().data
    return (
        found.assign(many=lambda one: one["mdvis"] > 5) if name == "randhie" else found.assign(any=found["affairs"] > 0)
    )


YES_NO = dpnb.Categories([False, True])
SCHEMAS: dict[str, Any] = {
    "randhie": {
        "lncoins": dpnb.Bounded(0, 5),
        "idp": dpnb.Bounded(0, 1),
        "fmde": dpnb.Bounded(0, 9),
        "lpi": dpnb.Bounded(0, 7.2),
        "physlm": dpnb.Bounded(0, 1),
        "disea": dpnb.Bounded(0, 60),
        "mdvis": dpnb.Bounded(0, 40),
        "many": YES_NO,
    },
    "fair": {
        "rate_marriage": dpnb.Bounded(1, 5),
        "yrs_married": dpnb.Bounded(0, 23),
        "age": dpnb.Bounded(17, 42),
        "religious": dpnb.Bounded(1, 4),
        "children": dpnb.Bounded(0, 6),
        "any": YES_NO,
    },
}
QUESTIONS = {
    ("randhie", "logistic"): "many ~ lncoins + idp + fmde + physlm + disea",
    ("randhie", "poisson"): "mdvis ~ lncoins + idp + lpi + physlm + disea",
    ("fair", "logistic"): "any ~ rate_marriage + yrs_married + religious",
    ("fair", "poisson"): "children ~ age + religious",
}


def asked(name: str, family: str, seed: int) -> Any:
    """One call, with the whole budget (1, 1e-6)."""
    budget = dpnb.Budget(epsilon=1, delta=1e-6)
    session = dpnb.Session(
        table(name), name=name, budget=budget, schema=SCHEMAS[name], ledger=MEMORY, not_private_test_seed=seed
    )
    return session.frame.regress(QUESTIONS[name, family], family=family).release(share=1)


def without_noise(name: str, family: str) -> Any:
    whole = table(name).astype({"many": float} if name == "randhie" else {"any": float})
    if name == "randhie":
        whole = whole.assign(mdvis=whole["mdvis"].clip(0, 40))
    kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
    return smf.glm(QUESTIONS[name, family], whole, family=kind).fit()


@pytest.mark.parametrize(("name", "family"), QUESTIONS)
def test_coefficients_of_real_tables_are_in_their_intervals(name: str, family: str) -> None:
    """Of 30 draws, at most 8 may have no interval, and each coefficient must be covered as by a program with 93%."""
    expected = without_noise(name, family).params
    inside = []
    with prepared_once(), compiled_once(), summed_once():  # the first step is that of all
        answers = [asked(name, family, seed) for seed in range(30)]
    for found in answers:
        if np.isfinite(found.arrays.noise_scale).all():
            value = expected[found.params.index].to_numpy()
            inside.append((found.arrays.low[0] < value) & (value < found.arrays.high[0]))
    assert len(inside) >= 22
    assert (np.sum(inside, axis=0) >= binom.ppf(1e-7, len(inside), 0.93)).all()
    assert np.mean(inside) > 0.85


def auc(score: Any, outcome: Any) -> float:
    """The share of pairs of a case and another row in which the case has the larger score."""
    ranks, cases = rankdata(score), int(outcome.sum())
    return float((ranks[outcome].sum() - cases * (cases + 1) / 2) / (cases * (len(outcome) - cases)))


def test_a_logistic_regression_predicts_as_well_as_one_without_noise() -> None:
    """Area under the curve, with the worst of ten draws of the noise."""
    whole = table("randhie")
    outcome = whole["many"].to_numpy()
    assert auc(without_noise("randhie", "logistic").predict(whole), outcome) == pytest.approx(0.659, abs=1e-3)
    with prepared_once(), compiled_once(), summed_once():
        answers = [asked("randhie", "logistic", seed) for seed in range(10)]
    assert min(auc(answer.predict(whole), outcome) for answer in answers) > 0.655
