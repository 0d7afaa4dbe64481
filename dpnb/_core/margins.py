"""A table of groups with its margins: the totals of rows and columns, and the grand total, in one batch."""

from __future__ import annotations

from msgspec.structs import replace

from dpnb._core.batch import PlannedQueries, Within
from dpnb._core.query import Query
from dpnb._plan.plan import group_keys
from dpnb._plan.schema import Schema
from dpnb.accounting.exact import Number
from dpnb.errors import PlanError
from dpnb.results.margins import TableWithMargins, table_with_margins


class MarginsQuery(PlannedQueries):
    """A table of groups with its margins.  Free until it is released.

    Made by :func:`dpnb.crosstab` and :meth:`dpnb.Frame.pivot_table` with ``margins=True``.

    Parameters
    ----------
    cells : Query
        The table.
    n_rows : int
        Number of its levels that are rows; the others, at most one, are columns.
    name : str
        Name of the margins.
    schema : dict
        The columns of the table.

    Raises
    ------
    PlanError
        There are several levels of columns, or one of the keys has the name of the margins.

    Examples
    --------
    >>> query = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True)
    >>> query.preview(share=0.1).fits
    True
    >>> query.release(share=0.1).estimate.shape
    (3, 3)
    """

    __slots__ = ("_name",)

    _released_type = TableWithMargins

    def __init__(self, cells: Query, n_rows: int, name: str, schema: Schema) -> None:
        levels = cells.plan.group_by
        rows, columns = levels[:n_rows], levels[n_rows:]
        if len(columns) > 1:
            raise PlanError(
                f"margins: needs at most one level of columns; got {', '.join(level.name for level in columns)}; move "
                "the others to the rows"
            )
        if any(name in key for key in group_keys(cells.plan, schema)):
            raise PlanError(f"margins_name: {name!r} is also the key of a group; give another name")
        groups = (levels, rows, columns, ()) if rows and columns else (levels, ())
        super().__init__([Query(replace(cells.plan, group_by=part), cells.view, cells.runner) for part in groups])
        self._name = name

    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Within | None = None,
        confidence: Number | None = None,
        simultaneous: bool | None = None,
        final: bool | None = None,
    ) -> TableWithMargins:
        """Answer the table and its margins from one charge; totals of counts and sums add up.

        Parameters
        ----------
        mu, rho, epsilon, share, within, confidence, simultaneous, final : optional
            As for :meth:`dpnb.Batch.release`.

        Raises
        ------
        BudgetExceeded, RequestError, InvalidValueError, ErrorEstimateUnavailable, ExecutionError
            As for :meth:`dpnb.Batch.release`.

        Examples
        --------
        >>> answer = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True).release(share=0.1)
        >>> table = answer.estimate
        >>> bool(abs(table.loc["All", "All"] - table.loc["All"].iloc[:2].sum()) < 1e-6)
        True
        """
        given = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        batch = self._release(given, confidence=confidence, simultaneous=simultaneous, final=final)
        return table_with_margins(batch, self._name)
