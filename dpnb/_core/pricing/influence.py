"""What each row adds to an estimate, at released values: the query that measures the sampling error afterwards.

The influence of a row on a statistic theta = S/N is s - theta m, divided by N: the first-order term of theta in the
row (Huber and Ronchetti 2009, *Robust Statistics*, section 1.5).  A unit's influence is the sum over its rows, and the
variance of theta through sampling is the sum over units of its square.  Released estimates are public, so the
influences are ordinary expressions with constants.  If the estimate differs from the exact value by d, the sum for a
mean of rows that are units is larger by N d^2; in general it differs by a term of the order of d, of either sign.

For the coefficients of a regression, the products of what a unit adds to the sums of x e are measured (`scores_query`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpnb._compile import LinearQuery
from dpnb._compile.lowering import scaled, scaled_weights, weighted_deviation
from dpnb._plan.expressions.nodes import (
    And,
    Arithmetic,
    AsNumber,
    Compare,
    Expression,
    IsNull,
    Literal,
    Lookup,
    Not,
    WithinUnit,
)
from dpnb._plan.expressions.rules import is_zero_or_one, numeric_dtype_of, public_key_count, public_keys_of
from dpnb._plan.measurements import (
    AnyView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountUnits,
    DeviationProducts,
    JointAggregation,
    LevelCounts,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    QuantilesView,
    QuantileTree,
    Ratio,
    SlopesView,
    Sum,
    UnitProducts,
    WeightedAggregation,
    WeightedMean,
    products_of,
)
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import PlanError
from dpnb.results.estimates.least_squares import LeastSquares
from dpnb.results.estimates.linear import terms_of
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.schema import Schema

EstimateOf = Callable[[int, AnyView], IntervalArrays]
"""The estimates of one part of a query."""


def squares_query(
    query: LinearQuery, view: AnyView, unit: PrivacyUnit, schema: Schema, estimate_of: EstimateOf
) -> tuple[Plan, AnyView, list[int]]:
    """The sums of squared influences on numbers of an answer, in the groups of its query, and which numbers these are.

    They are those whose population interval does not follow from the answer, and for which this is offered.
    """
    plan, rows = query.plan, _rows_of_unit(query, unit, schema)
    columns = view.columns if isinstance(view, ColumnsView) else _columns(view)
    missing = [index for index, named in enumerate(columns) if not _is_free(query, named, schema, rows)]
    if products_of(plan.aggregation) is not None or not missing:
        raise PlanError(f"population: the answer has its population interval already; got the {plan.words}")
    found = {
        index: influence
        for index in missing
        if (influence := _Influence(query, schema, estimate_of, columns[index].part).on(columns[index].view))
    }
    if not found:
        raise PlanError(f"population: {NOT_OFFERED}; got the {plan.words}")
    parts = [UnitProducts((node,), rows, squares=True) for node in found.values()]
    source, groups = plan.source, (plan.group_by, plan.group_keys)
    if len(parts) == 1:
        return Plan(parts[0], plan.where, *groups, source=source), PlainView(), [*found]
    joint = JointAggregation(tuple(map(WeightedAggregation, parts)))
    shown = tuple(NamedColumn(columns[index].name, part) for part, index in enumerate(found))
    many = ColumnsView(shown, title="sampling error of several numbers")
    return Plan(joint, plan.where, *groups, source=source), many, [*found]


def scores_query(
    query: LinearQuery, view: AnyView, unit: PrivacyUnit, schema: Schema, coefficients: Sequence[float]
) -> tuple[Plan, AnyView]:
    """The sums of products of what a unit adds to the sums of x e, at some coefficients of a regression.

    With e the residual of a row and x its predictors, scaled by their bounds; within units, x less its mean, of which
    the products with a constant add up to 0.
    """
    plan, rows = query.plan, _rows_of_unit(query, unit, schema)
    match plan.aggregation, view:
        case Moments(columns, categories), MomentsView("regression", (outcome, *places)):
            predictors: list[Expression] = []
            fitted: list[Expression] = [Literal(coefficients[0])]
            for place in places:
                first = 1 + len(predictors)
                if place < len(columns):
                    predictors.append(scaled(columns[place], schema)[0])
                    fitted.append(Arithmetic("*", Literal(coefficients[first]), predictors[-1]))
                    continue
                node = categories[place - len(columns)]
                keys = public_keys_of(node, schema) or ()
                predictors += [AsNumber(Compare("==", node, Literal(key))) for key in keys[1:]]
                of_keys = (0.0, *coefficients[first : first + len(keys) - 1])
                table = tuple((key,) for key in keys)
                fitted.append(Lookup("coefficients", (node,), table, of_keys, min(of_keys), max(of_keys)))
            residual: Expression = _minus(scaled(columns[outcome], schema)[0], _sum(fitted))
            weights = scaled_weights(plan.aggregation, schema)
            residual = residual if weights is None else Arithmetic("*", weights, residual)
            numbers = [residual, *(Arithmetic("*", residual, node) for node in predictors)]
        case DeviationProducts(columns), SlopesView():
            own, *others = [scaled(node, schema)[0] for node in columns]
            residual = _minus(
                own,
                _sum([Arithmetic("*", Literal(value), node) for value, node in zip(coefficients, others, strict=True)]),
            )
            counted = plan.aggregation.complete if plan.where is None else And(plan.where, plan.aggregation.complete)
            deviations = [_minus(node, WithinUnit("mean", node, None, counted)) for node in others]
            numbers = [Arithmetic("*", residual, node) for node in deviations]
        case _:
            raise TypeError(type(plan.aggregation).__name__)
    products = UnitProducts(tuple(numbers), rows)
    names = [term.name for term in terms_of(query, view, schema)[0]]
    shown = CoefficientsView(tuple(f"{names[i]}, {names[j]}" for i, j in products.pairs))
    return Plan(products, plan.where, source=plan.source), shown


def released_coefficients(model: LeastSquares) -> list[float]:
    """The coefficients of scaled numbers, to a hundredth of their noise."""
    return [_rounded(*one) for one in zip(model.scaled.tolist(), model.scaled_noise.tolist(), strict=True)]


def _sum(nodes: Sequence[Expression]) -> Expression:
    """The sum of some nodes, in pairs: a long chain would have too many levels."""
    if len(nodes) == 1:
        return nodes[0]
    half = len(nodes) // 2
    return Arithmetic("+", _sum(nodes[:half]), _sum(nodes[half:]))


NOT_OFFERED = (
    "is not offered for this statistic; use counts, sums, means, ratios, quantiles, variances or correlations, or for "
    "a share the mean of a condition, as in (df['x'] == 'a').mean(population=True)"
)


STATISTIC_WEIGHT = 9.0
"""How much of the charge measures a statistic, for each part that measures its sampling error: a tenth widens the noise
interval by 5%, and leaves the noise of the squares small."""


def with_products(
    query: LinearQuery, unit: PrivacyUnit, schema: Schema, *, always: bool = False
) -> JointAggregation | None:
    """A sum, mean or ratio with the products of its population interval, in one charge.

    None if the interval follows from the answer, unless `always`.
    """
    statistic = query.plan.aggregation
    if not isinstance(statistic, Sum | Mean | Ratio):
        raise TypeError(type(statistic).__name__)
    rows = _rows_of_unit(query, unit, schema)
    if not always and rows == 1 and not isinstance(statistic, Ratio) and is_zero_or_one(statistic.column, schema):
        return None
    terms: tuple[Expression, ...] = (statistic.column,)
    if isinstance(statistic, Mean):
        kind = numeric_dtype_of(statistic.column, schema, "mean")
        terms = (_minus(statistic.column, Literal(kind.low / 2 + kind.high / 2)),)
        terms += () if rows == 1 else (AsNumber(Not(IsNull(statistic.column))),)
    elif isinstance(statistic, WeightedMean):
        terms = (weighted_deviation(statistic, schema)[0], statistic.denominator)
    elif isinstance(statistic, Ratio):
        terms += (statistic.denominator,)
    products = UnitProducts(terms, rows, squares=len(terms) == 1)
    parts = WeightedAggregation(statistic, STATISTIC_WEIGHT), WeightedAggregation(products)
    return JointAggregation(parts)


def _columns(view: AnyView) -> tuple[NamedColumn, ...]:
    """The numbers of a single statistic, each with a view of its own."""
    if isinstance(view, QuantilesView):
        return tuple(NamedColumn(str(q), 0, QuantilesView((q,), single=True)) for q in view.at)
    if isinstance(view, PlainView | MeanCountView | MomentsView):
        return (NamedColumn("", 0, view),)
    raise PlanError(f"population: {NOT_OFFERED}")


def _rows_of_unit(query: LinearQuery, unit: PrivacyUnit, schema: Schema) -> int:
    """The number of rows of a unit that count."""
    by_text = any(public_key_count(level.expression, schema) is None for level in query.plan.group_by)
    if by_text and unit.max_rows != 1:
        raise PlanError("population: is not offered for groups of texts; group by declared categories")
    limits = query.contribution_bounds
    if unit.max_rows is None or limits != ContributionBounds(max_rows=unit.max_rows, max_groups=limits.max_groups):
        raise PlanError(
            "population: needs a session with max_rows_per_unit= and no other limit on the rows that count; got the "
            f"{query.plan.words}; leave out .bound_contributions()"
        )
    return unit.max_rows


def _is_free(query: LinearQuery, named: NamedColumn, schema: Schema, rows: int) -> bool:
    """Whether the sampling error of a number follows from the answer, for units that have up to some rows."""
    aggregation, shown = query.parts[named.part][0], named.view
    if isinstance(aggregation, CountUnits):
        return True
    if isinstance(aggregation, Sum | Mean) and isinstance(shown, PlainView):
        return rows == 1 and is_zero_or_one(aggregation.column, schema)
    if isinstance(aggregation, Moments) and isinstance(shown, MomentsView):
        return rows == 1 and shown.statistic in ("count", "mean")
    return rows == 1 and isinstance(aggregation, Count | LevelCounts | QuantileTree | Mean) and not _is_extreme(shown)


def _is_extreme(view: AnyView) -> bool:
    """Whether a quantile is the smallest or the largest value, which a sample does not show."""
    return isinstance(view, QuantilesView) and view.at[0] in (0, 1)


@dataclass(frozen=True)
class _Influence:
    """The influences on statistics of one part of a query."""

    query: LinearQuery
    schema: Schema
    estimate_of: EstimateOf
    part: int

    def on(self, view: AnyView) -> Expression | None:
        """What a row adds to N times a statistic; None if that is not offered."""
        aggregation = self.query.parts[self.part][0]
        match aggregation, view:
            case (Count() | Mean() | Moments(), _) if _counts(view, aggregation):
                return AsNumber(Literal(True))  # with bounds that differ, as a square needs
            case Sum(column), PlainView():
                return column
            case Mean(column), PlainView():
                return _minus(column, self._constant(view))
            case WeightedMean(column, weights), PlainView():
                return Arithmetic("*", weights, _minus(column, self._constant(view)))
            case Ratio(column, denominator), PlainView():
                return _minus(column, Arithmetic("*", self._constant(view), denominator))
            case QuantileTree(column), QuantilesView((q,)) if not _is_extreme(view):
                return _minus(AsNumber(Compare("<=", column, self._constant(view))), Literal(q))
            case Moments(columns), MomentsView():
                return self._of_moments(columns, view)
        return None

    def _of_moments(self, columns: tuple[Expression, ...], view: MomentsView) -> Expression | None:
        first = columns[view.columns[0]]
        centred = [_minus(columns[at], self._constant(MomentsView("mean", (at,)))) for at in view.columns]
        match view.statistic:
            case "mean":
                return _minus(first, self._constant(view))
            case "var" | "std":
                influence = _minus(_square(centred[0]), self._constant(MomentsView("var", view.columns)))
                if view.statistic == "var":
                    return influence
                return Arithmetic("*", self._inverse(view.columns[0], first, 0.5), influence)
            case "cov":
                return _minus(Arithmetic("*", *centred), self._constant(view))
            case "corr":
                one, other = (
                    Arithmetic("*", self._inverse(at, columns[at]), node)
                    for at, node in zip(view.columns, centred, strict=True)
                )
                both = Arithmetic("+", _square(one), _square(other))
                return _minus(Arithmetic("*", one, other), Arithmetic("*", self._constant(view, 0.5), both))
        return None

    def _inverse(self, of: int, column: Expression, times: float = 1.0) -> Expression:
        """A number divided by the released standard deviation of a column; half its range where that is unknown."""
        kind = numeric_dtype_of(column, self.schema, "population")
        reach = kind.high / 2 - kind.low / 2
        found = self.estimate_of(self.part, MomentsView("std", (of,))).displayed[:, 0].tolist()
        return self._by_group([_shortened(times / (std if std > 0 else reach)) for std in found])

    def _constant(self, view: AnyView, times: float = 1.0) -> Expression:
        """A released estimate of each group, times a number, to a hundredth of its noise; 0 if unknown."""
        found = self.estimate_of(self.part, view)
        pairs = zip(found.displayed[:, 0].tolist(), found.noise_scale[:, 0].tolist(), strict=True)
        return self._by_group(
            [times * _rounded(value, scale) if math.isfinite(value) else 0.0 for value, scale in pairs]
        )

    def _by_group(self, values: list[float]) -> Expression:
        plan, keys = self.query.plan, self.query.keys
        if not keys:
            return Literal(values[0])
        inner = tuple(level.expression for level in plan.group_by)
        names = ", ".join(level.name for level in plan.group_by)
        return Lookup(f"released value by {names}", inner, keys, tuple(values), min(values), max(values))


def _counts(view: AnyView, aggregation: object) -> bool:
    if isinstance(aggregation, Count):
        return isinstance(view, PlainView)
    return isinstance(view, MeanCountView) or (isinstance(view, MomentsView) and view.statistic == "count")


def _minus(left: Expression, right: Expression) -> Expression:
    return Arithmetic("-", left, right)


def _square(node: Expression) -> Expression:
    return Arithmetic("**", node, Literal(2))


def _rounded(value: float, scale: float) -> float:
    """A number with two digits more than its noise has."""
    if not (value and 0 < scale < math.inf):
        return value
    return round(value, min(2 - math.floor(math.log10(scale)), 300))


def _shortened(value: float) -> float:
    return float(f"{value:.4g}")
