"""Weights of rows: columns of numbers of at least 0, with declared bounds."""

from __future__ import annotations

from dpnb._plan.checks import check_weights
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import Count, Sum
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.column_expr import node_of
from dpnb.frame.view import TableView


def weights_of(view: TableView, weights: object, verb: str) -> Expression:
    """The expression of a column of weights, given by name or as a column of the same rows."""
    node = as_number(node_of(view, weights, f"{verb}: weights"), view.schema)
    check_weights(node, view.schema)
    return node


def counted(view: TableView, weights: object) -> Count | Sum:
    """What counts rows: each as 1, or as its weight."""
    return Count() if weights is None else Sum(weights_of(view, weights, "value_counts"))
