"""The charge of a pure-DP launch against a GDP budget: reference values, the profile inequality, and its rounding."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import mu_from_pure, residue, residue_charge
from dpnb.accounting.exact import exact
from rationals import fractions

#: epsilon, r, and the largest residue to 17 digits, computed with 30 digits.
CASES = [
    ("0.0473", "0.2367", "0.23189313334441565"),
    ("0.142", "0.2367", "0.18468951825594763"),
    ("0.1793", "0.4483", "0.40973347290941861"),
    ("0.2", "1", "0.97968958286337904"),
    ("0.6", "1", "0.78393545544135784"),
    ("0.04", "0.1", "0.091383372049682992"),
]


def left_of(charge: Fraction | None, budget: Fraction) -> float:
    assert charge is not None
    return float(1 - charge / budget)


@pytest.mark.parametrize(("epsilon", "r", "largest"), CASES)
def test_the_residue_is_the_reference_rounded_down(epsilon: str, r: str, largest: str) -> None:
    budget = Fraction(r) ** 2
    charge = residue_charge(epsilon, mu_squared=budget)
    assert charge is not None
    with mpmath.workdps(40):
        residue = mpmath.sqrt(mpmath.mpf((budget - charge).numerator) / (budget - charge).denominator)
        gap = mpmath.mpf(largest) - residue
    assert -1e-17 < gap < 1e-15


def test_what_is_too_much_is_refused() -> None:
    assert residue_charge("0.9", mu_squared=1) is None
    assert residue_charge("0.1", mu_squared=0) is None
    fresh = Budget(1, 1e-6).loss.mu_squared
    assert residue_charge("0.188", mu_squared=fresh) is not None
    assert residue_charge("0.19", mu_squared=fresh) is None


@pytest.mark.parametrize(
    ("epsilon", "delta", "launches"),
    [
        (1, 1e-6, {"0.05": 0.955, "0.1": 0.815, "0.15": 0.557}),
        (2, 1e-6, {"0.05": 0.988, "0.1": 0.950, "0.15": 0.886, "0.2": 0.793, "0.3": 0.498}),
        (1, 1e-9, {"0.05": 0.924, "0.1": 0.678}),
    ],
)
def test_what_one_launch_leaves_of_a_fresh_budget(epsilon: float, delta: float, launches: dict[str, float]) -> None:
    fresh = Budget(epsilon, delta).loss.mu_squared
    for launch, left in launches.items():
        assert left_of(residue_charge(launch, mu_squared=fresh), fresh) == pytest.approx(left, abs=6e-4)


def profile_of_gdp(mu: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    if not mu:
        return max(1 - mpmath.exp(x), mpmath.mpf(0))
    return mpmath.ncdf(-x / mu + mu / 2) - mpmath.exp(x) * mpmath.ncdf(-x / mu - mu / 2)


def excess(epsilon: Fraction, charge: Fraction, budget: Fraction) -> float:
    """The largest excess of the product's profile over that of the whole budget, relative to the latter."""
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        s, r = (mpmath.sqrt(mpmath.mpf(m.numerator) / m.denominator) for m in (budget - charge, budget))
        p = 1 / (1 + mpmath.exp(-e))
        worst = mpmath.mpf("-inf")
        for step in range(81):
            x = step * (6 * r + r * r + e) / 80
            product = p * profile_of_gdp(s, x - e) + (1 - p) * profile_of_gdp(s, x + e)
            whole = profile_of_gdp(r, x)
            worst = max(worst, (product - whole) / whole)
        return float(worst)


epsilons = fractions(Fraction(1, 1000), 3, max_denominator=10**4)
budgets = fractions(Fraction(1, 1000), 9, max_denominator=10**4)


@given(epsilon=epsilons, budget=budgets)
def test_the_product_is_within_the_whole_budget_at_every_point(epsilon: Fraction, budget: Fraction) -> None:
    charge = residue_charge(epsilon, mu_squared=budget)
    if charge is not None:
        assert 0 <= charge <= budget
        assert excess(epsilon, charge, budget) <= 0


@pytest.mark.parametrize(("epsilon", "r", "largest"), CASES)
def test_control_a_smaller_charge_exceeds_the_budget(epsilon: str, r: str, largest: str) -> None:
    budget = Fraction(r) ** 2
    charge = residue_charge(epsilon, mu_squared=budget)
    assert charge is not None
    assert excess(Fraction(epsilon), charge * (1 - Fraction(1, 10**12)), budget) > 0


@given(epsilon=epsilons, budget=budgets, more=fractions(0, 5, max_denominator=100))
def test_a_charge_is_enough_for_a_larger_budget_and_no_more_than_the_conversion_alone(
    epsilon: Fraction, budget: Fraction, more: Fraction
) -> None:
    charge = residue_charge(epsilon, mu_squared=budget)
    at_more = residue_charge(epsilon, mu_squared=budget + more)
    if charge is not None:
        assert at_more is not None
        assert at_more <= charge * (1 + Fraction(1, 2**50))
        assert excess(epsilon, charge, budget + more) <= 0
    alone = exact(mu_from_pure(epsilon)) ** 2
    if alone <= budget:
        assert charge is not None
        assert charge <= alone * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-12", "1e-6", "1e-3"])
def test_a_small_epsilon_costs_about_its_square(epsilon: str) -> None:
    charge = residue_charge(epsilon, mu_squared="0.056")
    assert charge is not None
    assert float(charge) == pytest.approx(float(epsilon) ** 2, rel=1e-5)


def test_nothing_is_free_but_nothing() -> None:
    assert residue_charge(0, mu_squared=1) == 0
    assert residue_charge(0, mu_squared=0) == 0
    charge = residue_charge("1e-100", mu_squared=1)
    assert charge is not None
    assert charge > 0


LARGE = ("30", "36", "40", "60", "300", "1e6", "1e60")


def charges_beside(epsilon: str, reserve: str, budgets: tuple[str, ...]) -> list[float]:
    charges = [residue_charge(epsilon, mu_squared=Fraction(r) ** 2, pure_epsilon=reserve) for r in budgets]
    return [float(charge) for charge in charges if charge is not None]


@pytest.mark.parametrize(
    ("epsilon", "reserve"), [("1e-9", "0"), ("0.1", "0"), ("1", "0"), ("1", "0.3"), ("5", "4.999")]
)
def test_a_launch_is_not_free_under_a_large_budget(epsilon: str, reserve: str) -> None:
    """An attack: a delta that is 1 within every precision would make every launch free."""
    with mpmath.workdps(60):
        both = (mpmath.log(mpmath.cosh(mpmath.mpf(one) / 2)) for one in (epsilon, reserve))
        limit = float(8 * (next(both) - next(both)))
    charges = charges_beside(epsilon, reserve, LARGE)
    assert len(charges) == len(LARGE)
    assert charges == sorted(charges, reverse=True), "a charge is enough for every larger budget"
    assert charges[0] == pytest.approx(limit, rel=0.05)
    assert charges[-1] == pytest.approx(limit, rel=1e-12)
    assert min(charges) >= limit * (1 - 1e-12)


def test_control_one_minus_a_delta_is_lost_under_a_large_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = residue._missed
    monkeypatch.setattr(residue, "_missed", lambda ctx, epsilon, mu: 1 - (1 - exactly(ctx, epsilon, mu)))
    residue._charge.cache_clear()
    try:
        assert charges_beside("1", "0", ("40",)) == [5e-324]
    finally:
        residue._charge.cache_clear()


def test_the_product_is_within_a_large_budget_at_every_point() -> None:
    """With 400 digits, since the profiles differ from 1 by 10^-110 over much of the range."""
    with mpmath.workdps(400):
        for r in (45,):
            charge = residue_charge(1, mu_squared=r * r)
            assert charge is not None
            s = mpmath.sqrt(r * r - mpmath.mpf(charge.numerator) / charge.denominator)
            p = 1 / (1 + mpmath.exp(-1))
            for x in range(0, 3 * r * r, r * r // 3):
                product = p * profile_of_gdp(s, mpmath.mpf(x - 1)) + (1 - p) * profile_of_gdp(s, mpmath.mpf(x + 1))
                assert product <= profile_of_gdp(mpmath.mpf(r), mpmath.mpf(x))


# --- a bounded range --------------------------------------------------------------------------------------------------


def test_a_range_leaves_what_half_of_it_in_pure_dp_leaves() -> None:
    assert residue_charge("0.4", mu_squared=1, is_range=True) == residue_charge("0.2", mu_squared=1)
    assert residue_charge("0.4", mu_squared=1, pure_epsilon="0.5", is_range=True) == residue_charge("0.2", mu_squared=1)
    first = residue_charge("0.2", mu_squared=1, is_range=True)
    assert first is not None
    second = residue_charge("0.2", mu_squared=1 - first, is_range=True)
    assert second is not None
    # Two ranges of 0.2 are not one of 0.4.
    assert residue_charge("0.4", mu_squared=1, count=2, is_range=True) == first + second


@given(
    st.floats(0.02, 6),
    st.floats(0.001, 0.999),
    st.floats(0.02, 3),
    st.floats(-4, 4),
)
def test_no_pair_in_the_range_exceeds_the_budget(length: float, share: float, s: float, at: float) -> None:
    """The profile of two outcomes with the log ratios t and t - length, beside G_s, anywhere."""
    e, t, s_ = mpmath.mpf(length), mpmath.mpf(length) * share, mpmath.mpf(s)
    with mpmath.workdps(40):
        r, x = budget_of(e / 2, s_), t - e / 2 + mpmath.mpf(at) * max(s_, e)
        p = (1 - mpmath.exp(t - e)) / (1 - mpmath.exp(-e))
        beside = p * profile(s_, x - t) + (1 - p) * profile(s_, x - t + e)
        assert beside <= profile(r, x) * (1 + mpmath.mpf(10) ** -25)


def test_the_budget_of_the_range_is_attained_in_the_middle_and_nowhere_below() -> None:
    """Control: a budget that is smaller by a thousandth is exceeded by randomised response with half of the range."""
    with mpmath.workdps(40):
        r = budget_of(mpmath.mpf("0.2"), mpmath.mpf("0.5"))
        p = 1 / (1 + mpmath.exp(mpmath.mpf("-0.2")))
        beside = p * profile(mpmath.mpf("0.5"), mpmath.mpf("-0.2")) + (1 - p) * profile(
            mpmath.mpf("0.5"), mpmath.mpf("0.2")
        )
        assert abs(beside - profile(r, mpmath.mpf(0))) < mpmath.mpf(10) ** -30
        assert beside > profile(r * mpmath.mpf("0.999"), mpmath.mpf(0))


def profile(mu: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    """The hockey-stick divergence of G_mu at e^x."""
    return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)


def budget_of(a: mpmath.mpf, s: mpmath.mpf) -> mpmath.mpf:
    """The r of G_r that covers randomised response with `a` beside G_s, from the profile at 0."""
    p = 1 / (1 + mpmath.exp(-a))
    at_0 = p * profile(s, -a) + (1 - p) * profile(s, a)
    return 2 * mpmath.sqrt(2) * mpmath.erfinv(at_0)
