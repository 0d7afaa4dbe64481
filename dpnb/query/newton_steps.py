"""The steps of a regression by Newton steps: their expected errors, and the result so far.

The expected errors are for typical values, from a number of rows that is known.  They are those of the last step, of
sums that such values would have (`dpnb._core.pricing.typical`).  Its coefficients are not known: typical ones let
linear predictors be up to `REACH` above or below the intercept, with a mean of one half in a logistic regression, and
of a quarter of the outcome's bound in a Poisson regression.  Before it, the coefficients are off by the noise of the
step before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._core.core import SessionCore
from dpnb._core.history.words import cost_text
from dpnb._core.pricing.public_knowledge import RowCounts, count_code
from dpnb._core.pricing.typical import TYPICAL, TYPICAL_VALUES, typical_sums
from dpnb._plan.measurements import Count, PlainView, RegressionModel, StepView
from dpnb._plan.plan import Plan
from dpnb._plan.regression import RegressionDesign
from dpnb._target import Target
from dpnb.accounting.exact import decimal_down, few_digits_down
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.results.answer import Answer
from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.least_squares import Matrix
from dpnb.results.estimates.linear import RegressionNumbers, RegressionTerm
from dpnb.results.estimates.newton import (
    LAST_SCORE,
    LEAST_MULTIPLE,
    SCORE,
    SHARES,
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
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.preview import CountNeeded, Preview
from dpnb.schema import Schema

REACH = 1.5
"""The largest distance of a typical linear predictor from the intercept."""

NOISE_BEFORE = float(SHARES[-1] / SHARES[-2]) * LAST_SCORE / SCORE
"""The variance of the coefficients before the last step, as a multiple of that after it."""

UNCLEAR = (
    "the information of some combination of terms is not clear of its noise; leave out terms that are nearly "
    "combinations of others, or release with more budget"
)

FLAWS = {
    "shortened": "no intervals: not converged: the last step was so long that it was shortened; more budget helps",
    "not converged": "no intervals: not converged: the last step was so long that its error is not small beside the "
    "standard errors; more budget helps",
}


def typical_coefficients(of: StepTerms) -> tuple[tuple[float, ...], float]:
    """Coefficients of scaled columns; and the derivative of the mean to which that of a row is clamped."""
    is_poisson, others = of.model.family == "poisson", of.design.terms - 1
    intercept = math.log(of.bounds[1] / 4) if is_poisson else 0.0
    slope = math.exp(intercept) if is_poisson else 0.25
    return (intercept, *(REACH / others for _ in range(others))), LEAST_MULTIPLE * slope


@dataclass(frozen=True, kw_only=True, repr=False)
class RegressionPreview(Preview):
    """The cost and the expected errors of a regression by Newton steps.

    Parameters
    ----------
    steps : tuple of GDP, default ()
        The charge of each step; 0 for one that was released before.

    Notes
    -----
    The other fields are those of `dpnb.results.preview.Preview`.

    Examples
    --------
    >>> preview = df.regress(df["cost"] > 500, on="age", family="logistic").preview(mu=0.1)
    >>> len(preview.steps), preview.fits
    (4, True)
    """

    steps: tuple[GDP, ...] = field(default=())


@dataclass(frozen=True)
class StepForecast:
    """The noise of the coefficients of scaled columns after the last step, and how clear their information is of it."""

    noise: Cells  # covariance
    clearness: float

    @classmethod
    def of(cls, query: LinearQuery, view: StepView, rows: float, loss: GDP, schema: Schema, terms: int) -> StepForecast:
        """The forecast of a last step at typical coefficients, which is charged `loss`, with this number of rows."""
        sums, sigma = (
            typical_sums(query, np.array([rows]), schema),
            np.array([sigma_for(query.l2_sensitivity_squared, loss)]),
        )
        if sums is None:  # never: they are sums of a step
            raise TypeError(type(view).__name__)
        found = StepSums.of(estimate(query, view, sums, sigma, sigma, schema), terms)
        information, _ = found.raised
        move = np.zeros(terms)
        for _ in range(2):
            step = NewtonStep((0.0,) * terms, move, information, False, False, 1.0, 0.0)
            noise = covariance(found, step).noise
            move = np.sqrt(np.diag(noise) * NOISE_BEFORE)
        return cls(noise, float(np.linalg.eigvalsh(found.information)[0]) / found.floor)


@dataclass(frozen=True)
class StepForecasts:
    """The previews of a regression by Newton steps."""

    core: SessionCore
    rows: Plan  # a count of the rows
    last: Plan  # the last step at typical coefficients, which measures more than the others
    view: StepView
    of: StepTerms

    def preview(
        self,
        target: Target,
        description: str,
        total: GDP,
        steps: tuple[GDP, ...],
        fraction: float,
        after: float,
        released: RegressionNumbers | None,
        *,
        fits: bool,
    ) -> RegressionPreview:
        """The preview of a target that is charged `total`, or was `released`; the charge of a released step is 0."""
        core, account, filter_ = self.core, self.core.account, self.core.account.filter
        rows, unit = self._known_rows, core.tables.unit(self.rows.source).column or "row"
        z, widths, least, clearness = self._radius(target), None, None, None
        if released is not None:
            arrays = released.arrays(z, population=False)
            widths = np.where(arrays.is_unknown, np.inf, arrays.half_width)
        elif rows is not None and all(steps):
            widths, least, clearness = self._errors(z, total, rows)
        prices = [cost_text(account, loss) if loss.mu_squared else "free: was released before" for loss in steps]
        count = count_code(self.rows)
        return RegressionPreview(
            description=description,
            request=target.words,
            total_loss=total,
            cost=total,
            cost_fraction=fraction,
            confidence=decimal_down(target.confidence),
            half_widths=widths,
            least_half_widths=least,
            error_unit=None,
            names=(),
            keys=((),),
            outputs=("term", tuple(term.name for term in self.of.terms)),
            headroom_after=few_digits_down(after) if fits or math.isnan(after) else 0.0,
            fits=fits,
            max_mu=None if fits else account.max_mu(GDP(0)),
            max_repetitions=filter_.max_repetitions(account.guarantee.to_filter_loss(total)),
            contribution=f"one {unit} changes the sums of each step within bounds that follow from the steps before it",
            left_out=(
                ("standard errors", f"{self.of.errors}; unknown where the noise is too large"),
                *(("clamped", note) for note in self.of.clamped),
            ),
            refinement_note=None,
            assumption=None
            if rows is None or not total.mu_squared
            else f"about {_number(rows)} rows ({rows.source}) and {TYPICAL_VALUES}",
            assumed_description=None if clearness is None else TYPICAL,
            current_half_widths=None,
            notice=core.notice,
            count_needed=None
            if rows is not None or not total.mu_squared
            else CountNeeded(self.rows, self.rows.words, count),
            parts=()
            if released is not None
            else tuple((f"step {at}", price) for at, price in enumerate(prices, start=1)),
            clearness=clearness,
            steps=steps,
        )

    @property
    def _known_rows(self) -> RowCounts | None:
        """The number of rows as far as it is public or released."""
        state = self.core.pricer.state(self.rows, PlainView(), ())
        rows = self.core.pricer.row_counts(state, Count())
        return None if rows is None else rows.for_display

    def _radius(self, target: Target) -> float:
        return fixed_radius([1.0], alpha=target.alpha / (self.of.design.terms if target.simultaneous else 1))

    def _errors(self, z: float, total: GDP, rows: RowCounts) -> tuple[Cells, Cells | None, float]:
        """Half-widths for the known number of rows, and if each unit has as many as it may; and their clearness."""
        query, schema = self.core.tables.compile(self.last), self.core.tables.schema(self.rows.source)
        loss, terms = GDP.from_mu_squared(total.mu_squared * SHARES[-1]), self.of.design.terms
        matrix = to_columns(self.of.design)[list(self.of.order)]
        each = [rows] if rows.if_most is None else [rows, rows.if_most]
        found = [StepForecast.of(query, self.view, float(one.by_cell[0]), loss, schema, terms) for one in each]
        widths = [
            z * np.sqrt(np.diag(matrix @ one.noise @ matrix.T))[None, :]
            if one.clearness > 1
            else np.full((1, terms), np.inf)
            for one in found
        ]
        return widths[0], widths[1] if len(found) > 1 else None, math.sqrt(found[0].clearness * found[-1].clearness)


def _number(rows: RowCounts) -> str:
    """A number of rows, or from which to which, in words."""
    return f"{rows.by_cell[0]:,.0f}" + ("" if rows.most is None else f" to {rows.most[0]:,.0f}")


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
