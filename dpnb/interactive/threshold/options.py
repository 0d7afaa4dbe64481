"""What a stream of comparisons is launched with: the analyst's arguments checked, and what they mean."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpnb._core.accountant.tree import ABOVE_THRESHOLD
from dpnb._core.options import checked_amount
from dpnb._plan.schema import whole_number
from dpnb.accounting.exact import Number, display_up, exact, from_text, to_text
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import InvalidValueError, RequestError
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.threshold.above_threshold import AboveThresholdParameters, LaplaceAboveThreshold
from dpnb.interactive.threshold.gaussian_scan import GaussianAboveThreshold, gaussian_margin
from dpnb.mechanisms.randomness import NoiseSource

ALPHA = Fraction(1, 20)
"""What the intervals of values may miss."""

Core = LaplaceAboveThreshold | GaussianAboveThreshold


@dataclass(frozen=True)
class ThresholdScanParameters:
    """On what a stream of comparisons is launched.

    Parameters
    ----------
    threshold : Fraction
        In the answers' units.
    laplace : Terms or None
    loss : Loss
    questions : int or None
        Declared number, for Gaussian noise.
    """

    threshold: Fraction
    laplace: AboveThresholdParameters | None
    loss: Loss
    questions: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The terms as the ledger keeps them, equal for equal ones."""
        stored: dict[str, Any] = {"threshold": to_text(self.threshold), "loss": self.loss.to_json()}
        if self.laplace is None:
            return {**stored, "noise": "gaussian", "max_queries": self.questions}
        one = self.laplace
        return {
            **stored,
            "noise": "laplace",
            "max_positives": one.max_positives,
            "monotonic": one.monotonic,
            "return_values": one.return_values,
        }

    def request(self, name: object, **about: object) -> LaunchRequest:
        """The launch of it under a name."""
        return LaunchRequest(ABOVE_THRESHOLD, name, self.to_json(), self.loss, about, scan_terms(self))

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ThresholdScanParameters:
        """What `to_json` wrote."""
        threshold = from_text(stored["threshold"])
        if stored["noise"] == "gaussian":
            squared = from_text(stored["loss"]["mu_squared"])
            return cls(threshold, None, GDP.from_mu_squared(squared), int(stored["max_queries"]))
        epsilon = from_text(stored["loss"]["epsilon"])
        terms = AboveThresholdParameters(
            epsilon, int(stored["max_positives"]), bool(stored["monotonic"]), bool(stored["return_values"])
        )
        return cls(threshold, terms, terms.loss)

    @property
    def gaussian(self) -> GDP:
        """The loss of Gaussian noise."""
        return GDP.from_mu_squared(self.loss.parts[0])

    def begin(self, source: NoiseSource) -> Core:
        """Draw the hidden noise."""
        if self.laplace is None:
            return GaussianAboveThreshold(self.gaussian, self.questions or 1, source=source)
        one = self.laplace
        return LaplaceAboveThreshold(
            one.epsilon, one.max_positives, monotonic=one.monotonic, return_values=one.return_values, source=source
        )


def terms_from(
    threshold: Number,
    *,
    epsilon: Number | None,
    max_positives: int,
    monotonic: bool,
    return_values: bool,
    mu: Number | None,
    max_queries: int | None,
) -> ThresholdScanParameters:
    """The terms, checked.

    Raises
    ------
    RequestError
        Neither or both kinds of noise are asked for.
    InvalidValueError
        A number is out of its range.
    """
    line = checked_threshold(threshold)
    if (epsilon is None) == (mu is None) or (mu is None) != (max_queries is None):
        raise RequestError(
            "above_threshold: give epsilon= (Laplace noise, any number of queries until max_positives are above), "
            "or mu= with max_queries= (Gaussian noise, a declared number of queries)"
        )
    for name, flag in (("monotonic", monotonic), ("return_values", return_values)):
        if not isinstance(flag, bool):
            raise InvalidValueError(f"{name}: must be True or False; got {flag!r}")
    if epsilon is not None:
        most = whole_number(max_positives)
        if most is None:
            raise InvalidValueError(f"max_positives: must be a whole number of at least 1; got {max_positives!r}")
        terms = AboveThresholdParameters(checked_amount(epsilon, "epsilon"), most, monotonic, return_values)
        return ThresholdScanParameters(line, terms, terms.loss)
    declared = whole_number(max_queries)
    if declared is None or declared < 1:
        raise InvalidValueError(f"max_queries: must be a whole number of at least 1; got {max_queries!r}")
    return ThresholdScanParameters(line, None, GDP(checked_amount(mu or 0, "mu")), declared)


def checked_threshold(threshold: Number) -> Fraction:
    """A threshold that can be shown.

    Raises
    ------
    InvalidValueError
        It is no number, or beyond the range of doubles.
    """
    line = exact(threshold, name="threshold")
    if abs(line) > Fraction(sys.float_info.max):
        raise InvalidValueError("threshold: must be within the range of doubles; got a number beyond it")
    return line


def scan_terms(terms: ThresholdScanParameters) -> list[tuple[str, str]]:
    """What the terms mean, as facts."""
    if terms.laplace is None:
        declared = terms.questions or 1
        return [
            ("questions", f"{declared}, declared; every answer may come with its noisy value"),
            ("reliable", _reliable(gaussian_margin(terms.gaussian, declared, ALPHA), declared)),
        ]
    asked = 100
    far = float(terms.laplace.margin(asked, ALPHA))
    what = "counts" if terms.laplace.monotonic else "counts and sums"
    return [
        (
            "questions",
            f"any number of {what}, until {hits_words(terms.laplace.max_positives)} above; below costs nothing more",
        ),
        (
            "values",
            "a noisy value with each hit" if terms.laplace.return_values else "none: release a hit to learn its value",
        ),
        ("reliable", _reliable(far, asked)),
    ]


def _reliable(far: float, questions: int) -> str:
    return (
        f"all of {questions} answers are right with 95% if each is at least {display_up(far, 3)} times what one unit "
        "can change away from the threshold (for a number of units that many; for a count of rows that many times the "
        "rows that count of a unit)"
    )


def hits_words(most: int) -> str:
    """How many were above, in words."""
    return "one was" if most == 1 else f"{most} were"
