"""A regression as an analyst writes it, of the columns of a view."""

from __future__ import annotations

from collections.abc import Callable

from dpnb.errors import PlanError
from dpnb.query.aggregations import Model
from dpnb.query.expressions.kinds import Category, Truth, kind_of
from dpnb.query.expressions.nodes import Expression
from dpnb.query.frame.spelling import as_number
from dpnb.query.regression import FAMILIES, design
from dpnb.query.schema import Schema


def model_of(
    outcome: Expression, on: list[Expression], family: object, schema: Schema, name: Callable[[Expression], str]
) -> tuple[Model, tuple[str, ...]]:
    """A checked model, and what its terms are called: the intercept first, then numbers, then categories.

    Parameters
    ----------
    outcome : expression
    on : list of expression
    family : str
    schema : dict
    name : callable
        What the view calls an expression.

    Raises
    ------
    PlanError
        No such family, or columns that do not go with it.
    """
    if family not in FAMILIES:
        raise PlanError(f"fit: family must be one of {', '.join(map(repr, FAMILIES))}; got {family!r}")
    if not on:
        raise PlanError("fit: on= must name at least one column; got none")
    kinds = {node: kind_of(node, schema) for node in on}
    numbers = tuple(node for node in on if not isinstance(kinds[node], Category | Truth))
    categories = tuple(node for node in on if isinstance(kinds[node], Category | Truth))
    outcome = outcome if family in ("logistic", "multinomial") else as_number(outcome, schema)
    model = Model(family, outcome, numbers, categories)
    design(model, schema)
    terms = ["intercept", *map(name, numbers)]
    for node in categories:
        kind = kinds[node]
        if isinstance(kind, Category):
            terms += [f"{name(node)} == {value!r}" for value in kind.values[1:]]
        else:
            terms.append(name(node))
    return model, tuple(terms)
