"""One kind of loss as another: only where a theorem allows it, and never below what it proves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.conversions import delta_from_mu, epsilon_from_mu, epsilon_from_rdp, epsilon_from_rho
from dpnb.accounting.convert import convert, group_privacy
from dpnb.accounting.exact import exact
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PointwiseDP, PureDP
from dpnb.errors import ConversionError, InvalidValueError
from rationals import fractions

epsilons = st.floats(1e-6, 20)

ALLOWED: list[tuple[Loss, type[Loss]]] = [
    (GDP(1), GDP),
    (GDP(1, 1e-9), ZCDP),
    (GDP(1, 1e-9), RDP),
    (GDP(1, 1e-9), ApproxDP),
    (ZCDP(1, 1e-9), ZCDP),
    (ZCDP(1, 1e-9), RDP),
    (ZCDP(1, 1e-9), ApproxDP),
    (RDP({2: 1}, 1e-9), RDP),
    (RDP({2: 1}, 1e-9), ApproxDP),
    *((PureDP(1), kind) for kind in (GDP, ZCDP, RDP, PureDP, ApproxDP)),
    *((ApproxDP(1, 1e-9), kind) for kind in (GDP, ZCDP, RDP, ApproxDP)),
    (ApproxDP(1), PureDP),
    *((PointwiseDP(1, 1e-9), kind) for kind in (GDP, ZCDP, RDP, ApproxDP, PointwiseDP)),
]
FORBIDDEN: list[tuple[Loss, type[Loss]]] = [
    (GDP(1), PureDP),
    *((ZCDP(1), kind) for kind in (GDP, PureDP, PointwiseDP)),
    *((RDP({2: 1, 8: 4}), kind) for kind in (GDP, ZCDP, PureDP)),
    *((ApproxDP(1, 1e-9), kind) for kind in (PureDP, PointwiseDP)),
]


@pytest.mark.parametrize(("loss", "kind"), ALLOWED)
def test_theorem_gives_the_kind_that_is_asked_for(loss: Loss, kind: type[Loss]) -> None:
    made = convert(loss, kind, delta=1e-6, orders=[1.5, 2])
    assert type(made) is kind
    assert getattr(made, "delta", 0) >= 0


@pytest.mark.parametrize(("loss", "kind"), FORBIDDEN)
def test_what_no_theorem_allows_is_an_error(loss: Loss, kind: type[Loss]) -> None:
    with pytest.raises(ConversionError, match=f"no theorem converts {type(loss).__name__}.* to {kind.__name__}"):
        convert(loss, kind, delta=1e-6, orders=[2])


def test_discrete_gaussian_shows_why_zcdp_is_not_gdp() -> None:
    # The discrete Gaussian of scale 1 is exactly 1/2-zCDP, and its total variation is above that of 1-GDP.
    weights = [mpmath.exp(-mpmath.mpf(k * k) / 2) for k in range(-40, 41)]
    total_variation = float(weights[40] / sum(weights))
    assert total_variation > delta_from_mu(1, epsilon=0) + 0.01


@given(epsilons)
def test_randomised_response_is_within_each_conversion_of_a_pure_loss(epsilon: float) -> None:
    """Its hockey-stick and Renyi divergences, computed outright."""
    with mpmath.workdps(40):
        e = mpmath.mpf(repr(epsilon))
        p, q = mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))
        pure = PureDP(epsilon)
        gdp, zcdp, rdp = convert(pure, GDP), convert(pure, ZCDP), convert(pure, RDP, orders=[1.01, 2, 7, 300])
        for part in (0, 0.3, 0.9):
            at = epsilon * part
            true = p - mpmath.exp(mpmath.mpf(repr(at))) * q
            assert true <= mpmath.mpf(repr(delta_from_mu(gdp.mu, epsilon=at)))
        for order, rho in rdp.curve:
            a = mpmath.mpf(order.numerator) / order.denominator
            true = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert true * (1 - mpmath.mpf("1e-30")) <= mpmath.mpf(rho.numerator) / rho.denominator
            assert rho <= order * zcdp.rho * (1 + Fraction(1, 10**12))
        assert zcdp.rho <= exact(epsilon) ** 2 / 2


def test_a_lower_divergence_at_a_higher_order_holds_below_it_too() -> None:
    assert convert(RDP({2: 10, 3: 1}), RDP, orders=[2]) == RDP({2: 1})


@pytest.mark.parametrize("kind", ["ZCDP", 5, None])
def test_what_is_no_kind_of_loss_is_refused(kind: Any) -> None:
    with pytest.raises(ConversionError, match="to: must be a kind of loss"):
        convert(GDP(1), kind)


@pytest.mark.parametrize("orders", [5, [], [[2]], [2, "2"], [2, 2], [1], ["two"]])
def test_orders_that_are_none_are_refused_by_that_name(orders: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^orders must be different numbers above 1"):
        convert(GDP(1), RDP, orders=orders)


def test_total_delta_pays_for_the_bad_part_first() -> None:
    good = (exact(1e-6) - exact(4e-7)) / (1 - exact(4e-7))
    assert convert(GDP(1, 4e-7), ApproxDP, delta=1e-6) == ApproxDP(epsilon_from_mu(1, delta=good), 1e-6)
    assert convert(ZCDP(1, 4e-7), ApproxDP, delta=1e-6) == ApproxDP(epsilon_from_rho(1, delta=good), 1e-6)
    for loss in (GDP(1, 1e-6), ZCDP(1, 1e-6)):
        with pytest.raises(ConversionError, match="is too small"):
            convert(loss, ApproxDP, delta=1e-6)
    with pytest.raises(ConversionError, match="at least the loss's own"):
        convert(ApproxDP(1, 1e-5), ApproxDP, delta=1e-6)


def test_larger_delta_buys_a_smaller_epsilon_of_a_pure_loss() -> None:
    assert convert(PureDP(1), ApproxDP) == ApproxDP(1, 0)
    assert convert(ApproxDP(1, 1e-6), ApproxDP) == ApproxDP(1, 1e-6)
    assert convert(PureDP(1), ApproxDP, delta=0.1).epsilon < 1
    assert convert(PureDP(1), ApproxDP, delta=0.5).epsilon == 0


def test_best_order_of_one_release_gives_its_epsilon() -> None:
    curve = RDP({2: 0.1, 8: 0.4, 64: 3.2})
    at = [epsilon_from_rdp(order, rho, delta=1e-6) for order, rho in curve.curve]
    assert convert(curve, ApproxDP, delta=1e-6) == ApproxDP(min(at), 1e-6)


@given(fractions(Fraction(101, 100), 64, max_denominator=1000))
def test_orders_in_between_are_bounded_from_the_safe_side(order: Fraction) -> None:
    true = ZCDP(0.1)
    known = convert(true, RDP, orders=[1.5, 4, 64])
    assert convert(known, RDP, orders=[order]).parts[0] >= order * true.rho
    assert convert(known, RDP, orders=[4]) == RDP({4: 0.4})


def test_missing_argument_is_named() -> None:
    for loss in (GDP(1), ZCDP(1), RDP({2: 1})):
        with pytest.raises(ConversionError, match=r"^delta: required"):
            convert(loss, ApproxDP)
    with pytest.raises(ConversionError, match=r"^orders: required"):
        convert(GDP(1), RDP)


@pytest.mark.parametrize("delta", [-1e-6, 1, 2, float("nan")])
def test_delta_outside_its_range_is_refused(delta: float) -> None:
    with pytest.raises(InvalidValueError, match=r"^delta must"):
        convert(GDP(1), ApproxDP, delta=delta)


def test_what_is_no_loss_is_refused() -> None:
    for kind in (GDP, ZCDP, RDP, PureDP, ApproxDP):
        with pytest.raises(ConversionError, match="float, which is not a loss"):
            convert(0.5, kind, delta=0.1, orders=[2])  # type: ignore[arg-type]


def test_group_of_units() -> None:
    assert group_privacy(GDP(0.5), 3) == GDP(1.5)
    assert group_privacy(ZCDP(0.3), 2) == ZCDP(1.2)  # replacing one unit
    assert group_privacy(PureDP(0.5), 2) == PureDP(1)
    for loss in (GDP(1, 1e-9), ApproxDP(1), RDP({2: 1})):
        with pytest.raises(ConversionError, match="group privacy"):
            group_privacy(loss, 2)
    for size in (0, -1, 1.5, True):
        bad: Any = size
        with pytest.raises(InvalidValueError, match=r"^size must"):
            group_privacy(GDP(1), bad)
