"""A logistic or Poisson regression by noisy Newton steps, each an ordinary release, that can be previewed and released.

Number of steps and shares of the charge are fixed beforehand (`dpnb.results.estimates.newton`), so the whole cost is
known before the first charge.  A step is the release of sums at the coefficients that follow from the earlier steps:
the same arguments lead to the same requests, whose recorded answers are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, overload

import msgspec

from dpnb._core.core import SessionCore
from dpnb._core.pricing.previews import preview_each
from dpnb._plan.measurements import JointAggregation, RegressionModel, ScoreSums, StepView, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.regression import check_scores, describe_model, design, modelled
from dpnb._request import Release
from dpnb._target import Target, named_arguments, target_from
from dpnb.accounting.exact import Number
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.copying import safe_repr
from dpnb.errors import BudgetExceeded, PlanError
from dpnb.progress import Stage, work
from dpnb.query.largest_groups import PreviewedOnDisplay
from dpnb.query.newton_steps import RegressionPreview, StepForecasts, StepProgress, StepTerms, typical_coefficients
from dpnb.query.regression import divided, forecast_of, losses_of, total_of
from dpnb.render.numbers import format_cost
from dpnb.results.display import Explanation
from dpnb.results.estimates.linear import CENSUS, CLUSTERED, ROBUST, RegressionNumbers, RegressionTerm
from dpnb.results.estimates.newton import (
    INFORMATION,
    LAST_INFORMATION,
    LAST_PRODUCTS,
    LAST_SCORE,
    SCORE,
    SHARES,
)
from dpnb.results.preview import Amounts, Preview, Previews
from dpnb.results.regression import RegressionResult


class NewtonRegression(PreviewedOnDisplay):
    """A logistic or Poisson regression, by noisy Newton steps.  Free until it is released.

    Parameters
    ----------
    rows : Plan
        A count of the rows.
    model : RegressionModel
    terms : tuple of RegressionTerm
        The terms other than the intercept, as the analyst wrote them.
    order : tuple of int
        The number of each of these terms in the model, whose numeric columns are first; the intercept is 0.
    runner : SessionCore
        The core of the session.

    Examples
    --------
    >>> query = df.regress(df["cost"] > 500, on="age", family="logistic")
    >>> query.description
    'logistic regression of cost > 500 on age'
    >>> query.preview(mu=0.1).fits
    True
    """

    __slots__ = ("_core", "_max_rows", "_of", "_rows", "_view")

    _kind = "a query"
    _released_type = RegressionResult

    def __init__(
        self,
        rows: Plan,
        model: RegressionModel,
        terms: tuple[RegressionTerm, ...],
        order: tuple[int, ...],
        runner: SessionCore,
    ) -> None:
        self._rows, self._core = rows, runner
        schema, unit = runner.tables.schema(rows.source), runner.tables.unit(rows.source)
        if unit.max_rows is None:
            raise PlanError(
                f"regress: a {model.family} regression needs a session with max_rows_per_unit=, which bounds the score "
                "of a unit"
            )
        self._max_rows = 1 if unit.column is None else unit.max_rows
        errors = ROBUST if self._max_rows == 1 else CLUSTERED.format(unit=unit.noun)
        if runner.account.sampled == 1:
            errors = CENSUS
        written = (RegressionTerm(), *terms), (0, *order)
        self._of = StepTerms(model, *written, design(model, schema, "regress"), modelled(model, schema), errors)
        names = [""] * len(self._of.terms)
        for term, number in zip(*written, strict=True):
            names[number] = term.name
        self._view = StepView(tuple(names))
        check_scores(ScoreSums(model, self._of.start, "score"), schema)
        for index in (0, self._n_steps - 1):
            runner.check(self._plan(index, self._of.start), self._view_of(index))

    @property
    def description(self) -> str:
        """The regression in words."""
        return f"{describe_model(self._of.model)}{self._rows.scope_description}"

    # --- steps ------------------------------------------------------------------------------------------------------

    @property
    def _n_steps(self) -> int:
        return len(SHARES)

    def _plan(self, index: int, at: tuple[float, ...], max_slope: float | None = None) -> Plan:
        """What a step measures at some coefficients."""
        model = self._of.model
        parts = [ScoreSums(model, at, "score"), ScoreSums(model, at, "information", max_slope)]
        weights: tuple[float, ...] = SCORE, INFORMATION
        if index == self._n_steps - 1:
            parts.append(ScoreSums(model, at, "products", max_rows=self._max_rows))
            weights = LAST_SCORE, LAST_INFORMATION, LAST_PRODUCTS
        joint = JointAggregation(tuple(map(WeightedAggregation, parts, weights)))
        return msgspec.structs.replace(self._rows, aggregation=joint)

    def _view_of(self, index: int) -> StepView:
        return msgspec.structs.replace(self._view, products=index == self._n_steps - 1)

    def _targets(self, target: Target) -> list[Target]:
        """The target of each step: together they are that of the regression."""
        return divided(self._core, target, SHARES, self.description)

    def _recorded(self, targets: list[Target]) -> tuple[StepProgress, int]:
        """The steps that were released before, and the number of those that were charged."""
        progress = StepProgress(self._of)
        for index, target in enumerate(targets):
            rows = self._core.executor.find(self._request(index, progress, target))
            if not rows:
                return progress, index
            if rows[0].status != "released":
                return progress, index + 1
            progress.add(self._core.releases.answer_of(rows[0]))
        return progress, len(targets)

    def _request(self, index: int, progress: StepProgress, target: Target) -> Release:
        return Release(self._plan(index, progress.at, progress.max_slope), self._view_of(index), target)

    # --- the methods of a query -------------------------------------------------------------------------------------

    @overload
    def preview(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
    ) -> RegressionPreview: ...
    @overload
    def preview(
        self,
        *,
        mu: Sequence[Number] = (),
        rho: Sequence[Number] = (),
        epsilon: Sequence[Number] = (),
        share: Sequence[Number] = (),
        confidence: Number = 0.95,
        simultaneous: bool = False,
    ) -> Previews: ...
    @named_arguments
    def preview(
        self,
        *,
        mu: Any = None,
        rho: Any = None,
        epsilon: Any = None,
        share: Any = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
    ) -> Preview | Previews:
        """Cost and expected errors of a release with the same arguments; free, and without the table.

        The errors are those for typical values, where a number of rows is public or released.  The preview says where
        the coefficients will probably be unknown, and what helps.

        Parameters
        ----------
        mu, rho, epsilon, share : Number or list of them, optional
            As for `release`; a list gives a table.  Without any, the table has several shares of what is left, or
            several values of mu without a budget.
        confidence, simultaneous : optional
            As for `release`.

        Raises
        ------
        RequestError, InvalidValueError
            As for `release`.

        Examples
        --------
        >>> preview = df.regress(df["cost"] > 500, on="age", family="logistic").preview(share=0.2)
        >>> round(preview.cost_fraction, 2)
        0.2
        """
        amounts: Amounts = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share}
        options = {"confidence": confidence, "simultaneous": simultaneous}
        return preview_each(self._core.pricer, self._rows, amounts, options, self._previewed)

    def _previewed(self, targets: Iterable[Target]) -> list[Preview]:
        return [self._preview(target) for target in targets]

    def _preview(self, target: Target) -> RegressionPreview:
        core, targets = self._core, self._targets(target)
        progress, charged = self._recorded(targets)
        losses, fits = losses_of(core, targets[charged:], self.description)
        released = None if len(progress.answers) < len(targets) else self._numbers(progress, target)
        at, slope = typical_coefficients(self._of)
        last = self._plan(self._n_steps - 1, at, slope)
        known = StepForecasts(core, self._rows, last, self._view_of(self._n_steps - 1), self._of)
        fraction, after = forecast_of(core, losses, fits=fits)
        steps = (*(GDP(0),) * charged, *losses)
        return known.preview(target, self.description, total_of(losses), steps, fraction, after, released, fits=fits)

    @named_arguments
    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
    ) -> RegressionResult:
        """Take all steps, and charge each before it is taken.

        All steps are refused before the first if they do not fit together into the budget.  The identical arguments
        return the recorded steps at no cost, in any kernel; steps that are missing, for example after an interrupt, are
        then taken.  Where the budget is exhausted on the way, for example by another kernel, the coefficients of the
        steps so far are returned, without intervals.

        Parameters
        ----------
        mu, rho, epsilon : Number, optional
            Loss of all steps together: in GDP, in zCDP (mu = sqrt(2 rho)), or the mu that gives epsilon at the budget's
            delta.  Exactly one of `mu`, `rho`, `epsilon` and `share` is required.
        share : Number, optional
            Share of the remaining budget, in (0, 1]; 1 spends all of it.
        confidence : Number, default 0.95
            Confidence of each single interval, or of all intervals of coefficients together.
        simultaneous : bool, default False
            Whether all intervals hold at once with that confidence (Bonferroni).

        Raises
        ------
        BudgetExceeded
            The steps do not fit into the budget; nothing was charged.
        RequestError
            There is not exactly one target.
        InvalidValueError
            A number is out of range.
        ExecutionError
            A step failed after its charge; the charge stands, and the same call resumes it.

        Examples
        --------
        >>> result = df.regress(df["cost"] > 500, on="age", family="logistic").release(mu=0.2)
        >>> result.params.index.tolist()
        ['Intercept', 'age']
        """
        core = self._core
        with core.executor.refusals_of(lambda: self.description):
            target = target_from(mu, rho, epsilon, share, None, confidence, simultaneous)
            targets = self._targets(target)
            progress, charged = self._recorded(targets)
            self._refuse_too_much(targets, charged)
            stopped = None
            with work(Stage.CHARGING) as line:
                for index in range(len(progress.answers), len(targets)):
                    line.report(f"{self.description}: step {index + 1} of {len(targets)}")
                    try:
                        progress.add(core.releases.release(self._request(index, progress, targets[index])))
                    except BudgetExceeded:
                        if not index:
                            raise
                        stopped = f"stopped after {index} of {len(targets)} steps: the budget allows no further one"
                        break
        numbers = self._numbers(progress, target, stopped)
        if self._max_rows > 1:
            numbers = replace(numbers, units=core.pricer.public.units)
        return RegressionResult.of(
            numbers,
            confidence,
            simultaneous=simultaneous,
            description=self.description,
            cost=total_of([answer.cost for answer in progress.answers]),
            cost_fraction=sum(answer.cost_fraction for answer in progress.answers),
            notice=core.notice,
        )

    def _numbers(self, progress: StepProgress, target: Target, stopped: str | None = None) -> RegressionNumbers:
        z = fixed_radius([1.0], alpha=target.alpha)
        return progress.numbers(stopped, sampled=float(self._core.account.sampled), z=z)

    def _refuse_too_much(self, targets: list[Target], charged: int) -> None:
        """Refuse all steps together, before the first, if they do not fit into the budget."""
        if charged == len(targets):
            return
        losses, fits = losses_of(self._core, targets[charged:], self.description)
        if not fits:
            cost = format_cost(total_of(losses), forecast_of(self._core, losses, fits=False)[0])
            raise BudgetExceeded(
                f"{self.description}: its {len(losses)} steps together cost {cost}, more than "
                "what is left; release it with less, as in share=1; nothing was charged"
            )

    def explain(self) -> Explanation:
        """How the regression is computed, and what bounds the contribution of a unit.  Free.

        Examples
        --------
        >>> df.regress(df["cost"] > 500, on="age", family="logistic").explain().facts[0][0]
        'steps'
        """
        facts = [("steps", "; then ".join(self._step_words()))]
        facts += [("standard errors", self._of.errors)]
        facts += [("clamped", note) for note in self._of.clamped]
        return Explanation(self.description, facts, self._core.notice)

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview() is free, .release(share=...) is charged>"

    # --- words ------------------------------------------------------------------------------------------------------

    def _step_words(self) -> list[str]:
        middle = ["a Newton step from the coefficients before it"] * (self._n_steps - 2)
        return ["the sums of a linear fit, to start from", *middle, "the last step, with what its errors need"]
