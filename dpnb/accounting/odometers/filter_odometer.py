"""The odometer whose boundary is a line in V: one Renyi order for all times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.doubles import MARGIN, failure_probability, log_inverse
from dpnb.accounting.exact import Number, binary_up, positive, shown
from dpnb.accounting.odometers.time_uniform import IntrinsicTimeOdometer
from dpnb.errors import InvalidValueError


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
