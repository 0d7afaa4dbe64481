"""One linear query, measured again and again: each look pays only for what it adds.

Fresh noise each time on the same exact sums gives y_j = S + N(0, s_j^2 I).  The likelihood of (y_1, ..., y_k) depends
on S only through the inverse-variance mean, whose variance is 1/I with I = sum 1/s_j^2.  So all looks together are
exactly as private as one look with that variance: mu^2 = C^2 I = sum mu_j^2, and going from mu_a to mu_b costs
mu_b^2 - mu_a^2, also when the s_j were chosen from earlier answers (Smith and Thakurta 2022, Theorem 1).

The analyst decides from the answers whether to look again, and a fixed-design interval is then wrong (it can miss nine
times in ten).  So the error alpha is split: the first look has the fixed-design interval at 0.8 alpha, and from the
second look on a normal-mixture confidence sequence at 0.2 alpha holds for all looks at once (Howard et al. 2021;
proof: E exp(t S_n - t^2 I_n / 2) = 1 for S_n = sum (y_j - q)/s_j^2, mix t over N(0, 1/tau), Ville).  Together they miss
with probability at most alpha.  tau is fixed by the first look's scale, before anything is seen.

As an interactive mechanism: charged step by step through the session's filter, nothing reserved, state = its released
looks, which are in the ledger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.measurement import Measurement

FIRST_LOOK_SHARE = Fraction(4, 5)
"""Share of the error that the first look's interval has; the rest is for all later looks."""

TUNED_FOR = 4.0
"""The confidence sequence is tightest at this multiple of the first look's information."""


@dataclass(frozen=True)
class Look:
    """One released measurement and what it cost."""

    loss: GDP
    measurement: Measurement


@dataclass(frozen=True)
class Refinement:
    """What is known of one linear query.

    Parameters
    ----------
    looks : tuple of Look
        In the order in which they were taken.
    tau : float, optional
        Of the confidence sequence, as stored with the first look; None before it.
    """

    looks: tuple[Look, ...] = ()
    tau: float | None = None

    @property
    def known(self) -> GDP:
        """Loss of all looks together."""
        return sum((look.loss for look in self.looks), GDP(0))

    def missing(self, target: GDP) -> GDP:
        """What a look must cost so that the query is known at least as well as by one look at `target`."""
        return GDP.from_squared(max(target.mu_squared - self.known.mu_squared, Fraction(0)))

    def combined(self) -> tuple[NDArray[np.float64], float]:
        """Inverse-variance mean of the looks, shape (cells,), and its noise scale, in grid units."""
        return combine(np.stack([look.measurement.to_floats() for look in self.looks]), self.sigmas)

    @property
    def sigmas(self) -> list[float]:
        """Noise scales of the looks, in grid units."""
        return [look.measurement.sigma for look in self.looks]

    def radius(self, alpha: Fraction, further: float | None = None) -> float:
        """Half-width of the interval of one cell, in grid units, missed with probability at most `alpha` overall.

        Parameters
        ----------
        alpha : Fraction
        further : float, optional
            Scale of one more look that is about to be taken.
        """
        sigmas = [*self.sigmas, *([] if further is None else [further])]
        if len(sigmas) == 1 or self.tau is None:
            return fixed_radius(sigmas, alpha=FIRST_LOOK_SHARE * alpha)
        return confidence_sequence_radius(sigmas, tau=self.tau, alpha=(1 - FIRST_LOOK_SHARE) * alpha)

    def sigma_within(self, radius: float, alpha: Fraction) -> float:
        """The combined scale, after one more look, at which the half-width is at most `radius`.

        The first look's half-width is proportional to its scale.  A confidence sequence's depends on the looks through
        their combined scale alone and grows with it, so a bisection finds the scale.
        """
        if self.tau is None:
            return radius / fixed_radius([1.0], alpha=FIRST_LOOK_SHARE * alpha)
        tau = self.tau

        def reaches(sigma: float) -> bool:
            return confidence_sequence_radius([sigma], tau=tau, alpha=(1 - FIRST_LOOK_SHARE) * alpha) <= radius

        low = high = self.combined()[1]
        while not reaches(low):
            high, low = low, low / 2
        while high / low > 1 + 1e-9:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if reaches(middle) else (low, middle)
        return low


def first_tau(sigma: float, alpha: Fraction) -> float:
    """The parameter to store with a first look of scale `sigma`: public, since the scale is."""
    return tuned_tau(TUNED_FOR / sigma**2, alpha=(1 - FIRST_LOOK_SHARE) * alpha)
