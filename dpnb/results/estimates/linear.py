"""The released numbers of a linear regression: its terms, its fit and its sampling error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.linear import max_rows_in_cell
from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import Arithmetic, AsNumber, Column, Compare, Expression
from dpnb._plan.expressions import nodes
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.measurements import AnyView, DeviationProducts, Moments, MomentsView, SlopesView, is_regression
from dpnb.results.estimates.estimate import deviation_sums, moment_sums
from dpnb.results.estimates.least_squares import LeastSquares, Matrix
from dpnb.results.estimates.noisy import Cells, IntervalArrays, noisy_features
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.estimates.regression import RegressionNumbers, RegressionTerm, TermFactor
from dpnb.schema import Key, Schema

HOMOSKEDASTIC = "homoskedastic, plus the noise: each row is a unit, and the errors are assumed to have one variance"
WEIGHTED = "weighted least squares: R-squared is that of weighted squares; the number of rows is not known"
ROBUST = "robust (HC0), plus the noise: each row is a unit, and the errors may have different variances"
CLUSTERED = (
    "clustered by {unit}, plus the noise: its rows may depend on each other, and have errors of different variances"
)
CENSUS = "of the noise alone: in a census there is no sampling error"
WITHIN = "coefficients and R-squared are those of deviations from the means of each unit"
MAX_WEAKEST = 3
"""Of the terms that vary too little, the most that are named."""

NOT_MEASURED = "unknown: the sampling error was not measured"


def least_squares(query: LinearQuery, view: AnyView, sums: Cells, sigma: Cells, schema: Schema) -> LeastSquares:
    """The moments of a regression without groups; `sums` and `sigma` are those of `estimate`."""
    aggregation, first, count = query.parts[0]
    part = noisy_features(query, sums, sigma, first, count)
    match aggregation, view:
        case Moments(), MomentsView("regression", columns):
            return moment_sums(aggregation, part, np.ones_like(sigma), schema).least_squares(*columns)
        case DeviationProducts(), SlopesView():
            return deviation_sums(aggregation, part, schema).least_squares()
    raise TypeError(type(aggregation).__name__)


def sampling_of(
    query: LinearQuery, model: LeastSquares, remaining: float, squares: tuple[Cells, Cells] | None
) -> Matrix | None:
    """Covariance of the coefficients through sampling; None if it is not known.

    `remaining` is the part of the population that was not drawn, and `squares` are the measured products of
    `LeastSquares.robust` with their noise scales, each of shape (1, products).
    """
    if not remaining:
        return np.zeros_like(model.noise)
    if squares is not None:
        return model.robust(squares[0][0], squares[1][0]) * remaining
    rows_are_units = model.intercept and max_rows_in_cell(query.contribution_bounds) == 1 and not is_weighted(query)
    return model.homoskedastic() * remaining if rows_are_units and query.clip_squared is None else None


def is_weighted(query: LinearQuery) -> bool:
    """Whether rows have weights, so that their number is not measured."""
    aggregation = query.parts[0][0]
    return isinstance(aggregation, Moments) and aggregation.weights is not None


def numbers_of(
    query: LinearQuery,
    view: AnyView,
    arrays: IntervalArrays,
    model: LeastSquares,
    z: float,
    schema: Schema,
    *,
    unit: str | None,
    remaining: float,
    squares: tuple[Cells, Cells] | None,
) -> RegressionNumbers:
    """The released numbers of a regression, with coefficients `arrays`, in a table with this privacy unit.

    `z` is the half-width of an interval in standard deviations.
    """
    terms, outcome = terms_of(query, view, schema)
    if not model.is_definite:
        unknown = np.full((len(terms),) * 2, np.nan)
        return RegressionNumbers(
            family="linear", outcome=outcome, terms=terms, params=unknown[0], noise=unknown, errors=NOT_MEASURED,
            unknown=indefinite(terms, model),
        )  # fmt: skip
    sampling = sampling_of(query, model, remaining, squares)
    if not remaining:
        errors = CENSUS
    elif sampling is None:
        errors = NOT_MEASURED
    elif squares is None:
        errors = HOMOSKEDASTIC
    else:
        one_row = unit is None or max_rows_in_cell(query.contribution_bounds) == 1
        errors = ROBUST if one_row else CLUSTERED.format(unit=unit)
    params = arrays.displayed[0]
    counted, variance = None, None
    if model.intercept and not is_weighted(query):
        count, scale = model.count[0], float(np.abs(model.count[1]).max())
        counted = IntervalArrays.of(*(np.array([one]) for one in (count, count - z * scale, count + z * scale, scale)))
        variance = model.residual_variance(z)
    weighted = (WEIGHTED,) if is_weighted(query) else ()
    bounds = numeric_dtype_of(_outcome_of(query, view), schema, "regress")
    return RegressionNumbers(
        family="linear",
        outcome=outcome,
        terms=terms,
        params=params,
        noise=model.noise,
        sampling=sampling,
        errors=errors,
        unknown=indefinite(terms, model) if np.isnan(params).all() else None,
        nobs=counted,
        rsquared=model.rsquared(z),
        residual_variance=variance,
        notes=(*weighted, *beyond_bounds(terms, params, (bounds.low, bounds.high), outcome))
        if model.intercept
        else (WITHIN,),
    )


def indefinite(terms: Sequence[RegressionTerm], model: LeastSquares) -> str:
    """That the matrix of the predictors is not clearly positive definite, in words, and what to do about it."""
    names = " and ".join(terms[index].name for index in model.weakest[:MAX_WEAKEST])
    return (
        f"beside the noise there is too little variation of {names or 'some combination of the predictors'}, alone or "
        "with the other predictors: refine the answer, or ask again with numbers clipped to narrower bounds or with "
        "fewer terms"
    )


def beyond_bounds(
    terms: Sequence[RegressionTerm], params: Cells, bounds: tuple[float, float], outcome: str
) -> tuple[str, ...]:
    """A note if fitted values leave the bounds of the outcome, to which its values are clamped: from bounds alone.

    The values of one category exclude each other; interactions are taken as terms of their own, which can only make
    the range wider.
    """
    if np.isnan(params).any():
        return ()
    low = high = 0.0
    of_category: dict[str, list[float]] = {}
    for term, value in zip(terms, params.tolist(), strict=True):
        if len(term.factors) == 1 and term.factors[0].value is not None:
            of_category.setdefault(term.factors[0].column, [0.0]).append(value)
            continue
        ends = [value * end for end in term.bounds]
        low, high = low + min(ends), high + max(ends)
    low += sum(min(values) for values in of_category.values())
    high += sum(max(values) for values in of_category.values())
    if bounds[0] <= low and high <= bounds[1]:
        return ()
    return (
        f"clamping may bind: within the predictors' bounds, fitted values reach from {low:.4g} to {high:.4g}, but "
        f"{outcome} is clamped to {bounds[0]:g} to {bounds[1]:g}, and the coefficients are those of clamped values; "
        "whether any row has such a fitted value is not known",
    )


# --- terms ------------------------------------------------------------------------------------------------------------


def terms_of(query: LinearQuery, view: AnyView, schema: Schema) -> tuple[tuple[RegressionTerm, ...], str]:
    """The terms of a regression, and the name of its outcome."""
    aggregation = query.parts[0][0]
    match aggregation, view:
        case Moments(columns, categories), MomentsView("regression", places, labels):
            names, terms = iter(labels[1:]), [RegressionTerm()]
            for place in places[1:]:
                if place < len(columns):
                    terms.append(_number(columns[place], next(names), schema))
                else:
                    terms += _indicators(categories[place - len(columns)], schema, names)
            return tuple(terms), labels[0]
        case DeviationProducts(columns), SlopesView(labels):
            return tuple(_number(*one, schema) for one in zip(columns[1:], labels[1:], strict=True)), labels[0]
    raise TypeError(type(aggregation).__name__)


def named_outputs(query: LinearQuery, view: AnyView, schema: Schema) -> tuple[str, tuple[Key, ...]] | None:
    """As `outputs_of`, with the terms of a regression named as by statsmodels, and not as in its plan."""
    if not is_regression(view):
        return outputs_of(view)
    return "term", tuple(term.name for term in terms_of(query, view, schema)[0])


def _outcome_of(query: LinearQuery, view: AnyView) -> Expression:
    aggregation = query.parts[0][0]
    columns = aggregation.columns if isinstance(aggregation, Moments | DeviationProducts) else ()
    return columns[view.columns[0] if isinstance(view, MomentsView) else 0]


def _indicators(node: Expression, schema: Schema, labels: Iterator[str]) -> list[RegressionTerm]:
    """The terms of a category: an indicator of each value except the first."""
    values = (public_keys_of(node, schema) or ())[1:]
    if isinstance(dtype_of(node, schema), Boolean):
        return [RegressionTerm((TermFactor(next(labels), True),))]
    return [RegressionTerm((TermFactor(next(labels).removesuffix(_equals(value)), value),)) for value in values]


def _equals(value: Key) -> str:
    """What follows the name of a category in the label of an indicator."""
    return f" == {value!r}"


def _number(node: Expression, label: str, schema: Schema) -> RegressionTerm:
    """The term of a number: a column, or the product of several, whose names are joined by ``:`` in its label."""
    *names, last = label.split(":")
    factors, inner = [], node
    while names and isinstance(inner, Arithmetic) and inner.operator == "*":
        factors.append(_factor(inner.right, last, schema))
        inner, last = inner.left, names.pop()
    if names:  # the name of a column has a colon
        return RegressionTerm((_factor(node, label, schema),))
    return RegressionTerm((_factor(inner, last, schema), *reversed(factors)))


def _factor(node: Expression, name: str, schema: Schema) -> TermFactor:
    match node:
        case AsNumber(Compare("==", _, nodes.Literal(value))) if name.endswith(_equals(value)):
            return TermFactor(name.removesuffix(_equals(value)), value)
        case AsNumber(Column() as inner) if isinstance(dtype_of(inner, schema), Boolean):
            return TermFactor(name, True)
    number = numeric_dtype_of(node, schema, "regress")
    return TermFactor(name, None, number.low, number.high)
