"""What is publicly known about a query: its observations, and numbers of rows from released counts only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import CountFeature
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    Discovery,
    JointAggregation,
    Mean,
    Measured,
    ModelLoss,
    Moments,
    MomentsView,
    Proportions,
    Single,
)
from dpnb._plan.plan import Plan, describe_plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import ErrorEstimateUnavailable
from dpnb.results.estimates.noisy import noisy_features
from dpnb.results.observations import CombinedObservations

Floats = NDArray[np.float64]

CLEAR_COUNT_RATIO = 30.0
"""A released count that exceeds its noise scale this many times is good enough to price a target.

With a true count N and noise of scale s, a target priced with the noisy count n costs (N/n)^2 of what it needs, and its
half-width comes out at n/N of what was asked.  With n >= 30 s a cost above 1.5 times, or a miss by more than 1.2 times,
needs noise beyond 6.7 s (N/n > sqrt(1.5)) or 5 s (n/N > 1.2, so N < n/1.2): less than once in three million counts.
"""

USABLE_COUNT_RATIO = 2.0
"""A released count that exceeds its noise scale this many times still serves to show an assumed error."""


@dataclass(frozen=True)
class RowCounts:
    """The numbers of rows from which errors are computed.

    Parameters
    ----------
    each : float64 array, shape (cells,)
        Rows of each group; NaN where the figures do not show it clearly enough.
    source : str
        Where the figures come from, in words.
    assumed : str or None
        What is assumed without being released or public; None if a target may use the figures.
    own : bool
        Whether the figures are from earlier looks at the question itself.
    """

    each: Floats
    source: str
    assumed: str | None = None
    own: bool = False


@dataclass(frozen=True)
class PublicSizes:
    """The public sizes of the data, as declared by the curator.

    Parameters
    ----------
    units : int, optional
        Number of privacy units.
    rows : mapping of str to int
        Number of rows that count, by table; the name of a single table is empty.
    """

    units: int | None = None
    rows: Mapping[str, int] = field(default_factory=dict)

    def of(self, query: LinearQuery, unit: PrivacyUnit) -> RowCounts | None:
        """The rows of a question about a whole table; None if a filter or a choice of groups leaves an unknown part.

        Where each row is a unit, or one row of each unit counts, there are as many rows as units; elsewhere that is an
        assumption.  It is also assumed that groups are equally large, and that a tighter limit changes nothing.
        """
        plan = query.plan
        if plan.where is not None or plan.group_keys is not None or not isinstance(plan.source, str):
            return None
        total, source, assumed = self.rows.get(plan.source), "public_rows", None
        if unit.column is None or query.contribution_bounds.max_rows == 1:
            if self.units is not None and not plan.source:
                total, source = self.units, "public_size"
            elif query.contribution_bounds.max_rows == 1 and unit.max_rows != 1:
                total = None
        elif plan.contribution_bounds != ContributionBounds():
            assumed = "the tighter limits leave out no row"
        if total is None and self.units is not None:
            total, source = self.units, "public_size"
            assumed = f"{self.units:,} units have one row each"
        if total is None:
            return None
        if query.clip_squared is not None:
            assumed = "no unit is scaled down"
        if query.cells > 1:
            assumed = f"{query.cells} groups are equally large" + (f" and {assumed}" if assumed else "")
        return RowCounts(np.full(query.cells, total / query.cells), f"{source}={total}", assumed)


Known = Callable[[Plan], tuple[LinearQuery, CombinedObservations]]
"""Compiles a plan and finds what is known of it."""


def rows_needed(plan: Plan, view: AnyView) -> Single | None:
    """The aggregation whose error depends on a number of rows, if that number is all it depends on."""
    parts = (
        [part.aggregation for part in plan.aggregation.parts] if isinstance(plan.aggregation, JointAggregation) else []
    )
    shown: list[tuple[Measured, AnyView]] = [(plan.aggregation, view)]
    if isinstance(view, ColumnsView):
        shown = [(parts[named.part], named.view) for named in view.columns]
    for aggregation, single in shown:
        if isinstance(aggregation, JointAggregation | Discovery):
            continue
        if isinstance(aggregation, Mean | ModelLoss) or isinstance(single, Proportions):
            return aggregation
        if isinstance(aggregation, Moments) and isinstance(single, MomentsView) and single.statistic in ("mean", "var"):
            return aggregation
    return None


def known_row_counts(
    query: LinearQuery, view: AnyView, public: PublicSizes, unit: PrivacyUnit, known: Known
) -> RowCounts | None:
    """The numbers of rows on which a query's errors depend; None if there are none or they are unknown.

    Tried in this order: the count in earlier observations of the query itself, a released count of the column, a
    released count of rows, the public sizes; if none of them is precise enough, the first that is usable.

    Parameters
    ----------
    query : LinearQuery
        The query.
    view : AnyView
        The statistics computed from it.
    public : PublicSizes
        The public sizes of the data.
    unit : PrivacyUnit
        The privacy unit of the queried table.
    known : callable
        Compiles a plan and finds its observations.
    """
    plan = query.plan
    needed = rows_needed(plan, view)
    if needed is None:
        return None
    counts = [plan.aggregation, *(Count(column) for column in _columns(needed)), Count()]
    found = [
        rows
        for place, counted in enumerate(dict.fromkeys(counts))
        if (rows := _released(query, replace_aggregation(plan, counted), known, own=not place)) is not None
    ]
    figures = public.of(query, unit)
    found += [] if figures is None else [figures]
    clear = [rows for rows in found if rows.assumed is None]
    if clear:  # the first of those that are clear for most groups
        return max(clear, key=lambda rows: int(np.isfinite(rows.each).sum()))
    return found[0] if found else None


def replace_aggregation(plan: Plan, aggregation: object) -> Plan:
    """The same rows and groups, measured otherwise."""
    return msgspec.structs.replace(plan, aggregation=aggregation)


def _columns(needed: Single) -> tuple[Expression, ...]:
    """The columns in which a row must have a value to count."""
    columns = needed.columns if isinstance(needed, Moments) else (getattr(needed, "column", None),)
    return tuple(column for column in columns if column is not None)


def _released(query: LinearQuery, counted: Plan, known: Known, *, own: bool) -> RowCounts | None:
    """The counts that a question's looks give, if they stand clear of the noise."""
    other, refinement = known(counted)
    if not refinement.observations:
        return None
    sums, sigma = refinement.combined()
    for _, first, count in other.parts:
        feature, noisy = noisy_features(other, sums, sigma, first, count)[0]
        if not isinstance(feature, CountFeature):
            continue
        clear = noisy.single > CLEAR_COUNT_RATIO * noisy.scale
        assumed = None if own or query.clip_squared is None else "no unit is scaled down"
        source = f"the released {counted.words}"
        if clear.any():
            return RowCounts(np.where(clear, noisy.single, np.nan), source, assumed, own)
        if (noisy.single > USABLE_COUNT_RATIO * noisy.scale).all():
            return RowCounts(noisy.single, source, f"{source} is right, which has much noise", own)
    return None


def refuse_unknown_error(
    plan: Plan, view: AnyView, rows: RowCounts | None, *, enough: bool, looks: int, alone: bool
) -> NoReturn:
    """Raise an error that names what has to be released before ``within=`` can be used.

    Parameters
    ----------
    plan : Plan
        What is measured.
    view : AnyView
        The statistics computed from it.
    rows : RowCounts, optional
        The known numbers of rows.
    enough : bool
        Whether knowing the number of rows would be enough.
    looks : int
        Number of observations of the query so far.
    alone : bool
        Whether some units may be excluded from a further observation.

    Raises
    ------
    ErrorEstimateUnavailable
    """
    question = describe_plan(plan, view)
    if isinstance(plan.aggregation, Discovery):
        raise ErrorEstimateUnavailable(
            f"within: the width of simultaneous intervals for {question} depends on how many groups are named, which "
            "is not known beforehand; omit simultaneous=True, or choose the budget with mu=, rho=, epsilon= or share="
        )
    if alone:
        raise ErrorEstimateUnavailable(
            f"within: some units may be excluded from a further observation of the {question}, and how many is "
            "private; choose the budget with mu=, rho=, epsilon= or share="
        )
    needed = rows_needed(plan, view)
    told = rows is not None and rows.assumed is None and bool(np.isfinite(rows.each).all())
    if needed is None or not enough or told or (rows is not None and rows.own):
        remedy = "release it with" if not looks else "its observations are not yet precise enough; refine it with"
        raise ErrorEstimateUnavailable(
            f"within: the error of the {question} depends on the answer itself; {remedy} mu=, rho=, epsilon= or "
            "share= first, then use within="
        )
    columns = _columns(needed)
    count = replace_aggregation(plan, Count(columns[0] if len(columns) == 1 else None))
    whole = plan.where is None and not plan.group_by and isinstance(plan.source, str)
    public = ", or create the session with public_rows=" if whole else ""
    group, smallest = (" in each group", "the smallest group") if plan.group_by else ("", "it")
    assumed = f" (assumed that {rows.assumed})" if rows is not None and not looks else ""
    raise ErrorEstimateUnavailable(
        f"within: the error of the {question} depends on how many rows there are{group}, which no released count shows "
        f"clearly enough{assumed}; release the {count.words} first, with a noise scale of at most "
        f"1/{CLEAR_COUNT_RATIO:.0f} of {smallest}{public}, or choose the budget with mu=, rho=, epsilon= or share="
    )
