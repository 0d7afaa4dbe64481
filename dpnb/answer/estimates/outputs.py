"""What the numbers of an answer are called."""

from __future__ import annotations

from dpnb.query.expressions.nodes import AsNumber, Compare, Expression
from dpnb.query.expressions.words import words
from dpnb.query.plan import AnyView, Columns, FromMoments, Moments, Plan, Quantiles
from dpnb.query.schema import Key


def outputs_of(plan: Plan, view: AnyView) -> tuple[str, tuple[Key, ...]] | None:
    """Name and labels of the numbers of each group; None if there is one without a name."""
    match view:
        case Columns(columns):
            return "statistic", tuple(named.name for named in columns)
        case Quantiles(at, single=False):
            return "quantile", at
        case FromMoments("regression", (_, *predictors)) if isinstance(plan.aggregation, Moments):
            return "term", ("intercept", *(_term(plan.aggregation.columns[place]) for place in predictors))
    return None


def _term(node: Expression) -> str:
    """An indicator is called by its condition."""
    return words(node.inner) if isinstance(node, AsNumber) and isinstance(node.inner, Compare) else words(node)
