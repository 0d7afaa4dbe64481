"""``column.plot``: a histogram is a query, whose answer can be drawn; other figures would draw rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from dpnb._core.query import Query
from dpnb.errors import UnsupportedError
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
