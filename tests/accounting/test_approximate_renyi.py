"""Approximate Renyi DP: the filter with a delta, against exact distributions of adaptive adversaries.

Nothing is sampled.  A release shows with probability delta_m which neighbour it is about, and is otherwise randomised
response of some epsilon: the worst (epsilon_m, delta_m)-DP mechanism.  The adversary chooses the next release from a
menu because of the answers so far, until the filter refuses everything, and the distributions of all answers under the
two neighbours are computed answer by answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.filters import SumFilterContract
from dpnb.accounting import GDP, RDP, ZCDP, ApproxDP, Loss, PointwiseDP, PureDP, RDPFilter, convert, loss_from_json
from dpnb.accounting.conversions import epsilon_from_curve
from dpnb.accounting.exact import exact
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError
from rationals import fractions

HAIR = Fraction(1, 10**60)


class TestApproximateRDPFilter(SumFilterContract):
    def fresh(self) -> RDPFilter:
        return RDPFilter({2: 1, "2.5": 0.1}, 1e-6)

    def costing(self, share: Fraction) -> RDP:
        return RDP({2: share, "5/2": share / 10}, share / 10**6)

    def larger(self, loss: Any) -> list[Loss]:
        parts = loss.parts
        return [loss.with_parts((*parts[:i], part + HAIR, *parts[i + 1 :])) for i, part in enumerate(parts)]


# --- losses -----------------------------------------------------------------------------------------------------------


def test_deltas_add_and_are_shown_and_stored() -> None:
    both = RDP({2: 0.1}, 1e-9) + RDP({2: 0.2}, 2e-9)
    assert (both, both.delta, both.curve) == (RDP({2: 0.3}, "3e-9"), Fraction(3, 10**9), ((2, Fraction(3, 10)),))
    assert repr(both) == "RDP({2.0: 0.3}, delta=3e-09)"
    assert both.format(up=True) == "rho={2.0: 0.3} and delta=3e-09"
    assert both.to_json() == {"kind": "rdp", "2": "3/10", "delta": "3/1000000000"}
    assert loss_from_json(both.to_json()) == both
    assert loss_from_json({"kind": "rdp", "2": "3/10"}) == RDP({2: 0.3}), "a ledger from before curves had a delta"
    with pytest.raises(InvalidValueError, match=r"^delta must not be negative"):
        RDP({2: 1}, -1e-9)


@pytest.mark.parametrize("loss", [GDP(0.3, 1e-9), ZCDP(0.045, 1e-9), ApproxDP(0.3, 1e-9), PointwiseDP(0.3, 1e-9)])
def test_a_loss_with_a_delta_is_approximate_renyi_dp_with_the_curve_of_its_good_part(loss: Any) -> None:
    pure = PureDP(0.3) if isinstance(loss, ApproxDP | PointwiseDP) else ZCDP(0.045)
    good = convert(pure, RDP, orders=[1.5, 8])
    assert convert(loss, RDP, orders=[1.5, 8]) == RDP(dict(good.curve), 1e-9)
    assert convert(RDP(dict(good.curve), 1e-9), RDP, orders=[8]) == RDP({8: dict(good.curve)[Fraction(8)]}, 1e-9)


def test_conversion_to_epsilon_takes_the_delta_of_the_loss_off_first() -> None:
    own, total = Fraction(4, 10**7), Fraction(1, 10**6)
    loss = RDP({8: 1}, own)
    good = (total - own) / (1 - own)
    assert convert(loss, ApproxDP, delta=total) == ApproxDP(convert(RDP({8: 1}), ApproxDP, delta=good).epsilon, total)
    with pytest.raises(ConversionError, match="at least the loss's own delta"):
        convert(loss, ApproxDP, delta=own / 2)


# --- the filter -------------------------------------------------------------------------------------------------------


def test_deltas_that_do_not_fit_are_refused_although_every_order_has_budget() -> None:
    state = RDPFilter({8: 1}, 1e-6).step(GDP(0.1, 6e-7))
    assert state.spent == RDP({8: "0.04"}, 6e-7)
    assert state.affordable() == RDP({8: "0.96"}, 4e-7)
    assert state.admits(GDP(0.1, 4e-7))
    assert not state.admits(GDP(0.1, 5e-7))
    with pytest.raises(BudgetExceeded, match=r"losses' deltas within 1e-6; .*rho=\{8\.0: 0\.96\} and delta=4e-7"):
        state.step(GDP(0.1, 5e-7))
    assert not RDPFilter({8: 1}).admits(GDP(0.1, "1e-30")), "a filter without a delta admits no loss that has one"


@pytest.mark.parametrize("own", ["0", "1e-7", "9e-7"])
def test_guarantee_is_the_tight_conversion_at_the_delta_that_is_left(own: str) -> None:
    curve = {2: "0.5", 8: 1, 32: 6}
    with mpmath.workdps(50):
        total, d = mpmath.mpf("1e-6"), mpmath.mpf(own)
        good = (total - d) / (1 - d)
        truth = min(
            mpmath.mpf(rho) + mpmath.log1p(-1 / mpmath.mpf(a)) - mpmath.log(good * a) / (a - 1)
            for a, rho in curve.items()
        )
        got = RDPFilter(curve, own).guaranteed_epsilon("1e-6")
        assert truth <= mpmath.mpf(got) * (1 + mpmath.mpf(2) ** -52)
        assert got == pytest.approx(float(truth), rel=1e-14)
    assert RDPFilter(curve, "1e-5").guaranteed_epsilon("1e-6") == math.inf
    assert RDPFilter(curve, 1).guaranteed_epsilon(0.5) == math.inf


# --- adversaries ------------------------------------------------------------------------------------------------------

Menu = Sequence[tuple[Fraction, Fraction]]
ORDERS = (2, 8)


class Leaf:
    """One course of the answers: its probabilities, and those under good parts alone; None if a bad part occurred."""

    def __init__(self, p: float, q: float, good: tuple[float, float] | None) -> None:
        self.p, self.q, self.good = p, q, good


def courses(
    state: RDPFilter, menu: Menu, p: float = 1.0, q: float = 1.0, good: tuple[float, float] = (1.0, 1.0), depth: int = 0
) -> Iterator[Leaf]:
    """All courses of the answers; the menu is read from another place, and on, when the evidence is for P."""
    start = (depth + (p > q) + 2 * (p > 2 * q)) % len(menu)
    losses = [menu[(start + i) % len(menu)] for i in range(len(menu))]
    chosen = next((one for one in losses if state.admits(ApproxDP(*one))), None)
    if chosen is None or depth == 10:
        yield Leaf(p, q, good)
        return
    after, (epsilon, delta) = state.step(ApproxDP(*chosen)), map(float, chosen)
    yield Leaf(p * delta, 0.0, None)
    yield Leaf(0.0, q * delta, None)
    truth = 1 / (1 + math.exp(-epsilon))
    for a, b in ((truth, 1 - truth), (1 - truth, truth)):
        yield from courses(after, menu, p * (1 - delta) * a, q * (1 - delta) * b, (good[0] * a, good[1] * b), depth + 1)


def delta_at(leaves: Sequence[Leaf], epsilon: float) -> float:
    """The smallest delta at epsilon: the larger hockey-stick divergence of the two directions."""
    if epsilon == math.inf:
        return 0.0
    return max(
        math.fsum(max(0.0, one.p - math.exp(epsilon) * one.q) for one in leaves),
        math.fsum(max(0.0, one.q - math.exp(epsilon) * one.p) for one in leaves),
    )


def renyi(order: int, leaves: Sequence[Leaf]) -> float:
    """The larger Renyi divergence of the good parts, which are distributions."""
    goods = [one.good for one in leaves if one.good is not None]
    return max(
        math.log(math.fsum(a * (a / b) ** (order - 1) for a, b in pairs)) / (order - 1)
        for pairs in (goods, [(b, a) for a, b in goods])
    )


BUDGET = {2: "0.6", 8: "1.9"}
DELTA = Fraction(3, 100)
MENU = [(Fraction(1, 2), Fraction(1, 100)), (Fraction(1, 5), Fraction(2, 100)), (Fraction(2, 5), Fraction(0))]

sizes = fractions(Fraction(1, 4), 1, max_denominator=100)
menus = st.lists(st.tuples(sizes, fractions(0, DELTA, max_denominator=300)), min_size=1, max_size=4)


@given(menu=menus)
def test_an_adversary_stays_within_approximate_renyi_dp(menu: Menu) -> None:
    fresh = RDPFilter(BUDGET, DELTA)
    leaves = list(courses(fresh, menu))
    assert math.fsum(one.p for one in leaves) == pytest.approx(1)
    # The claim itself: the good parts are distributions with these divergences, and weigh at least 1 - delta.
    for order, rho in fresh.budget.curve:
        assert renyi(int(order), leaves) <= float(rho) * (1 + 1e-9)
    left = 1 - float(DELTA) - 1e-12
    for one in leaves:
        if one.good is not None:
            assert one.p >= left * one.good[0]
            assert one.q >= left * one.good[1]
    # What follows from it.
    for total in (DELTA, Fraction(4, 100), Fraction(1, 10), Fraction(3, 10)):
        assert delta_at(leaves, fresh.guaranteed_epsilon(total)) <= float(total) + 1e-12


def test_control_a_filter_that_forgets_deltas_breaks_its_promise() -> None:
    class Forgetful(RDPFilter):
        def to_filter_loss(self, loss: Loss) -> RDP:
            return RDP(dict(super().to_filter_loss(loss).curve))

    broken = Forgetful(BUDGET, DELTA)
    total = Fraction(4, 100)
    assert delta_at(list(courses(broken, MENU)), broken.guaranteed_epsilon(total)) > 1.1 * float(total)
    assert delta_at(list(courses(RDPFilter(BUDGET, DELTA), MENU)), broken.guaranteed_epsilon(total)) <= float(total)


def test_control_a_filter_that_keeps_the_largest_delta_breaks_its_promise() -> None:
    class Largest(RDPFilter):
        def step(self, loss: Loss) -> Any:
            total = self.spent + self.to_filter_loss(loss)
            largest = max(self.spent.delta, loss.delta)
            return self._changed(spent=RDP(dict(total.curve), largest))

        def admits(self, loss: Loss) -> bool:
            return self.step(loss).spent.within(self.budget)

    broken = Largest(BUDGET, DELTA)
    total = Fraction(4, 100)
    assert delta_at(list(courses(broken, MENU)), broken.guaranteed_epsilon(total)) > 1.1 * float(total)


def test_control_one_delta_does_not_serve_two_purposes() -> None:
    """Whitehouse et al. 2023, Theorem 2, as printed: the losses' deltas and the conversion share one delta."""
    fresh, each = RDPFilter({2: "0.6"}, DELTA), PureDP("0.1")
    state = fresh.step(RDP({2: 0}, DELTA))
    number = state.max_repetitions(each)
    assert number is not None
    truth = 1 / (1 + math.exp(-0.1))

    def true_delta(epsilon: float) -> float:
        """With probability DELTA the answer is given away; otherwise `number` equal randomised responses."""
        ps = [math.comb(number, k) * truth**k * (1 - truth) ** (number - k) for k in range(number + 1)]
        return float(DELTA) + float(1 - DELTA) * math.fsum(
            max(0.0, p - math.exp(epsilon) * q) for p, q in zip(ps, reversed(ps), strict=True)
        )

    assert true_delta(epsilon_from_curve(fresh.budget.curve, DELTA)) > float(DELTA) + 1e-6
    assert fresh.guaranteed_epsilon(DELTA) == math.inf
    assert true_delta(fresh.guaranteed_epsilon(Fraction(6, 100))) <= 0.06


@given(st.lists(st.tuples(sizes, fractions(0, DELTA, max_denominator=300)), max_size=8))
def test_sums_are_those_of_exact_arithmetic(history: list[tuple[Fraction, Fraction]]) -> None:
    state = RDPFilter({8: 1}, DELTA)
    rho = delta = Fraction(0)
    for size, one in history:
        loss = ZCDP(size / 32, one)
        fits = rho + size / 4 <= 1 and delta + one <= DELTA
        assert state.admits(loss) == fits
        if fits:
            state, rho, delta = state.step(loss), rho + size / 4, delta + one
    assert state.spent == RDP({8: rho}, delta)
    assert exact(state.headroom) <= min(1 - rho, 1 - delta / DELTA)
