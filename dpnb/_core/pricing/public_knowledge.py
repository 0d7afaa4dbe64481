"""What is publicly known about the rows of a query: their numbers in observations, released counts and public sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import CountFeature
from dpnb._plan.expressions.nodes import And, AsNumber, Column, Compare, Expression, IsIn, IsNull, Literal, Not, Or
from dpnb._plan.expressions.text import MAX_LISTED, as_code, words
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    Mean,
    Measured,
    ModelLoss,
    Moments,
    MomentsView,
    Proportions,
    Single,
    statistic_of,
)
from dpnb._plan.plan import PerUnit, Plan, describe_plan
from dpnb._plan.privacy_unit import NO_LIMITS, PrivacyUnit
from dpnb.errors import ErrorEstimateUnavailable
from dpnb.results.estimates.noisy import noisy_features
from dpnb.results.observations import CombinedObservations
from dpnb.schema import Key

# --- a count of rows as an analyst would type it ----------------------------------------------------------------------


SESSION = "session"
"""The name of the session in code that is shown, as in the documentation."""


def count_code(plan: Plan, keys: Sequence[tuple[Key, ...]] | None = None) -> str | None:
    """Code that makes the query of a plan that counts, for example ``session.frame.groupby('g')['x'].count()``.

    None for rows that take more than a line: joins, parts, limits, given or many keys, and computed columns.  `keys`
    are the groups that are counted, instead of those of the plan.
    """
    counted = plan.aggregation
    if not isinstance(counted, Count | CountUnits) or not isinstance(plan.source, str):
        return None
    column = counted.column if isinstance(counted, Count) else None
    groups = [group.expression for group in plan.group_by]
    columns = [*groups, *([] if column is None else [column])]
    if (
        plan.group_keys is not None if keys is None else len(keys) > MAX_LISTED
    ) or plan.contribution_bounds != NO_LIMITS:
        return None
    if not all(isinstance(node, Column) for node in columns) or not (plan.where is None or _is_code(plan.where)):
        return None
    frame = f"{SESSION}.table({plan.source!r})" if plan.source else f"{SESSION}.frame"
    selected = frame if plan.where is None else f"{frame}[{as_code(plan.where, frame)}]"
    if groups:
        labels = [words(node) for node in groups]
        by = repr(labels[0] if len(labels) == 1 else labels)
        listed = None if keys is None else [key[0] if len(key) == 1 else key for key in keys]
        selected += f".groupby({by})" if listed is None else f".groupby({by}, keys={listed!r})"
    if isinstance(counted, CountUnits):
        return f"{selected}.count_units()"
    return f"{selected}.count()" if column is None else f"{selected}[{words(column)!r}].count()"


def _is_code(node: Expression) -> bool:
    """Whether the text of a condition is valid code."""
    match node:
        case Column() | Literal():
            return True
        case Compare(_, left, right) | And(left, right) | Or(left, right):
            return _is_code(left) and _is_code(right)
        case Not(inner) | IsNull(inner):
            return _is_code(inner)
        case IsIn(inner, values):
            return _is_code(inner) and len(values) <= MAX_LISTED
    return False


# --- public knowledge -------------------------------------------------------------------------------------------------


Floats = NDArray[np.float64]

PRECISE_COUNT_RATIO = 30.0
"""A released count above this multiple of its noise scale is precise enough to price a target.

With a true count N and noise of scale s, a target priced with the noisy count n costs (N/n)^2 times what is needed, and
its half-width is n/N times the requested one.  With n >= 30 s, a cost above 1.5 times what is needed requires noise
beyond 6.7 s (N/n > sqrt(1.5)), and a half-width above 1.2 times the requested one noise beyond 5 s (n/N > 1.2, so
N < n/1.2): less than once in three million counts.
"""

ROUGH_COUNT_RATIO = 5.0
"""A released count above this multiple of its noise scale is shown with an assumed error beside precise counts.

The noise changes it by about a fifth.  The noise alone exceeds this in an empty group once in three million counts.
"""

USABLE_COUNT_RATIO = 2.0
"""A released count above this multiple of its noise scale is precise enough for an assumed error."""


@dataclass(frozen=True)
class RowCounts:
    """The numbers of rows from which errors are computed."""

    by_cell: Floats  # NaN for a group where it is not known precisely enough
    source: str  # in words
    # what is assumed without being released or public; None if a target may use the numbers
    assumption: str | None = None
    from_query: bool = False  # whether they are from earlier observations of the query itself
    rough: Floats | None = None  # precise enough for an assumed error, of more groups than `by_cell` has

    @property
    def for_display(self) -> RowCounts:
        """The numbers for an expected error that is shown, with what it assumes; no target may use these."""
        if self.rough is None:
            return self
        noisy = f"{self.source}, which has much noise in some groups, is exact"
        assumption = noisy if self.assumption is None else f"{self.assumption} and {noisy}"
        return RowCounts(self.rough, self.source, assumption, self.from_query)


@dataclass(frozen=True)
class PublicSizes:
    """The public sizes of the data, as declared by the curator."""

    units: int | None = None
    # number of rows that count, by table; the name of a single table is empty
    rows: Mapping[str, int] = field(default_factory=dict)

    def of(self, query: LinearQuery, unit: PrivacyUnit) -> RowCounts | None:
        """The numbers of rows of a query on a whole table; None if a filter or given keys select an unknown part of it.

        If each row is a unit, or one row of each unit counts, the number of rows is the number of units; otherwise this
        is an assumption.  It is also assumed that groups have equal sizes, and that tighter limits have no effect.
        """
        plan = query.plan
        if plan.where is not None or plan.group_keys is not None:
            return None
        if isinstance(plan.source, PerUnit):
            return self._of_units(query, plan.source)
        if not isinstance(plan.source, str):
            return None
        total, source, assumption = self.rows.get(plan.source), "public_rows", None
        if unit.column is None or query.contribution_bounds.max_rows == 1:
            if self.units is not None and not plan.source:
                total, source = self.units, "public_size"
            elif query.contribution_bounds.max_rows == 1 and unit.max_rows != 1:
                total = None
        elif plan.contribution_bounds != NO_LIMITS:
            assumption = "the tighter limits exclude no row"
        if total is None and self.units is not None:
            total, source = self.units, "public_size"
            assumption = f"{self.units:,} units have one row each"
        if total is None:
            return None
        if query.clip_squared is not None:
            assumption = "no unit is scaled down"
        if query.cells > 1:
            assumption = f"{query.cells} groups are equally large" + (f" and {assumption}" if assumption else "")
        return RowCounts(np.full(query.cells, total / query.cells), f"{source}={total}", assumption)

    def _of_units(self, query: LinearQuery, source: PerUnit) -> RowCounts | None:
        """The numbers of rows where each unit has one: all units, or at most these if a filter came first."""
        if self.units is None or source.keys or source.rows != 1:
            return None
        known = source.where is None and source.source == ""
        assumption = None if known else "every unit has a row in the table"
        if query.cells > 1:
            assumption = f"{query.cells} groups are equally large" + (f" and {assumption}" if assumption else "")
        rows = np.full(query.cells, self.units / query.cells)
        return RowCounts(rows, f"public_size={self.units}", assumption)


Known = Callable[[Plan], tuple[LinearQuery, CombinedObservations]]
"""Compiles a plan and returns its observations."""


def rows_needed(plan: Plan, view: AnyView) -> Single | None:
    """The aggregation whose error depends on a number of rows, if that number is all it depends on."""
    parts = (
        [part.aggregation for part in plan.aggregation.parts] if isinstance(plan.aggregation, JointAggregation) else []
    )
    is_joint = isinstance(plan.aggregation, JointAggregation)
    shown: list[tuple[Measured, AnyView]] = [(statistic_of(plan.aggregation) if is_joint else plan.aggregation, view)]
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
    released count of rows, the public sizes.  Of those that are precise enough, the first of those that are so for the
    largest number of groups; if none is, the first that is usable.
    """
    plan = query.plan
    needed = rows_needed(plan, view)
    if needed is None:
        return None
    counts = [plan.aggregation, *(Count(column) for column in _columns(needed)), Count()]
    sources = [
        _released(query, replace_aggregation(plan, counted), known, from_query=not index)
        for index, counted in enumerate(dict.fromkeys(counts))
    ]
    candidates = [rows for rows in (*sources, public.of(query, unit)) if rows is not None]
    precise = [rows for rows in candidates if rows.assumption is None]
    if precise:
        return max(precise, key=lambda rows: int(np.isfinite(rows.by_cell).sum()))
    return candidates[0] if candidates else None


def count_needed(plan: Plan, view: AnyView) -> Plan | None:
    """The count that shows the number of rows on which a query's error depends; None if it depends on something else.

    It counts the same rows in the same groups: those with a value in the column, if there is one.
    """
    needed = rows_needed(plan, view)
    if needed is None:
        return None
    columns = _columns(needed)
    return replace_aggregation(plan, Count(columns[0] if len(columns) == 1 else None))


def replace_aggregation(plan: Plan, aggregation: object) -> Plan:
    """The same rows and groups with another aggregation."""
    return msgspec.structs.replace(plan, aggregation=aggregation)


def _columns(needed: Single) -> tuple[Expression, ...]:
    """The columns in which a row must have a value to count."""
    columns = needed.columns if isinstance(needed, Moments) else (getattr(needed, "column", None),)
    return tuple(_present(column) for column in columns if column is not None)


def _present(node: Expression) -> Expression:
    """A simpler expression that has a value in the same rows: the column of a comparison with a constant."""
    match node:
        case AsNumber(Compare(_, Column() as column, Literal())):
            return column
    return node


def _released(query: LinearQuery, counted: Plan, known: Known, *, from_query: bool) -> RowCounts | None:
    """The counts in the observations of a plan, if they are large compared with the noise."""
    other, refinement = known(counted)
    if not refinement.observations:
        return None
    sums, sigma = refinement.combined
    for _, first, count in other.parts:
        feature, noisy = noisy_features(other, sums, sigma, first, count)[0]
        if not isinstance(feature, CountFeature):
            continue
        precise = noisy.single > PRECISE_COUNT_RATIO * noisy.scale
        assumption = None if from_query or query.clip_squared is None else "no unit is scaled down"
        source = f"the released {counted.words}"
        if precise.any():
            by_cell = np.where(precise, noisy.single, np.nan)
            rough = np.where(noisy.single > ROUGH_COUNT_RATIO * noisy.scale, noisy.single, np.nan)
            more = None if np.isfinite(rough).sum() == precise.sum() else rough
            return RowCounts(by_cell, source, assumption, from_query, more)
        if (noisy.single > USABLE_COUNT_RATIO * noisy.scale).all():
            return RowCounts(noisy.single, source, f"{source}, which has much noise, is exact", from_query)
    return None


def refuse_unknown_error(
    plan: Plan, view: AnyView, rows: RowCounts | None, *, enough: bool, n_observations: int, is_standalone: bool
) -> NoReturn:
    """Raise an error that states what must be released before ``within=`` can be used.

    `enough` says whether knowing the number of rows would be enough, `n_observations` how often the query was observed,
    and `is_standalone` whether some units may be excluded from a further observation.
    """
    description = describe_plan(plan, view)
    if isinstance(plan.aggregation, Discovery):
        raise ErrorEstimateUnavailable(
            f"within: the width of simultaneous intervals for {description} depends on how many groups are named, "
            "which is not known beforehand; omit simultaneous=True, or choose the budget with mu=, rho=, epsilon= or "
            "share="
        )
    if is_standalone:
        raise ErrorEstimateUnavailable(
            f"within: some units may be excluded from a further observation of the {description}, and how many is "
            "private; choose the budget with mu=, rho=, epsilon= or share="
        )
    needed = rows_needed(plan, view)
    rows_known = rows is not None and rows.assumption is None and bool(np.isfinite(rows.by_cell).all())
    if needed is None or not enough or rows_known or (rows is not None and rows.from_query):
        remedy = (
            "release it with" if not n_observations else "its observations are not yet precise enough; refine it with"
        )
        raise ErrorEstimateUnavailable(
            f"within: the error of the {description} depends on the answer itself; {remedy} mu=, rho=, epsilon= or "
            "share= first, then use within="
        )
    count = count_needed(plan, view) or plan
    is_whole_table = plan.where is None and not plan.group_by and isinstance(plan.source, str)
    public = ", or create the session with public_rows=" if is_whole_table else ""
    group, smallest = (" in each group", "the smallest group") if plan.group_by else ("", "it")
    code = count_code(count) or "query.count_needed"
    assumed = f" (assumed that {rows.assumption})" if rows is not None and not n_observations else ""
    raise ErrorEstimateUnavailable(
        f"within: the error of the {description} depends on how many rows there are{group}, which no released count "
        f"shows clearly enough{assumed}; release the {count.words} first ({code}), with a noise scale of "
        f"at most 1/{PRECISE_COUNT_RATIO:.0f} of {smallest}{public}, or choose the budget with mu=, rho=, epsilon= or "
        "share="
    )
