"""Regressions within privacy units: fixed effects."""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import DeviationProducts, SlopesView
from dpnb.errors import PlanError
from dpnb.frame.view import TableView
from dpnb.query.query import Query


def query_within_units(view: TableView, unit: str, numbers: Sequence[Expression], names: Sequence[str]) -> Query:
    """Least squares of the first number on the others, each minus its mean over the rows of its privacy unit.

    The rows are those in which no number is missing.
    """
    if unit != view.unit:
        own = "in this session each row is a unit" if view.unit is None else f"write | {view.unit}"
        raise PlanError(f"regress: fixed effects are those of the privacy unit; got | {unit}; {own}")
    if view.max_rows is None:
        raise PlanError("regress: fixed effects need a session with max_rows_per_unit=")
    return view.query(DeviationProducts(tuple(numbers), view.max_rows), SlopesView(tuple(names), unit))
