"""The check of a plan against the schema, and of a view against its plan, before anything is charged or read.

A plan may come from the methods of a frame, from a ledger, or from a client that wrote it by hand.  All are checked by
the same function, which does not rely on what frames can produce: evaluation of a plan that passes ends, whatever the
rows are, and raises nothing that depends on them.

Estimates are computed after the charge, and again whenever the row of the ledger is read, so a view that does not fit
must be refused before.
"""

from __future__ import annotations

from dpnb._plan.constants import bounds_grid
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Duration, String, Timestamp
from dpnb._plan.expressions.nodes import Cut, Expression, Seconds
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_key_count, public_keys_of
from dpnb._plan.expressions.text import as_operand, words
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountActiveUnits,
    CountUnits,
    CumulativeCount,
    DeviationProducts,
    Discovery,
    Gradient,
    JointAggregation,
    LevelCounts,
    LevelShareView,
    Mean,
    MeanCountView,
    Measured,
    ModelLoss,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Ratio,
    ScoreSums,
    Single,
    SlopesView,
    StandardErrorView,
    StepView,
    Sum,
    TableOneView,
    UnitProducts,
    WeightedMean,
    products_of,
    statistic_of,
    weighted_parts,
)
from dpnb._plan.plan import GroupLevel, Plan, group_keys
from dpnb._plan.regression import MAX_SCORE_TERMS, check_gradient, check_scores, design
from dpnb._plan.structure import check_structure
from dpnb.errors import PlanError
from dpnb.schema import Key, Schema

# --- views ------------------------------------------------------------------------------------------------------------


MAX_QUANTILES = 1000
MAX_COLUMNS = 10_000
"""Largest numbers of quantiles and of named columns in an answer."""

COLUMNS_OF = {"count": 1, "mean": 1, "var": 1, "std": 1, "cov": 2, "corr": 2}
"""Number of columns of each statistic that is one number."""

MATRICES = ("corr matrix", "cov matrix")

WITHOUT_PLAIN_VIEW = (LevelCounts, Moments, Gradient, DeviationProducts, ScoreSums)
"""Measurements of which each statistic has a view of its own."""


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
        if isinstance(view, PlainView | StandardErrorView) and products_of(aggregation) is not None:
            return isinstance(view, PlainView) or isinstance(statistic_of(aggregation), Mean)
        if isinstance(view, StepView):
            return not plan.group_by and _fit_step(aggregation, view, schema)
        if isinstance(view, TableOneView) and not _fit_table_one(plan, view, schema):
            return False
        return isinstance(view, ColumnsView) and _fit_columns(aggregation, view, schema)
    match view:
        case PlainView() if not isinstance(aggregation, UnitProducts):
            return not isinstance(aggregation, WITHOUT_PLAIN_VIEW)
        case Proportions(size=size):
            cells = len(group_keys(plan, schema)) if plan.group_by and _has_shares(aggregation) else 0
            return cells > 0 and (size == 0 or (size > 0 and cells % size == 0))
        case BoundsView():
            return _fit_bounds(plan, view, schema)
        case CoefficientsView(terms, (), 1) if isinstance(aggregation, UnitProducts):
            return len(terms) == len(aggregation.pairs) and not plan.group_by
        case CoefficientsView(terms, classes, chains):
            if not isinstance(aggregation, Gradient):
                return False
            model = design(aggregation.model, schema)
            return (len(terms), classes, chains) == (model.terms, model.classes, len(aggregation.at))
        case ColumnsView():
            return False
        case SlopesView(labels):
            return isinstance(aggregation, DeviationProducts) and len(labels) == len(aggregation.columns)
        case MomentsView(statistic) if statistic in (*MATRICES, "regression") and plan.group_by:
            return False
    return _fit_single(aggregation, view, schema)


def _fit_single(aggregation: Measured, view: AnyView, schema: Schema) -> bool:
    match view:
        case PlainView():
            if isinstance(aggregation, UnitProducts):
                return len(aggregation.pairs) == 1
            return not isinstance(aggregation, WITHOUT_PLAIN_VIEW)
        case MeanCountView():
            return isinstance(aggregation, Mean)
        case LevelShareView(level):
            return isinstance(aggregation, LevelCounts) and 0 <= level < (
                public_key_count(aggregation.column, schema) or 0
            )
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
    if view.ddof not in (0, 1) or (aggregation.weights is not None and view.statistic != "regression"):
        return False
    if view.statistic == "regression":
        total = numbers + len(aggregation.categories)
        if not 2 <= len(columns) <= total or len(set(columns)) != len(columns) or not 0 <= columns[0] < numbers:
            return False
        if not all(0 <= index < total for index in columns):
            return False
        sizes = [len(public_keys_of(node, schema) or ()) - 1 for node in aggregation.categories]
        terms = sum(1 if index < numbers else sizes[index - numbers] for index in columns[1:])
        if terms >= MAX_SCORE_TERMS:  # with the intercept; the work after the charge grows with the fourth power
            raise PlanError(
                f"regress: must have at most {MAX_SCORE_TERMS} terms with the intercept, since each pair of them is "
                f"measured; it has {terms + 1}; leave out terms, or use categories with fewer values"
            )
        return len(view.labels) == 1 + terms
    if not all(0 <= index < numbers for index in columns):
        return False
    if view.statistic in MATRICES:
        return 2 <= len(columns) == len(view.labels) and len(set(columns)) == len(columns)
    return COLUMNS_OF.get(view.statistic) == len(columns)


def _fit_step(aggregation: JointAggregation, view: StepView, schema: Schema) -> bool:
    """Whether the parts are those of one step of a regression, each once and in order."""
    parts = [part.aggregation for part in aggregation.parts]
    kinds = ["score", "information", *(["products"] if view.products else [])]
    if not all(isinstance(part, ScoreSums) for part in parts) or [getattr(part, "part", "") for part in parts] != kinds:
        return False
    steps = {(part.model, part.at) for part in parts if isinstance(part, ScoreSums)}
    return len(steps) == 1 and len(view.terms) == design(parts[0].model, schema, "regress").terms  # type: ignore[union-attr]


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


def _fit_table_one(plan: Plan, view: TableOneView, schema: Schema) -> bool:
    """Whether each column describes something, and the group of reference is one of at most one level of groups.

    Dates have no differences with intervals.
    """
    parts = [part for part, _ in weighted_parts(plan.aggregation)]
    if any(isinstance(part, QuantileTree) and isinstance(part.column, Seconds) for part in parts):
        return False
    if len(view.variables) != len(view.columns) or view.rows or len(plan.group_by) > 1:
        return False
    return view.reference in (group_keys(plan, schema) if plan.group_by else ((),))


# --- the check of a plan against the schema ---------------------------------------------------------------------------


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that is undefined or unbounded under the schema, or that `check_structure` refuses."""
    check_structure(plan)
    for aggregation, _ in weighted_parts(plan.aggregation):
        _check_aggregation(aggregation, schema)
    if isinstance(plan.aggregation, Gradient) and (plan.group_by or plan.contribution_bounds.max_norm is not None):
        raise PlanError(
            f"{plan.words}: a gradient cannot be grouped, and clip_norm= already bounds each unit's norm; leave out "
            "groups and max_norm_per_unit=, or filter the rows by df[...]"
        )
    names = [group.name for group in plan.group_by]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(
                f"{plan.words}: groups must have different names; got {name!r} twice; rename one with .assign()"
            )
    if isinstance(plan.aggregation, Discovery):
        for group in plan.group_by:
            public_keys_of(group.expression, schema)
    elif plan.group_by:
        group_keys(plan, schema)
        if plan.group_keys is not None:
            _check_keys(plan.group_by, plan.group_keys, schema)
    check_filter(plan, schema)


def check_filter(plan: Plan, schema: Schema) -> None:
    """Refuse a plan whose filter is undefined under the schema or is not a condition."""
    if plan.where is not None and not isinstance(dtype_of(plan.where, schema), Boolean):
        raise PlanError(f"{words(plan.where)}: rows must be filtered by a condition, such as df['x'] > 1")


def _check_keys(by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...], schema: Schema) -> None:
    """Refuse keys that are not values of their level; their number and form are checked before."""
    for index, group in enumerate(by):
        kind = dtype_of(group.expression, schema)
        given = {key[index] for key in keys}
        if isinstance(kind, Timestamp | Duration):
            raise PlanError(f"keys: {group.name!r} holds dates; group by a part of them, such as .dt.year")
        if isinstance(kind, String):
            possible = all(isinstance(part, str) for part in given)
        else:
            possible = given <= set(public_keys_of(group.expression, schema) or ())
            if not isinstance(kind, Boolean | Categorical):
                possible = possible and not any(isinstance(key[index], bool) for key in keys)
        if not possible:
            raise PlanError(f"keys: each must be a value that {group.name!r} can have; got another; see its schema")


def check_weights(node: Expression, schema: Schema) -> None:
    """Refuse weights that may be negative, or are all 0."""
    bounds = numeric_dtype_of(node, schema, "weights")
    if bounds.low < 0 or bounds.high <= 0:
        raise PlanError(
            f"weights: must be declared to be at least 0, and not all 0; {words(node)} has the bounds {bounds.low:g} "
            f"to {bounds.high:g}; clip it, as in {as_operand(node)}.clip(0, {bounds.high if bounds.high > 0 else 1:g})"
        )


def _check_aggregation(aggregation: Single | Discovery, schema: Schema) -> None:
    match aggregation:
        case Count(node) | CumulativeCount(node) if node is not None:
            dtype_of(node, schema)
        case Ratio(node, denominator):
            for side in (node, denominator):
                numeric_dtype_of(side, schema, "ratio")
            if isinstance(aggregation, WeightedMean):
                check_weights(denominator, schema)
        case Moments(columns, categories, weights):
            if weights is not None:
                check_weights(weights, schema)
            for node in columns:
                numeric_dtype_of(node, schema, "moments")
            for node in categories:
                if len(public_keys_of(node, schema) or ()) < 2:
                    raise PlanError(f"regress: {words(node)} must have at least two public values; leave it out")
        case LevelCounts(node):
            if not 1 <= (public_key_count(node, schema) or 0) <= MAX_COLUMNS:
                raise PlanError(
                    f"{words(node)}: must have 1 to {MAX_COLUMNS:,} public values to count each of them; count common "
                    "texts with .discover(), and group numbers by .cut()"
                )
        case Gradient() | ModelLoss():
            check_gradient(aggregation, schema)
        case ScoreSums():
            check_scores(aggregation, schema)
        case DeviationProducts(columns):
            for node in columns:
                numeric_dtype_of(node, schema, "regress")
        case UnitProducts(columns):
            for node in columns:
                numeric_dtype_of(node, schema, "population")
        case Sum(node) | Mean(node) | QuantileTree(node):
            numeric_dtype_of(node, schema, {Sum: "sum", Mean: "mean", QuantileTree: "quantiles"}[type(aggregation)])
