"""``df.loc``: rows by a condition and columns by name; single rows have no label and are never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NoReturn, TypeVar, overload

from dpnb.errors import PlanError
from dpnb.frame.columns.column_expr import ColumnExpr, filtered
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView

F = TypeVar("F", bound=ColumnLayout)
"""The frame."""


class Loc(UnsupportedOperations, Generic[F]):
    """The indexer of a frame.

    Parameters
    ----------
    frame : Frame

    Examples
    --------
    >>> df.loc[df["age"] > 65, "cost"].mean().description
    'mean of cost where age > 65'
    >>> df.loc[:, ["age", "cost"]]
    <private table: age, cost>
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: F) -> None:
        self._frame = frame

    def _description(self) -> str:
        return "df.loc"

    def _examples(self) -> Mapping[str, str]:
        return examples(self._frame._view)

    @overload
    def __getitem__(self, key: ColumnExpr | slice) -> F: ...
    @overload
    def __getitem__(self, key: tuple[ColumnExpr | slice, str]) -> Series: ...
    @overload
    def __getitem__(self, key: tuple[ColumnExpr | slice, list[str] | slice]) -> F: ...
    def __getitem__(self, key: object) -> Any:
        """``loc[condition]``, ``loc[condition, columns]`` or ``loc[:, columns]``."""
        parts = key if isinstance(key, tuple) else (key, slice(None))
        if len(parts) != 2:
            raise PlanError(f"df.loc: takes rows and columns; got {len(parts)} parts")
        rows, columns = parts
        view = self._rows(rows)
        if isinstance(columns, str):
            return Series(view, view.column(columns))
        names = self._names(view, columns)
        return self._frame._of(view, {name: view.column(name) for name in names})

    def _rows(self, rows: object) -> TableView:
        frame = self._frame
        rows = rows(frame) if callable(rows) and not isinstance(rows, ColumnExpr) else rows
        if isinstance(rows, slice) and rows == slice(None):
            return frame._view
        if isinstance(rows, ColumnExpr):
            return filtered(frame._view, rows)
        raise PlanError(
            f"df.loc[{rows!r}]: rows are selected by a condition, as in {self._example('df.loc[{number} > 1]')}; "
            "single rows have no label and are never shown"
        )

    def _names(self, view: TableView, columns: object) -> list[str]:
        names = list(view.columns)
        if isinstance(columns, slice):
            if columns.step is not None:
                raise PlanError(f"df.loc: a range of columns has no step; got {columns.step!r}; list the columns")
            for end in (columns.start, columns.stop):
                if end is not None:
                    view.column(end)
            first = 0 if columns.start is None else names.index(columns.start)
            last = len(names) if columns.stop is None else names.index(columns.stop) + 1
            return names[first:last]
        if isinstance(columns, list):
            return columns
        raise PlanError(
            f"df.loc: columns are given by a name or a list of names, as in "
            f"{self._example('df.loc[:, [{number_name}]]')}; got {columns!r}"
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise PlanError(
            "df.loc: rows cannot be changed; values are replaced by .where() or .mask(), as in "
            + self._example("df.assign(new={number}.mask({number} > 1, 1))")
        )
