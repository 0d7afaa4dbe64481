"""Time-uniform odometers whose bound is a curve of V.

Why a curve of V is a bound at all moments is in :mod:`dpnb.accounting.odometers`.  The reflection odometer has another
proof: it is about the noisy values of Gaussian releases, up to a V that was fixed beforehand.

Claim.  Let every release add normal noise, let mu_n of release n be known before it, and let V = mu_1^2 + mu_2^2 + ...
never exceed the horizon T, which is fixed beforehand.  Then with a = sqrt(T) Q^-1(delta/2), Q(x) = P(N(0, 1) > x), the
probability that the realised loss of the noisy values ever exceeds a + V/2 is at most delta.

Proof.  Fix two neighbours.  Given the past, their answers to release n differ by d_n <= mu_n in units of the noise, and
by rotation the loss of its noisy values is d_n^2/2 + d_n Z_n with Z_n standard normal.  As d_n is known before Z_n, the
sums of d_n Z_n are a Brownian motion B read at the times W = d_1^2 + d_2^2 + ..., none of which exceeds V.  So the loss
is B(W) + W/2 <= B(W) + V/2, and it exceeds a + V/2 only if B exceeds a at some time up to T.  By the reflection
principle the probability of that is 2 Q(a/sqrt(T)) = delta.  ∎

This is exact for one path of normal noise, where the curves for sums of other losses must have room: at the end of a
budget of (1, 1e-6), with T = mu0^2, it is 1.186, the line 1.272 and the mixture 1.339.  Early it is far above these.

It is about the noisy values themselves, and it is false for what is computed from them.  One Gaussian release at mu0 of
which only "above t" or "below t" is shown, with t at the bound's edge, has a realised loss above 1.186 with probability
1.31e-6, since the loss of an event is the log of a mean ratio, to which the large ratios beyond the edge contribute.
So its statement is about a view that contains every noisy value before it is rounded, and of which the answers are a
function, as that of a loss with a delta is about a view with the hidden coins.  Randomised response and discovery have
no such values: their losses are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dpnb.accounting.exact import (
    MARGIN,
    Number,
    binary_down,
    binary_up,
    failure_probability,
    log_inverse,
    positive,
    shown,
)
from dpnb.accounting.intervals import fixed_radius, log_half_of_one_plus_exp, optimal_ratio, optimal_ratio_onesided
from dpnb.accounting.losses import Loss
from dpnb.accounting.losses.gaussian import is_gaussian
from dpnb.accounting.odometers.base import IntrinsicTimeOdometer
from dpnb.errors import ConversionError, InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class FilterOdometer(IntrinsicTimeOdometer):
    """With confidence 1 - delta, the realised loss never exceeds a line in V that touches the pointwise curve at y.

    Whitehouse et al. 2023, Theorem 3, first bound.  With l = log(1/delta) the bound is::

        sqrt(2 l y)/2 + sqrt(2 l/y) V/2 + V/2,

    which is epsilon at V = y.  So y solves sqrt(2 l y) + y/2 = epsilon, that is
    y = (2 epsilon/(sqrt(2 l + 2 epsilon) + sqrt(2 l)))^2 (the paper's own y has epsilon where 2 epsilon belongs: a
    valid line, but one that meets the curve at half of epsilon).

    Parameters
    ----------
    epsilon : Number
        From 1e-150 to 1e150, in nats: the bound at which this line is the lowest of all.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.
    slack_delta : Number, default 0
        At least 0: the part of delta for losses that have a delta; once their sum exceeds it, the bound is infinite.

    Attributes
    ----------
    y : float
        The V at which the line touches the pointwise curve.
    v : Fraction
        The sum V of mu^2 for GDP losses, 2 rho for zCDP losses and epsilon^2 for DP losses.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> odometer = FilterOdometer(1, 1e-6)
    >>> odometer.bound, round(odometer.bound_at(Fraction(odometer.y)), 12)
    (0.0, 1.0)
    """

    y: float

    def __init__(self, epsilon: Number, delta: Number, *, slack_delta: Number = 0.0) -> None:
        target = positive(epsilon, name="epsilon")
        if not Fraction(1, 10**150) <= target <= 10**150:
            raise InvalidValueError(f"epsilon must be between 1e-150 and 1e150, got {shown(epsilon)}; rescale it")
        twice_log = 2 * log_inverse(failure_probability(delta))
        root = 2 * float(target) / (math.sqrt(twice_log + 2 * float(target)) + math.sqrt(twice_log))
        self._open(delta, slack_delta)
        self._set(y=root * root)

    @classmethod
    def tuned(cls, v: Number, delta: Number, *, slack_delta: Number = 0.0) -> FilterOdometer:
        """The odometer whose bound at V = `v` is the smallest of all lines.

        Parameters
        ----------
        v : Number
            Greater than 0, for example the budget's mu0 squared; the double above it is used.
        delta : Number
            As for the class.
        slack_delta : Number, default 0
            As for the class.

        Raises
        ------
        InvalidValueError
            As for the class.

        Examples
        --------
        >>> from dpnb.accounting import GDP, FilterOdometer
        >>> round(FilterOdometer.tuned(v=1, delta=1e-6).step(GDP(mu=1)).bound, 3)
        5.757
        """
        y = binary_up(positive(v, name="v"))
        if y == math.inf:
            raise InvalidValueError(f"v must be at most 1e308, got {shown(v)}; choose it near mu0 squared")
        new = object.__new__(cls)
        new._open(delta, slack_delta)
        new._set(y=y)
        return new

    def _curve(self, v: Fraction) -> float:
        v_up = binary_up(v)
        root, root_y = math.sqrt(2 * log_inverse(self.delta)), math.sqrt(self.y)
        return (root * root_y / 2 + root / root_y * (v_up / 2) + v_up / 2) * MARGIN


Sided = Literal["one", "two"]


@dataclass(frozen=True, init=False, repr=False)
class MixtureOdometer(IntrinsicTimeOdometer):
    """With confidence 1 - delta, the realised loss never exceeds the mixture boundary in V.

    With r = (V + gamma)/gamma the bound is

    ======  ==================================================================
    "one"   V/2 + sqrt(2 (V + gamma) log((1 + r^(1/2)/delta)/2))
    "two"   V/2 + sqrt(2 (V + gamma) log(r^(1/2)/delta))
    ======  ==================================================================

    "two" is the curve of Whitehouse et al. 2023, Theorem 3.  It comes from a weight on both signs of lambda; losses
    need only one sign, and P(N(0, 1) > x) <= exp(-x^2/2)/2 in the half-normal average gives "one": valid, and smaller.

    Parameters
    ----------
    gamma : Number
        Greater than 0, in the scale of V; the double above it is used.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.
    sided : {"one", "two"}, default "one"
        Which of the two bounds above to use.
    slack_delta : Number, default 0
        At least 0: the part of delta for losses that have a delta; once their sum exceeds it, the bound is infinite.

    Attributes
    ----------
    v : Fraction
        The sum V of mu^2 for GDP losses, 2 rho for zCDP losses and epsilon^2 for DP losses.

    Raises
    ------
    InvalidValueError
        A number is out of range, or `sided` is another value.

    Examples
    --------
    >>> from dpnb.accounting.losses import GDP
    >>> odometer = MixtureOdometer.tuned(1, delta=1e-6)
    >>> odometer.bound, round(odometer.step(GDP(0.1)).bound, 3)
    (0.0, 1.081)
    """

    gamma: float
    sided: Sided

    def __init__(self, gamma: Number, delta: Number, sided: Sided = "one", *, slack_delta: Number = 0.0) -> None:
        self._open(delta, slack_delta)
        if sided not in ("one", "two"):
            raise InvalidValueError(f"sided must be 'one' or 'two', got {shown(sided)}; 'one' is the smaller bound")
        double = binary_up(positive(gamma, name="gamma"))
        if double == math.inf:
            raise InvalidValueError(f"gamma must be at most 1e308, got {shown(gamma)}; choose it near mu0 squared / 30")
        self._set(gamma=double, sided=sided)

    @classmethod
    def tuned(cls, v: Number, delta: Number, sided: Sided = "one", *, slack_delta: Number = 0.0) -> MixtureOdometer:
        """The odometer whose bound at V = `v` is the smallest over all gamma.

        Parameters
        ----------
        v : Number
            Greater than 0; for example the budget's mu0 squared.
        delta : Number
            As for the class.
        sided : {"one", "two"}, default "one"
            As for the class.
        slack_delta : Number, default 0
            As for the class.

        Raises
        ------
        InvalidValueError
            As for the class.

        Examples
        --------
        >>> from dpnb.accounting import GDP, MixtureOdometer
        >>> odometer = MixtureOdometer.tuned(v=1, delta=1e-6)
        >>> round(odometer.step(GDP(mu=1)).bound, 3)
        6.038
        """
        target = positive(v, name="v")
        best = optimal_ratio if sided == "two" else optimal_ratio_onesided
        ratio = best(log_inverse(failure_probability(delta)))
        return cls(target / Fraction(ratio), delta, sided, slack_delta=slack_delta)

    def _curve(self, v: Fraction) -> float:
        return _boundary_at(v, self.gamma, self.delta, self.sided)


@lru_cache(maxsize=1024)  # the reading of a state is shown in several ways, and the last points of a plot again
def _boundary_at(v: Fraction, gamma: float, delta: Fraction, sided: Sided) -> float:
    """The boundary plus V/2 at V > 0, rounded up."""
    v_up = binary_up(v)
    ratio = v_up / gamma
    log_r = math.log1p(ratio) if ratio < math.inf else math.log(v_up) - math.log(gamma)
    log_q = log_inverse(delta) + log_r / 2
    exponent = log_half_of_one_plus_exp(log_q) if sided == "one" else log_q
    deviation = math.sqrt(v_up + gamma) * math.sqrt(2 * exponent)
    return (deviation + v_up / 2) * MARGIN


Below = Literal["value at v0", "infinity"]


@dataclass(frozen=True, init=False, repr=False)
class StitchedOdometer(IntrinsicTimeOdometer):
    """With confidence 1 - delta, the realised loss never exceeds a curve that grows like sqrt(V log log V).

    Whitehouse et al. 2023, Theorem 3, third bound.  With V' = max(V, v0) the bound is::

        1.7 sqrt(V' (log log(2 V'/v0) + 0.72 log(5.2/delta))) + V/2.

    The paper has infinity below v0; Howard et al. 2021, Theorem 1, from which it comes, covers max(V, v0).

    Parameters
    ----------
    v0 : Number
        From 1e-300 to 1e300: where the curve starts.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.
    slack_delta : Number, default 0
        At least 0: the part of delta for losses that have a delta; once their sum exceeds it, the bound is infinite.
    below : {"value at v0", "infinity"}, default "value at v0"
        The bound while 0 < V < v0; "infinity" as printed in the paper.

    Attributes
    ----------
    v : Fraction
        The sum V of mu^2 for GDP losses, 2 rho for zCDP losses and epsilon^2 for DP losses.

    Raises
    ------
    InvalidValueError
        A number is out of range, or `below` is another value.

    Examples
    --------
    >>> from dpnb.accounting import GDP, StitchedOdometer
    >>> round(StitchedOdometer(v0=0.01, delta=1e-6).step(GDP(0.5)).bound, 4)
    3.13
    """

    v0: Fraction
    below: Below

    def __init__(self, v0: Number, delta: Number, *, slack_delta: Number = 0.0, below: Below = "value at v0") -> None:
        start = positive(v0, name="v0")
        if not Fraction(1, 10**300) <= start <= 10**300:
            raise InvalidValueError(
                f"v0 must be between 1e-300 and 1e300, got {shown(v0)}; give the least V of interest"
            )
        if below not in ("value at v0", "infinity"):
            raise InvalidValueError(
                f"below must be 'value at v0' or 'infinity', got {shown(below)}; 'value at v0' is the smaller bound"
            )
        self._open(delta, slack_delta)
        self._set(v0=start, below=below)

    def _curve(self, v: Fraction) -> float:
        if v < self.v0 and self.below == "infinity":
            return math.inf
        at, start = binary_up(max(v, self.v0)), binary_down(self.v0)
        ratio = at / start
        log_ratio = math.log(ratio) if ratio < math.inf else math.log(at) - math.log(start)
        # At V' = v0 the first term is -0.37 and the second at least 1.18: nothing cancels.
        inside = math.log(math.log(2) + log_ratio) + 0.72 * (math.log(5.2) + log_inverse(self.delta))
        return (1.7 * math.sqrt(at) * math.sqrt(inside) + binary_up(v) / 2) * MARGIN


@dataclass(frozen=True, init=False, repr=False)
class ReflectionOdometer(IntrinsicTimeOdometer):
    """With confidence 1 - delta, the loss of the noisy values never exceeds V/2 + a while V is at most a horizon T.

    The distance a = sqrt(T) Q^-1(delta/2) is that which a Brownian motion exceeds up to the time T with probability
    delta (the reflection principle); beyond T the bound is infinite.  Lower at T than every other odometer, and far
    above them early.  Only for Gaussian releases without a delta, and about their noisy values: it is false for what is
    computed from them, such as whether a value is above a threshold.  See :ref:`proof-the-reflection-odometer`.

    Parameters
    ----------
    horizon : Number
        Greater than 0: what V never exceeds, for example mu0 squared of a budget in GDP.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.

    Attributes
    ----------
    v : Fraction
        The sum V of mu^2.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import GDP, ReflectionOdometer
    >>> odometer = ReflectionOdometer(horizon=1, delta=1e-6)
    >>> round(odometer.step(GDP(mu=1)).bound, 3), odometer.step(GDP(mu="1.1")).bound
    (5.392, inf)
    """

    horizon: Fraction
    _what = "the privacy loss of the noisy values, before they are rounded,"

    def __init__(self, horizon: Number, delta: Number) -> None:
        self._open(delta, 0)
        self._set(horizon=positive(horizon, name="horizon"))

    def step(self, loss: Loss) -> ReflectionOdometer:
        if not is_gaussian(loss) or loss.delta:
            raise ConversionError(
                f"loss: this odometer counts the noisy values of Gaussian releases, got {loss!r}; use FilterOdometer "
                "or MixtureOdometer, which count every kind of release"
            )
        return super().step(loss)

    def _curve(self, v: Fraction) -> float:
        if v > self.horizon:
            return math.inf
        return (fixed_radius([math.sqrt(binary_up(self.horizon))], alpha=self.delta) + binary_up(v) / 2) * MARGIN
