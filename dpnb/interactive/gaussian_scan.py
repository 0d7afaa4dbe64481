"""Comparison of sums with thresholds by Gaussian noise, for a declared number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.exact import Number, failure_probability
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.copying import safe_repr
from dpnb.interactive.above_threshold import SingleUse, check_query, whole_count
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource


@dataclass(frozen=True, slots=True)
class GaussianComparison:
    """The answer to one query, with the released measurement of the sum that it is computed from."""

    above: bool
    measurement: Measurement

    @property
    def value(self) -> Fraction:
        """The noisy sum."""
        return _noisy_sum(self.measurement)


class GaussianAboveThreshold(SingleUse):
    """Compares a declared number of sums with thresholds, with Gaussian noise; charged as if all were released.

    Each query is measured with noise of scale sigma = C sqrt(n)/mu, which is (mu/sqrt(n))-GDP; n of them, each chosen
    from earlier answers, are mu-GDP together (Smith and Thakurta 2022, Theorem 1).  The answer is read from the
    measurement, so it and the noisy sum cost nothing more, also below the threshold, and there is no hidden noise.

    Bounds for above-threshold itself with Gaussian noise are known: in Renyi terms by Zhu and Wang [1]_, and ex post,
    as a pure loss that depends on the outcome, for queries whose values are bounded, by Lebensold, Precup and Balle
    [2]_, with a filter for such losses.  Neither is used here.  An ex-post loss is known only with the answer, and
    would have to be charged after it; the session's filters admit a loss that is fixed before rows are read, and none
    of them counts ex-post losses.  Hence n is declared.  If n is large, use `LaplaceAboveThreshold`, whose cost does
    not grow with n.

    `loss` (mu > 0) is the cost of all answers together, which the caller charges before launching; n is `max_queries`,
    1 to 10^9.

    References
    ----------
    .. [1] Zhu, Wang 2020, *Improving Sparse Vector Technique with Renyi Differential Privacy*, NeurIPS 33.
    .. [2] Lebensold, Precup, Balle 2024, *On the Privacy of Selection Mechanisms with Gaussian Noise*,
       arXiv:2402.06137v2.
    """

    __slots__ = ("_loss",)

    def __init__(self, loss: GDP, max_queries: int, *, source: NoiseSource) -> None:
        super().__init__(whole_count(max_queries, "max_queries"), source)
        sigma_for(self._most, loss)  # refuses a loss that is too small for any measurement
        self._loss = loss

    @property
    def loss(self) -> GDP:
        """The cost of all answers together."""
        return self._loss

    @property
    def max_queries(self) -> int:
        """The declared number of queries."""
        return self._most

    def ask(self, total: int, *, sensitivity: int, threshold: Fraction) -> GaussianComparison:
        """Measure a sum and compare the noisy sum with the threshold; for the arguments see `on_lattice`.

        `MechanismClosed` if the mechanism is exhausted, or was launched in another process; an `InvalidValueError` also
        if the noise scale would exceed the range of doubles.
        """
        check_query(total, sensitivity, threshold)
        sigma = sigma_for(sensitivity**2 * self._most, self._loss)
        self._check_process()
        with self._lock:
            self._check_remaining(f"all {self._most} queries were answered")
            self._used += 1
            measurement = measure([total], sigma=sigma, source=self._source)
        return GaussianComparison(_noisy_sum(measurement) >= threshold, measurement)

    @safe_repr
    def __repr__(self) -> str:
        return f"GaussianAboveThreshold(loss={self._loss!r}, max_queries={self._most}, n_used={self.n_used})"


def gaussian_margin(loss: GDP, max_queries: int, beta: Number) -> float:
    """The |S - T|/C at which all answers are correct at once with probability at least 1 - beta.

    `beta` is in [1e-300, 1).
    """
    each = 2 * failure_probability(beta, name="beta", example="0.05") / whole_count(max_queries, "max_queries")
    sigma = sigma_for(max_queries, loss)
    # Rounding to the output grid changes a noisy sum by at most 2^-21 sigma.
    return (fixed_radius([sigma], alpha=each) if each < 1 else 0.0) + sigma * 2.0**-20


def _noisy_sum(measurement: Measurement) -> Fraction:
    return measurement.values[0] * Fraction(2) ** measurement.exponent
