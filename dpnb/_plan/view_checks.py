"""Whether a view can be computed from the measurement of a plan.

Estimates are computed after the charge, and again whenever the row of the ledger is read, so a view that does not fit
must be refused before.
"""

from __future__ import annotations

from dpnb._plan.bounds_grid import bounds_grid
from dpnb._plan.expressions.nodes import Cut
from dpnb._plan.expressions.rules import numeric_dtype_of, public_keys_of
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountActiveUnits,
    CountUnits,
    Gradient,
    JointAggregation,
    Mean,
    MeanCountView,
    Measured,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Single,
    Sum,
)
from dpnb._plan.plan import Plan, group_keys
from dpnb._plan.regression import design
from dpnb._plan.schema import Schema
from dpnb.errors import PlanError

MAX_QUANTILES = 1000
MAX_COLUMNS = 10_000
MAX_TERMS = 1000
"""Largest numbers of quantiles, named columns, and terms of a regression in an answer."""

COLUMNS_OF = {"count": 1, "mean": 1, "var": 1, "std": 1, "cov": 2, "corr": 2}
"""Number of columns of each statistic that is one number."""

MATRICES = ("corr matrix", "cov matrix")


def check_view(plan: Plan, view: AnyView, schema: Schema) -> None:
    """Refuse a view that cannot be computed from the measurement of a plan.

    The plan is one that `check_plan` accepts, and the schema that of its table.
    """
    if not _fits(plan, view, schema):
        raise PlanError(
            f"view: the answer of this aggregation has no such statistic; got {type(view).__name__} of "
            f"{type(plan.aggregation).__name__}; use the methods of a frame"
        )


def _fits(plan: Plan, view: AnyView, schema: Schema) -> bool:
    aggregation = plan.aggregation
    if isinstance(aggregation, JointAggregation):
        return isinstance(view, ColumnsView) and _fit_columns(aggregation, view, schema)
    match view:
        case PlainView():
            return not isinstance(aggregation, Moments | Gradient)
        case Proportions(size=size):
            cells = len(group_keys(plan, schema)) if plan.group_by and _has_shares(aggregation) else 0
            return cells > 0 and (size == 0 or (size > 0 and cells % size == 0))
        case BoundsView():
            return _fit_bounds(plan, view, schema)
        case CoefficientsView(terms, classes, chains):
            if not isinstance(aggregation, Gradient):
                return False
            model = design(aggregation.model, schema)
            return (len(terms), classes, chains) == (model.terms, model.classes, len(aggregation.at))
        case ColumnsView():
            return False
        case MomentsView(statistic) if statistic in MATRICES and plan.group_by:
            return False
    return _fit_single(aggregation, view, schema)


def _fit_single(aggregation: Measured, view: AnyView, schema: Schema) -> bool:
    match view:
        case PlainView():
            return not isinstance(aggregation, Moments | Gradient)
        case MeanCountView():
            return isinstance(aggregation, Mean)
        case QuantilesView(at, single):
            sizes = (1,) if single else range(1, MAX_QUANTILES + 1)
            return isinstance(aggregation, QuantileTree) and len(at) in sizes and all(0 <= q <= 1 for q in at)
        case MomentsView():
            return isinstance(aggregation, Moments) and _fit_moments(aggregation, view, schema)
    return False


def _has_shares(aggregation: Measured) -> bool:
    return isinstance(aggregation, Count | CountUnits | Sum) and not isinstance(aggregation, CountActiveUnits)


def _fit_bounds(plan: Plan, view: BoundsView, schema: Schema) -> bool:
    if plan.aggregation != Count() or len(plan.group_by) != 1 or plan.group_keys is not None:
        return False
    node = plan.group_by[0].expression
    if not isinstance(node, Cut) or not node.right:
        return False
    kind = numeric_dtype_of(node.inner, schema, "find_bounds")
    grid = bounds_grid(kind.low, kind.high, whole=kind.whole)
    return (node.edges, node.labels, view.ranges, view.whole) == (grid.edges, grid.labels, grid.ranges, kind.whole)


def _fit_moments(aggregation: Moments, view: MomentsView, schema: Schema) -> bool:
    numbers, columns = len(aggregation.columns), view.columns
    if view.ddof not in (0, 1):
        return False
    if view.statistic == "regression":
        total = numbers + len(aggregation.categories)
        if not 2 <= len(columns) <= total or len(set(columns)) != len(columns) or not 0 <= columns[0] < numbers:
            return False
        if not all(0 <= index < total for index in columns):
            return False
        sizes = [len(public_keys_of(node, schema) or ()) - 1 for node in aggregation.categories]
        terms = sum(1 if index < numbers else sizes[index - numbers] for index in columns[1:])
        return len(view.labels) == 1 + terms <= 1 + MAX_TERMS
    if not all(0 <= index < numbers for index in columns):
        return False
    if view.statistic in MATRICES:
        return 2 <= len(columns) == len(view.labels) and len(set(columns)) == len(columns)
    return COLUMNS_OF.get(view.statistic) == len(columns)


def _fit_columns(aggregation: JointAggregation, view: ColumnsView, schema: Schema) -> bool:
    if not 1 <= len(view.columns) <= MAX_COLUMNS:
        return False
    if view.rows and len(view.columns) != len(view.rows) * len(view.statistics):
        return False
    for named in view.columns:
        if not 0 <= named.part < len(aggregation.parts):
            return False
        part: Single = aggregation.parts[named.part].aggregation
        if isinstance(named.view, QuantilesView) and not named.view.single:
            return False
        if isinstance(named.view, MomentsView) and named.view.statistic not in COLUMNS_OF:
            return False
        if not _fit_single(part, named.view, schema):
            return False
    return True
