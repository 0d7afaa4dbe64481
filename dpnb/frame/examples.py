"""Examples in error messages, written with the columns of the analyst's own view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp
from dpnb._plan.expressions.nodes import Column, Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError

if TYPE_CHECKING:
    from dpnb.frame.view import TableView

_PLACEHOLDERS = {"number": "df['x']", "category": "df['g']", "date": "df['d']", "text": "df['t']"}


def examples(view: TableView | None, node: Expression | None = None) -> dict[str, str]:
    """Columns of a view as an analyst writes them, by kind, from the schema alone.

    Parameters
    ----------
    view : TableView or None
        The view; without one, placeholders.
    node : expression, optional
        The column that an error is about: it is the example of its kind.

    Returns
    -------
    dict
        ``number``, ``number2``, ``category``, ``date`` and ``text``, each for example ``df['wage']``; ``number_name``
        and ``category_name``, for example ``'wage'``; ``self``, the column that the error is about; and ``value``, a
        declared category of ``category``, for example ``'yes'``.
    """
    found: dict[str, str] = {}
    value = "'a'"
    if view is not None:
        nodes = ([node] if node is not None else []) + sorted(view.columns.values(), key=lambda own: _rank(own, view))
        for own in nodes:
            kind = _kind(own, view)
            if kind is None:
                continue
            name, dtype = kind
            if name == "category" and name not in found and isinstance(dtype, Categorical):
                value = repr(dtype.values[0])
            written = own_words(own, view)
            if name == "number" and found.get("number", written) != written:
                found.setdefault("number2", written)
            found.setdefault(name, written)
    shown = {**_PLACEHOLDERS, **found}
    shown.setdefault("number2", shown["number"])
    shown["self"] = own_words(node, view) if view is not None and node is not None else shown["number"]
    names = {f"{kind}_name": _name(shown[kind]) for kind in ("number", "number2", "category", "date", "text")}
    return {**shown, **names, "value": value}


def own_words(node: Expression, view: TableView) -> str:
    """A column as ``df['wage']``; any other expression in words, in parentheses."""
    for name, own in view.columns.items():
        if own == node:
            return f"df[{name!r}]"
    return f"df[{node.name!r}]" if isinstance(node, Column) else f"({words(node)})"


def _name(written: str) -> str:
    return written[3:-1] if written.startswith("df[") else "'x'"


def _kind(node: Expression, view: TableView) -> tuple[str, Dtype] | None:
    try:
        dtype = dtype_of(node, view.schema)
    except PlanError:  # an error message must not fail
        return None
    kinds = {Numeric: "number", Categorical: "category", Boolean: "category", Timestamp: "date", String: "text"}
    return (kinds[type(dtype)], dtype) if type(dtype) in kinds else None


def _rank(node: Expression, view: TableView) -> bool:
    """Numbers with fractions first: whole numbers are often codes."""
    kind = _kind(node, view)
    return kind is not None and isinstance(kind[1], Numeric) and kind[1].whole
