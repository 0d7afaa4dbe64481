"""Queries of whole studies: a survival analysis, and the first table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace as replace_fields

from dpnb._compile.sensitivity import rows_of_unit
from dpnb._core.core import SessionCore
from dpnb._plan.measurements import AnyView, TableOneView
from dpnb._plan.plan import Plan
from dpnb._plan.unreleased import Unreleased
from dpnb._request import Release
from dpnb._target import DEFAULT_CONFIDENCE, Target, named_arguments, target_from
from dpnb.accounting.exact import Number
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.copying import safe_repr
from dpnb.errors import RequestError
from dpnb.query.query import Query, checked_query
from dpnb.query.regression import regression_or_query
from dpnb.render.numbers import format_cost, format_number
from dpnb.results.answer import Answer
from dpnb.results.display import Explanation
from dpnb.results.preview import Preview, PreviewTarget
from dpnb.results.survival import SurvivalAnswer, SurvivalLayout
from dpnb.results.survival_curves import CLEAR, SampledRows, at_risk_scales
from dpnb.results.table_one import TableOne


@dataclass(frozen=True, repr=False)
class SurvivalPreview(Explanation):
    """The cost of a survival analysis, and up to where its curves will be known.

    Parameters
    ----------
    cost : GDP, default GDP(0)
        The charge of the release; 0 if it was released before.
    cost_fraction : float, default NaN
        The cost as a fraction of the whole budget, rounded up; NaN without a budget.
    fits : bool, default True
        Whether the filter would admit the release now.
    at_risk_needed : float, default NaN
        The number of rows at risk that is needed in a group, for its curve to be known.

    Examples
    --------
    >>> preview = df.survival("cost", df["age"] > 40, by="plan").preview(mu=0.2)
    >>> preview.fits, preview.at_risk_needed < 100
    (True, True)
    """

    cost: GDP = field(default_factory=lambda: GDP(0))
    cost_fraction: float = math.nan
    fits: bool = True
    at_risk_needed: float = math.nan


class SurvivalQuery(Unreleased):
    """A survival analysis.  Free until it is released.

    Parameters
    ----------
    counts : Query
        The cumulative counts that are released.
    layout : SurvivalLayout
        The periods and groups.

    Examples
    --------
    >>> query = df.survival("cost", df["age"] > 40, by="plan", periods=4)
    >>> query.description
    'survival in cost until age > 40, by plan'
    >>> query.release(mu=0.2).test().method
    'log-rank'
    """

    __slots__ = ("_counts", "_layout")

    _kind = "a query"
    _released_type = SurvivalAnswer

    def __init__(self, counts: Query, layout: SurvivalLayout) -> None:
        self._counts, self._layout = counts, layout

    @property
    def description(self) -> str:
        """The curves in words."""
        return self._layout.described(self._counts.plan)

    @named_arguments
    def preview(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
    ) -> SurvivalPreview:
        """The cost of a release with the same arguments, and how many rows must be at risk; free, without the table.

        Parameters
        ----------
        mu, rho, epsilon, share : Number, optional
            As for `release`.

        Raises
        ------
        RequestError, InvalidValueError
            As for `release`.

        Examples
        --------
        >>> preview = df.survival("cost", df["age"] > 40).preview(share=0.2)
        >>> round(preview.cost_fraction, 2)
        0.2
        """
        self._target(mu, rho, epsilon, share, "preview")
        found: Preview = self._counts.preview(mu=mu, rho=rho, epsilon=epsilon, share=share, final=True)
        layout, needed = self._layout, self._at_risk_needed(found)
        groups = f", in {len(layout.keys)} groups" if layout.names else ""
        cost = format_cost(found.cost, found.cost_fraction) if found.cost.mu_squared else "free: was released before"
        facts = [
            ("cost", cost),
            ("periods", f"{layout.periods}, from {layout.texts[0]} to {layout.texts[-1]}{groups}"),
            ("known", f"while about {format_number(needed, needed)} rows of a group or more are at risk"),
            ("intervals", "bands, of the noise and of noise and sampling"),
            *found.left_out,
        ]
        if not found.fits:
            facts.append(("does not fit", "more than what is left: a release would be refused, and charge nothing"))
        title = f"{self.description} ({found.request})"
        return SurvivalPreview(title, facts, found.notice, found.cost, found.cost_fraction, found.fits, needed)

    @named_arguments
    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        confidence: Number = 0.95,
    ) -> SurvivalAnswer:
        """Release the cumulative counts in one charge, and compute the curves from them.

        The identical target returns the recorded answer at no cost, in any kernel, also with another confidence.  The
        counts are released once: bands and tests would not hold for a second release that was chosen because of the
        first.

        Parameters
        ----------
        mu, rho, epsilon : Number, optional
            Loss of the release: in GDP, in zCDP (mu = sqrt(2 rho)), or the mu that gives epsilon at the budget's delta.
            Exactly one of `mu`, `rho`, `epsilon` and `share` is required.
        share : Number, optional
            Share of the remaining budget, in (0, 1]; 1 spends all of it.
        confidence : Number, default 0.95
            Confidence of the bands, for all periods and groups at once.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            There is not exactly one target, or the counts were released with another one.
        InvalidValueError
            A number is out of range.
        ExecutionError
            The release failed after the charge; the charge stands, and the same call resumes it.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, by="plan", periods=4).release(mu=0.2)
        >>> answer.median().estimate.index.tolist()
        ['free', 'paid']
        """
        counts = self._counts
        with counts.runner.executor.refusals_of(lambda: self.description):
            target = self._target(mu, rho, epsilon, share, "release", confidence)
            if counts.best is not None and not counts.runner.executor.find(Release(counts.plan, counts.view, target)):
                raise RequestError(
                    f"{self.description}: was released with another target, and bands and tests hold for the first "
                    "release only; repeat that, at no cost, or choose other periods; nothing was charged"
                )
            found = counts._released(target)
        return SurvivalAnswer.of(self._layout, found, self._sampled_rows(found), confidence)

    def explain(self) -> Explanation:
        """What one privacy unit contributes, what is not counted, and why the noise is this large.  Free.

        Examples
        --------
        >>> df.survival("cost", df["age"] > 40).explain().facts[0][0]
        'contribution'
        """
        return replace(self._counts.explain(), words=self.description)

    def _target(self, mu: Any, rho: Any, epsilon: Any, share: Any, verb: str, confidence: Number = 0.95) -> Target:
        """The target of the counts, which have one observation; the confidence is only checked."""
        target = target_from(mu, rho, epsilon, share, None, confidence, final=True, verb=verb)
        return replace_fields(target, confidence=DEFAULT_CONFIDENCE)

    def _sampled_rows(self, found: Answer) -> SampledRows:
        runner, plan = self._counts.runner, self._counts.plan
        query = runner.tables.compile(plan)
        rows = rows_of_unit(query.contribution_bounds, query.cells) or 1  # never without a limit
        is_sampled = found.excluded is None
        return SampledRows(rows, float(1 - runner.account.sampled) if is_sampled else 0.0)

    def _at_risk_needed(self, found: Preview) -> float:
        """The number at risk at which a curve is known, in the group with the largest noise."""
        if found.half_widths is None:  # never: of cumulative counts they are known
            return math.nan
        scale = float(found.half_widths[0, 0]) / fixed_radius([1.0], alpha=1 - DEFAULT_CONFIDENCE)
        return CLEAR * scale * float(at_risk_scales(len(self._layout.keys), self._layout.periods).max())

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview(share=...) is free, .release(share=...) is charged>"


class TableOneQuery(Query):
    """The first table of a study, as a query.  Free until it is released.

    Examples
    --------
    >>> query = persons.table_one(by="plan", columns=["age"])
    >>> query.release(mu=0.3).to_frame().index.tolist()
    [('', 'n'), ('age', 'mean'), ('age', 'std')]
    """

    __slots__ = ()

    _released_type = TableOne

    if TYPE_CHECKING:

        def release(self, **target: Unpack[PreviewTarget]) -> TableOne:
            """As `Query.release`."""


def query_of(runner: SessionCore, plan: Plan, view: AnyView) -> Query:
    """A checked query, with the methods of its answer."""
    if not isinstance(view, TableOneView):
        return regression_or_query(runner, plan, view)
    checked = checked_query(runner, plan, view)
    return TableOneQuery(checked.plan, checked.view, checked.runner)
