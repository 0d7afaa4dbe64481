"""Models and measurements of regressions on the columns of a view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import product

from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Arithmetic, AsNumber, Compare, Expression, Literal
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Moments, MomentsView, RegressionModel
from dpnb._plan.regression import FAMILIES, design
from dpnb._plan.schema import Key
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.examples import examples
from dpnb.frame.formula_text import Factor, parsed_formula
from dpnb.frame.view import TableView

MAX_TERMS = 60
"""Largest number of terms of a formula, and of values of a category in one: each pair of terms is measured."""


def model_of(
    outcome: Expression, on: list[Expression], family: object, view: TableView
) -> tuple[RegressionModel, tuple[str, ...]]:
    """A checked model, and the names of its terms: the intercept first, then numbers, then categories."""
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


def regression_of(
    nodes: list[Expression],
    view: TableView,
    *,
    categorical: frozenset[Expression] = frozenset(),
    names: Mapping[Expression, str] | None = None,
) -> tuple[Moments, MomentsView]:
    """Least squares of the first column on the others, from their second moments.

    `categorical` are columns of whole numbers that are used as categories; `names` has the names of terms that are not
    columns of the view.
    """
    if len(nodes) < 2 or len(set(nodes)) != len(nodes):
        raise PlanError(
            "regress: on= must name at least one column, and a column can occur only once, as the outcome or in on="
        )
    outcome, on = as_number(nodes[0], view.schema), nodes[1:]
    categories = [
        node for node in on if node in categorical or isinstance(dtype_of(node, view.schema), Categorical | Boolean)
    ]
    numbers = [outcome, *(node for node in on if node not in categories)]
    labels = (view.name_of(outcome), *(term for node in on for term in _terms(node, view, categorical, names or {})))
    # Sorted, so that correlations and other regressions of the same columns share the measurement.
    columns, indicators = tuple(sorted(numbers, key=words)), tuple(sorted(categories, key=words))
    indices = tuple((*columns, *indicators).index(node) for node in (outcome, *on))
    return Moments(columns, indicators), MomentsView("regression", indices, labels)


def regression_of_formula(text: str, view: TableView) -> tuple[Moments, MomentsView]:
    """The regression that a formula describes; see `dpnb.frame.formula_text`."""
    shown = examples(view)
    formula = parsed_formula(text, f"{shown['number_name'][1:-1]} ~ {shown['number2_name'][1:-1]}")
    main = {factor.name: factor for term in formula.terms for factor in term if len(term) == 1}
    nodes, categorical, names = [view.column(formula.outcome)], set(), {}
    for term in formula.terms:
        if len(term) == 1:
            nodes.append(view.column(term[0].name))
            if term[0].categorical:
                _check_category(nodes[-1], view)
                if not isinstance(dtype_of(nodes[-1], view.schema), Categorical | Boolean):
                    categorical.add(nodes[-1])
            continue
        for name, node in _interaction(term, view, main):
            nodes.append(node)
            names[node] = name
        if len(nodes) > MAX_TERMS:
            raise PlanError(f"regress: the formula has more than {MAX_TERMS} terms; leave out interactions")
    return regression_of(nodes, view, categorical=frozenset(categorical), names=names)


def _interaction(
    term: tuple[Factor, ...], view: TableView, main: Mapping[str, Factor]
) -> Iterator[tuple[str, Expression]]:
    """The products of an interaction, with their names: numbers as they are, categories as indicators.

    Refuses a category without a main effect, whose absence would change the meaning of its indicators.
    """
    sides: list[list[tuple[str, Expression]]] = []
    for factor in term:
        node = view.column(factor.name)
        kind = dtype_of(node, view.schema)
        if isinstance(kind, Categorical) or factor.categorical:
            _check_category(node, view)
            values = (public_keys_of(node, view.schema) or ())[1:]
            sides.append([(f"{factor.name} == {value!r}", _indicator(node, value)) for value in values])
        else:
            sides.append([(factor.name, as_number(node, view.schema))])
            if not isinstance(kind, Boolean):
                continue
        if any(other.name not in main for other in term):
            shown = "*".join(f"C({one.name})" if one.categorical else one.name for one in term)
            raise PlanError(
                f"regress: an interaction with the categories of {factor.name!r} needs each of its columns as a term "
                f"too; write {shown} instead of {shown.replace('*', ':')}"
            )
    for combination in product(*sides):
        node = reduce(lambda left, right: Arithmetic("*", left, right), (inner for _, inner in combination))
        yield ":".join(name for name, _ in combination), node


def _indicator(node: Expression, value: Key) -> Expression:
    return AsNumber(Compare("==", node, Literal(value)))


def _check_category(node: Expression, view: TableView) -> None:
    """Refuse a column without a short list of public values."""
    values = public_keys_of(node, view.schema)
    if values is None or len(values) > MAX_TERMS:
        count = "a private set of" if values is None else f"{len(values):,}"
        raise PlanError(
            f"regress: C({view.name_of(node)}) has {count} values; at most {MAX_TERMS} public ones are allowed; "
            "group them first, with dpnb.cut or a list of declared categories"
        )


def _terms(
    node: Expression,
    view: TableView,
    categorical: frozenset[Expression] = frozenset(),
    names: Mapping[Expression, str] | None = None,
) -> list[str]:
    """The names of the terms of one column: one for each category except the first."""
    name, kind = (names or {}).get(node) or view.name_of(node), dtype_of(node, view.schema)
    if isinstance(kind, Categorical) or node in categorical:
        return [f"{name} == {value!r}" for value in (public_keys_of(node, view.schema) or ())[1:]]
    return [name]
