"""Released estimates as files, as values of Python and as figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.unreleased import calling_function
from dpnb.errors import AnswerAttributeError, RequestError
from dpnb.results.display import to_latex, to_markdown, to_picture
from dpnb.results.tables.index import OfEstimates, refuse_drawing, refuse_test

# --- figures of an answer ---------------------------------------------------------------------------------------------


KINDS = ("bar", "barh", "hist", "line")
"""The kinds of pandas that are accepted: what is drawn follows from the answer, always with its intervals."""

BARS = ("bar", "barh", "hist")
"""Those of bars, which are drawn for counts and sums alone."""


class Drawn(Protocol):
    """The part of `Estimates` that its figure needs."""

    @property
    def description(self) -> str:
        """The estimated quantity in words."""

    def _refuse_dates(self, verb: str) -> None: ...


class EstimatesPlot:
    """Draws estimates: ``answer.plot()``, or ``answer.plot.bar()`` as in pandas."""

    __slots__ = ("_estimates",)

    def __init__(self, estimates: Drawn) -> None:
        self._estimates = estimates

    def __call__(
        self, *, history: bool = False, title: str | None = None, kind: str | None = None, **drawing: object
    ) -> Any:
        """The numbers with their intervals as a ``plotly.graph_objects.Figure``; free.

        With `history`, the answers after each observation; for released answers only.  What is drawn follows from the
        answer; the figure says so where it is not the `kind` of pandas.  Other arguments of pandas for the drawing are
        refused: the figure can be changed by its own methods.
        """
        if not isinstance(history, bool | np.bool_):
            raise RequestError(f"history: must be True or False; got {history!r}")
        if title is not None and not isinstance(title, str):
            raise RequestError(f"title: must be a text; got {title!r}")
        if drawing:
            raise RequestError(
                f"plot: has no argument {min(drawing)!r}; use history= or title=, or change the figure by its own "
                "methods, as in answer.plot().update_traces(marker_color='red')"
            )
        if kind is not None and kind not in KINDS:
            self._refuse(str(kind))
        self._estimates._refuse_dates("plot")
        return to_picture(self._estimates, bool(history), title, kind)

    def bar(self, *, title: str | None = None, **drawing: Any) -> Any:
        """The figure of ``plot()``, which says so where it has no bars."""
        return self(title=title, kind="bar", **drawing)

    def line(self, *, title: str | None = None, **drawing: Any) -> Any:
        """The figure of ``plot()``, which says that it has no line."""
        return self(title=title, kind="line", **drawing)

    barh = hist = bar

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            self._refuse(name)

    def _refuse(self, kind: str) -> NoReturn:
        raise AnswerAttributeError(
            f".plot.{kind} of {self._estimates.description}: is not offered; use .plot(), which draws the intervals "
            f"too, or .to_pandas()['estimate'].plot.{kind}() without them"
        )


# --- released estimates as files and as values of Python --------------------------------------------------------------


CONSTRUCTORS = ("__init__", "__new__", "__setitem__", "insert", "assign", "from_records")
"""Functions of pandas that make columns of an object, by their positions."""


class Exports(OfEstimates[Any]):
    """pandas' export methods, over the table of `to_pandas`: estimate, low, high and noise_scale of each number.

    ``low`` and ``high`` are the ends of its noise interval; if there are population intervals, ``population_low`` and
    ``population_high`` are theirs.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The estimates without their intervals; refused where pandas would lose their groups too, and to tests."""
        self._refuse_callers()
        return np.array(self.estimate, dtype=dtype)

    def _refuse_callers(self) -> None:
        """Refuse to be numbers for a test or a table, which would lose the noise, the groups or the intervals."""
        refuse_test(self)
        refuse_drawing(self)
        library, function = calling_function() or ("", "")
        if library == "pandas" and function in CONSTRUCTORS:
            raise RequestError(
                f"pandas: a table made from {self.description} itself would have neither its groups nor its intervals; "
                "use .to_pandas(), which has both, or .estimate, which has the groups"
            )

    def to_csv(self, path_or_buf: Any = None, **options: Any) -> str | None:
        """The table of `to_pandas` as CSV: written to a file, or returned as a str without `path_or_buf`.

        Parameters
        ----------
        path_or_buf : str, path or file, optional
        **options
            As for `pandas.DataFrame.to_csv`.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.to_csv().splitlines()[0]
        'plan,estimate,low,high,noise_scale,population_low,population_high'
        """
        return self.to_pandas().to_csv(path_or_buf, **{"index": not self.is_scalar, **options})  # type: ignore[no-any-return]

    def to_dict(self, orient: Any = "index") -> Any:
        """The table of `to_pandas` as a dict: for each label its estimate, low, high and noise_scale.

        Parameters
        ----------
        orient : str, default "index"
            As for `pandas.DataFrame.to_dict`.

        Examples
        --------
        >>> counts = df.groupby("plan").size().release(mu=0.1)
        >>> sorted(counts.to_dict()["free"])
        ['estimate', 'high', 'low', 'noise_scale', 'population_high', 'population_low']
        """
        table: Any = self.to_pandas()
        if self.is_scalar and orient == "index":
            return table.iloc[0].to_dict()
        return table.to_dict(orient)

    def to_json(self, path_or_buf: Any = None, **options: Any) -> str | None:
        """The table of `to_pandas` as JSON: one record for each number; written to a file, or returned as a str.

        Parameters
        ----------
        path_or_buf : str, path or file, optional
        **options
            As for `pandas.DataFrame.to_json`; an interval without an end and an unknown number are null.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.to_json()[:9]
        '[{"plan":'
        """
        table: Any = self.to_pandas()
        if not self.is_scalar:
            same = [name for name in table.index.names if name in table.columns]
            if same and "orient" not in options:
                raise RequestError(
                    f"to_json: the group level {same[0]!r} has the name of a column of the table; give orient='index'"
                )
            table = table if same else table.reset_index()
        return table.to_json(path_or_buf, **{"orient": "records", "date_format": "iso", **options})  # type: ignore[no-any-return]

    def to_markdown(self) -> str:
        """The displayed table as Markdown, with the digits that the noise leaves significant.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> len(answer.to_markdown().splitlines()) > 2
        True
        """
        return to_markdown(self)

    def to_latex(self) -> str:
        r"""The displayed table in LaTeX, with the digits that the noise leaves significant.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> print(answer.to_latex().splitlines()[0])
        \begin{tabular}{lrrr}
        """
        return to_latex(self)

    def to_excel(self, excel_writer: Any, **options: Any) -> None:
        """The table of `to_pandas` as an Excel file.

        Parameters
        ----------
        excel_writer : str, path or pandas.ExcelWriter
        **options
            As for `pandas.DataFrame.to_excel`, which needs openpyxl.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.to_excel("counts.xlsx")  # doctest: +SKIP
        """
        self.to_pandas().to_excel(excel_writer, **{"index": not self.is_scalar, **options})
