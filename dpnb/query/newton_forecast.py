"""The expected errors of a regression by Newton steps: for typical values, from a number of rows that is known.

They are those of the last step, of sums that such values would have (`dpnb._core.pricing.typical`).  Its coefficients
are not known: typical ones let linear predictors be up to `REACH` above or below the intercept, with a mean of one half
in a logistic regression, and of a quarter of the outcome's bound in a Poisson regression.  Before it, the coefficients
are off by the noise of the step before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._core.core import SessionCore
from dpnb._core.history.cost_text import cost_text
from dpnb._core.pricing.public_knowledge import RowCounts, count_code
from dpnb._core.pricing.typical import TYPICAL, TYPICAL_VALUES, typical_sums
from dpnb._plan.measurements import Count, PlainView, StepView
from dpnb._plan.plan import Plan
from dpnb._target import Target
from dpnb.accounting.exact import decimal_down, few_digits_down
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.calibration import sigma_for
from dpnb.query.newton_progress import StepTerms
from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.regression import RegressionNumbers
from dpnb.results.newton import LAST_SCORE, LEAST_MULTIPLE, SCORE, SHARES, NewtonStep, StepSums, covariance, to_columns
from dpnb.results.preview import CountNeeded, Preview
from dpnb.schema import Schema

REACH = 1.5
"""The largest distance of a typical linear predictor from the intercept."""

NOISE_BEFORE = float(SHARES[-1] / SHARES[-2]) * LAST_SCORE / SCORE
"""The variance of the coefficients before the last step, as a multiple of that after it."""


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
