"""The mixture odometer: an average over all lambda with a half-normal weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dpnb.accounting.doubles import MARGIN, failure_probability, log_inverse
from dpnb.accounting.exact import Number, binary_up, positive, shown
from dpnb.accounting.mixture import log_half_of_one_plus_exp, optimal_ratio, optimal_ratio_onesided
from dpnb.accounting.odometers.time_uniform import IntrinsicTimeOdometer
from dpnb.errors import InvalidValueError

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
