"""A continual counter: a running total that is released after every step, for one charge for all steps.

Its noise is that of the square-root factorisation; why this is private, also where the counts of a step depend on what
was released before, is in :mod:`dpnb.accounting.prefix_sums`.  All sums are integers and their noise is exactly rounded
(:mod:`dpnb.mechanisms.gaussian`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpnb.accounting.exact import Number, exact
from dpnb.accounting.losses import GaussianLoss
from dpnb.accounting.prefix_sums import (
    prefix_sum_scales,
    prefix_sum_weights,
    prefix_sums_norm_squared,
    square_root_coefficients,
)
from dpnb.errors import InvalidValueError
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.randomness import NoiseSource


class RunningTotal(NamedTuple):
    """A noisy total of the counts so far, and the standard deviation of its normal noise."""

    estimate: float
    scale: float


class ContinualCounter:
    """A running total, released after every step.

    Parameters
    ----------
    horizon : int
        T, from 1 to 4,096: the largest number of steps, fixed in advance.  All are charged, also those not used.
    loss : GDP
        The loss of all steps together, mu > 0.
    source : NoiseSource
        The randomness.
    max_change : Number, default 1
        C, > 0: the most by which one privacy unit changes the counts of all steps together, given what was released
        before.  1 if it is counted once, at whatever step.

    Raises
    ------
    InvalidValueError
        An argument out of range.

    Notes
    -----
    Feldman and Zrnic 2021, section 5, propose a continual counter for the number of units that are still active under
    individual accounting.  Count the units that leave: those that for the first time do not take part in full.  A unit
    leaves once, so `max_change` is 1; what it pays for the counter, loss.mu^2, must be reserved from its budget before
    the first step (claim and proof in :ref:`proof-cumulative-counts`).

    References
    ----------
    .. [1] Fichtenberger, Henzinger and Upadhyay 2023 (arXiv:2202.11205); Smith and Thakurta 2022, Theorem 1.

    Examples
    --------
    >>> from dpnb.accounting import GDP
    >>> from dpnb.mechanisms import ContinualCounter, SystemNoiseSource
    >>> counter = ContinualCounter(100, loss=GDP(1), source=SystemNoiseSource())
    >>> total = counter.add(1000)
    >>> abs(total.estimate - 1000) < 10 * total.scale, round(total.scale, 2)
    (True, 1.59)
    """

    def __init__(self, horizon: int, *, loss: GaussianLoss, source: NoiseSource, max_change: Number = 1) -> None:
        most = exact(max_change, name="max_change")
        if most <= 0:
            raise InvalidValueError(f"max_change: must be above 0; got {max_change!r}; give the most of one unit")
        self.horizon, self._source = horizon, source
        self.sigma = sigma_for(most**2 * prefix_sums_norm_squared(horizon), loss)
        """Standard deviation of the noise of each measured number, in steps of 2^-30."""
        self._counts: list[int] = []
        self._measured: list[float] = []

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self._counts)

    def add(self, count: int) -> RunningTotal:
        """The noisy total of all counts, including that of this step.

        Parameters
        ----------
        count : int
            The exact count of this step.

        Raises
        ------
        InvalidValueError
            All steps of the horizon are used, or the count is not an integer (the message does not show it).
        """
        if self.steps >= self.horizon:
            raise InvalidValueError(
                f"horizon: the counter was charged for {self.horizon:,} steps, and all are used; start another one"
            )
        if isinstance(count, bool) or not isinstance(count, int | np.integer):
            raise InvalidValueError(f"count: must be an integer; got {type(count).__name__}; count whole units")
        self._counts.append(int(count))
        coefficients = square_root_coefficients(self.horizon)[: self.steps]
        exactly = sum(a * x for a, x in zip(coefficients, reversed(self._counts), strict=True))
        noisy = measure([exactly], sigma=self.sigma, source=self._source)
        self._measured.append(float(noisy.to_floats()[0]))
        weights = prefix_sum_weights(self.horizon)[: self.steps]
        estimate = float(weights @ np.array(self._measured[::-1]))
        return RunningTotal(estimate, self.sigma * float(prefix_sum_scales(self.horizon)[self.steps - 1]))
