"""What is printed in the papers and does not hold: one fact, one test; the formulas of this package are the right ones.

==============================  ======================================================================================
place                           the test that a copy of it would fail
==============================  ======================================================================================
Whitehouse et al. 2023
Theorem 2                       test_filters: delta_is_not_spent_twice
Theorem 3, y*                   reference: y_star_solves_f_for_epsilon_itself_not_for_half_of_it
Theorem 3, losses with deltas   test_odometers: pointwise_dp_losses_as_small_as_their_deltas_stay_below_the_bound
Theorems 5 and 6, hypotheses    statistical/test_odometers: hugging_adversary_never_crosses_more_often_than_delta
                                (test_losses_are_one_sided_only, here, says why)
Lemma 2                         conversions/test_pure: the_pointwise_delta_in_print_is_below_what_three_atoms_have
Lemma 3, second branch          test_odometers: rogers_bound_is_beyond_the_quantile_of_a_gaussian_loss
Definition 6                    test_bound_counts_the_release_that_it_is_read_after (here)
Theorem 2, N                    test_first_release_may_be_refused_too (here)
Rogers et al. 2016
Lemma 2.3                       as Lemma 2 above
Definition 3.1 with deltas      test_realised_loss_of_a_post_processed_mechanism_is_not_bounded_by_its_epsilon (here)
Theorem 6.2, union of events    test_union_over_a_fractional_number_of_scales_fits_all_the_same (here)
Haney et al. 2023
Theorem 3.7, Example B.2        test_filter_goes_on_below_its_budget_and_stops_above_it (here)
Algorithm 5, Definition 1.13    test_truncated_view_leaves_out_the_launch_that_exceeds (here), and test_truncated_view:
                                control_a_view_that_compares_the_state_before_the_launch_is_not, which says why
section 4, with deltas          test_accumulators_count_no_approximate_zcdp (here)
Smith and Thakurta 2022
footnote 1                      statistical/test_st_reduction: diagonal_is_the_square_root_that_the_footnote_omits
footnote 1, rescaling           statistical/test_st_reduction: control_a_twentieth_too_much_is_caught
Theorem 1, last sum             test_sum_runs_over_the_queries_not_over_the_rows (here)
Feldman and Zrnic 2021
Algorithms 6 and 7, noise       individual: noise_is_counted_once_and_not_divided_by_units
Algorithm 7, radius             individual: clip_radius_is_the_square_root_of_what_is_left
section 5, active set           individual: a_unit_is_active_only_while_its_radius_is_above_zero
Theorem 1.2 or Algorithm 3      individual: a_skipped_unit_may_return_and_a_dropped_one_may_not
Remark 4.4, several orders      statistical/test_renyi_orders: filter_refuses_what_only_one_order_admits, and
                                going_on_while_some_order_admits_breaks_the_promise, which says why
Theorems 1.1 and 3.1, order 1   test_order_one_has_no_bound_of_its_own (here)
Algorithm 5                     test_odometers_accumulators: tracker_reads_one_increment_from_the_start; beyond its
                                condition, individual/test_unit_tracker: control_one_increment_for_any_charge_is_not
section 4.3, log(1/delta)       test_quoted_form_of_the_first_filter_is_for_losses_without_deltas (here)
In doubles
y* for a small epsilon          test_y_star_does_not_cancel_for_a_small_epsilon (here)
gamma for a small delta         test_tuned_gamma_survives_a_delta_whose_square_is_no_double (here)
==============================  ======================================================================================
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpnb.accounting.conversions import delta_from_mu, pointwise_delta, rho_from_pure
from dpnb.accounting.filters import ApproxDPFilter, GDPFilter, RogersFilter
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, PointwiseDP, PureDP
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    FilterOdometer,
    MixtureOdometer,
    RDPAccumulator,
    RenyiOdometer,
    RenyiTracker,
    RogersOdometer,
    StitchedOdometer,
    ZCDPAccumulator,
)
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError


def test_losses_are_one_sided_only() -> None:
    """A bound on zCDP bounds the moments of the loss above; the lower side fails for a release that tells nothing."""
    rho, lam = 0.5, -0.5
    loss = 0.0  # of a constant answer, which is rho-zCDP for every rho
    assert math.exp(lam * (loss - rho) - lam**2 * rho) > 1
    assert all(math.exp(x * (loss - rho) - x**2 * rho) <= 1 for x in (0.0, 0.5, 3.0))
    for odometer in (FilterOdometer(1, 1e-6), MixtureOdometer(1, 1e-6), StitchedOdometer(0.01, 1e-6)):
        assert "at most" in odometer.step(ZCDP(rho)).statement()  # and no lower bound is ever stated


@pytest.mark.parametrize(
    "odometer",
    [FilterOdometer(1, 1e-6), MixtureOdometer(1, 1e-6), StitchedOdometer(0.01, 1e-6), RogersOdometer(1000, 1e-6)],
    ids=lambda odometer: type(odometer).__name__,
)
def test_bound_counts_the_release_that_it_is_read_after(odometer: MixtureOdometer) -> None:
    assert odometer.step(PureDP(5)).bound > 5
    assert odometer.step(PureDP(0.1)).step(PureDP(5)).bound > odometer.step(PureDP(0.1)).bound + 5


def test_realised_loss_of_a_post_processed_mechanism_is_not_bounded_by_its_epsilon() -> None:
    """Randomised response for (1, 0.01), its telltale output merged into the likely one."""
    delta = 0.01
    truth, lie = math.e / (1 + math.e), 1 / (1 + math.e)
    p, q = delta + (1 - delta) * truth, (1 - delta) * lie
    assert p - math.e * q == pytest.approx(delta)  # it is (1, 0.01)-DP, and no better
    assert math.log(p / q) > 1
    assert p == pytest.approx(0.7337, abs=1e-4)  # so its loss is above 1 that often, not one time in a hundred
    loss = ApproxDP(1, delta)
    for odometer in (MixtureOdometer(1, 1e-6, slack_delta=delta), RogersOdometer(1000, 2 * delta)):
        assert "the hidden coins behind them" in odometer.step(loss).statement()
    # What does hold of the loss itself: it is within 2 but for the pointwise delta.
    assert math.log(p / q) <= 2
    itself = PointwiseDP(2, pointwise_delta(1, delta=delta))
    assert "hidden coins" not in MixtureOdometer(1, 1e-6, slack_delta=0.1).step(itself).statement()


@pytest.mark.parametrize("n", [2, 3, 1000, 10**6 + 3])
@pytest.mark.parametrize("delta", ["0.3", "1e-3", "1e-15"])
def test_union_over_a_fractional_number_of_scales_fits_all_the_same(n: int, delta: str) -> None:
    """The printed levels add up to more than delta/2 for most n; the curve itself leaves room for it.

    Its inner branch is the line of a level l' on each interval [b, 2b], its outer branch a mixture at level log D.
    """
    with mpmath.workdps(30):
        d = 4 * mpmath.log(n, 2) / mpmath.mpf(delta)
        level = 2 * (1 + mpmath.log(3) / 2) * mpmath.log(d) / mpmath.mpf("1.0151") ** 2
        intervals = mpmath.ceil(2 * mpmath.log(n, 2))
        assert intervals * mpmath.exp(-level) + 1 / d <= mpmath.mpf(delta) / 2
    # The line touches at sqrt(2) b, and is below the curve of this package at both ends of the interval.
    state = RogersOdometer(n, delta)
    for b in (Fraction(1, n**2), Fraction(1, 2)):
        for end in (b, 2 * b):
            root = Fraction(math.isqrt(int(end * 10**40)) + (end < 1), 10**20)  # just inside [1/n^2, 1]
            deviation = state.step(PureDP(root)).bound - state.step(PureDP(root)).means
            y = math.sqrt(2) * b
            line = math.sqrt(2 * float(level) * y) / 2 * (1 + end / y)
            assert end > 1 or line <= deviation * (1 + 1e-9)


def test_filter_goes_on_below_its_budget_and_stops_above_it() -> None:
    state = ApproxDPFilter(1, conversion_delta=1e-6)
    assert state.admits(PureDP("0.186"))
    assert not state.admits(PureDP("0.187"))
    assert not state.step(PureDP("0.186")).admits(PureDP("0.186"))
    with pytest.raises(BudgetExceeded):
        state.step(PureDP("0.187"))


def test_first_release_may_be_refused_too() -> None:
    """The number of releases that fit counts from none."""
    for state in (GDPFilter(1), ApproxDPFilter(1, conversion_delta=1e-6), RogersFilter(1, 1e-6)):
        with pytest.raises(BudgetExceeded):
            state.step(PureDP(5))


def test_accumulators_count_no_approximate_zcdp() -> None:
    """Concurrent composition of arbitrary mechanisms in approximate zCDP, or Renyi with a delta, is open."""
    loss = ZCDP("0.1", 1e-9)
    for accumulator in (ZCDPAccumulator(), RDPAccumulator(2), ApproxDPAccumulator(1e-6, 1e-5), RenyiTracker(2, 1)):
        with pytest.raises(ConversionError):
            accumulator.step(loss)


@pytest.mark.parametrize("order", [1, "0.5", 0])
def test_order_one_has_no_bound_of_its_own(order: Any) -> None:
    """The proofs for Renyi orders divide by order - 1."""
    for make in (lambda: RDP({order: 1}), lambda: RenyiOdometer(order, 1e-6), lambda: RDPAccumulator(order)):
        with pytest.raises(InvalidValueError, match="order must"):
            make()


@pytest.mark.parametrize("epsilon", ["1e-10", "1e-30", "1e-100"])
def test_y_star_does_not_cancel_for_a_small_epsilon(epsilon: str) -> None:
    """As printed, two nearly equal roots are subtracted; here they are added."""
    with mpmath.workdps(250):
        twice_log, e = 2 * mpmath.log(10**6), mpmath.mpf(epsilon)
        truth = (mpmath.sqrt(twice_log + 2 * e) - mpmath.sqrt(twice_log)) ** 2
        assert mpmath.almosteq(FilterOdometer(epsilon, 1e-6).y, truth, rel_eps=mpmath.mpf("1e-14"))
        budget = 2 * ApproxDPFilter(epsilon, conversion_delta=1e-6).budget.rho
        assert mpmath.almosteq(mpmath.mpf(budget.numerator) / budget.denominator, truth, rel_eps=mpmath.mpf("1e-14"))


@pytest.mark.parametrize("delta", ["1e-200", "1e-300"])
def test_tuned_gamma_survives_a_delta_whose_square_is_no_double(delta: str) -> None:
    """gamma = V/(r - 1) with r - 1 - log r = 2 log(1/delta): delta^2 itself would be 0."""
    gamma = MixtureOdometer.tuned(1, delta, "two").gamma
    r = 1 + 1 / gamma
    assert r - 1 - math.log(r) == pytest.approx(-2 * math.log(float(delta)), rel=1e-9)


def test_truncated_view_leaves_out_the_launch_that_exceeds() -> None:
    """Held to a threshold, an accumulator must know of a launch before its answer is seen; equality still fits."""
    threshold, launched, state = 0.5, 0, ZCDPAccumulator()
    for rho in (0.25, 0.25, 0.25):
        state = state.step(ZCDP(rho))
        if state.bound > threshold:
            break
        launched += 1
    assert launched == 2
    first = ApproxDPAccumulator(1e-6, 1e-6).step(PureDP(5))
    assert first.bound > 5  # even the first launch is counted


def test_sum_runs_over_the_queries_not_over_the_rows() -> None:
    """Any number of releases: their number is no number of rows, and mu0 squared is what they fill."""
    state = GDPFilter(1)
    for _ in range(10_000):
        state = state.step(GDP("0.01"))
    assert not state.admits(GDP("1e-9"))
    assert state.guaranteed_epsilon(delta_from_mu(1, epsilon=1)) <= 1


def test_quoted_form_of_the_first_filter_is_for_losses_without_deltas() -> None:
    full, quoted = RogersFilter(1, 1e-6), RogersFilter(1, 1e-6, pure=True)
    assert quoted.k < full.k  # log(1/delta) instead of log(2/delta)
    assert full.admits(ApproxDP(0.01, 5e-7))
    assert not full.admits(ApproxDP(0.01, "5.0001e-7"))
    assert not quoted.admits(ApproxDP(0.01, 1e-12))


def test_mean_of_a_pure_loss_is_below_what_each_paper_takes() -> None:
    """Epsilon tanh(epsilon/2), attained by randomised response; the papers' two figures are looser."""
    for epsilon in (0.01, 1.0, 5.0):
        assert rho_from_pure(epsilon) < epsilon**2 / 2 < epsilon * math.expm1(epsilon) / 2
