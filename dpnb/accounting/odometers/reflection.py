"""The odometer of the noisy values of Gaussian releases, up to a V that was fixed beforehand.

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

from dpnb.accounting.doubles import MARGIN
from dpnb.accounting.exact import Number, binary_up, positive
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import Loss
from dpnb.accounting.losses.gaussian import is_gaussian
from dpnb.accounting.odometers.time_uniform import IntrinsicTimeOdometer
from dpnb.errors import ConversionError


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
        """The odometer after a Gaussian release; see `Odometer.step`.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        ConversionError
            It is not the loss of normal noise, or has a delta.
        """
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
