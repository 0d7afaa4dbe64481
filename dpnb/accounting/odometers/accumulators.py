"""Accumulators: sums that are valid for every budget fixed beforehand.

Haney et al. 2023: for a threshold d fixed beforehand, the view cut before the accumulator would exceed d is d-private.
A release counts when it is launched: the state to compare with d already contains it.  The printed
Definition 1.13 and Algorithm 5 compare the old state, which would let a first release of any size pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import (
    MARGIN,
    Number,
    binary_up,
    decimal_sqrt_up,
    decimal_up,
    display_up,
    failure_probability,
    log_inverse,
    order_in_doubles,
    positive,
)
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PureGDP
from dpnb.accounting.odometers.base import (
    INSIDE_EVERY_BUDGET,
    Odometer,
    OdometerKind,
    intrinsic_time,
    order_text,
)
from dpnb.accounting.odometers.sums import renyi_loss
from dpnb.errors import ConversionError

_ZERO = Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class Accumulator(Odometer):
    """Base class of the accumulators."""

    @property
    def kind(self) -> OdometerKind:
        return "accumulator"

    @property
    def budget(self) -> str:
        """The kind of budget that the bound is compared with, in words."""
        raise NotImplementedError

    def truncated_guarantee(self, threshold: Fraction) -> Loss:
        """The loss of a view that is cut where the bound would exceed a threshold: see :class:`TruncatedView`.

        Parameters
        ----------
        threshold : Fraction
            Fixed beforehand, at least 0.
        """
        raise NotImplementedError

    def statement(self) -> str:
        bound, measure = self.bound, "rho" if self.measure == "rdp" else self.measure
        if bound == 0:
            return INSIDE_EVERY_BUDGET
        if bound == math.inf:
            return f"No budget of {self.budget} is known to contain everything so far."
        return (
            f"Everything so far is inside every budget of {self.budget} that was fixed beforehand and whose {measure} "
            f"is at least {display_up(bound)}."
        )


@dataclass(frozen=True, init=False, repr=False)
class ApproxDPAccumulator(Accumulator):
    """The epsilon at delta of everything so far: sqrt(2 S log(1/conversion_delta)) + S/2.

    Haney et al. 2023, Theorem 3.8.  S is the sum of epsilon^2 for DP losses, and 2 rho for GDP and zCDP losses without
    a delta.  Infinite once conversion_delta and the losses' deltas add up to more than delta.  Mechanisms may be
    interleaved if all are DP or all are zCDP; for zCDP mixed with DP losses that have a delta this is open, and they
    must run one after another.

    Parameters
    ----------
    conversion_delta : Number
        In [1e-300, 1): the delta of the conversion to epsilon.
    delta : Number
        In [0, 1): the total delta; below conversion_delta the bound is always infinite.

    Attributes
    ----------
    squares, deltas : Fraction
        S, and the sum of the losses' deltas.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import ApproxDPAccumulator, PureDP
    >>> round(ApproxDPAccumulator(conversion_delta=1e-6, delta=1e-6).step(PureDP(0.1)).bound, 4)
    0.5307
    """

    measure: ClassVar[str] = "epsilon"
    conversion_delta: Fraction
    delta: Fraction
    squares: Fraction
    deltas: Fraction

    def __init__(self, conversion_delta: Number, delta: Number) -> None:
        conversion = failure_probability(conversion_delta, name="conversion_delta")
        self._set(conversion_delta=conversion, delta=checked_delta(delta), squares=_ZERO, deltas=_ZERO)

    @property
    def bound(self) -> float:
        """The current epsilon, in nats, rounded up."""
        if self.conversion_delta + self.deltas > self.delta:
            return math.inf
        if not self.squares:
            return 0.0
        s = binary_up(self.squares)
        return (math.sqrt(s) * math.sqrt(2 * log_inverse(self.conversion_delta)) + s / 2) * MARGIN

    @property
    def budget(self) -> str:
        """(epsilon, delta)-DP, with its delta."""
        return f"(epsilon, delta)-DP with delta = {decimal_up(self.delta)!r}"

    def truncated_guarantee(self, threshold: Fraction) -> ApproxDP:
        return ApproxDP.of(threshold, self.delta)

    def step(self, loss: Loss) -> ApproxDPAccumulator:
        square, delta = intrinsic_time(loss)
        if delta and isinstance(loss, GDP | ZCDP | PureGDP):
            raise _has_delta(loss)
        return self._changed(squares=self.squares + square, deltas=self.deltas + delta)


@dataclass(frozen=True, init=False, repr=False)
class ZCDPAccumulator(Accumulator):
    """The sum of rho (Haney et al. 2023, Theorem 4.11).

    Attributes
    ----------
    rho : Fraction

    Examples
    --------
    >>> from dpnb.accounting import GDP, ZCDPAccumulator
    >>> ZCDPAccumulator().step(GDP(0.5)).bound
    0.125
    """

    measure: ClassVar[str] = "rho"
    budget = "rho-zCDP"
    rho: Fraction

    def __init__(self) -> None:
        self._set(rho=_ZERO)

    @property
    def bound(self) -> float:
        """The sum of rho, rounded up."""
        return decimal_up(self.rho)

    def truncated_guarantee(self, threshold: Fraction) -> ZCDP:
        return ZCDP.of(threshold, _ZERO)

    def step(self, loss: Loss) -> ZCDPAccumulator:
        counted = convert(loss, ZCDP)
        if counted.delta:
            raise _has_delta(loss)
        return self._changed(rho=self.rho + counted.rho)


@dataclass(frozen=True, init=False, repr=False)
class RenyiAccumulator(Accumulator):
    """Base class of the accumulators at one Renyi order, fixed beforehand."""

    measure: ClassVar[str] = "rdp"
    order: Fraction

    @property
    def budget(self) -> str:
        """Renyi DP of the order."""
        return f"Renyi DP of order {order_text(self.order)}"

    def truncated_guarantee(self, threshold: Fraction) -> RDP:
        return RDP({self.order: threshold})


@dataclass(frozen=True, init=False, repr=False)
class RDPAccumulator(RenyiAccumulator):
    """The sum of the Renyi losses of one order, fixed beforehand (Haney et al. 2023, Theorem 4.9).

    Parameters
    ----------
    order : Number
        Above 1.

    Attributes
    ----------
    rho : Fraction

    Raises
    ------
    InvalidValueError
        The order is out of range.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RDPAccumulator
    >>> RDPAccumulator(order=10).step(GDP(0.5)).bound
    1.25
    """

    rho: Fraction

    def __init__(self, order: Number) -> None:
        self._set(order=order_in_doubles(order), rho=_ZERO)

    @property
    def bound(self) -> float:
        """The sum, rounded up."""
        return decimal_up(self.rho)

    def step(self, loss: Loss) -> RDPAccumulator:
        return self._changed(rho=self.rho + renyi_loss(loss, self.order))


@dataclass(frozen=True, init=False, repr=False)
class GDPAccumulator(Accumulator):
    """The mu of everything so far, the root of the sum of mu^2.

    Smith and Thakurta 2022, Theorem 1, for releases; that the same holds for interactive mechanisms that run
    concurrently is Haney et al. 2023, Theorem 3.6.

    Attributes
    ----------
    mu_squared : Fraction

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPAccumulator
    >>> GDPAccumulator().step(GDP(0.3)).step(GDP(0.4)).bound
    0.5
    """

    measure: ClassVar[str] = "mu"
    budget = "mu-GDP"
    mu_squared: Fraction

    def __init__(self) -> None:
        self._set(mu_squared=_ZERO)

    @property
    def bound(self) -> float:
        """The current mu, rounded up; exact if it is the shortest decimal of a double."""
        return decimal_sqrt_up(self.mu_squared)

    def truncated_guarantee(self, threshold: Fraction) -> GDP:
        return GDP(threshold)

    def step(self, loss: Loss) -> GDPAccumulator:
        counted = convert(loss, GDP)
        if counted.delta:
            raise _has_delta(loss)
        return self._changed(mu_squared=self.mu_squared + counted.mu_squared)


def _has_delta(loss: Loss) -> ConversionError:
    return ConversionError(
        f"loss: this accumulator counts losses without a delta, got {loss!r}; "
        "use a time-uniform odometer with slack_delta"
    )


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
