"""The parameters of a stream of comparisons: the analyst's arguments, validated, and their explanation."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpnb._browser.glossary import IN_THIS_TABLE
from dpnb._request import ScanThreshold
from dpnb._target import MAX_STORED_BITS, checked_loss, refuse_long
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, decimal_up, display_up, exact
from dpnb.accounting.filters import Filter
from dpnb.accounting.grid import loss_up
from dpnb.accounting.losses import GDP, Loss, PureDP
from dpnb.errors import InvalidValueError, RequestError
from dpnb.interactive.above_threshold import AboveThresholdParameters, LaplaceAboveThreshold, whole_count
from dpnb.interactive.gaussian_scan import GaussianAboveThreshold, gaussian_margin
from dpnb.interactive.mechanism import LaunchRequest
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.schema import whole_number

ALPHA = Fraction(1, 20)
"""Error probability of the intervals of values."""

QUERIES = 100
"""The number of queries for which a preview says how reliable the answers are."""

Core = LaplaceAboveThreshold | GaussianAboveThreshold


@dataclass(frozen=True)
class ThresholdScanParameters:
    """A stream of comparisons, as the ledger stores it, and how often the threshold's noise is drawn."""

    scan: ScanThreshold
    thresholds: int = 1

    @cached_property
    def laplace(self) -> AboveThresholdParameters | None:
        """The parameters with Laplace noise; None for Gaussian noise."""
        one = self.scan
        if one.epsilon is None:
            return None
        return AboveThresholdParameters(
            one.epsilon, one.max_positives, one.monotonic, one.return_values, self.thresholds
        )

    @property
    def loss(self) -> Loss:
        """What is charged at launch."""
        return self.gaussian if self.laplace is None else self.laplace.loss

    @property
    def gaussian(self) -> GDP:
        """The loss, for Gaussian noise."""
        return GDP(self.scan.mu or 0)

    def begin(self, source: NoiseSource) -> Core:
        """Draw the hidden noise."""
        one = self.laplace
        if one is None:
            return GaussianAboveThreshold(self.gaussian, self.scan.max_queries or 1, source=source)
        return LaplaceAboveThreshold(
            one.epsilon,
            one.max_positives,
            monotonic=one.monotonic,
            return_values=one.return_values,
            source=source,
            thresholds=one.thresholds,
        )


def scan_request(state: Filter, name: object, scan: ScanThreshold) -> LaunchRequest:
    """The request to launch it under a name, with a filter in its current state."""
    terms = ThresholdScanParameters(scan, thresholds_for(state, scan))
    resolved = {"thresholds": terms.thresholds} if terms.thresholds > 1 else {}
    return LaunchRequest(name, scan, terms.loss, resolved, scan_facts(terms), terms.begin)


def thresholds_for(state: Filter, scan: ScanThreshold) -> int:
    """How often to draw the threshold's noise: for each positive answer, if the filter counts less for it.

    Compared is the charge of one threshold that is as reliable, which needs less epsilon.
    """
    one, each = (ThresholdScanParameters(scan, number).laplace for number in (1, scan.max_positives))
    if one is None or each is None or scan.max_positives == 1:
        return 1
    ratio = Fraction(one.margin_steps(QUERIES, ALPHA), each.margin_steps(QUERIES, ALPHA))
    several, single = (_cost(state, loss) for loss in (each.loss, loss_up(PureDP(ratio * one.epsilon))))
    return scan.max_positives if several < single or single == math.inf else 1


def _cost(state: Filter, loss: Loss) -> float:
    """What a filter counts for a loss, for comparison; without a budget, as mu squared."""
    fraction = state.budget_fraction(loss)
    return float(convert(loss, GDP).mu_squared) if math.isnan(fraction) else fraction


def scan_from(
    threshold: Number,
    epsilon: Number | None,
    max_positives: int,
    monotonic: bool,
    return_values: bool,
    mu: Number | None,
    max_queries: int | None,
) -> ScanThreshold:
    """The scan, validated: exactly one kind of noise; equal arguments are stored equally."""
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
        return ScanThreshold(checked, terms.epsilon, positives, monotonic, return_values)
    if monotonic or return_values or max_positives != 1:
        raise RequestError(
            "above_threshold: max_positives=, monotonic= and return_values= belong to epsilon=; omit them with mu="
        )
    declared = _whole(max_queries, "max_queries")
    return ScanThreshold(checked, mu=checked_loss(mu or 0, "mu"), max_queries=declared)


def _whole(value: object, name: str) -> int:
    return whole_count(whole_number(value) or value, name)


def checked_threshold(threshold: Number) -> Fraction:
    """A threshold in the range of doubles."""
    checked = exact(threshold, name="threshold")
    if abs(checked) > Fraction(sys.float_info.max):
        raise InvalidValueError("threshold: must be within the range of doubles; got a number beyond it")
    return refuse_long(checked, "threshold", threshold, MAX_STORED_BITS)


def scan_facts(terms: ThresholdScanParameters) -> list[tuple[str, str]]:
    """The parameters and their consequences, as facts."""
    one = terms.laplace
    if one is None:
        declared = terms.scan.max_queries or 1
        return [
            ("queries", f"{declared}, declared; each answer may include its noisy value"),
            ("reliable", _reliable(gaussian_margin(terms.gaussian, declared, ALPHA), declared)),
        ]
    what, until = "counts" if one.monotonic else "counts and sums", describe_positives(one.max_positives)
    facts = [
        ("queries", f"any number of {what}, until {until}; negative answers are free"),
        (
            "values",
            "a noisy value with each positive answer"
            if one.return_values
            else "none: release a query to get its value",
        ),
        ("reliable", _reliable(float(one.margin(QUERIES, ALPHA)), QUERIES)),
    ]
    if one.thresholds > 1:
        each = display_up(decimal_up(one.epsilon / one.thresholds))
        words = f"its noise is drawn again after each positive answer, and counted as {one.thresholds} scans in a row, "
        facts.insert(1, ("threshold", f"{words}with epsilon {each} each"))
    return facts


def _reliable(margin: float, queries: int) -> str:
    return (
        f"{IN_THIS_TABLE}, with 95% confidence, all of {queries} answers are correct, if each query is at least "
        f"{display_up(margin, 3)} times its sensitivity away from the threshold (the sensitivity of a number of units "
        "is 1, and that of a count of rows the number of rows that count for one unit)"
    )


def describe_positives(max_positives: int) -> str:
    """The number of positive answers, in words."""
    return "one is above" if max_positives == 1 else f"{max_positives} are above"
