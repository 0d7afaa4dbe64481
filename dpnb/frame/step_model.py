"""The model of a regression by Newton steps, from a formula or a list of columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import Literal

from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.measurements import RegressionModel
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.formula import MAX_TERMS, FormulaParser, check_category, interaction_of
from dpnb.frame.view import TableView
from dpnb.results.estimates.regression import RegressionTerm, TermFactor

StepFamily = Literal["logistic", "poisson"]
"""Families of regressions that are computed by Newton steps."""


@dataclass(frozen=True)
class StepModel:
    """A regression by Newton steps, and its terms other than the intercept, as they were written."""

    model: RegressionModel
    terms: tuple[RegressionTerm, ...]
    order: tuple[int, ...]  # the number of each term in the model, whose numbers are first; the intercept is 0


def step_model(formula: object, on: list[Expression] | None, family: StepFamily, view: TableView) -> StepModel:
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
    return StepModel(model, tuple(written), tuple(1 + own.index(term) for term in written))


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
