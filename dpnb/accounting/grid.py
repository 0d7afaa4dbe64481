"""The grid on which losses are charged, so that sums of exact losses stay short.

A sum of fractions with always new denominators becomes longer with every charge, and slower to compare with the budget.
So every loss that is charged is a multiple of 2^-100, or of 10^-60 2^-100, of which decimals of up to 60 places are:
ten charges of a tenth are exactly one.  Other losses are rounded to multiples of 2^-100, and the noise is calibrated
to the rounded loss, or the loss is rounded up: what is charged covers the release exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from dpnb.accounting.exact import decimal_down, decimal_up, exact
from dpnb.accounting.filters import SumFilter
from dpnb.accounting.losses import Loss

L = TypeVar("L", bound=Loss)

_BITS = 100
STEP = Fraction(1, 2**_BITS)
"""Losses are rounded to multiples of this."""

_FINEST = 10**60 * 2**_BITS


def is_on_grid(number: Fraction) -> bool:
    """Whether a number is a multiple of 10^-60 2^-100, so that it is charged as it is.

    >>> is_on_grid(Fraction(1, 10)), is_on_grid(Fraction(1, 3))
    (True, False)
    """
    return not _FINEST % number.denominator


def grid_down(number: Fraction) -> Fraction:
    """The number itself if it is on the grid, otherwise the multiple of `STEP` below it.

    >>> grid_down(Fraction(1, 10)), grid_down(Fraction(1, 3)) == Fraction(1, 3)
    (Fraction(1, 10), False)
    """
    return number if is_on_grid(number) else Fraction((number.numerator << _BITS) // number.denominator, 1 << _BITS)


def grid_up(number: Fraction) -> Fraction:
    """The number itself if it is on the grid, otherwise the multiple of `STEP` above it.

    >>> grid_up(Fraction(1, 3)) - grid_down(Fraction(1, 3)) == STEP
    True
    """
    return -grid_down(-number)


def delta_down(delta: Fraction) -> Fraction:
    """The number itself if it is on the grid, otherwise the largest decimal of a double below it.

    Deltas may be much smaller than `STEP`, so they are rounded by their leading digits.

    >>> float(delta_down(Fraction(1, 3 * 10**9)))
    3.333333333333333e-10
    """
    return delta if is_on_grid(delta) else exact(decimal_down(delta))


def loss_up(loss: L) -> L:
    """A loss on the grid, rounded up.

    >>> from dpnb.accounting import PureDP
    >>> loss_up(PureDP(0.1)), loss_up(PureDP("1/3")).epsilon > Fraction(1, 3)
    (PureDP(epsilon=0.1), True)
    """
    if all(map(is_on_grid, loss.parts)):
        return loss
    return loss.with_parts(tuple(_part_up(*named) for named in zip(loss.names, loss.parts, strict=True)))


def capped_up(loss: L, state: object) -> L:
    """As `loss_up`, but a part that is within what a filter has left is not rounded beyond that.

    `state` is the current state of the filter that is charged.  So a budget of a third can be given to one mechanism
    in full.

    >>> from dpnb.accounting import GDP, GDPFilter
    >>> third = GDP.from_mu_squared("1/3")
    >>> capped_up(third, GDPFilter.from_loss(third)) == third, capped_up(third, GDPFilter(mu=1)) == third
    (True, False)
    """
    above = loss_up(loss)
    if above == loss or not isinstance(state, SumFilter):
        return above
    left = dict(zip(state.budget.names, (state.budget - state.spent).parts, strict=True))
    parts = zip(loss.names, loss.parts, above.parts, strict=True)
    return loss.with_parts(
        tuple(min(up, left[name]) if name in left and part <= left[name] else up for name, part, up in parts)
    )


def _part_up(name: str, part: Fraction) -> Fraction:
    if name != "delta":
        return grid_up(part)
    return part if is_on_grid(part) else exact(decimal_up(part))
