"""The advanced filter of Rogers et al. 2016, whose bound is not a sum."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import epsilon_of_gdp
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import own_epsilon_delta
from dpnb.accounting.delta_split import split_loss
from dpnb.accounting.exact import (
    LEAST_FAILURE,
    MARGIN,
    Number,
    binary_down,
    decimal_down,
    decimal_up,
    display_down,
    display_up,
    exact,
    log_inverse,
    of_budget,
    positive,
    shown,
)
from dpnb.accounting.filters.base import Filter
from dpnb.accounting.filters.sum_filter import refusal
from dpnb.accounting.losses import ApproxDP, Loss
from dpnb.copying import safe_repr
from dpnb.errors import BudgetExceeded, InvalidValueError

_ZERO = Fraction(0)
# Every double is a whole multiple of the smallest one, so doubles add up exactly as integers.
_SMALLEST_BITS = 1074
_ONE = 1 << _SMALLEST_BITS
MAX_DELTA = Fraction(36787944, 10**8)
"""A little below 1/e, where the theorem's range of delta ends."""


@dataclass(frozen=True, slots=True)
class RogersConstants:
    """The bound that was fixed beforehand, with its constants."""

    epsilon: Fraction
    delta: Fraction
    deltas: Fraction  # bound on the sum of the losses' deltas
    k_limit: float  # the double below epsilon: the bound on K
    constant: float  # C; any positive one that is fixed beforehand is valid
    log: float  # log(2/delta), or log(1/delta) for losses without deltas

    def k(self, squares: Fraction, means: int) -> float:
        """K, rounded up; `means` in units of the smallest double."""
        s = _float(squares)
        deviation = math.sqrt(2 * (s + self.constant) * (1 + math.log1p(s / self.constant) / 2) * self.log)
        return (_ratio(means, _ONE) + deviation) * MARGIN

    def fits(self, squares: Fraction, means: int, deltas: Fraction) -> bool:
        """Whether these sums are within the bound."""
        return (not deltas or deltas <= self.deltas) and self.k(squares, means) <= self.k_limit


def _terms_of(epsilon: Number, delta: Number, *, pure: bool) -> RogersConstants:
    """The constants of a bound that is fixed beforehand."""
    e, d = positive(epsilon, name="epsilon"), checked_delta(delta)
    if not LEAST_FAILURE <= d <= MAX_DELTA:
        raise InvalidValueError(f"delta must be between 1e-300 and 1/e, got {shown(delta)}; give for example 1e-6")
    if not Fraction(1, 10**150) <= e <= 10**150:
        raise InvalidValueError(f"epsilon must be between 1e-150 and 1e150, got {shown(epsilon)}; rescale it")
    log = log_inverse(d)
    return RogersConstants(
        e,
        d,
        _ZERO if pure else d / 2,
        binary_down(e),
        float(e) ** 2 / (28.04 * log),
        log if pure else log + math.log(2),
    )


def mean_loss(epsilon: Fraction) -> float:
    """The mean of an epsilon-DP loss is at most epsilon (e^epsilon - 1)/2; a double not below that.

    Infinite means, at an epsilon of several hundred, are the largest double, which no filter admits.
    """
    e = _float(epsilon)
    try:
        # The margin covers the rounding of normal doubles, the next double that of the smallest ones.
        mean = math.nextafter(e * math.expm1(e) / 2 * MARGIN, math.inf)
    except OverflowError:
        mean = math.inf
    return min(mean, sys.float_info.max)


def _in_smallest(x: float) -> int:
    """A double as a multiple of the smallest one."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (_SMALLEST_BITS + 1 - denominator.bit_length())


def _float(number: Fraction) -> float:
    return _ratio(number.numerator, number.denominator)


def _ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf


@dataclass(frozen=True, init=False, repr=False)
class RogersFilter(Filter):
    """Admits (epsilon, delta)-DP losses while K <= epsilon and the sum of their deltas is at most half of delta.

    Rogers et al. 2016, Theorem 5.1.  With S the sum of epsilon_i^2 and M that of epsilon_i (e^epsilon_i - 1)/2::

        K = M + sqrt(2 (S + C) (1 + log(1 + S/C)/2) log(2/delta)),    C = epsilon^2/(28.04 log(1/delta)).

    All releases together are (epsilon, delta)-DP.  The constant C makes K(0) a quarter to a third of epsilon, a loss
    that the later filters do not have.  A GDP, ZCDP or RDP has no epsilon, and must be converted first.

    Parameters
    ----------
    epsilon : Number
        From 1e-150 to 1e150, in nats; a float means its shortest decimal.
    delta : Number
        In [1e-300, 1/e).
    pure : bool, default False
        For losses without deltas: log(1/delta) takes the place of log(2/delta), and no delta is admitted (the form that
        Feldman and Zrnic 2021 quote).

    Attributes
    ----------
    terms : RogersConstants
        The bound, fixed beforehand.
    squares : Fraction
        S.
    means : int
        M in units of 2^-1074, the smallest double; each term is rounded up to a double.
    deltas : Fraction
        The sum of the losses' deltas.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Notes
    -----
    K is computed in doubles and raised by a relative 2^-45, more than the rounding error: exact arithmetic would admit
    every loss that is admitted.

    Examples
    --------
    >>> from dpnb.accounting import PureDP, RogersFilter
    >>> filter_ = RogersFilter(epsilon=1, delta=1e-6)
    >>> filter_.admits(PureDP(0.05)), filter_.max_repetitions(PureDP(0.01))
    (True, 147)
    >>> 0 < filter_.budget_fraction(PureDP(0.1)) <= 1
    True
    """

    name = "rogers"
    label = "Rogers"
    theorem = (
        "Rogers et al. 2016, Theorem 5.1: K of each answer's own epsilon; a quarter of epsilon or more from the start"
    )
    interleaving_obstacle = None
    partition_obstacle = (
        "the filter of Rogers et al. has no rule for charging the largest part alone, since it bounds no sum; use "
        "another filter, or query the parts without a partition"
    )
    counted_filters = ("rogers", "basic", "gdp", "zcdp", "rdp", "approx-dp")
    terms: RogersConstants
    squares: Fraction
    means: int
    deltas: Fraction

    def __init__(self, epsilon: Number, delta: Number, *, pure: bool = False) -> None:
        self._set(terms=_terms_of(epsilon, delta, pure=bool(pure)), squares=_ZERO, means=0, deltas=_ZERO)

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget, of half of whose delta each answer has a part."""
        return cls(*cls._epsilon_delta(budget))

    @property
    def shared_delta(self) -> Fraction:
        """The delta that is divided among the answers: half of it."""
        return self.terms.deltas

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``K within 1``."""
        return f"K within {display_up(decimal_up(self.budget.epsilon))}"

    @property
    def spent_words(self) -> str:
        """K and its bound."""
        return of_budget("K", decimal_up(self.spent.epsilon), decimal_down(self.budget.epsilon))

    @property
    def budget(self) -> ApproxDP:
        """Bounds on K and on the sum of the losses' deltas."""
        return ApproxDP(self.terms.epsilon, self.terms.deltas)

    @property
    def spent(self) -> ApproxDP:
        """K, rounded up and not 0 before the first loss, and the sum of the losses' deltas."""
        return ApproxDP(Fraction(self.k), self.deltas)

    @property
    def k(self) -> float:
        """K, which must stay within epsilon, rounded up; not 0 before the first loss."""
        return self.terms.k(self.squares, self.means)

    @property
    def rule(self) -> str:
        return (
            f"K must stay within {display_down(decimal_down(self.terms.epsilon))}, and the sum of the losses' deltas "
            f"within {display_down(decimal_down(self.terms.deltas))}"
        )

    def to_filter_loss(self, loss: Loss) -> ApproxDP:
        return ApproxDP.of(*own_epsilon_delta(loss))

    def after_repeated(self, loss: Loss, count: int) -> RogersFilter:
        return self.step(loss, count)

    def loss_of_release(self, loss: Loss) -> Loss:
        """A Gaussian release as :func:`~dpnb.accounting.delta_split.equivalent_epsilon_delta`."""
        return split_loss(loss, self, self.shared_delta)

    def _split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> ApproxDP:
        """The loss of one of `n` equal releases; see :class:`~dpnb.accounting.delta_split.CountsEpsilons`."""
        return ApproxDP(epsilon_of_gdp(mu_squared, slack / n), slack / n)

    def _admits_split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> bool:
        """Whether K of `n` such losses, not necessarily a whole number, is within the bound."""
        epsilon = exact(epsilon_of_gdp(mu_squared, slack / n))
        means = math.ceil(n * _in_smallest(mean_loss(epsilon)))
        return self.terms.fits(n * epsilon**2, means, _ZERO)

    def _roughly_admits(self, n: float, epsilon: float) -> bool:
        """Whether `n` losses with this epsilon are within the bound, in doubles."""
        means = int(n * mean_loss(Fraction(epsilon)) * 2.0**52) << 1022
        return self.terms.k(Fraction(n) * Fraction(epsilon) ** 2, means) <= float(self.terms.epsilon)

    def admits(self, loss: Loss) -> bool:
        return self.terms.fits(*self._sums(loss))

    def step(self, loss: Loss, times: int = 1) -> RogersFilter:
        """The filter after `loss`, repeated `times` times.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        times : int, default 1
            Number of repetitions.

        Raises
        ------
        BudgetExceeded
            The budget does not cover all repetitions; this filter is unchanged.
        ConversionError
            `loss` has no epsilon: it is a GDP, ZCDP or RDP.

        Examples
        --------
        >>> from dpnb.accounting import PureDP, RogersFilter
        >>> RogersFilter(1, 1e-6).step(PureDP("0.1")).headroom < 1
        True
        """
        squares, means, deltas = self._sums(loss, times)
        if not self.terms.fits(squares, means, deltas):
            raise BudgetExceeded(self._refusal(ApproxDP.of(*own_epsilon_delta(loss))))
        return self._changed(squares=squares, means=means, deltas=deltas)

    @property
    def headroom(self) -> float:
        """1 - K/epsilon, or the share of delta left if smaller; 0 to 1, rounded down; below 1 before the first loss."""
        share = 1 - Fraction(self.k) / self.terms.epsilon
        if self.terms.deltas:
            share = min(share, 1 - self.deltas / self.terms.deltas)
        return decimal_down(max(share, _ZERO))

    def budget_fraction(self, loss: Loss) -> float:
        squares, means, deltas = self._sums(loss)
        after = self.terms.k(squares, means)
        if after == math.inf:
            return math.inf
        grown = Fraction(after) - Fraction(self.k) / exact(MARGIN) if means > self.means else _ZERO
        share = grown / self.terms.epsilon
        if self.terms.deltas:
            share = max(share, (deltas - self.deltas) / self.terms.deltas)
        return decimal_up(share) if self.terms.deltas or deltas == self.deltas else math.inf

    def affordable(self) -> ApproxDP:
        """The largest epsilon, a double, and the largest delta that `step` admits."""
        left = self.terms.deltas - self.deltas

        def fits(epsilon: float) -> bool:
            return self.terms.fits(*self._sums(ApproxDP(epsilon, left)))

        low, high = 0.0, decimal_up(self.terms.epsilon)  # K is above its last epsilon: the budget itself never fits
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if fits(middle) else (low, middle)
        return ApproxDP(low, left)

    def max_repetitions(self, loss: Loss) -> int | None:
        if not any(own_epsilon_delta(loss)):
            return None
        squares, means, deltas = self._sums(loss)
        square, mean, delta = squares - self.squares, means - self.means, deltas - self.deltas

        def fits(n: int) -> bool:
            return self.terms.fits(self.squares + n * square, self.means + n * mean, self.deltas + n * delta)

        high = 1
        while fits(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def guaranteed_epsilon(self, delta: Number) -> float:
        return decimal_up(self.terms.epsilon) if checked_delta(delta) >= self.terms.delta else math.inf

    @safe_repr
    def __repr__(self) -> str:
        epsilon, delta = decimal_up(self.terms.epsilon), decimal_up(self.terms.delta)
        return f"RogersFilter(epsilon={epsilon!r}, delta={delta!r}, spent={self.spent!r})"

    def _sums(self, loss: Loss, times: int = 1) -> tuple[Fraction, int, Fraction]:
        epsilon, delta = loss.parts if type(loss) is ApproxDP else own_epsilon_delta(loss)
        deltas = self.deltas + times * delta if delta else self.deltas
        if not epsilon:
            return self.squares, self.means, deltas
        if loss.count > 1:
            epsilon, times = epsilon / loss.count, times * loss.count
        squares = self.squares + times * epsilon * epsilon
        return squares, self.means + times * _in_smallest(mean_loss(epsilon)), deltas

    def _refusal(self, loss: ApproxDP) -> str:
        left = self.affordable()
        return refusal(
            rule=self.rule,
            loss=loss.format(up=True, digits=4),
            left=left.format(up=False, with_delta=True, digits=4),
            headroom=self.headroom,
            anything=left.epsilon > 0,
        )
