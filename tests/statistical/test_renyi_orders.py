"""Several Renyi orders: all must admit.  To go on while some order has budget left is not private.

Nothing is sampled.  The promise is (6, 0.01)-DP, and the budget of each of the orders 2 and 6 is what this promise
leaves it.  A first Gaussian answer, mu = 0.5, has a loss X1 ~ N(1/8, 1/4).  Having seen it, the adversary asks for a
second answer with two outcomes, of chance p and p e^-a under the neighbours, which uses up what one order has left.
The delta that both answers together need is the mean over X1 of the largest p (1 - e^(6 - X1 - a)).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnb.accounting.conversions import epsilon_from_rdp, rdp_from_mu
from dpnb.accounting.filters import RDPFilter
from dpnb.accounting.losses import GDP, RDP

pytestmark = pytest.mark.statistical

EPSILON, DELTA, MU = 6.0, 0.01, 0.5
ORDERS = (2, 6)
JUMPS = np.linspace(0.01, 14, 1400)

Array = NDArray[np.float64]


def _budget(order: int) -> float:
    """The largest Renyi loss that one order turns into the promise (Canonne, Kamath and Steinke 2020)."""
    return EPSILON - epsilon_from_rdp(order, 0, delta=DELTA)


def _left(order: int) -> float:
    """What the first answer leaves of it."""
    return _budget(order) - rdp_from_mu(MU, order=order)


def _renyi(order: int, p: Array, q: Array) -> Array:
    """Renyi divergence of two outcomes with chances p and 1 - p from q and 1 - q."""
    moment = p * (p / q) ** (order - 1) + (1 - p) * ((1 - p) / (1 - q)) ** (order - 1)
    return np.log(moment) / (order - 1)


def _loss(order: int, p: Array, jumps: Array = JUMPS) -> Array:
    """What an answer costs whose loss is `jumps` with chance p; the neighbours may stand either way."""
    q = p * np.exp(-jumps)
    return np.maximum(_renyi(order, p, q), _renyi(order, q, p))


def _largest_p(order: int, loss: float) -> Array:
    """For each jump the largest chance that this order still admits; it costs more the larger it is."""
    low, high = np.full_like(JUMPS, 1e-12), np.full_like(JUMPS, 1 - 1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        fits = _loss(order, middle) <= loss
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def _first_losses() -> tuple[Array, Array]:
    """Places and weights of X1, to 1e-9: the trapezium rule for a normal density."""
    z = np.linspace(-7, 7, 701)
    return MU**2 / 2 + MU * z, np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])


def _gains(x1: Array, p: Array) -> Array:
    """The delta that a second answer needs after each X1, by its jump, shape (len(x1), len(JUMPS))."""
    return np.asarray(p * np.maximum(-np.expm1(EPSILON - x1[:, None] - JUMPS), 0))


def _second(order: int, x1: Array) -> Array:
    """The delta that the second answer needs at most after each X1, if this order is the only one that counts."""
    return np.asarray(_gains(x1, _largest_p(order, _left(order))).max(axis=1))


def _attack(order: int) -> RDP:
    """The second answer, as a loss at both orders, for the X1 at which this order's advantage weighs most."""
    x1, weight = _first_losses()
    other = ORDERS[1 - ORDERS.index(order)]
    where = int((weight * (_second(order, x1) - _second(other, x1))).argmax())
    p = _largest_p(order, _left(order) * (1 - 1e-9))
    best = int(_gains(x1[[where]], p).argmax())
    return RDP({k: float(_loss(k, p[best], JUMPS[best])) for k in ORDERS})


@pytest.mark.parametrize("order", ORDERS)
def test_one_order_alone_keeps_the_promise(order: int) -> None:
    x1, weight = _first_losses()
    assert 0.5 * DELTA < float(weight @ _second(order, x1)) < DELTA


def test_all_orders_must_admit_and_keep_the_promise() -> None:
    """A second answer within both remainders reaches at most the smaller of the two figures."""
    x1, weight = _first_losses()
    assert float(weight @ np.minimum(_second(2, x1), _second(6, x1))) < 0.5 * DELTA


def test_going_on_while_some_order_admits_breaks_the_promise() -> None:
    """The first answer picks which order to exhaust: a fifth and more above what either may need."""
    x1, weight = _first_losses()
    two, six = _second(2, x1), _second(6, x1)
    assert float(weight @ np.maximum(two, six)) > 1.2 * DELTA
    assert (two > six).any()  # neither order is the better one whatever came first
    assert (six > two).any()


@pytest.mark.parametrize("order", ORDERS)
def test_filter_refuses_what_only_one_order_admits(order: int) -> None:
    both = RDPFilter({k: _budget(k) for k in ORDERS}).step(GDP(MU))
    alone = RDPFilter({order: _budget(order)}).step(GDP(MU))
    second = _attack(order)
    assert alone.admits(RDP({order: dict(second.curve)[Fraction(order)]}))
    assert not both.admits(second)


def test_filter_promises_what_the_budgets_were_made_for() -> None:
    filter_ = RDPFilter({order: _budget(order) for order in ORDERS})
    assert filter_.guaranteed_epsilon(DELTA) == pytest.approx(EPSILON, rel=1e-12)
