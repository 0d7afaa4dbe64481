"""Odometers that add up one number, and the sum that a filter has counted."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn, Self

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert, own_epsilon_delta
from dpnb.accounting.exact import (
    MARGIN,
    Number,
    binary_down,
    binary_up,
    decimal_up,
    display_up,
    exact,
    failure_probability,
    log_inverse,
    order_in_doubles,
    shown,
)
from dpnb.accounting.filters import Filter
from dpnb.accounting.filters.rogers import MAX_DELTA, mean_loss
from dpnb.accounting.losses import GDP, RDP, Loss
from dpnb.accounting.odometers.base import INSIDE_EVERY_BUDGET, Odometer, OdometerKind, TimeUniformOdometer
from dpnb.errors import ConversionError, InvalidValueError

_LOG_ROOT_3 = math.log(3) / 2
# What `mean_loss` returns where no double is large enough.
_NO_MEAN = sys.float_info.max


@dataclass(frozen=True, init=False, repr=False)
class RenyiOdometer(TimeUniformOdometer):
    """With confidence 1 - delta, the realised loss never exceeds sum rho(order) + log(1/delta)/(order - 1).

    Mironov 2017, Proposition 3, for the running sum: exp((order - 1) (L - sum rho)) is a non-negative supermartingale,
    so by Ville's inequality the bound holds at all times at once.  That is for one order; to use the smallest bound of
    several orders, fix them beforehand and split delta among them.

    Parameters
    ----------
    order : Number
        Above 1.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.

    Attributes
    ----------
    rho : Fraction
        The sum of the losses at the order.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RenyiOdometer
    >>> round(RenyiOdometer(order=10, delta=1e-6).step(GDP(0.5)).bound, 4)
    2.7851
    """

    order: Fraction
    rho: Fraction

    def __init__(self, order: Number, delta: Number) -> None:
        number = order_in_doubles(order)
        self._start(failure_probability(delta))
        self._set(order=number, rho=Fraction(0))

    def step(self, loss: Loss) -> RenyiOdometer:
        return self._changed(rho=self.rho + renyi_loss(loss, self.order))

    def _boundary(self) -> float:
        if not self.rho:
            return 0.0
        return (binary_up(self.rho) + log_inverse(self.delta) / binary_down(self.order - 1)) * MARGIN


def renyi_loss(loss: Loss, order: Fraction) -> Fraction:
    """The Renyi loss at one order; raises `ConversionError` if no theorem bounds it, or the loss has a delta."""
    same = isinstance(loss, RDP) and loss.orders == (order,)
    counted = loss if same else convert(loss, RDP, orders=[order])
    if counted.delta:
        raise ConversionError(
            f"loss: this odometer counts Renyi divergences, which a loss with a delta does not have, got {loss!r}; use "
            "RDPFilter with a delta, or a time-uniform odometer with slack_delta"
        )
    return counted.parts[0]


@dataclass(frozen=True, init=False, repr=False)
class BasicOdometer(TimeUniformOdometer):
    """With confidence 1 - delta, the realised loss never exceeds the sum of epsilon.

    Rogers et al. 2016, Theorem 3.3.  The bound is certain if no loss has a delta, and infinite once the losses' deltas
    add up to more than delta.  PointwiseDP losses need no correction: each is within its epsilon except with
    probability delta.

    Parameters
    ----------
    delta : Number
        In [0, 1): the bound on the sum of the losses' deltas.

    Attributes
    ----------
    epsilon : Fraction
        The sum of the losses' epsilons.

    Raises
    ------
    InvalidValueError
        delta is outside [0, 1).

    Examples
    --------
    >>> from dpnb.accounting import ApproxDP, BasicOdometer
    >>> BasicOdometer(delta=1e-6).step(ApproxDP(0.4, 1e-7)).bound
    0.4
    """

    epsilon: Fraction

    def __init__(self, delta: Number) -> None:
        self._start(checked_delta(delta))
        self._set(epsilon=Fraction(0))

    @property
    def slack(self) -> Fraction:
        """Bound on the sum of the losses' deltas: delta."""
        return self.delta

    @property
    def bound(self) -> float:
        """The sum of epsilon, in nats, rounded up."""
        return self._boundary() if self.deltas <= self.delta else float("inf")

    def step(self, loss: Loss) -> BasicOdometer:
        epsilon, delta = own_epsilon_delta(loss)
        return self._with_deltas(loss, delta, epsilon=self.epsilon + epsilon)

    def _boundary(self) -> float:
        return decimal_up(self.epsilon)


@dataclass(frozen=True, init=False, repr=False)
class SpentAccumulator(Odometer):
    """Everything so far is within every budget of the filter's kind that was fixed beforehand and is at least `spent`.

    A filter with such a budget would have admitted all losses so far; the statement is its theorem, also for
    interactive mechanisms wherever it holds for them (Haney et al. 2023; for which filters, see
    :ref:`proof-which-filters-allow-concurrent-mechanisms`).  Unlike the other accumulators it has every component of
    the filter's loss, including a delta, and counts parts of partitions as the filter does.

    What a `GDPFilter` charges for a pure-DP loss is valid only for the budget that was left at that moment, and may be
    too little for others, so its sum then allows no such statement.  A charge from `launch_charge` that was given to
    `step` as GDP looks like the loss of Gaussian noise: a sum with such charges must not be read here either.

    Parameters
    ----------
    filter : filter
        The filter in its current state.

    Attributes
    ----------
    spent : Loss
        The sum of the losses that the filter has admitted.

    Raises
    ------
    ConversionError
        The charges of the filter depend on its budget: use `GDPAccumulator`, or `from_loss`.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter, SpentAccumulator
    >>> SpentAccumulator(GDPFilter(mu=1).step(GDP(0.5))).bound
    0.5
    """

    measure: ClassVar[str] = "spent"
    spent: Loss

    def __init__(self, filter: Filter) -> None:
        if not filter.sums_up_for_every_budget:
            raise ConversionError(
                "filter: its charges for pure losses are valid for its own budget only; got "
                f"{filter!r}; use GDPAccumulator, which counts each loss for every budget"
            )
        self._set(spent=filter.spent)

    @classmethod
    def from_loss(cls, spent: Loss) -> Self:
        """The accumulator of a sum of losses, each of which was counted whatever else was left of a budget.

        Parameters
        ----------
        spent : Loss
            The sum.

        Examples
        --------
        >>> from dpnb.accounting import GDP, SpentAccumulator
        >>> SpentAccumulator.from_loss(GDP(0.5)).bound
        0.5
        """
        new = object.__new__(cls)
        new._set(spent=spent)
        return new

    @property
    def kind(self) -> OdometerKind:
        return "accumulator"

    @property
    def bound(self) -> float:
        """The first component of `spent` (mu for GDP), rounded up."""
        return self.spent.mu if isinstance(self.spent, GDP) else decimal_up(self.spent.parts[0])

    @property
    def words(self) -> str:
        """`spent` in few digits, rounded up, for example ``mu 0.1002``; for RDP every order in full."""
        if isinstance(self.spent, RDP):
            return self.spent.format(up=True)
        name = "mu" if isinstance(self.spent, GDP) else self.spent.names[0]
        delta = f" and delta {display_up(decimal_up(self.spent.delta))}" if self.spent.delta else ""
        return f"{name} {display_up(self.bound)}{delta}"

    def step(self, loss: Loss) -> NoReturn:
        """Not supported: step the filter, and make a new accumulator from it.

        Parameters
        ----------
        loss : Loss
            Not used.

        Raises
        ------
        ConversionError
            Always.
        """
        raise ConversionError("accumulator: it shows the spending of a filter; call step() of the filter instead")

    def statement(self) -> str:
        if not self.spent:
            return INSIDE_EVERY_BUDGET
        kind = type(self.spent).__name__
        return (
            f"Everything so far is inside every budget of {kind} that was fixed beforehand and is at least "
            f"{self.words}."
        )


@dataclass(frozen=True, init=False, repr=False)
class RogersOdometer(TimeUniformOdometer):
    """With confidence 1 - delta, the realised loss never exceeds the curve of Rogers et al. 2016, Theorem 6.2.

    With S the sum of epsilon_i^2, M that of epsilon_i (e^epsilon_i - 1)/2 and
    D = 4 log2(n)/delta the bound is

    ===================  ==================================================================
    S in [1/n^2, 1]      M + 2 sqrt(S (1 + log sqrt 3) log D)
    otherwise            M + sqrt(2 (1/n^2 + S)(1 + log(1 + n^2 S)/2) log D)
    ===================  ==================================================================

    and infinite once the losses' deltas add up to more than delta/2.  The deltas of PointwiseDP losses are added to the
    bound, as for all odometers.  (For n below 8 the printed curve steps down where S passes 1; it is used as printed.)

    Parameters
    ----------
    n : int
        From 2 to 10^150; a *public* number, such as a public bound on the number of rows.
    delta : Number
        In [1e-300, 1/e): the probability that the statement is ever wrong.

    Attributes
    ----------
    squares : Fraction
        S.
    means : Fraction
        M, rounded up term by term.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Notes
    -----
    The paper's proof takes ceil(2 log2 n) events at level delta/(4 log2 n) each, which is slightly more than delta/2
    unless 2 log2 n is whole.  The curve holds nevertheless.  Take one of the at most 2 log2 n + 1 intervals
    [b, 2b] that cover [1/n^2, 1].  The line of level l' that touches sqrt(2 l' S) at sqrt(2) b is, at both ends and so
    between them, at most (2^(1/4) + 2^(-1/4))/2 < 1.0151 times that; so with l' = 2 (1 + log sqrt 3) log D/1.0151^2,
    which is above 3 log D, it lies below the printed curve and fails with probability at most D^-3.  The other branch
    lies above the mixture curve with gamma = 1/n^2 and level log D, because log D > 1, and fails with probability at
    most 1/D <= delta/4.  Together that is at most 3 log2(n) D^-3 + 1/D < delta/2; the losses' deltas have the rest.

    Examples
    --------
    >>> from dpnb.accounting import PureDP, RogersOdometer
    >>> round(RogersOdometer(n=1000, delta=1e-6).step(PureDP(0.1)).bound, 4)
    1.0467
    """

    n: int
    squares: Fraction
    means: Fraction

    def __init__(self, n: int, delta: Number) -> None:
        if type(n) is not int or not 2 <= n <= 10**150:
            raise InvalidValueError(
                f"n must be a whole number from 2 to 10**150, got {shown(n)}; give a public bound on the number of rows"
            )
        if exact(delta, name="delta") > MAX_DELTA:
            raise InvalidValueError(f"delta must be below 1/e, got {shown(delta)}; give for example 1e-6")
        self._start(failure_probability(delta))
        self._set(n=n, squares=Fraction(0), means=Fraction(0))

    @property
    def slack(self) -> Fraction:
        """Bound on the sum of the losses' deltas: half of delta."""
        return self.delta / 2

    def step(self, loss: Loss, times: int = 1) -> RogersOdometer:
        """The odometer after `loss`, repeated `times` times.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        times : int, default 1
            Number of repetitions.

        Raises
        ------
        ConversionError
            `loss` has no epsilon: it is a GDP, ZCDP or RDP.
        """
        epsilon, delta = own_epsilon_delta(loss)
        if not epsilon:
            return self._with_deltas(loss, times * delta)
        epsilon, times = epsilon / loss.count, times * loss.count
        squares = self.squares + times * epsilon * epsilon
        means = self.means + times * Fraction(mean_loss(epsilon))
        return self._with_deltas(loss, times * delta, squares=squares, means=means)

    def after_repeated(self, loss: Loss, count: int) -> RogersOdometer:
        return self.step(loss, count)

    def _boundary(self) -> float:
        if not self.squares:
            return 0.0
        if self.means >= _NO_MEAN:
            return math.inf
        log_d = math.log(4 * math.log2(self.n)) + log_inverse(self.delta)
        s = binary_up(self.squares)
        if Fraction(1, self.n**2) <= self.squares <= 1:
            deviation = 2 * math.sqrt(s) * math.sqrt((1 + _LOG_ROOT_3) * log_d)
        else:
            g = binary_up(Fraction(1, self.n**2))
            deviation = math.sqrt(g + s) * math.sqrt(2 * (1 + math.log1p(s / g) / 2) * log_d)
        return (binary_up(self.means) + deviation) * MARGIN
