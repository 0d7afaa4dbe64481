"""The stitched odometer: one line for each doubling of V."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpnb.accounting.doubles import MARGIN, log_inverse
from dpnb.accounting.exact import Number, binary_down, binary_up, positive, shown
from dpnb.accounting.odometers.time_uniform import IntrinsicTimeOdometer
from dpnb.errors import InvalidValueError

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
