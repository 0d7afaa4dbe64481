"""The reflection odometer beside the others: figures, what it refuses, and for what it is false."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

import dpnb
from dpnb.accounting import GDP, ZCDP, PureDP, conversions
from dpnb.accounting.odometers import FilterOdometer, MixtureOdometer, ReflectionOdometer
from dpnb.errors import ConversionError, InvalidValueError

T = dpnb.Budget(1, 1e-6).loss.mu_squared


@pytest.mark.parametrize(
    ("odometer", "reading"),
    [
        (MixtureOdometer.tuned(T, 1e-6), 1.339),
        (FilterOdometer.tuned(T, 1e-6), 1.272),
        (ReflectionOdometer(T, 1e-6), 1.186),
    ],
)
def test_readings_when_the_budget_is_spent(odometer: Any, reading: float) -> None:
    assert round(odometer.step(GDP.from_mu_squared(T)).bound, 3) == reading


@pytest.mark.parametrize(("horizon", "delta"), [("0.05", 1e-6), (1, 0.01), (7, 1e-100), ("1e-12", 0.9)])
def test_bound_is_the_quantile_rounded_up(horizon: Any, delta: float) -> None:
    with mpmath.workdps(40):
        level = mpmath.mpf(Fraction(str(delta)).numerator) / Fraction(str(delta)).denominator
        start = float(norm.isf(delta / 2))
        a = mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2))) - mpmath.log(level), start)
        exact = a * mpmath.sqrt(mpmath.mpf(str(horizon))) + mpmath.mpf(str(horizon)) / 8
        bound = mpmath.mpf(ReflectionOdometer(horizon, delta).bound_at(Fraction(str(horizon)) / 4))
        assert exact <= bound <= exact * (1 + mpmath.mpf(10) ** -12)


def test_beyond_the_horizon_nothing_is_proved() -> None:
    odometer = ReflectionOdometer("0.25", 1e-6).step(GDP("0.5"))
    assert odometer.bound < math.inf
    assert odometer.step(GDP("1e-9")).bound == math.inf


@pytest.mark.parametrize("loss", [PureDP("0.1"), ZCDP("0.1"), GDP("0.1", 1e-9)])
def test_other_losses_are_refused(loss: Any) -> None:
    with pytest.raises(ConversionError, match="noisy values of Gaussian releases"):
        ReflectionOdometer(1, 1e-6).step(loss)
    with pytest.raises(InvalidValueError, match="horizon"):
        ReflectionOdometer(0, 1e-6)


def test_statement_is_about_the_noisy_values() -> None:
    statement = ReflectionOdometer(1, 1e-6).step(GDP("0.5")).statement()
    assert "the loss of the noisy values" in statement.replace("privacy ", "")


def test_control_it_is_false_for_what_is_computed_from_the_values() -> None:
    """One release at mu0 of which only "above" or "below" is shown: exactly, by the normal distribution."""
    mu, bound = math.sqrt(T), ReflectionOdometer(T, 1e-6).bound_at(T)

    def loss_of_above(t: float) -> float:
        return float(np.log(ndtr(mu - t)) - np.log(ndtr(-t)))

    edge = brentq(lambda t: loss_of_above(t) - bound, 0, 20)
    assert ndtr(mu - edge) == pytest.approx(1.31e-6, rel=0.01)
    assert loss_of_above(edge) < FilterOdometer.tuned(T, 1e-6).bound_at(T)  # which is not exceeded so


def test_a_session_shows_it_while_everything_is_gaussian() -> None:
    import pandas as pd

    def opened(**options: Any) -> dpnb.Session:
        budget = dpnb.Budget(1, 1e-6, pure_epsilon="0.1")
        schema = {"x": dpnb.Bounded(0, 5)}
        given = {"budget": budget, **options}
        return dpnb.Session(pd.DataFrame({"x": [1.0, 2.0]}), name="s", schema=schema, ledger=":memory:", **given)

    session = opened()
    reserve = 2 * conversions.rho_from_pure("0.1")
    guarantee = session._core.account.guarantee
    assert float(guarantee.horizon) == pytest.approx(float(guarantee.mu0_squared) + reserve, rel=1e-9)
    session.frame.count().release(mu="0.05")
    parts = session.partition(session.frame["x"] > 1)
    parts[True].frame.count().release(mu="0.03")
    parts[False].frame.count().release(mu="0.03")
    assert session.odometers["reflection"].v == Fraction("0.0034")
    session.above_threshold(1, name="scan", epsilon="0.05")
    assert "reflection" not in session.odometers
    delegated = opened(budget=dpnb.Budget.gdp(1))
    delegated.delegate(mu="0.1", name="colleague")
    assert "reflection" not in delegated.odometers
    assert "reflection" not in opened(budget=None).odometers
