"""Regressions of a frame: from noisy moments, by Newton steps, and by noisy gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Literal, Required, TypedDict, Unpack, cast, get_args, overload

from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.measurements import Count, Family, PlainView, RegressionModel
from dpnb.accounting.exact import Number
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.aggregations import weights_of
from dpnb.frame.columns.column_expr import node_of
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.formula import (
    MAX_TERMS,
    FormulaParser,
    check_category,
    interaction_of,
    model_of,
    query_of_formula,
    regression_of,
)
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView
from dpnb.interactive.descent import FitArguments
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.query.newton import NewtonRegression
from dpnb.query.query import Query
from dpnb.query.regression import RegressionQuery, with_population
from dpnb.results.display import Explanation
from dpnb.results.estimates.linear import RegressionTerm, TermFactor

StepFamily = Literal["logistic", "poisson"]
"""Families of regressions that are computed by Newton steps."""


@dataclass(frozen=True)
class _StepModel:
    """A regression by Newton steps, and its terms other than the intercept, as they were written."""

    model: RegressionModel
    terms: tuple[RegressionTerm, ...]
    order: tuple[int, ...]  # the number of each term in the model, whose numbers are first; the intercept is 0


def _step_model(formula: object, on: list[Expression] | None, family: StepFamily, view: TableView) -> _StepModel:
    """The model of a formula, or of an outcome (an expression) and the columns that explain it."""
    blocks: list[tuple[Expression, tuple[RegressionTerm, ...], bool]] = []
    if on is None:
        parsed = FormulaParser(str(formula), examples(view)).formula()
        if parsed.within is not None:
            raise PlanError(f"regress: fixed effects (| {parsed.within}) are offered for least squares only")
        outcome = view.column(parsed.outcome)
        main = {factor.name: factor for term in parsed.terms for factor in term if len(term) == 1}
        for term in parsed.terms:
            if len(term) == 1:
                blocks.append(_block(view.column(term[0].name), view, categorical=term[0].categorical))
                continue
            products = islice(interaction_of(term, view, main), MAX_TERMS)
            factors = product(*(_factors(view.column(one.name), view, categorical=one.categorical) for one in term))
            blocks += [
                (node, (RegressionTerm(each),), False) for (_, node), each in zip(products, factors, strict=False)
            ]
    else:
        outcome, *nodes = on
        blocks = [_block(node, view) for node in nodes]
    numbers = [block for block in blocks if not block[2]]
    categories = [block for block in blocks if block[2]]
    outcome = outcome if family == "logistic" else as_number(outcome, view.schema)
    model = RegressionModel(
        family, outcome, tuple(node for node, _, _ in numbers), tuple(node for node, _, _ in categories)
    )
    written = [term for _, terms, _ in blocks for term in terms]
    own = [term for _, terms, _ in (*numbers, *categories) for term in terms]
    return _StepModel(model, tuple(written), tuple(1 + own.index(term) for term in written))


def _block(
    node: Expression, view: TableView, *, categorical: bool = False
) -> tuple[Expression, tuple[RegressionTerm, ...], bool]:
    """A column, its terms, and whether it is a category."""
    if categorical:
        check_category(node, view)
    is_category = categorical or isinstance(dtype_of(node, view.schema), Categorical | Boolean)
    factors = _factors(node, view, categorical=categorical)
    return node, tuple(RegressionTerm((factor,)) for factor in factors), is_category


def _factors(node: Expression, view: TableView, *, categorical: bool) -> list[TermFactor]:
    """A number, or the indicators of a category."""
    name, kind = view.name_of(node), dtype_of(node, view.schema)
    if categorical or isinstance(kind, Categorical | Boolean):
        return [TermFactor(name, value) for value in (public_keys_of(node, view.schema) or ())[1:]]
    number = numeric_dtype_of(node, view.schema, "regress")
    return [TermFactor(name, None, number.low, number.high)]


class FitOptions(TypedDict, total=False):
    """The keyword arguments of `Frame.fit`, for its overloads."""

    on: Required[Any]
    family: Required[Family]
    mu: Required[Number]
    steps: Required[int]
    name: str | None
    clip_norm: Number
    learning_rate: Number | None
    chains: int
    public_size: int | None
    check_every: int | None
    check_mu: Number | None
    patience: int
    start: Any


class Regressions(ColumnLayout):
    """The regressions of a frame."""

    __slots__ = ()

    @overload
    def regress(
        self,
        formula: Any = None,
        on: Any = None,
        *,
        family: Literal["linear"] = "linear",
        population: bool = False,
        weights: object = None,
        **options: object,
    ) -> RegressionQuery: ...
    @overload
    def regress(
        self,
        formula: Any,
        on: Any = None,
        *,
        family: Literal["logistic", "poisson"],
        population: bool = True,
        weights: None = None,
        **options: object,
    ) -> NewtonRegression: ...
    def regress(
        self,
        formula: Any = None,
        on: Any = None,
        *,
        family: str = "linear",
        population: bool = False,
        weights: object = None,
        **options: object,
    ) -> RegressionQuery | NewtonRegression:
        """Least squares of one column on others, or a logistic or Poisson regression, from noisy sums.

        Parameters
        ----------
        formula : str or column
            The outcome; or without `on` a formula such as ``"wage ~ school + C(union) + school:exper"``, with names of
            columns, ``+``, ``:``, ``*`` and ``C()``.  It is parsed, never evaluated, and always has an intercept.  With
            ``| person`` at the end, where ``person`` is the privacy unit, it has fixed effects instead: all columns
            are deviations from their mean over the unit's rows in which none of them is missing.
        on : str, column, or list of them, optional
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value except
            the first.  Not with a formula.
        family : {"linear", "logistic", "poisson"}, default "linear"
            Least squares from second moments; or the maximum of a likelihood, by Newton steps.  The outcome of
            ``"logistic"`` is a condition or has two categories, of which the second is predicted; that of ``"poisson"``
            is a number of at least 0.
        population : bool, default False
            Of a linear regression, whether a fifth of the charge measures the sampling error at the released
            coefficients: standard errors that are robust where each row is a unit, and clustered by the privacy unit
            otherwise.  Without it, the answer has standard errors where each row is a unit, for errors of one variance;
            ``.population(...)`` of the answer measures it later.  The other families always measure it.
        weights : str or column, optional
            Of a linear regression, a number of at least 0 by which the square of each row's error is weighted, as in
            ``WLS`` of statsmodels.  The noise is that of rows with the largest weight.  Its standard errors are always
            measured, with `population`: weights say nothing about the variances here.
        **options
            None of the arguments of other libraries is accepted.

        Raises
        ------
        PlanError
            A column cannot be used as a number, or is named twice; or the text is not a formula.

        Examples
        --------
        >>> df.regress("cost ~ age + C(plan)").description
        'regression of cost on age, plan'
        >>> df.regress("cost ~ age + C(plan)", family="poisson").description
        'poisson regression of cost on age, plan'
        >>> answer = df.regress("cost ~ age", population=True).release(mu=0.2)
        >>> answer.conf_int().columns.tolist()
        ['population_low', 'population_high']
        """
        if family != "linear" and weights is not None:
            raise PlanError(
                f"regress: weights are offered for family='linear' only; got {family!r}, whose steps are bounded for "
                "rows that count once; leave them out, or use them as a column of on="
            )
        if family != "linear" and formula is not None and not options:
            return self._stepwise(formula, on, family)
        if formula is None or options:
            got = f"; got {', '.join(options)}" if options else ""
            raise PlanError(
                f"regress: takes the outcome and on=, or a formula{got}; write "
                + self._example("df.regress({number_name}, on=[{number2_name}])")
            )
        if isinstance(formula, str) and "~" in formula and on is None:
            return self._regression(query_of_formula(formula, self._view, self._weights(weights)), population)
        if on is None:
            raise PlanError(
                "regress: on= must name the columns that explain the outcome, as in "
                + self._example("df.regress({number_name}, on=[{number2_name}])")
            )
        columns = [formula, *(on if isinstance(on, list) else [on])]
        nodes = [node_of(self._view, column, "regress") for column in columns]
        asked = regression_of(nodes, self._view, weights=self._weights(weights))
        return self._regression(self._view.query(*asked), population)

    def _weights(self, weights: object) -> Expression | None:
        return None if weights is None else weights_of(self._view, weights, "regress")

    def _regression(self, query: Query, population: object) -> RegressionQuery:
        if not isinstance(population, bool):
            raise PlanError(f"population: must be True or False; got {population!r}")
        return with_population(query) if population else cast("RegressionQuery", query)  # as `regression_or_query` made

    def _stepwise(self, formula: Any, on: Any, family: str) -> NewtonRegression:
        """A regression by Newton steps."""
        if family not in get_args(StepFamily):
            meant = {"binomial": "logistic", "logit": "logistic", "gaussian": "linear", "ols": "linear"}.get(
                str(family).lower()
            )
            did = f"; did you mean {meant!r}?" if meant else "; df.fit has 'multinomial'"
            raise PlanError(f"regress: family must be 'linear', 'logistic' or 'poisson'; got {family!r}{did}")
        if on is None:
            view = self._view.as_table()
            found = _step_model(formula, None, family, view)  # type: ignore[arg-type]  # checked above
        else:
            columns = [formula, *(on if isinstance(on, list) else [on])]
            nodes = [node_of(self._view, column, "regress") for column in columns]
            view, nodes = self._view.as_table_with(nodes)
            found = _step_model(None, nodes, family, view)  # type: ignore[arg-type]  # checked above
        rows = view.query(Count(), PlainView())
        return NewtonRegression(rows.plan, found.model, found.terms, found.order, rows.runner)

    @overload
    def fit(
        self, outcome: Any, *, dry_run: Literal[False] = False, **options: Unpack[FitOptions]
    ) -> GradientDescent: ...
    @overload
    def fit(self, outcome: Any, *, dry_run: Literal[True], **options: Unpack[FitOptions]) -> Explanation: ...
    def fit(
        self,
        outcome: Any,
        *,
        on: Any,
        family: Family,
        mu: Number,
        steps: int,
        name: str | None = None,
        clip_norm: Number = 1.0,
        learning_rate: Number | None = None,
        chains: int = 1,
        public_size: int | None = None,
        check_every: int | None = None,
        check_mu: Number | None = None,
        patience: int = 2,
        start: Any = None,
        dry_run: bool = False,
    ) -> GradientDescent | Explanation:
        """Launch a regression fitted by noisy gradient descent (Feldman and Zrnic 2021, Algorithms 6 and 7).

        The launch itself is free; ``.step()`` and ``.run()`` of the returned object are charged step by step, and a run
        is refused before its first step if its steps do not fit into the budget together.  The coefficients have no
        intervals, and they say so where the descent has not converged.

        A step releases the sum of all units' gradients, each clipped to `clip_norm`, with noise added once to the sum,
        and divides it by a public number of units.  Columns are scaled internally to [-1, 1] by the schema's bounds;
        coefficients are reported in the columns' original units.  The same name and arguments return the same fit in
        any kernel, and repeating its steps is free.

        Parameters
        ----------
        outcome : str or column
            A number; for ``"logistic"`` a condition or a column with two categories (the second is predicted); for
            ``"poisson"`` a number of at least 0; for ``"multinomial"`` a categorical column.
        on : str, column, or list of them
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value except
            the first.  Rows with a missing value in any of the columns are ignored.
        family : {"linear", "logistic", "poisson", "multinomial"}
            The model.
        mu : Number
            Loss of ONE step, > 0; all `steps` together cost mu times the square root of `steps`.
        steps : int
            Maximum number of steps.
        name : str, optional
            Name of the launch; by default a description of the regression.
        clip_norm : Number, default 1
            The norm to which a unit's gradient, summed over its rows, is clipped, in the scaled columns' units.
        learning_rate : Number, optional
            By default a rate that cannot overshoot, whatever the rows are.  It is slow if most values are far from
            their bounds, above all for ``"poisson"``: choose a larger one then.
        chains : int, default 1
            Number of independent descents, whose ends are averaged.  The cost does not depend on it, nor does the noise
            of the average; each descent has more noise.
        public_size : int, optional
            A public number of units, by which the sum is divided; by default the session's `public_size`.
        check_every : int, optional
            Release the prediction error after every `check_every` steps, and stop when it no longer improves.
        check_mu : Number, optional
            Loss of one check; by default `mu`.
        patience : int, default 2
            Stop after this many consecutive checks that do not improve on the best by more than their noise.
        start : mapping or coefficients, optional
            Coefficients by term in the columns' original units, or the ``.coefficients`` of another fit; by default 0.
        dry_run : bool, default False
            Return the cost of a step, how many steps the budget covers and the size of the noise, and launch nothing.

        Returns
        -------
        GradientDescent, or Explanation if `dry_run`

        Raises
        ------
        PlanError
            A column does not fit the family, or is named twice.
        RequestError
            No public number of units is known, or the name is already used for something else.
        InvalidValueError
            A number is out of range.

        Examples
        --------
        >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=5, clip_norm=1.0)
        >>> fit.run().shape
        (2,)
        """
        given_nodes = [node_of(self._view, one, "fit") for one in (outcome, *(on if isinstance(on, list) else [on]))]
        view, nodes = self._view.as_table_with(given_nodes)
        model, terms = model_of(nodes[0], nodes[1:], family, view)
        rows = view.plan(Count())
        given = FitArguments(
            mu, steps, clip_norm, learning_rate, chains, public_size, check_every, check_mu, patience, start
        )
        return self._view.fit(rows, model, terms, given, name=name, dry_run=dry_run)
