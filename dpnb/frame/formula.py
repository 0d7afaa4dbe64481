"""Models and measurements of regressions on the columns of a view."""

from __future__ import annotations

from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Moments, MomentsView, RegressionModel
from dpnb._plan.regression import FAMILIES, design
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.view import TableView


def model_of(
    outcome: Expression, on: list[Expression], family: object, view: TableView
) -> tuple[RegressionModel, tuple[str, ...]]:
    """A checked model, and the names of its terms: the intercept first, then numbers, then categories.

    Parameters
    ----------
    outcome : expression
    on : list of expression
    family : str
    view : TableView
        The view that has these columns.

    Raises
    ------
    PlanError
        There is no such family, or the columns do not fit it.
    """
    if family not in FAMILIES:
        raise PlanError(f"fit: family must be one of {', '.join(map(repr, FAMILIES))}; got {family!r}")
    if not on:
        raise PlanError("fit: on= must name at least one column; got none")
    kinds = {node: dtype_of(node, view.schema) for node in on}
    numbers = tuple(node for node in on if not isinstance(kinds[node], Categorical | Boolean))
    categories = tuple(node for node in on if isinstance(kinds[node], Categorical | Boolean))
    outcome = outcome if family in ("logistic", "multinomial") else as_number(outcome, view.schema)
    model = RegressionModel(family, outcome, numbers, categories)
    design(model, view.schema)
    terms = [term for node in (*numbers, *categories) for term in _terms(node, view)]
    return model, ("intercept", *terms)


def regression_of(nodes: list[Expression], view: TableView) -> tuple[Moments, MomentsView]:
    """Least squares of the first column on the others, from their second moments.

    Raises
    ------
    PlanError
        A column is named twice, or there is only one.
    """
    if len(nodes) < 2 or len(set(nodes)) != len(nodes):
        raise PlanError("regress: on= must name at least one column, and each column at most once")
    outcome, on = as_number(nodes[0], view.schema), nodes[1:]
    categories = [node for node in on if isinstance(dtype_of(node, view.schema), Categorical | Boolean)]
    numbers = [outcome, *(node for node in on if node not in categories)]
    labels = (view.name_of(outcome), *(term for node in on for term in _terms(node, view)))
    # Sorted, so that correlations and other regressions of the same columns share the measurement.
    columns, indicators = tuple(sorted(numbers, key=words)), tuple(sorted(categories, key=words))
    indices = tuple((*columns, *indicators).index(node) for node in (outcome, *on))
    return Moments(columns, indicators), MomentsView("regression", indices, labels)


def _terms(node: Expression, view: TableView) -> list[str]:
    """The names of the terms of one column: one for each category except the first."""
    name, kind = view.name_of(node), dtype_of(node, view.schema)
    return [f"{name} == {value!r}" for value in kind.values[1:]] if isinstance(kind, Categorical) else [name]
