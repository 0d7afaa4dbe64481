"""The odometer of Rogers et al. 2016."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.convert import own_epsilon_delta
from dpnb.accounting.doubles import MARGIN, failure_probability, log_inverse
from dpnb.accounting.exact import Number, binary_up, exact, shown
from dpnb.accounting.filters.rogers_bound import MAX_DELTA, mean_loss
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers.time_uniform import TimeUniformOdometer
from dpnb.errors import InvalidValueError

_LOG_ROOT_3 = math.log(3) / 2
# What `mean_loss` returns where no double is large enough.
_NO_MEAN = sys.float_info.max


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
