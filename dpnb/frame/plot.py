"""The histograms of a column, and ``column.plot``.

A histogram is a query, whose answer can be drawn; other figures would draw rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from dpnb._core.query import Query
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Count
from dpnb._plan.plan import GroupLevel
from dpnb.errors import UnsupportedError
from dpnb.frame.aggregations import Aggregations
from dpnb.frame.bounds import BoundsQuery, bounds_query
from dpnb.frame.date_bins import cut
from dpnb.frame.remedies import REMEDIES
from dpnb.frame.unsupported import UnsupportedOperations


class Plot(UnsupportedOperations):
    """The accessor of a column.

    Parameters
    ----------
    description : str
        The column in words.
    shown : dict
        Columns for examples.
    histogram : callable
        Makes the query of a histogram from its bins.

    Examples
    --------
    >>> df["age"].plot.hist(bins=5).description
    'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
    """

    __slots__ = ("_histogram", "_shown", "_words")

    def __init__(self, description: str, shown: dict[str, str], histogram: Callable[[object], Query]) -> None:
        self._words, self._shown, self._histogram = description, shown, histogram

    def _description(self) -> str:
        return f"{self._words}.plot"

    def _examples(self) -> dict[str, str]:
        return self._shown

    def hist(self, bins: object = 10, **drawing: object) -> Query:
        """As `dpnb.Series.histogram`; its answer has a `plot`.  Arguments for the drawing have no effect.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df["age"].plot.hist(bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        del drawing
        return self._histogram(bins)

    def __call__(self, kind: str = "line", **drawing: object) -> Query:
        """``plot(kind="hist")`` is `hist`."""
        if kind == "hist":
            return self._histogram(drawing.get("bins", 10))
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(f"{self._description()}: {self._example(REMEDIES['plot'])}")


class Histograms(Aggregations):
    """The methods of a column that count its values in bins."""

    __slots__ = ()

    def histogram(self, bins: object = 10) -> Query:
        """Rows in bins of equal width between the bounds, or between given edges; a bin includes its lower edge.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.

        Examples
        --------
        >>> df["age"].histogram(bins=[0, 18, 65, 100]).description
        'count of rows by cut(age, [0, 18, 65, 100])'
        """
        edges = cut(self, bins, right=False)
        return self._query(Count(), by=(GroupLevel(words(self._node), edges._node),))

    def find_bounds(self) -> BoundsQuery:
        """Narrow bounds for a column whose declared bounds are wide, from one noisy histogram.

        The rows are counted in public bins of 1, 2 and 5 times each power of ten inside the column's bounds.  The
        answer has the smallest range of bins that are above the noise as its `bounds`, and displays it as
        ``dpnb.Bounded(low, high)`` and as ``.clip(low, high)``, to copy into a schema or a query.  With the request's
        ``confidence``, two statements hold together: every bin that is above the noise has rows, and at most the
        displayed number of rows lie outside the bounds.  At any usual mu the outliers of a single unit are not above
        the noise, so by design the range does not extend to them.

        Raises
        ------
        PlanError
            The column is not a number, or its bounds lie within one bin.

        Examples
        --------
        >>> import dpnb
        >>> session = dpnb.Session.rehearse(
        ...     name="people",
        ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
        ...     schema={"wage": dpnb.Bounded(-1e9, 1e9)},
        ... )
        >>> query = session.frame["wage"].find_bounds()
        >>> query.description
        'bounds of wage'
        >>> answer = query.release(share=0.1)
        >>> bounds = answer.bounds or dpnb.Bounded(-1e9, 1e9)
        >>> session.frame["wage"].clip(bounds.low, bounds.high).mean().preview(share=0.1).fits
        True
        """
        return bounds_query(self._view, self._node)

    def hist(self, bins: object = 10, **drawing: object) -> Query:
        """The same as `histogram`; its answer has a `plot`.  Arguments of pandas for the drawing have no effect.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df["age"].hist(bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        del drawing
        return self.histogram(bins)

    @property
    def plot(self) -> Plot:
        """``plot.hist(bins=20)`` is `histogram`; anything else is drawn from a released answer."""
        return Plot(self._description(), self._examples(), self.histogram)
