"""The steps of a regression so far, and the numbers of its result: from released sums and declarations alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpnb._plan.measurements import RegressionModel
from dpnb._plan.regression import RegressionDesign
from dpnb.results.answer import Answer
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.estimates.regression import Matrix, RegressionNumbers, RegressionTerm
from dpnb.results.newton import (
    NewtonStep,
    StepSums,
    covariance,
    first_coefficients,
    linear_start,
    newton_step,
    predictor_range,
    row_count,
    to_columns,
)

UNCLEAR = (
    "the information of some combination of terms is not clear of its noise; leave out terms that are nearly "
    "combinations of others, or release with more budget"
)

FLAWS = {
    "shortened": "no intervals: not converged: the last step was so long that it was shortened; more budget helps",
    "not converged": "no intervals: not converged: the last step was so long that its error is not small beside the "
    "standard errors; more budget helps",
}


@dataclass(frozen=True)
class StepTerms:
    """A regression by Newton steps, and its terms as they were written, the intercept first."""

    model: RegressionModel
    terms: tuple[RegressionTerm, ...]
    order: tuple[int, ...]  # the number of each term in the model, whose numeric columns are first
    design: RegressionDesign
    outcome: str  # in words
    errors: str  # of what the errors are clusters, in words

    @property
    def start(self) -> tuple[float, ...]:
        """The coefficients of the first sums."""
        return first_coefficients(self.model.family, self.design)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the outcome."""
        middle, reach = self.design.outcome
        return max(middle - reach, 0.0), middle + reach

    @property
    def clamped(self) -> list[str]:
        """What is clamped: from declared bounds alone."""
        if self.model.family != "poisson":
            return []
        low, high = self.bounds
        return [
            f"{self.outcome} and each row's fitted mean are clamped to its bounds, {low:g} ... {high:g}, since the "
            "score of a unit has no bound otherwise; rows whose fitted mean is beyond do not count in the information"
        ]


@dataclass
class StepProgress:
    """The steps of a regression so far."""

    of: StepTerms
    answers: list[Answer] = field(default_factory=list)
    sums: list[StepSums] = field(default_factory=list)
    steps: list[NewtonStep] = field(default_factory=list)

    @property
    def at(self) -> tuple[float, ...]:
        """The coefficients so far, for columns scaled to -1 to 1."""
        return self.steps[-1].coefficients if self.steps else self.of.start

    @property
    def max_slope(self) -> float | None:
        """The largest derivative of a mean that counts in the information; None if any does."""
        return self.steps[-1].max_slope if self.steps else None

    def add(self, answer: Answer) -> None:
        """Take the next step, which follows from its released sums."""
        layout = self.of.design
        sums = StepSums.of(answer.arrays, layout.terms)
        if self.steps:
            step = newton_step(layout, self.steps[-1], sums)
        else:
            step = linear_start(self.of.model.family, layout, self.at, sums)
        self.answers.append(answer)
        self.sums.append(sums)
        self.steps.append(step)

    def numbers(self, stopped: str | None, *, sampled: float, z: float) -> RegressionNumbers:
        """The numbers of the result; `stopped` says why steps are missing, `sampled` is 1 in a census.

        `z` is the half-width of an interval in standard deviations.
        """
        of, matrix = self.of, to_columns(self.of.design)[list(self.of.order)]
        params = matrix @ np.array(self.at)
        noise: Matrix = np.full(matrix.shape, np.nan)
        sampling, unknown, errors = None, None, of.errors
        flaw = stopped or next((answer.excluded for answer in self.answers if answer.excluded), None)
        if flaw is not None:
            errors = f"no intervals: {flaw}"
        else:
            found = covariance(self.sums[-1], self.steps[-1], remaining=1 - sampled)
            if found.flaw == "no clear information":
                params, unknown, errors = np.full(len(matrix), np.nan), UNCLEAR, "not known: too much noise"
            elif found.flaw:
                errors = FLAWS[found.flaw]
            else:
                noise, sampling = matrix @ found.noise @ matrix.T, matrix @ found.sampling @ matrix.T
        return RegressionNumbers(
            family=of.model.family,  # type: ignore[arg-type]  # one that has steps
            outcome=of.outcome,
            terms=of.terms,
            params=params,
            noise=noise,
            sampling=sampling,
            errors=errors,
            unknown=unknown,
            nobs=self._count(z),
            nobs_words="rows (from the first step)",
            notes=(*of.clamped, *self._binding()),
        )

    def _count(self, z: float) -> IntervalArrays:
        """The number of rows that count, from the first step."""
        count, scale = row_count(self.of.model.family, self.of.start, self.sums[0])
        numbers = count, max(count - z * scale, 0.0), count + z * scale, scale
        value, low, high, noise = (_array(number) for number in numbers)
        return IntervalArrays.of(value, low, high, noise)

    def _binding(self) -> list[str]:
        """A warning where some row may have a mean beyond its bounds: from bounds and coefficients alone."""
        if self.of.model.family != "poisson":
            return []
        ends, (low, high) = predictor_range(self.of.design, np.array(self.at)), self.of.bounds
        least, most = map(math.exp, ends)
        beyond = [f"{least:.3g}, below {low:g}"] if least < low else []
        beyond += [f"{most:.3g}, above {high:g}"] if most > high else []
        return [
            f"clamping may bind: within the predictors' bounds, fitted means reach {one}; whether any row has such a "
            "mean is not known"
            for one in beyond
        ]


def _array(number: float) -> Cells:
    return np.array([number])
