"""The released numbers of regressions: terms, coefficients, and the sampling error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.sensitivity import max_rows_in_cell
from dpnb._plan.expressions import nodes
from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import Arithmetic, AsNumber, Column, Compare, Expression
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.measurements import AnyView, DeviationProducts, Moments, MomentsView, SlopesView, is_regression
from dpnb.errors import RequestError
from dpnb.results.estimates.estimate import deviation_sums, moment_sums
from dpnb.results.estimates.least_squares import LeastSquares, Matrix
from dpnb.results.estimates.noisy import Cells, IntervalArrays, noisy_features
from dpnb.results.estimates.outputs import outputs_of
from dpnb.schema import Key, Schema

if TYPE_CHECKING:
    import pandas as pd


INTERCEPT = "Intercept"

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


@dataclass(frozen=True)
class TermFactor:
    """A factor of a term: a column of numbers, or the indicator of one of its values."""

    column: str
    value: Key | None = None  # of an indicator; None for a number
    low: float = 0.0  # the bounds to which a number is clamped; 0 and 1 for an indicator
    high: float = 1.0

    @property
    def name(self) -> str:
        """The factor as statsmodels names it."""
        if self.value is None:
            return self.column
        return f"{self.column}[T.True]" if self.value is True else f"C({self.column})[T.{self.value}]"

    def of(self, frame: pd.DataFrame) -> Cells:
        """The values of the factor in the rows of a table, NaN where they are missing."""
        if self.column not in frame.columns:
            raise RequestError(
                f"predict: the table must have the column {self.column!r}; it has {', '.join(map(str, frame.columns))}"
            )
        column: Any = frame[self.column]
        missing = column.isna().to_numpy(dtype=bool)
        if self.value is None:
            numbers = np.where(missing, np.nan, column.where(~missing, 0).to_numpy(dtype=np.float64))
            return np.asarray(np.clip(numbers, self.low, self.high))
        return np.where(missing, np.nan, (column == self.value).to_numpy(dtype=bool, na_value=False) * 1.0)


@dataclass(frozen=True)
class RegressionTerm:
    """A term of a regression: the product of its factors; the intercept has none."""

    factors: tuple[TermFactor, ...] = ()

    @property
    def name(self) -> str:
        """The term as statsmodels names it."""
        return ":".join(factor.name for factor in self.factors) or INTERCEPT

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of the term."""
        low, high = 1.0, 1.0
        for factor in self.factors:
            ends = [end * other for end in (low, high) for other in (factor.low, factor.high)]
            low, high = min(ends), max(ends)
        return low, high

    def of(self, frame: pd.DataFrame) -> Cells:
        """The values of the term in the rows of a table."""
        values = np.ones(len(frame))
        for factor in self.factors:
            values = values * factor.of(frame)
        return values


def chosen_terms(terms: Sequence[RegressionTerm], wanted: object) -> list[int]:
    """The indices of terms by their names, or by the names of columns, for all terms of the column alone."""
    names = [term.name for term in terms]
    if wanted is None:
        return [index for index, name in enumerate(names) if name != INTERCEPT]
    listed = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(listed, list | tuple) or not listed:
        raise RequestError(
            f"test: takes the name of a term or a list of names; got {wanted!r}; it has {', '.join(names)}"
        )
    chosen: dict[int, None] = {}
    for name in listed:
        column = name.removeprefix("C(").removesuffix(")") if isinstance(name, str) else name
        own = [
            index
            for index, term in enumerate(terms)
            if term.name == name or (len(term.factors) == 1 and term.factors[0].column == column)
        ]
        if not own:
            raise RequestError(f"test: {name!r} is not a term or column of the regression; it has {', '.join(names)}")
        chosen |= dict.fromkeys(own)
    return list(chosen)


@dataclass(frozen=True, kw_only=True)
class RegressionNumbers:
    """What was released about a regression: public numbers.

    Each single number is an `IntervalArrays` with one cell and one output, with its noise interval.
    """

    family: Literal["linear", "logistic", "poisson"]
    outcome: str
    terms: tuple[RegressionTerm, ...]
    params: Cells  # shape (terms,), NaN where they are unknown
    noise: Matrix  # covariance of the noise of the coefficients
    sampling: Matrix | None = None  # covariance of the coefficients through the sampling of units; None if not known
    errors: str = ""  # how the sampling error was estimated, in words; or why it is not known
    unknown: str | None = None  # why there are no coefficients
    nobs: IntervalArrays | None = None  # number of rows that count
    nobs_words: str = "rows"  # what is counted, and whether the number is released or public
    units: int | None = None  # public number of units in the table, where a unit has several rows
    rsquared: IntervalArrays | None = None
    residual_variance: IntervalArrays | None = None
    notes: tuple[str, ...] = ()  # warnings

    @property
    def standard_errors(self) -> Cells | None:
        """Of noise and sampling together; None if the sampling error is not known."""
        if self.sampling is None:
            return None
        return np.asarray(np.sqrt(np.maximum(np.diag(self.noise + self.sampling), 0.0)))

    def arrays(self, z: float, *, population: bool) -> IntervalArrays:
        """The coefficients with intervals of `z` standard deviations of the noise, or of noise and sampling."""
        scale = np.sqrt(np.maximum(np.diag(self.noise), 0.0))
        error = self.standard_errors if population else scale
        reach = np.full_like(scale, np.nan) if error is None else z * error
        value, low, high, noise = (
            np.asarray(array, np.float64)[None, :]
            for array in (self.params, self.params - reach, self.params + reach, scale)
        )
        unknown = np.isnan(value)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
        return IntervalArrays(value, low, high, noise)


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
