"""A Renyi accumulator that grows in fixed increments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.doubles import order_in_doubles
from dpnb.accounting.exact import Number, decimal_up, positive
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers.accumulators import RenyiAccumulator
from dpnb.accounting.odometers.renyi import renyi_loss


@dataclass(frozen=True, init=False, repr=False)
class RenyiTracker(RenyiAccumulator):
    """A bound on the sum of Renyi losses at one order that grows by whole increments, as blocks of losses fill.

    Feldman and Zrnic 2021, Algorithm 5.  The bound is one increment from the start (the printed first line overwrites
    it with a value that was never set).  A loss that does not fit into the current block starts the next block, and the
    bound grows by one increment.  The bound of :class:`RDPAccumulator` has the same meaning and is never larger.

    The paper requires that no loss is above the increment.  Here such a loss fills the current block and as many
    further ones as it needs.  The bound is still never below the sum of the losses, which is all that its statement
    needs (Haney et al. 2023, Theorem 4.9).  By induction, the sum is at most that of `block` and of the increments of
    all other blocks: a loss that fits is added to `block`; if one starts the next block, the block before it counts in
    full; and one that fills n blocks adds n increments and what is left over.

    Parameters
    ----------
    order : Number
        Above 1.
    increment : Number
        Greater than 0.

    Attributes
    ----------
    blocks : int
        Number of increments in the bound.
    block : Fraction
        Sum of the losses in the current block, at most the increment.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RenyiTracker
    >>> tracker = RenyiTracker(order=10, increment=0.5).step(GDP(0.3))
    >>> tracker.bound
    0.5
    """

    increment: Fraction
    blocks: int
    block: Fraction

    def __init__(self, order: Number, increment: Number) -> None:
        number = order_in_doubles(order)
        self._set(order=number, increment=positive(increment, name="increment"), blocks=1, block=Fraction(0))

    @property
    def bound(self) -> float:
        """A whole number of increments, rounded up."""
        return decimal_up(self.blocks * self.increment)

    def step(self, loss: Loss) -> RenyiTracker:
        rho = renyi_loss(loss, self.order)
        if self.block + rho <= self.increment:
            return self._changed(block=self.block + rho)
        if rho <= self.increment:
            return self._changed(blocks=self.blocks + 1, block=rho)
        filled = math.ceil((self.block + rho) / self.increment) - 1
        return self._changed(blocks=self.blocks + filled, block=self.block + rho - filled * self.increment)
