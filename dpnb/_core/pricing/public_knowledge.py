"""What is publicly known about the rows of a query: their numbers in observations, released counts and public sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import CountFeature, UnitFeature
from dpnb._plan.expressions.nodes import And, AsNumber, Column, Compare, Expression, IsIn, IsNull, Literal, Not, Or
from dpnb._plan.expressions.text import MAX_LISTED, as_code, words
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    LevelCounts,
    Mean,
    Measured,
    ModelLoss,
    Moments,
    MomentsView,
    Proportions,
    Single,
    statistic_of,
    weighted_parts,
)
from dpnb._plan.plan import PerUnit, Plan
from dpnb._plan.privacy_unit import NO_LIMITS, PrivacyUnit
from dpnb.results.estimates.noisy import NoisyArrays, noisy_features
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

    by_cell: Floats  # the fewest; NaN for a group where it is not known precisely enough
    source: str  # in words
    # what is assumed without being released or public; None if a target may use the numbers
    assumption: str | None = None
    from_query: bool = False  # whether they are from earlier observations of the query itself
    rough: Floats | None = None  # precise enough for an assumed error, of more groups than `by_cell` has
    most: Floats | None = None  # the most, where only the number of units is known and the limit on their rows

    @property
    def is_released(self) -> bool:
        """Whether they are from a released count, and not from a public size."""
        return not self.source.startswith("public_")

    @property
    def if_most(self) -> RowCounts | None:
        """The numbers if there are as many rows as there may be; None where they are not a range."""
        return None if self.most is None else replace(self, by_cell=self.most, most=None)

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

        If each row is a unit, or one row of each unit counts, the number of rows is the number of units.  Otherwise
        each unit has from one row to as many as count.  It is also assumed that groups have equal sizes.
        """
        plan, units = query.plan, self.units
        if plan.where is not None or plan.group_keys is not None:
            return None
        if isinstance(plan.source, PerUnit):
            return self._of_units(query, plan.source)
        if not isinstance(plan.source, str):
            return None
        rows, has_one = self.rows.get(plan.source), _rows_per_unit(query, unit) == 1
        tightened = plan.contribution_bounds != NO_LIMITS and unit.max_rows != 1
        if units is not None and (rows is None or tightened or (has_one and not plan.source)):
            assumes = not has_one or bool(plan.source)
            return _rows_of(query, unit, float(units), f"public_size={units}", assumes=assumes, at_most=rows)
        if rows is None or (tightened and has_one):
            return None
        return _evenly(query, rows, f"public_rows={rows}", "the tighter limits exclude no row" if tightened else None)

    def _of_units(self, query: LinearQuery, source: PerUnit) -> RowCounts | None:
        """The numbers of rows where each unit has one: all units, or at most these if a filter came first."""
        if self.units is None or source.keys or source.rows != 1:
            return None
        known = source.where is None and source.source == ""
        return _evenly(
            query, self.units, f"public_size={self.units}", None if known else "every unit has a row in the table"
        )


# --- numbers of rows from a number for the whole table, or from numbers of units --------------------------------------


def _evenly(
    query: LinearQuery, total: float, source: str, assumption: str | None = None, most: float | None = None
) -> RowCounts:
    """A number of rows, or the fewest and the most, divided evenly among the groups."""
    cells = query.cells
    clauses = [
        f"{cells} groups are equally large" if cells > 1 else None,
        assumption,
        "no unit is scaled down" if query.clip_squared is not None else None,
    ]
    return RowCounts(
        np.full(cells, total / cells),
        source,
        " and ".join(filter(None, clauses)) or None,
        most=None if most is None else np.full(cells, most / cells),
    )


def _rows_of(
    query: LinearQuery,
    unit: PrivacyUnit,
    units: float,
    source: str,
    *,
    assumes: bool,
    at_most: float | None = None,
) -> RowCounts:
    """The rows of some units: from one of each to as many as count, and at most `at_most` of all.

    `assumes` says whether units may have no row at all, or more than one.
    """
    limit = _rows_per_unit(query, unit)
    if not assumes:
        return _evenly(query, units, source)
    if limit is None or limit == 1:
        return _evenly(query, units, source, f"{units:,.0f} units have one row each")
    most = units * limit if at_most is None else max(min(units * limit, at_most), units)
    return _evenly(query, units, source, f"{units:,.0f} units have 1 to {limit:,} rows each", most)


def _rows_per_unit(query: LinearQuery, unit: PrivacyUnit) -> int | None:
    """How many rows of a unit count in all groups together; None if nothing limits them."""
    if unit.column is None:
        return 1
    limits = query.contribution_bounds
    in_groups = limits.max_rows_per_group
    if in_groups is not None:
        in_groups *= min(query.cells, limits.max_groups or query.cells)
    return min((limit for limit in (limits.max_rows, in_groups) if limit is not None), default=None)


Known = Callable[[Plan], tuple[LinearQuery, CombinedObservations] | None]
"""The query of a plan and its observations; None without any."""


def rows_needed(plan: Plan, view: AnyView) -> Single | None:
    """The aggregation whose error depends on a number of rows, if that number is all it depends on."""
    shown: list[tuple[Measured, AnyView]] = [(plan.aggregation, view)]
    if isinstance(view, ColumnsView):
        parts = weighted_parts(plan.aggregation)
        shown = [(parts[named.part][0], named.view) for named in view.columns]
    elif isinstance(plan.aggregation, JointAggregation):
        shown = [(statistic_of(plan.aggregation), view)]
    for aggregation, single in shown:
        if isinstance(aggregation, JointAggregation | Discovery):
            continue
        if isinstance(aggregation, Mean | LevelCounts | ModelLoss) or isinstance(single, Proportions):
            return aggregation
        if isinstance(aggregation, Moments) and isinstance(single, MomentsView) and single.statistic in ("mean", "var"):
            return aggregation
    return None


def known_row_counts(
    query: LinearQuery,
    view: AnyView,
    public: PublicSizes,
    unit: PrivacyUnit,
    known: Known,
    counted: Count | None = None,
) -> RowCounts | None:
    """The numbers of rows on which a query's errors depend, or which are `counted`; None if they are unknown.

    Tried in this order: the count in earlier observations of the query itself, a released count of the column, a
    released count of rows, the public sizes.  Of those that are precise enough, the first of those that are so for the
    largest number of groups.  If none is, the first that is usable: one of these counts, a released count of the same
    rows or of their units without the groups, the public sizes.
    """
    plan = query.plan
    needed = counted or rows_needed(plan, view)
    if needed is None:
        return None
    rows = [*(Count(column) for column in _columns(needed)), Count()]
    by_group = [
        _released(query, _counting(plan, counted), known, from_query=not index)
        for index, counted in enumerate(dict.fromkeys([plan.aggregation, *rows]))
    ]
    public_rows = public.of(query, unit)
    precise = [found for found in (*by_group, public_rows) if found is not None and found.assumption is None]
    if precise:
        return max(precise, key=lambda found: int(np.isfinite(found.by_cell).sum()))
    less_known = chain(by_group, _of_all_groups(query, rows, known), _of_units(query, unit, known), [public_rows])
    return next((found for found in less_known if found is not None), None)


def count_needed(plan: Plan, view: AnyView) -> Plan | None:
    """The count that shows the number of rows on which a query's error depends; None if it depends on something else.

    It counts the same rows in the same groups: those with a value in the column, if there is one.
    """
    needed = rows_needed(plan, view)
    if needed is None:
        moments = any(isinstance(part, Moments) for part, _ in weighted_parts(plan.aggregation))
        return _counting(plan, Count()) if moments else None
    columns = _columns(needed)
    return _counting(plan, Count(columns[0] if len(columns) == 1 else None))


def _counting(plan: Plan, aggregation: Measured) -> Plan:
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


def _observed(
    counted: Plan, known: Known, feature_type: type[CountFeature | UnitFeature] = CountFeature
) -> Iterator[NoisyArrays]:
    """The counts in the observations of a plan."""
    if (found := known(counted)) is not None and found[1].observations:
        query, (sums, sigma) = found[0], found[1].combined
        for _, first, count in query.parts:
            feature, noisy = noisy_features(query, sums, sigma, first, count)[0]
            if isinstance(feature, feature_type) and feature.slots == 1:
                yield noisy


def _released(query: LinearQuery, counted: Plan, known: Known, *, from_query: bool) -> RowCounts | None:
    """The counts in the observations of a plan, if they are large compared with the noise."""
    for noisy in _observed(counted, known):
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


def _of_all_groups(query: LinearQuery, rows: list[Count], known: Known) -> Iterator[RowCounts]:
    """The released counts of the same rows without the groups, if they are precise; nothing if groups limit a unit."""
    limits = query.contribution_bounds
    if query.plan.group_keys is None and limits.max_groups is None and limits.max_rows_per_group is None:
        for counted in rows:
            total = msgspec.structs.replace(query.plan, group_by=(), aggregation=counted)
            for number in _precise(total, known, CountFeature):
                yield _evenly(query, number, f"the released {total.words}")


def _of_units(query: LinearQuery, unit: PrivacyUnit, known: Known) -> Iterator[RowCounts]:
    """The rows of the units of which the number is released, without the groups, if it is precise."""
    if query.plan.group_keys is None and not isinstance(query.plan.source, PerUnit):
        total = msgspec.structs.replace(query.plan, group_by=(), aggregation=CountUnits())
        assumes = _rows_per_unit(query, unit) != 1
        for number in _precise(total, known, UnitFeature):
            yield _rows_of(query, unit, number, f"the released {total.words}", assumes=assumes)


def _precise(counted: Plan, known: Known, feature_type: type[CountFeature | UnitFeature]) -> Iterator[float]:
    """The released number, if it is precise."""
    for noisy in _observed(counted, known, feature_type):
        if noisy.single[0] > PRECISE_COUNT_RATIO * noisy.scale[0]:
            yield float(noisy.single[0])
