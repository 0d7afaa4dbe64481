"""Several equal losses that are charged together, and losses of a bounded range."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from dpnb.accounting import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    ApproxDPFilter,
    BasicFilter,
    BasicOdometer,
    BoundedRange,
    Budget,
    GDPFilter,
    MixtureOdometer,
    PureDP,
    RDPFilter,
    Repeated,
    RogersFilter,
    RogersOdometer,
    UnboundedFilter,
    ZCDPFilter,
    convert,
    loss_from_json,
)
from dpnb.accounting.conversions import rdp_from_pure, rdp_from_range, residue_charge, rho_from_pure, rho_from_range
from dpnb.accounting.conversions.residue import _charge_one_by_one
from dpnb.accounting.exact import exact
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError
from dpnb.interactive.above_threshold import MAX_COUNT

ONE = Budget(epsilon=1, delta=1e-6)
TEN = Repeated(PureDP("0.02"), 10)

FILTERS = {
    "gdp": GDPFilter.from_budget(ONE),
    "gdp with a reserve": GDPFilter("0.2", pure_epsilon="0.17"),
    "zcdp": ZCDPFilter.from_budget(ONE),
    "rdp": RDPFilter.from_budget(ONE),
    "approx-dp": ApproxDPFilter.from_budget(ONE),
    "basic": BasicFilter(1),
    "rogers": RogersFilter(1, 1e-6),
    "none": UnboundedFilter(),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("once", [PureDP("0.02"), BoundedRange("0.02")])
def test_they_are_counted_one_after_another(name: str, count: int, once: Any) -> None:
    together: Any = FILTERS[name].step(Repeated(once, count))
    one_by_one: Any = FILTERS[name]
    for _ in range(count):
        one_by_one = one_by_one.step(once)
    assert together.spent == one_by_one.spent


@pytest.mark.parametrize("once", [PureDP("0.02"), BoundedRange("0.02")])
def test_odometers_count_them_one_after_another(once: Any) -> None:
    for fresh in (MixtureOdometer.tuned(1, 1e-6), RogersOdometer(100, 1e-6), BasicOdometer(1e-6)):
        one_by_one: Any = fresh
        for _ in range(10):
            one_by_one = one_by_one.step(once)
        assert fresh.step(Repeated(once, 10)).bound == one_by_one.bound


@pytest.mark.parametrize(
    ("filter_", "loss", "left"),
    [
        ("gdp", TEN, 0.929),
        ("gdp", Repeated(PureDP("0.03"), 5), 0.920),
        ("zcdp", TEN, 0.918),
        ("zcdp", PureDP("0.2"), 0.182),
        ("gdp", PureDP("0.15"), 0.557),
    ],
)
def test_what_is_left_of_a_fresh_budget(filter_: str, loss: Any, left: float) -> None:
    assert FILTERS[filter_].step(loss).headroom == pytest.approx(left, abs=6e-4)


def test_control_counted_as_one_they_do_not_fit() -> None:
    with pytest.raises(BudgetExceeded):
        FILTERS["gdp"].step(PureDP(TEN.epsilon))


@given(st.integers(1, 400), st.integers(1, 200), st.integers(0, 300))
def test_the_charge_is_at_most_that_of_one_and_falls_with_what_is_left(count: int, top: int, more: int) -> None:
    epsilon, budget = Fraction(top, 1000), Fraction(56, 1000)
    whole = residue_charge(epsilon, mu_squared=budget)
    charge = residue_charge(epsilon, mu_squared=budget, count=count)
    assert charge is not None or whole is None
    if charge is None:
        return
    assert charge <= (budget if whole is None else whole)
    larger = residue_charge(epsilon, mu_squared=budget + Fraction(more, 1000), count=count)
    assert larger is not None
    assert larger <= charge


@pytest.mark.parametrize("count", [33, 100])
def test_many_are_charged_at_least_what_each_in_turn_is(count: int) -> None:
    epsilon, budget = Fraction(1, 2), Fraction(56, 1000)
    in_turn = Fraction(0)
    for _ in range(count):
        charge = residue_charge(epsilon / count, mu_squared=budget - in_turn)
        assert charge is not None
        in_turn += charge
    many = _charge_one_by_one(epsilon, budget, Fraction(0), count)
    assert many is not None
    assert in_turn <= many <= in_turn * Fraction(101, 100)


def test_a_reserve_pays_for_the_first_ones_and_the_next_takes_what_is_left_of_it() -> None:
    filter_: Any = FILTERS["gdp with a reserve"]
    for _ in range(8):
        filter_ = filter_.step(PureDP("0.02"))
    assert (filter_.spent.epsilon, filter_.spent.mu_squared) == (Fraction(16, 100), 0)
    charge = FILTERS["gdp with a reserve"].launch_charge(TEN)
    assert charge.epsilon == Fraction(17, 100)
    assert 0 < charge.mu_squared < filter_.launch_charge(PureDP("0.04")).mu_squared


def test_conversions_are_sums() -> None:
    for to, arguments in ((ZCDP, {}), (GDP, {}), (RDP, {"orders": [2, 20]})):
        once: Any = convert(PureDP("0.02"), to, **arguments)
        assert convert(TEN, to, **arguments).parts == tuple(10 * part for part in once.parts)
    assert convert(TEN, ApproxDP) == ApproxDP("0.2")
    assert convert(TEN, PureDP) == PureDP("0.2")


def test_it_is_stored_and_read_and_not_added_to_another_number_of_them() -> None:
    stored = TEN.to_json()
    assert stored == {"kind": "repeated", "epsilon": "1/50", "count": "10"}
    ranges = Repeated(BoundedRange("0.02"), 10)
    assert ranges.to_json() == {"kind": "repeated", "range": "1/50", "count": "10"}
    assert loss_from_json(ranges.to_json()) == ranges != TEN
    assert loss_from_json(ranges.once.to_json()) == ranges.once
    with pytest.raises(TypeError):
        _ = ranges + TEN
    assert loss_from_json(stored) == pickle.loads(pickle.dumps(TEN)) == TEN
    assert Repeated(PureDP("0.04"), 5) not in (TEN, PureDP("0.2"))
    assert Repeated(PureDP("0.04"), 10) == TEN + TEN
    for other in (Repeated(PureDP("0.04"), 5), PureDP("0.2")):
        with pytest.raises(TypeError):
            _ = TEN + other
        with pytest.raises(ConversionError):
            TEN.within(other)  # type: ignore[arg-type]
    assert (TEN.once, TEN.count, PureDP("0.2").once, PureDP("0.2").count) == (PureDP("0.02"), 10, PureDP("0.2"), 1)
    assert repr(TEN) == "Repeated(PureDP(epsilon=0.02), 10)"
    assert TEN.words == "epsilon 0.2 in 10 steps"


@pytest.mark.parametrize(
    "changed",
    [{"count": "-1"}, {"count": "0"}, {"count": "1.5"}, {"count": "9" * 40}, {"more": "1"}, {"epsilon": "-1"}],
)
def test_what_was_not_stored_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError):
        loss_from_json(TEN.to_json() | changed)


@pytest.mark.parametrize("arguments", [(GDP(1), 2), (PureDP(1), 0), (PureDP(1), True), (PureDP(1), 1.0), (TEN, 2)])
def test_only_whole_numbers_of_pure_losses(arguments: Any) -> None:
    with pytest.raises(InvalidValueError):
        Repeated(*arguments)


# --- a bounded range --------------------------------------------------------------------------------------------------


def two_outcomes(length: Any, top: Any) -> tuple[Any, Any]:
    """The probabilities of the first of two outcomes whose logarithms of ratios are top and top - length."""
    q = (1 - mp.exp(top - length)) / (mp.exp(top) - mp.exp(top - length))
    return mp.exp(top) * q, q


@given(st.floats(0.01, 40), st.floats(0.001, 0.999))
@mp.workdps(40)
def test_no_two_outcomes_in_the_range_exceed_its_conversions(length: float, share: float) -> None:
    loss = BoundedRange(length)
    p, q = two_outcomes(mp.mpf(length), mp.mpf(length) * share)
    mu = mp.sqrt(2) * (mp.erfinv(2 * p - 1) - mp.erfinv(2 * q - 1))
    assert mu <= convert(loss, GDP).mu * (1 + 1e-12)
    for order in (1.5, 3, 20):
        divergence = mp.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
        assert divergence <= order * float(convert(loss, ZCDP).rho) * (1 + 1e-12)
        assert divergence <= float(convert(loss, RDP, orders=[order]).parts[0]) * (1 + 1e-12)


def divergence(length: str, top: Any, order: str) -> Any:
    """The divergence of two outcomes whose logarithms of ratios are top and top - length, of order 1 or above."""
    a, (p, q) = mp.mpf(order), two_outcomes(mp.mpf(length), top)
    if a == 1:
        return p * mp.log(p / q) + (1 - p) * mp.log((1 - p) / (1 - q))
    return mp.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)


def largest_divergence(length: str, order: str) -> Any:
    """The largest over all tops, by a search in thirds: in the middle it rises, then falls."""
    low, high = mp.mpf(length) / 10**6, mp.mpf(length) * (1 - mp.mpf(10) ** -6)
    for _ in range(90):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if divergence(length, first, order) < divergence(length, second, order):
            low = first
        else:
            high = second
    return divergence(length, low, order)


@pytest.mark.parametrize("length", ["0.01", "0.5", "2", "8", "30"])
@mp.workdps(40)
def test_rho_and_renyi_loss_of_a_range_are_the_largest_divergences(length: str) -> None:
    rho = rho_from_range(length)
    assert float(rho) == pytest.approx(float(largest_divergence(length, "1")), rel=1e-12)
    for order in ("1.01", "3", "40"):
        exactly = largest_divergence(length, order)
        assert float(rdp_from_range(length, order=order)) == pytest.approx(float(exactly), rel=1e-12)
        assert exactly <= mp.mpf(order) * mp.mpf(rho.numerator) / rho.denominator
    assert divergence(length, mp.mpf(length) / 2, "3") < largest_divergence(length, "3"), "control: always the middle"


@given(st.floats(1e-9, 1e5), st.floats(1.001, 1e4))
def test_a_range_is_charged_at_most_what_any_other_theorem_proves(length: float, order: float) -> None:
    rho, rdp = rho_from_range(length), rdp_from_range(length, order=order)
    a, e, rounded = exact(order), exact(length), 1 + Fraction(1, 10**12)
    assert 0 < rho <= e**2 / 8
    assert rho <= exact(rho_from_pure(length)) * rounded
    assert 0 < rdp <= a * e**2 / 8
    assert rdp <= min(a * rho, exact(rdp_from_pure(length, order=order))) * rounded
    assert 2 * rho <= rho_from_range(2 * e) * rounded, "what a sum is charged is no less than the sum"


def test_ranges_of_any_size_have_a_rho() -> None:
    for length in ("1e-300", "9999", "10001", "1e12"):
        assert 0 < rho_from_range(length) <= exact(length)
        assert 0 < rdp_from_range(length, order="1.0000001") <= exact(length)
    assert rho_from_range(0) == rdp_from_range(0, order=2) == 0


@pytest.mark.parametrize("length", [0.05, 0.378, 2.0, 8.0])
def test_its_mu_is_attained_in_the_middle(length: float) -> None:
    p, q = two_outcomes(mp.mpf(length), mp.mpf(length) / 2)
    mu = mp.sqrt(2) * (mp.erfinv(2 * p - 1) - mp.erfinv(2 * q - 1))
    assert float(mu) == pytest.approx(convert(BoundedRange(length), GDP).mu, rel=1e-12)


def test_control_half_of_the_range_is_too_little_for_what_is_only_in_pure_dp() -> None:
    p, q = two_outcomes(mp.mpf(2), mp.mpf(1))  # randomised response with epsilon 1
    mu = mp.sqrt(2) * (mp.erfinv(2 * p - 1) - mp.erfinv(2 * q - 1))
    assert mu > convert(BoundedRange(1), GDP).mu * 1.9
    assert convert(PureDP(1), ZCDP).rho > 3.5 * convert(BoundedRange(1), ZCDP).rho


def test_mu_of_the_whole_budget_buys_that_range() -> None:
    assert FILTERS["gdp"].admits(BoundedRange("0.377"))
    assert not FILTERS["gdp"].admits(BoundedRange("0.378"))
    assert convert(BoundedRange(0.2), ApproxDP) == ApproxDP("0.2")


@pytest.mark.parametrize("count", [1, 999_999_999, 10**9])
def test_every_number_of_mechanisms_that_may_be_launched_is_read_again(count: int) -> None:
    loss = Repeated(PureDP("0.02"), count)
    assert loss_from_json(loss.to_json()) == loss
    assert count <= MAX_COUNT
