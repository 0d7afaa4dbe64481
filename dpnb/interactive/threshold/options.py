"""The parameters of a stream of comparisons: the analyst's arguments, validated, and their explanation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction

from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb._request import ScanThreshold
from dpnb._target import MAX_STORED_BITS, checked_loss, refuse_long
from dpnb.accounting.exact import Number, display_up, exact
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import InvalidValueError, RequestError
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.threshold.above_threshold import AboveThresholdParameters, LaplaceAboveThreshold, whole_count
from dpnb.interactive.threshold.gaussian_scan import GaussianAboveThreshold, gaussian_margin
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.schema import whole_number

ALPHA = Fraction(1, 20)
"""Error probability of the intervals of values."""

Core = LaplaceAboveThreshold | GaussianAboveThreshold


@dataclass(frozen=True)
class ThresholdScanParameters:
    """The parameters with which a stream of comparisons is launched."""

    threshold: Fraction  # in the answers' units
    laplace: AboveThresholdParameters | None  # None for Gaussian noise
    loss: Loss  # charged at launch
    max_queries: int | None = None  # declared number, for Gaussian noise
    mu: Fraction | None = None  # likewise

    @property
    def mechanism(self) -> ScanThreshold:
        """The scan as the ledger stores it; equal parameters are stored equally."""
        if self.laplace is None:
            return ScanThreshold(self.threshold, mu=self.mu, max_queries=self.max_queries)
        one = self.laplace
        return ScanThreshold(self.threshold, one.epsilon, one.max_positives, one.monotonic, one.return_values)

    def request(self, name: object) -> LaunchRequest:
        """The request to launch it under a name."""
        return LaunchRequest(name, self.mechanism, self.loss, facts=scan_terms(self), draw=self.begin)

    @classmethod
    def of(cls, one: ScanThreshold) -> ThresholdScanParameters:
        """The parameters of a scan in the ledger."""
        if one.epsilon is None:
            return cls(one.threshold, None, GDP(one.mu or 0), one.max_queries, one.mu)
        terms = AboveThresholdParameters(one.epsilon, one.max_positives, one.monotonic, one.return_values)
        return cls(one.threshold, terms, terms.loss)

    @property
    def gaussian(self) -> GDP:
        """The loss, for Gaussian noise."""
        return GDP.from_mu_squared(self.loss.parts[0])

    def begin(self, source: NoiseSource) -> Core:
        """Draw the hidden noise."""
        if self.laplace is None:
            return GaussianAboveThreshold(self.gaussian, self.max_queries or 1, source=source)
        one = self.laplace
        return LaplaceAboveThreshold(
            one.epsilon, one.max_positives, monotonic=one.monotonic, return_values=one.return_values, source=source
        )


def terms_from(
    threshold: Number,
    epsilon: Number | None,
    max_positives: int,
    monotonic: bool,
    return_values: bool,
    mu: Number | None,
    max_queries: int | None,
) -> ThresholdScanParameters:
    """The parameters, validated: exactly one kind of noise."""
    checked = checked_threshold(threshold)
    if (epsilon is None) == (mu is None) or (mu is None) != (max_queries is None):
        raise RequestError(
            "above_threshold: give epsilon= (Laplace noise, any number of queries until max_positives are above), "
            "or mu= with max_queries= (Gaussian noise, a declared number of queries)"
        )
    for name, flag in (("monotonic", monotonic), ("return_values", return_values)):
        if not isinstance(flag, bool):
            raise InvalidValueError(f"{name}: must be True or False; got {flag!r}")
    if epsilon is not None:
        positives = _whole(max_positives, "max_positives")
        terms = AboveThresholdParameters(checked_loss(epsilon, "epsilon"), positives, monotonic, return_values)
        return ThresholdScanParameters(checked, terms, terms.loss)
    if monotonic or return_values or max_positives != 1:
        raise RequestError(
            "above_threshold: max_positives=, monotonic= and return_values= belong to epsilon=; omit them with mu="
        )
    declared = _whole(max_queries, "max_queries")
    exactly = checked_loss(mu or 0, "mu")
    return ThresholdScanParameters(checked, None, GDP(exactly), declared, exactly)


def _whole(value: object, name: str) -> int:
    return whole_count(whole_number(value) or value, name)


def checked_threshold(threshold: Number) -> Fraction:
    """A threshold in the range of doubles."""
    checked = exact(threshold, name="threshold")
    if abs(checked) > Fraction(sys.float_info.max):
        raise InvalidValueError("threshold: must be within the range of doubles; got a number beyond it")
    return refuse_long(checked, "threshold", threshold, MAX_STORED_BITS)


def scan_terms(terms: ThresholdScanParameters) -> list[tuple[str, str]]:
    """The parameters and their consequences, as facts."""
    if terms.laplace is None:
        declared = terms.max_queries or 1
        return [
            ("queries", f"{declared}, declared; each answer may include its noisy value"),
            ("reliable", _reliable(gaussian_margin(terms.gaussian, declared, ALPHA), declared)),
        ]
    queries = 100
    margin = float(terms.laplace.margin(queries, ALPHA))
    what = "counts" if terms.laplace.monotonic else "counts and sums"
    return [
        (
            "queries",
            f"any number of {what}, until {describe_positives(terms.laplace.max_positives)}; negative answers are free",
        ),
        (
            "values",
            "a noisy value with each positive answer"
            if terms.laplace.return_values
            else "none: release a query to get its value",
        ),
        ("reliable", _reliable(margin, queries)),
    ]


def _reliable(margin: float, queries: int) -> str:
    return (
        f"{IN_THIS_TABLE}, with 95% confidence, all of {queries} answers are correct, if each query is at least "
        f"{display_up(margin, 3)} times its sensitivity away from the threshold (the sensitivity of a number of units "
        "is 1, and that of a count of rows the number of rows that count for one unit)"
    )


def describe_positives(max_positives: int) -> str:
    """The number of positive answers, in words."""
    return "one is above" if max_positives == 1 else f"{max_positives} are above"
