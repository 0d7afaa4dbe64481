"""Figures of a table by their names in pandas: each is a query of what can be drawn, whose answer has a `plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.rules import dtype_of
from dpnb.errors import PlanError
from dpnb.frame.columns.bins import BOX, cut
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.query.query import Query

GROUPED = ("line", "bar", "barh", "area", "scatter")
"""Figures of one column against another: means of the second by the values, or bins, of the first."""


class FramePlot(UnsupportedOperations):
    """What ``.plot`` of a table returns.

    Parameters
    ----------
    frame : Frame
        What is drawn.

    Examples
    --------
    >>> df.plot.scatter("age", "cost", bins=4).description
    'mean of cost by cut(age, [0, 25, 50, 75, 100])'
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def _description(self) -> str:
        return f"{self._frame._description()}.plot"

    def _examples(self) -> dict[str, str]:
        return self._frame._examples()  # type: ignore[no-any-return]

    def scatter(self, x: str, y: str, *, bins: object = 10, **drawing: object) -> Query:
        """The mean of one column by bins of another; points are rows, which are never shown.

        Parameters
        ----------
        x, y : str
            The columns; the values of a category are groups as they are.
        bins : int or list of float, default 10
            As for `dpnb.cut`.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df.plot.scatter("plan", "cost").description
        'mean of cost by plan'
        """
        del drawing
        return self._frame.groupby(self._groups(x, bins))[y].mean()  # type: ignore[no-any-return]

    line = bar = barh = area = scatter

    def hexbin(self, x: str, y: str, *, gridsize: object = 10, **drawing: object) -> Query:
        """The number of rows by bins of two columns, as a two-way table.

        Parameters
        ----------
        x, y : str
            The columns.
        gridsize : int or list of float, default 10
            The bins of each, as for `dpnb.cut`.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df.plot.hexbin("age", "cost", gridsize=2).description
        'count of rows by cut(age, [0, 50, 100]), cut(cost, [0, 1000, 2000])'
        """
        del drawing
        return self._frame.groupby([self._groups(x, gridsize), self._groups(y, gridsize)]).size().unstack()  # type: ignore[no-any-return]

    def hist(self, column: str | None = None, bins: object = 10, **drawing: object) -> Query:
        """As `dpnb.Frame.hist`.

        Parameters
        ----------
        column : str
        bins : int, or list of float or dates, default 10
        **drawing
            As for `dpnb.Frame.hist`.

        Examples
        --------
        >>> df.plot.hist("age", bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        return self._frame.hist(column, bins, **drawing)  # type: ignore[no-any-return]

    def box(self, column: str | None = None, by: object = None, **drawing: object) -> Query:
        """As `dpnb.Frame.boxplot`.

        Parameters
        ----------
        column : str
        by : str, column or list of them, optional
        **drawing
            As for `dpnb.Frame.boxplot`.

        Examples
        --------
        >>> df.plot.box("cost", by="plan").description
        'quantiles 0.05, 0.25, 0.5, 0.75, 0.95 of cost by plan'
        """
        return self._frame.boxplot(column, by, **drawing)  # type: ignore[no-any-return]

    def __call__(self, kind: str = "line", x: Any = None, y: Any = None, **options: Any) -> Query:
        """``plot(kind="scatter", x="age", y="cost")`` is ``plot.scatter("age", "cost")``."""
        if x is not None and y is not None and kind in (*GROUPED, "hexbin"):
            return self.hexbin(x, y, **options) if kind == "hexbin" else self.scatter(x, y, **options)
        raise PlanError(f"{self._description()}: {self._example(REMEDIES['plot'])}")

    def _groups(self, name: object, bins: object) -> Any:
        column = self._frame[name]
        return cut(column, bins) if isinstance(dtype_of(column._node, column._view.schema), Numeric) else column


class Figures:
    """The methods of a table that are figures in pandas."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _example(self, template: str) -> str: ...

    @property
    def plot(self) -> FramePlot:
        """``plot.scatter``, ``plot.hexbin``, ``plot.hist``, ``plot.box`` and others, each a query; see `FramePlot`.

        Examples
        --------
        >>> df.plot.hexbin("age", "cost", gridsize=2).description
        'count of rows by cut(age, [0, 50, 100]), cut(cost, [0, 1000, 2000])'
        """
        return FramePlot(self)

    def hist(self, column: str | None = None, bins: object = 10, **drawing: object) -> Query:
        """`dpnb.Series.histogram` of one column.

        Parameters
        ----------
        column : str
            Name of a numeric column, or of one of dates; required.
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Raises
        ------
        PlanError
            No column is named, or its values are not numbers.

        Examples
        --------
        >>> df.hist("age", bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        del drawing
        if not isinstance(column, str):
            raise PlanError(f"hist: takes one column, as in {self._example('{number}.hist(bins=20)')}; got {column!r}")
        frame: Any = self
        return frame[column].histogram(bins)  # type: ignore[no-any-return]

    def boxplot(self, column: str | None = None, by: Any = None, **drawing: object) -> Query:
        """The quantiles 5%, 25%, 50%, 75% and 95% of one column, by the groups of another.

        Parameters
        ----------
        column : str
            Name of a numeric column; required.
        by : str, column or list of them, optional
            As for `dpnb.Frame.groupby`.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Raises
        ------
        PlanError
            No column is named, its values are not numbers, or the groups are not public.

        Examples
        --------
        >>> df.boxplot("cost", by="plan").description
        'quantiles 0.05, 0.25, 0.5, 0.75, 0.95 of cost by plan'
        """
        del drawing
        if not isinstance(column, str):
            example = self._example("df.boxplot({number_name}, by={category_name})")
            raise PlanError(f"boxplot: takes one column, as in {example}; got {column!r}")
        frame: Any = self
        values = frame[column] if by is None else frame.groupby(by)[column]
        return values.quantile(list(BOX))  # type: ignore[no-any-return]
