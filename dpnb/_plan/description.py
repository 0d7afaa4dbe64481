"""An aggregation in words, for example ``median of mdvis``; groups, rows and limits are `Plan.scope_description`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpnb._plan.expressions.nodes import AsNumber, Column, Cut, Expression, Lookup
from dpnb._plan.expressions.text import explained, name_text, named, words
from dpnb._plan.measurements import (
    AnyView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountActiveUnits,
    CountUnits,
    CumulativeCount,
    DeviationProducts,
    Discovery,
    Gradient,
    Joinable,
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
)
from dpnb._plan.regression import describe_model, is_class

STEP_OF = "step of the "
"""How the description of a step of a regression begins."""

ExpressionText = Callable[[Expression], str]
"""How an expression is written: `explained`, or `spoken` in titles."""

WITH_POPULATION = " with a population interval"
"""What follows the words of a statistic whose sampling error is measured with it."""


def describe_aggregation(aggregation: Measured, view: AnyView, text: ExpressionText = explained) -> str:
    """An aggregation and its view in words, with its expressions as `text` writes them."""
    if isinstance(aggregation, JointAggregation) and products_of(aggregation) is not None:
        statistic = aggregation.parts[0].aggregation
        if isinstance(view, StandardErrorView):
            return f"standard error of the {_words(statistic, PlainView(), text)}"
        return _words(statistic, view, text) + WITH_POPULATION
    if isinstance(view, StepView):
        return STEP_OF + _step_words(aggregation)
    if isinstance(aggregation, JointAggregation):
        parts = [part.aggregation for part in aggregation.parts]
        if isinstance(view, TableOneView):
            return _table_one_words(parts, view)
        described = _described(parts)
        if described and isinstance(view, ColumnsView) and view.title == title_of_description(described):
            return title_of_description(described, text)
        columns = view.columns if isinstance(view, ColumnsView) else ()
        named_parts = {one.part for one in columns}
        shown = [_words(parts[one.part], one.view, text) for one in columns if 0 <= one.part < len(parts)]
        others = [_words(part, PlainView(), text) for at, part in enumerate(parts) if at not in named_parts]
        return ", ".join(dict.fromkeys(shown)) + _also(others) if shown else ", ".join(dict.fromkeys(others))
    return _words(aggregation, view, text)


def _table_one_words(parts: Sequence[Joinable], view: TableOneView) -> str:
    """The variables of a table one, and what is measured of them."""
    shown = {}
    for column, name in zip(view.columns, view.variables, strict=False):  # a view that will be refused may have others
        part = parts[column.part] if 0 <= column.part < len(parts) else None
        match part:
            case Moments((node,), ()):
                shown[name, column.part] = f"mean and deviation of {named(name, node)}"
            case QuantileTree(node):
                shown[name, column.part] = f"quartiles of {named(name, node)}"
            case LevelCounts(node):
                shown[name, column.part] = f"shares of {named(name, node)}"
    others = [
        _words(part, PlainView(), explained)
        for at, part in enumerate(parts)
        if not any(at == used for _, used in shown)
    ]
    return f"table one: {', '.join([*others, *shown.values()])}"


def _step_words(aggregation: Measured) -> str:
    """The regression of a step; a view that will be refused may have anything else."""
    first = aggregation.parts[0].aggregation if isinstance(aggregation, JointAggregation) else aggregation
    return describe_model(first.model) if isinstance(first, ScoreSums) else "regression"


def _also(others: Sequence[str]) -> str:
    """What is measured, and released, although the view does not show it."""
    return f" (also measured: {', '.join(dict.fromkeys(others))})" if others else ""


def title_of_description(columns: Sequence[Expression], text: ExpressionText = words) -> str:
    """The title of the counts, means, deviations and quantiles of some numbers."""
    return f"description of {', '.join(map(text, columns))}"


def _described(parts: Sequence[Joinable]) -> list[Expression]:
    """The numbers of which a joint query has moments and quantiles; none if it has anything else."""
    found: dict[Expression, None] = {}
    for part in parts:
        match part:
            case Moments((node,), ()) | QuantileTree(node):
                found[node] = None
            case _:
                return []
    return list(found)


def _counted(what: str, view: AnyView) -> str:
    """A count, or the shares of one; those of a group's rows name the group."""
    if not isinstance(view, Proportions):
        return f"count of {what}"
    return f"shares of {what} within {view.within}" if view.within else f"shares of {what}"


def _words(aggregation: Single | Discovery, view: AnyView, text: ExpressionText) -> str:
    match aggregation:
        case Count(node) if node is not None:
            return _counted(text(node), view)
        case Count():
            return _counted("rows", view)
        case CumulativeCount(node):
            return f"cumulative count of {'rows' if node is None else text(node)}"
        case CountActiveUnits(label):
            return f"count of active privacy units, {label!r}"
        case CountUnits():
            return _counted("privacy units", view)
        case Sum(AsNumber(condition)) if isinstance(view, PlainView) and _is_condition(condition):
            return f"count of rows with {text(condition)}"
        case Mean(AsNumber(condition)) if isinstance(view, PlainView) and _is_condition(condition):
            return f"share of rows with {text(condition)}"
        case Sum(node):
            return f"{'shares of the sum' if isinstance(view, Proportions) else 'sum'} of {text(node)}"
        case Mean(node):
            return f"{'count' if isinstance(view, MeanCountView) else 'mean'} of {text(node)}"
        case WeightedMean(AsNumber(condition), weights) if _is_condition(condition):
            return f"share of rows with {text(condition)}, weighted by {text(weights)}"
        case WeightedMean(node, weights):
            return f"mean of {text(node)} weighted by {text(weights)}"
        case Ratio(node, denominator):
            return f"ratio of {text(node)} to {text(denominator)}"
        case LevelCounts(node) if isinstance(view, LevelShareView):
            return f"share of value {view.level + 1} of {text(node)}"
        case LevelCounts(node):
            return f"counts of the values of {text(node)}"
        case Moments(columns, categories, weights):
            by = "" if weights is None else f", weighted by {text(weights)}"
            return f"{_moment_words(columns + categories, view, text)}{by}"
        case DeviationProducts(columns):
            return _slope_words(columns, view, text)
        case UnitProducts(columns) if isinstance(view, CoefficientsView):
            terms = f"{len(columns)} terms" if len(columns) > 1 else "term"
            return f"products of a regression's residuals with its {terms}, in pairs, added up for each privacy unit"
        case UnitProducts(columns):
            what = "squares" if aggregation.squares else "products"
            return f"{what} of {', '.join(map(text, columns))}, added up for each privacy unit"
        case ScoreSums(model):
            return f"{aggregation.part} of the {describe_model(model)}"
        case QuantileTree(node):
            return f"{_quantile_words(view, exact=text is explained)} of {text(node)}"
        case Discovery():
            return "groups that enough privacy units have,"
        case Gradient(model):
            return f"gradient of the {describe_model(model)}"
        case ModelLoss(model):
            what = "share of wrong predictions" if is_class(model) else "mean error (of the outcome's range)"
            return f"{what} of a {describe_model(model)}"


def _is_condition(node: Expression) -> bool:
    """Whether an expression that is used as a number is a condition, not a column of numeric categories."""
    return not isinstance(node, Column | Cut | Lookup)


def _slope_words(columns: tuple[Expression, ...], view: AnyView, text: ExpressionText) -> str:
    """A regression within units; the privacy unit has no other name in a plan."""
    if not isinstance(view, SlopesView):
        return f"products of deviations of {', '.join(map(text, columns))} within each unit"
    chosen = list(map(named, view.labels, columns))
    return f"regression of {chosen[0]} on {', '.join(chosen[1:])} within each unit ({name_text(view.within)})"


def _moment_words(columns: tuple[Expression, ...], view: AnyView, text: ExpressionText) -> str:
    if not isinstance(view, MomentsView):
        return f"moments of {', '.join(map(text, columns))}"
    shown = [
        columns[at] for at in view.columns if 0 <= at < len(columns)
    ]  # a view that will be refused may have others
    also = _also([text(node) for at, node in enumerate(columns) if at not in view.columns])
    chosen = list(map(text, shown))
    if view.labels:  # names that the analyst chose
        chosen = list(map(named, view.labels, shown))
    if view.statistic == "regression":
        return f"regression of {', '.join(chosen[:1])} on {', '.join(map(text, shown[1:]))}{also}"
    if view.statistic in ("corr matrix", "cov matrix"):
        kind = "correlations" if view.statistic == "corr matrix" else f"{'sample ' if view.ddof else ''}covariances"
        return f"{kind} of {', '.join(chosen)}{also}"
    name = {"cov": "covariance", "corr": "correlation", "var": "variance", "std": "standard deviation"}
    sample = "sample " if view.ddof else ""  # the usual name of what is divided by the count less 1
    return f"{sample}{name.get(view.statistic, view.statistic)} of {' and '.join(chosen)}{also}"


def _quantile_words(view: AnyView, *, exact: bool) -> str:
    if not isinstance(view, QuantilesView):
        return "quantiles"
    if view.single:
        special = {0.0: "smallest", 0.5: "median", 1.0: "largest"}
        return special.get(view.at[0], f"quantile {view.at[0]:g}" if exact else f"{100 * view.at[0]:.10g}% quantile")
    return f"quantiles {', '.join(f'{at:g}' if exact else f'{100 * at:.10g}%' for at in view.at)}"


def answer_unit(aggregation: Measured, view: AnyView) -> str | None:
    """The unit of an answer and its error, for example ``mdvis``; None for plain numbers and for mixed statistics."""
    if isinstance(view, Proportions | ColumnsView | StepView):
        return None
    match aggregation:
        case CountUnits() | Discovery():
            return "privacy units"
        case Count() | CumulativeCount():
            return "rows"
        case Sum(AsNumber(condition)) if _is_condition(condition):
            return "rows"
        case Gradient() | ModelLoss() | DeviationProducts() | UnitProducts() | ScoreSums() | LevelCounts():
            return None
        case Mean(AsNumber(condition)) if _is_condition(condition):
            return "rows" if isinstance(view, MeanCountView) else None
        case JointAggregation():
            statistic = statistic_of(aggregation)
            return None if statistic is aggregation else answer_unit(statistic, view)
        case WeightedMean(node):
            return None if isinstance(node, AsNumber) and _is_condition(node.inner) else words(node)
        case Ratio():
            return "rows" if isinstance(view, MeanCountView) else None
        case Moments(columns):
            return _moment_unit(columns, view)
        case Mean(node) | Sum(node) | QuantileTree(node):
            return "rows" if isinstance(view, MeanCountView) else words(node)


def _moment_unit(columns: tuple[Expression, ...], view: AnyView) -> str | None:
    if not isinstance(view, MomentsView):
        return None
    if view.statistic == "count":
        return "rows"
    if view.statistic in ("mean", "std"):
        return words(columns[view.columns[0]])
    return f"({words(columns[view.columns[0]])})²" if view.statistic == "var" else None
